"""The space of the first neighbour lists."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.whiten import within_whitened
from ronid.config import EncoderConfig
from ronid.encode.encoder import Encoder, build_encoder
from ronid.encode.rows import TokenRows
from ronid.train import likeness as module
from ronid.train.likeness import WORD_WEIGHTS, borne_weight, chosen_weight, likeness
from tests.helpers.toy_corpus import TinyEncoder, Toy


def intents(seed: int, known: int = 6, per: int = 12, d: int = 8) -> tuple[Tensor, Tensor]:
    """Unit vectors in which every intent has a place of its own."""
    generator = torch.Generator().manual_seed(seed)
    targets = torch.arange(known).repeat_interleave(per)
    places = torch.randn(known, d, generator=generator)
    spread = 0.3 * torch.randn(known * per, d, generator=generator)
    return normalize(places[targets] + spread, dim=1), targets


def noise(seed: int, n: int, d: int = 8) -> Tensor:
    generator = torch.Generator().manual_seed(seed + 1)
    return normalize(torch.randn(n, d, generator=generator), dim=1)


def start(name: str, layers: int, **changes: int | bool) -> Encoder:
    config = EncoderConfig(name=name, trainable_layers=layers, **changes)  # type: ignore[arg-type]
    return build_encoder(config, torch.device("cpu"), seed=0)


@given(seed=st.integers(0, 999))
def test_words_count_where_they_tell_intents_apart(seed: int) -> None:
    telling, targets = intents(seed)
    assert chosen_weight(noise(seed, len(targets)), telling, targets) == WORD_WEIGHTS[-1]


@given(seed=st.integers(0, 999))
def test_words_that_say_nothing_are_left_out(seed: int) -> None:
    telling, targets = intents(seed, d=32)
    empty = torch.zeros(len(targets), 8)
    assert chosen_weight(telling, empty, targets) == 0


@pytest.mark.parametrize("given_rows", [0, 1])
def test_without_labels_to_judge_by_words_are_left_out(given_rows: int) -> None:
    telling, targets = intents(0)
    targets[given_rows:] = -1
    assert chosen_weight(noise(0, len(targets)), telling, targets) == 0


def test_one_label_per_intent_judges_nothing() -> None:
    telling, targets = intents(0)
    first = torch.zeros_like(targets, dtype=torch.bool)
    first[::12] = True
    alone = torch.where(first, targets, -1)
    assert chosen_weight(noise(0, len(targets)), telling, alone) == 0


def test_words_are_the_mean_over_the_tokens(tiny: TinyEncoder, few_utterances: Toy) -> None:
    encoder = start(tiny("bert"), -1)
    rows = encoder.prepare(few_utterances.split().texts)
    assert isinstance(rows, TokenRows)
    words = encoder.word_means(rows)
    table = encoder.backbone.model.get_input_embeddings().weight  # type: ignore[union-attr]
    assert words is not None
    for row in (0, 3, len(rows) - 1):
        ids = rows.ids[rows.starts[row] : rows.starts[row + 1]].long()
        torch.testing.assert_close(words[row], table[ids].mean(dim=0))


def test_a_frozen_encoder_that_keeps_words_has_them(tiny: TinyEncoder, few_utterances: Toy) -> None:
    texts = few_utterances.split().texts
    with_words = start(tiny("bert"), 0, adapter_width=8, adapter_reads_words=True)
    words = with_words.word_means(with_words.prepare(texts))
    assert words is not None
    assert words.shape == (len(texts), with_words.backbone.dim)
    without = start(tiny("bert"), 0, adapter_width=8)
    assert without.word_means(without.prepare(texts)) is None


def test_an_encoder_without_words_is_only_discounted(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    split = few_utterances.split()
    encoder = start(tiny("bert"), 0, adapter_width=8)
    rows, targets = encoder.prepare(split.texts), torch.from_numpy(split.targets)
    expected = within_whitened(encoder.embed_all(rows), targets)
    torch.testing.assert_close(likeness(encoder, rows, targets, 6), expected)


@pytest.mark.parametrize("layers", [-1, 0])
def test_same_space_every_time_of_unit_vectors(
    tiny: TinyEncoder, few_utterances: Toy, layers: int
) -> None:
    split = few_utterances.split()
    changes = {"adapter_width": 8, "adapter_reads_words": True} if layers == 0 else {}
    encoder = start(tiny("bert"), layers, **changes)
    rows, targets = encoder.prepare(split.texts), torch.from_numpy(split.targets)
    one, two = likeness(encoder, rows, targets, 6), likeness(encoder, rows, targets, 6)
    torch.testing.assert_close(one, two, rtol=0, atol=0)
    torch.testing.assert_close(one.norm(dim=1), torch.ones(len(one)))


@pytest.mark.parametrize("seed", range(3))
def test_without_labels_words_count_where_they_set_intents_apart(seed: int) -> None:
    telling, _ = intents(seed, known=6, per=30)
    blurred = normalize(telling + 2 * noise(seed, len(telling)), dim=1)
    assert borne_weight(blurred, telling, 6) == WORD_WEIGHTS[-1]


@pytest.mark.parametrize("seed", range(3))
def test_without_labels_words_that_blur_intents_count_less(seed: int) -> None:
    telling, _ = intents(seed, known=6, per=30)
    assert borne_weight(telling, noise(seed, len(telling)), 6) < WORD_WEIGHTS[-1]


@pytest.mark.parametrize(("rows", "k"), [(1, 1), (5, 1), (5, 5), (5, 40), (2, 2)])
def test_too_few_utterances_for_a_graph_leave_words_out(rows: int, k: int) -> None:
    assert borne_weight(noise(0, rows), noise(1, rows), k) == 0


def test_a_sample_judges_the_weight_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    telling, _ = intents(0, known=6, per=60)
    seen: list[int] = []

    def count(points: Tensor, _k: int, _near: int) -> float:
        seen.append(len(points))
        return 0.5

    monkeypatch.setattr(module, "ROWS", 100)
    monkeypatch.setattr(module, "separability", count)
    assert borne_weight(telling, telling, 6) == WORD_WEIGHTS[-1]
    assert seen == [100] * len(WORD_WEIGHTS)


@pytest.mark.parametrize(("least", "judge"), [(1, "labels"), (10_000, "graph")])
def test_few_labels_do_not_judge(
    tiny: TinyEncoder,
    few_utterances: Toy,
    monkeypatch: pytest.MonkeyPatch,
    least: int,
    judge: str,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(module, "LEAST_LABELS", least)
    monkeypatch.setattr(module, "chosen_weight", lambda *_: asked.append("labels") or 0.5)
    monkeypatch.setattr(module, "borne_weight", lambda *_: asked.append("graph") or 0.5)
    split = few_utterances.split()
    encoder = start(tiny("bert"), 0, adapter_width=8, adapter_reads_words=True)
    likeness(encoder, encoder.prepare(split.texts), torch.from_numpy(split.targets), 6)
    assert asked == [judge]
