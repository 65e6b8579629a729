"""Lent labels, against plain loops."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ronid.assign.donate import donated_labels


def naive(points: Tensor, targets: Tensor, clusters: Tensor, count: int) -> list[int]:
    unit = points / points.norm(dim=1, keepdim=True)
    out, best = targets.tolist(), [-2.0] * len(points)
    for i in range(len(points)):
        if targets[i] < 0:
            continue
        like = [
            (float(unit[i] @ unit[j]), j)
            for j in range(len(points))
            if targets[j] < 0 and clusters[i] == clusters[j]
        ]
        for cosine, j in sorted(like, reverse=True)[:count]:
            if cosine > best[j]:
                best[j], out[j] = cosine, int(targets[i])
    return out


@given(
    n=st.integers(1, 30),
    count=st.integers(0, 4),
    block=st.sampled_from([1, 3, 512]),
    seed=st.integers(0, 9999),
)
def test_labels_are_those_of_a_loop(n: int, count: int, block: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(n, 5, generator=generator, dtype=torch.float64)
    targets = torch.randint(-3, 4, (n,), generator=generator).clamp(min=-1)
    clusters = torch.randint(3, (n,), generator=generator)
    found = donated_labels(points, targets, clusters, count, block_rows=block)
    assert found.tolist() == naive(points, targets, clusters, count)


@given(n=st.integers(1, 30), count=st.integers(0, 4), seed=st.integers(0, 9999))
def test_given_labels_stay_and_only_so_many_are_lent(n: int, count: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    points = torch.randint(-1, 2, (n, 2), generator=generator).float()  # ties and zero vectors
    targets = torch.randint(-2, 3, (n,), generator=generator).clamp(min=-1)
    clusters = torch.randint(2, (n,), generator=generator)
    found = donated_labels(points, targets, clusters, count)
    given_ = targets >= 0
    assert found[given_].equal(targets[given_])
    lent = (found >= 0) & ~given_
    assert int(lent.sum()) <= count * int(given_.sum())
    for j in lent.nonzero()[:, 0]:
        givers = given_ & (clusters == clusters[j])
        assert found[j] in targets[givers]


def test_golden_labels() -> None:
    angles = torch.tensor([0.0, 0.1, 0.2, 1.0, 1.2, 3.0])
    points = torch.stack([angles.cos(), angles.sin()], dim=1) * torch.arange(1, 7)[:, None]
    targets = torch.tensor([5, -1, -1, 2, -1, -1])
    together = torch.zeros(6, dtype=torch.int64)
    assert donated_labels(points, targets, together, 1).tolist() == [5, 5, -1, 2, 2, -1]
    assert donated_labels(points, targets, together, 2).tolist() == [5, 5, 5, 2, 2, -1]
    apart = torch.tensor([0, 1, 0, 0, 1, 1])  # both are left with the third point, nearer to 5
    assert donated_labels(points, targets, apart, 1).tolist() == [5, -1, 5, 2, -1, -1]


def test_equally_similar_givers_are_settled_by_the_smaller_label_in_any_blocks() -> None:
    points, together = torch.ones(3, 2), torch.zeros(3, dtype=torch.int64)
    for targets in ([7, -1, 3], [3, -1, 7]):
        for block in (1, 2):
            found = donated_labels(points, torch.tensor(targets), together, 1, block_rows=block)
            assert found[1] == 3


def test_nothing_to_lend_and_nobody_to_lend_to() -> None:
    points, clusters = torch.ones(3, 2), torch.zeros(3, dtype=torch.int64)
    for targets in (torch.tensor([-1, -1, -1]), torch.tensor([0, 1, 0])):
        found = donated_labels(points, targets, clusters, 2)
        assert found.equal(targets)
        assert found is not targets
