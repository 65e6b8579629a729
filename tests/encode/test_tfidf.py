"""Tf-idf vectors: words and weights of the first texts, the same vectors ever after."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from sklearn.feature_extraction.text import TfidfVectorizer
from torch import Tensor

from ronid.encode.cache import FrozenCache
from ronid.encode.tfidf import TfidfBackbone
from ronid.errors import UsageError
from tests.helpers.toy_corpus import Toy

CPU = torch.device("cpu")
ODD = [
    "Straße über naïve İstanbul",
    "_zeta Zebra zebra 10 9 010 _zeta",
    "你好 世界 你好 привет",
    "ÅNGSTRÖM Ångström 𝐀𝐁 ﬁne e\u0301te\u0301",
    "half\ud800word line\u2028break next\x85line tab\tand\x1cmore",
]
SOME_WORDS = ["red", "Red", "apple", "car", "你好", "über", "x", "42", "_zeta"]
TEXTS = st.lists(
    st.lists(st.sampled_from(SOME_WORDS), max_size=6).map(" ".join), min_size=1, max_size=8
)


def vectors(backbone: TfidfBackbone, texts: Sequence[str]) -> Tensor:
    return backbone.prepare(texts, FrozenCache()).vectors


def fitted(texts: Sequence[str], dim: int = 2_000) -> TfidfBackbone:
    backbone = TfidfBackbone(CPU, dim)
    backbone.prepare(texts, FrozenCache())
    return backbone


def words_of(backbone: TfidfBackbone) -> list[str]:
    return bytes(backbone.trained_state()["words"].tolist()).decode().split("\n")


def test_tiny_corpus_gives_the_values_worked_out_by_hand() -> None:
    got = vectors(TfidfBackbone(CPU, dim=5), ["red apple", "Red red car!"])
    rare = math.log(3 / 2) + 1  # apple and car in one text of two; red in both weighs 1
    one, two = math.hypot(rare, 1), math.hypot(rare, 2)
    expected = [[rare / one, 0, 1 / one, 0, 0], [0, rare / two, 2 / two, 0, 0]]
    torch.testing.assert_close(got, torch.tensor(expected))
    assert got[0, 0].item() == pytest.approx(0.8148, abs=1e-4)


@pytest.mark.parametrize("corpus", ["toy", "odd"])
def test_vectors_equal_the_reference(corpus: str, few_utterances: Toy) -> None:
    texts = few_utterances.texts if corpus == "toy" else ODD
    reference = TfidfVectorizer(max_features=2_000).fit(texts[:3])
    backbone, words = fitted(texts[:3]), len(reference.vocabulary_)
    assert words_of(backbone) == list(reference.get_feature_names_out())
    got = vectors(backbone, texts).numpy()
    expected = reference.transform(texts).toarray().astype(np.float32)
    np.testing.assert_array_equal(got[:, :words], expected)
    assert got.shape == (len(texts), 2_000)
    assert not got[:, words:].any()


def test_only_the_most_frequent_words_are_kept_as_in_the_reference() -> None:
    texts = [" ".join(["often"] * 3 + ["twice"] * 2 + [f"once{i}"]) for i in range(4)]
    texts.append("once3 once3")
    reference = TfidfVectorizer(max_features=3).fit(texts)
    backbone = fitted(texts, dim=3)
    assert words_of(backbone) == list(reference.get_feature_names_out())
    assert words_of(backbone) == ["often", "once3", "twice"]
    expected = reference.transform(texts).toarray().astype(np.float32)
    np.testing.assert_array_equal(vectors(backbone, texts).numpy(), expected)


def test_words_equally_frequent_are_kept_in_alphabetical_order() -> None:
    names = [f"w{i:03d}" for i in range(300)]
    texts = [f"{name} {name}" if i % 3 == 0 else name for i, name in enumerate(names)]
    shuffled = [texts[i] for i in np.random.default_rng(0).permutation(300)]
    twice, once = names[::3], [name for i, name in enumerate(names) if i % 3]
    assert words_of(fitted(shuffled, dim=140)) == sorted(twice + once[:40])


@given(TEXTS)
def test_rows_have_length_one_or_zero(texts: list[str]) -> None:
    got = vectors(fitted(["red apple car", "red 你好 über"]), texts)
    assert got.dtype == torch.float32
    lengths, known = got.norm(dim=1), {"red", "apple", "car", "你好", "über"}
    has_word = [bool(known & set(text.lower().split())) for text in texts]
    torch.testing.assert_close(lengths, torch.tensor(has_word).float())
    assert got.min() >= 0


@given(TEXTS, st.randoms(use_true_random=False))
def test_order_of_words_within_a_text_does_not_matter(texts: list[str], random: Random) -> None:
    backbone = fitted(["red apple car _zeta", "red 42 über"])
    mixed = [" ".join(random.sample(text.split(), len(text.split()))) for text in texts]
    assert torch.equal(vectors(backbone, texts), vectors(backbone, mixed))


def test_a_text_alone_has_the_vector_it_has_in_any_batch(few_utterances: Toy) -> None:
    backbone = fitted(few_utterances.texts)
    together = vectors(backbone, few_utterances.texts)
    alone = torch.cat([vectors(backbone, [text]) for text in few_utterances.texts])
    assert torch.equal(together, alone)
    assert torch.equal(together.flip(0), vectors(backbone, few_utterances.texts[::-1]))


def test_later_texts_change_neither_words_nor_weights() -> None:
    backbone = fitted(["red apple", "red car"])
    before = {name: value.clone() for name, value in backbone.trained_state().items()}
    late = vectors(backbone, ["green pear", "red pear", ""])
    assert not late[[0, 2]].any()
    assert late[1].count_nonzero() == 1
    after = backbone.trained_state()
    assert all(torch.equal(before[name], after[name]) for name in ("words", "idf"))


@pytest.mark.parametrize("texts", [[], ["", "  "], ["?!", "a b 1 - x"]])
def test_fitting_on_no_words_is_refused_and_leaves_it_unfitted(texts: list[str]) -> None:
    backbone = TfidfBackbone(CPU)
    with pytest.raises(UsageError, match="no word of two letters or more"):
        backbone.prepare(texts, FrozenCache())
    assert backbone.trained_state() == {}
    assert vectors(backbone, ["red apple"]).norm() > 0


def test_no_texts_after_fitting_give_no_rows() -> None:
    assert vectors(fitted(["red apple"], dim=7), []).shape == (0, 7)


@pytest.mark.parametrize("dim", [6, 2_000])
def test_saved_state_gives_the_same_vectors_to_the_bit(
    dim: int, few_utterances: Toy, tmp_path: Path
) -> None:
    texts = ODD + few_utterances.texts
    backbone = fitted(texts, dim)
    save_file(backbone.trained_state(), str(tmp_path / "weights.safetensors"))
    loaded = TfidfBackbone(CPU, dim)
    loaded.load(load_file(str(tmp_path / "weights.safetensors")))
    assert torch.equal(vectors(loaded, texts), vectors(backbone, texts))
    assert torch.equal(vectors(loaded, texts[:1]), vectors(backbone, texts[:1]))
    assert words_of(loaded) == words_of(backbone)
    assert torch.equal(loaded.trained_state()["idf"], backbone.trained_state()["idf"])


@given(st.lists(st.text(max_size=12), min_size=1, max_size=8))
def test_any_text_survives_the_round_trip(texts: list[str]) -> None:
    backbone = fitted([*texts, "word"])
    loaded = TfidfBackbone(CPU)
    loaded.load(backbone.trained_state())
    assert torch.equal(vectors(loaded, texts), vectors(backbone, texts))


def test_loaded_state_is_a_copy_of_its_own() -> None:
    state = fitted(["red apple"]).trained_state()
    loaded = TfidfBackbone(CPU)
    loaded.load(state)
    before = vectors(loaded, ["red apple"])
    state["idf"].zero_()
    assert torch.equal(vectors(loaded, ["red apple"]), before)


def spelt(*words: str) -> Tensor:
    return torch.tensor(list("\n".join(words).encode()), dtype=torch.uint8)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"words": spelt("red", "apple")},
        {"words": spelt("red", "apple"), "idf": torch.ones(3).double()},
        {"words": spelt("red", "apple"), "idf": torch.ones(2)},
        {"words": spelt("red", "red"), "idf": torch.ones(2).double()},
        {"words": spelt("red", ""), "idf": torch.ones(2).double()},
        {"words": spelt(*"abcd"), "idf": torch.ones(4).double()},
        {"words": torch.tensor([255], dtype=torch.uint8), "idf": torch.ones(1).double()},
        {"words": spelt("red"), "idf": torch.ones(1).double(), "more": torch.ones(1)},
    ],
)
def test_state_of_another_encoder_is_refused(state: Mapping[str, Tensor]) -> None:
    backbone = fitted(["red car"], dim=3)
    before = vectors(backbone, ["red car"])
    with pytest.raises(UsageError, match="do not fit encoder 'tfidf' with 3 columns"):
        backbone.load(state)
    assert torch.equal(vectors(backbone, ["red car"]), before)


def test_forward_returns_the_rows_asked_for(few_utterances: Toy) -> None:
    backbone = TfidfBackbone(CPU)
    rows = backbone.prepare(few_utterances.texts, FrozenCache())
    index = np.array([5, 0, 5])
    assert torch.equal(backbone(rows, index), rows.vectors[[5, 0, 5]])
    assert torch.equal(backbone(rows, rows.pick(index, CPU)), rows.vectors[[5, 0, 5]])
    with pytest.raises(UsageError, match="no tokens to alter"):
        backbone(rows, index, lambda ids, _: ids)


def test_there_is_no_layer_to_train() -> None:
    backbone = TfidfBackbone(CPU)
    backbone.set_trainable(0)
    with pytest.raises(UsageError, match="no layer to train"):
        backbone.set_trainable(1)
    assert list(backbone.parameters()) == []


def test_a_width_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one column"):
        TfidfBackbone(CPU, dim=0)


def test_fingerprint_follows_the_width_and_not_the_words() -> None:
    fresh = TfidfBackbone(CPU, 30)
    assert fitted(["red"], 30).fingerprint == fitted(["car"], 30).fingerprint == fresh.fingerprint
    assert fresh.fingerprint != TfidfBackbone(CPU, 31).fingerprint
