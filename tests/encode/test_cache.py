"""Frozen output is computed once per content, in memory and on disk."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ronid.encode.cache import FrozenCache, content_key

CPU = torch.device("cpu")


class Filler:
    """Fills tensors with a value and counts how often it was asked to."""

    def __init__(self, value: float = 1.0) -> None:
        self.value = value
        self.calls = 0

    def __call__(self, out: Tensor) -> None:
        self.calls += 1
        out.fill_(self.value)


Fetch = Callable[[FrozenCache, str, Callable[[Tensor], None]], Tensor]


def fetch(cache: FrozenCache, key: str, compute: Callable[[Tensor], None], rows: int = 3) -> Tensor:
    return cache.get(key, (rows, 2), torch.float32, compute, CPU)


@given(parts=st.lists(st.text(), min_size=1, max_size=4), cut=st.integers(0, 3))
def test_key_tells_apart_the_same_letters_in_other_parts(parts: list[str], cut: int) -> None:
    assert content_key(parts) == content_key(list(parts))
    assert content_key(parts) != content_key([*parts, ""])
    joined = ["".join(parts)]
    if joined != parts:
        assert content_key(joined) != content_key(parts)


def test_golden_key() -> None:
    assert content_key(["a", b"b"]) == content_key([b"a", "b"])
    assert content_key(["ab"]) == "5dff2b3fa79721a8181b9beb1db6bcce"


@pytest.mark.parametrize("on_disk", [False, True])
def test_second_request_is_a_hit(tmp_path: Path, on_disk: bool) -> None:
    cache = FrozenCache(tmp_path / "cache" if on_disk else None)
    compute = Filler()
    first, second = fetch(cache, "a", compute), fetch(cache, "a", compute)
    assert torch.equal(first, torch.ones(3, 2))
    assert torch.equal(first, second)
    assert (compute.calls, cache.hits) == (1, 1)
    fetch(cache, "b", compute)
    assert compute.calls == 2


def test_file_serves_a_later_process(tmp_path: Path) -> None:
    fetch(FrozenCache(tmp_path), "a", Filler(5.0))
    compute, later = Filler(9.0), FrozenCache(tmp_path)
    assert torch.equal(fetch(later, "a", compute), torch.full((3, 2), 5.0))
    assert (compute.calls, later.hits) == (0, 1)


def test_interrupted_computation_leaves_nothing_behind(tmp_path: Path) -> None:
    def killed(out: Tensor) -> None:
        out[0] = 7.0
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(FrozenCache(tmp_path), "a", killed)
    assert list(tmp_path.iterdir()) == []
    compute = Filler()
    assert torch.equal(fetch(FrozenCache(tmp_path), "a", compute), torch.ones(3, 2))
    assert compute.calls == 1


def test_half_written_file_of_a_killed_process_is_not_used(tmp_path: Path) -> None:
    fetch(FrozenCache(tmp_path), "a", Filler(5.0))
    whole = (tmp_path / "a.bin").read_bytes()
    (tmp_path / "a.bin").rename(tmp_path / "a.4711.partial")  # killed before the rename
    compute = Filler()
    assert torch.equal(fetch(FrozenCache(tmp_path), "a", compute), torch.ones(3, 2))
    assert compute.calls == 1
    (tmp_path / "a.bin").write_bytes(whole[:7])  # or a disk that was full
    assert torch.equal(fetch(FrozenCache(tmp_path), "a", compute), torch.ones(3, 2))
    assert compute.calls == 2


def test_file_of_another_shape_is_not_used(tmp_path: Path) -> None:
    fetch(FrozenCache(tmp_path), "a", Filler(5.0))
    compute = Filler()
    assert fetch(FrozenCache(tmp_path), "a", compute, rows=4).shape == (4, 2)
    assert compute.calls == 1


def test_memory_lets_go_of_the_oldest() -> None:
    cache, compute = FrozenCache(memory_bytes=50), Filler()
    for key in "abc":  # 24 bytes each
        fetch(cache, key, compute)
    fetch(cache, "c", compute)
    fetch(cache, "b", compute)
    assert compute.calls == 3
    fetch(cache, "a", compute)
    assert compute.calls == 4


def test_one_tensor_over_the_bound_is_still_kept() -> None:
    cache, compute = FrozenCache(memory_bytes=1), Filler()
    fetch(cache, "a", compute)
    fetch(cache, "a", compute)
    assert compute.calls == 1
