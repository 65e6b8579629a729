"""A checkpoint comes back as it went, or says why not."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from ronid.errors import RonidError
from ronid.train.checkpoint import Checkpoint


def test_round_trip_is_exact(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "deep" / "fit.safetensors")
    assert checkpoint.load() is None
    weights = torch.randn(4, 3)
    tensors = {"a/b": weights, "view": weights.T, "count": torch.tensor([3]), "p": weights.double()}
    values = {"stage": "em", "epoch": 2, "history": [{"loss": 0.1 + 0.2, "name": "é"}]}
    checkpoint.save(tensors, values)
    saved = checkpoint.load()
    assert saved is not None
    assert saved.values == values
    assert set(saved.tensors) == set(tensors)
    for name, tensor in tensors.items():
        assert torch.equal(saved.tensors[name], tensor)
        assert saved.tensors[name].dtype == tensor.dtype
    assert [path.name for path in checkpoint.path.parent.iterdir()] == ["fit.safetensors"]


def test_save_replaces_the_whole_file(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "fit.safetensors")
    checkpoint.save({"old": torch.zeros(2)}, {"n": 1})
    checkpoint.save({"new": torch.ones(2)}, {"n": 2})
    saved = checkpoint.load()
    assert saved is not None
    assert list(saved.tensors) == ["new"]
    assert saved.values == {"n": 2}


def test_kill_while_writing_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = Checkpoint(tmp_path / "fit.safetensors")
    checkpoint.save({"a": torch.zeros(2)}, {"n": 1})

    def killed(_tensors: object, path: str, **_: object) -> None:
        Path(path).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr("ronid.train.checkpoint.save_file", killed)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.save({"a": torch.ones(2)}, {"n": 2})
    saved = checkpoint.load()
    assert saved is not None
    assert saved.values == {"n": 1}


def test_damaged_file_is_refused(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "fit.safetensors")
    checkpoint.save({"a": torch.zeros(200)}, {"n": 1})
    whole = checkpoint.path.read_bytes()
    for damaged in (b"", whole[:40], whole[:-100], b"x" * 100):
        checkpoint.path.write_bytes(damaged)
        with pytest.raises(RonidError, match="cannot be read .* delete it to start over"):
            checkpoint.load()


def test_file_of_another_format_is_refused(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "fit.safetensors")
    checkpoint.save({"a": torch.zeros(2)}, {})
    tensors = load_file(str(checkpoint.path)) | {"format_version": torch.tensor([99])}
    save_file(tensors, str(checkpoint.path), metadata={"values": "{}"})
    with pytest.raises(RonidError, match="has format 99; delete it"):
        checkpoint.load()


def test_ordinary_writes_wait_their_time(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path / "a", every_s=0.0).due
    assert not Checkpoint(tmp_path / "a", every_s=1000.0).due
