"""Learning from pairs between two thresholds that close in."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize

from ronid.config import EncoderConfig
from ronid.encode.encoder import build_encoder
from ronid.train import pairs as module
from ronid.train.pairs import PairsConfig, epochs_to_meet, learn_pairs, thresholds
from ronid.train.state import Training
from ronid.types import Split
from tests.helpers.toy_corpus import TinyEncoder, Toy

CONFIG = PairsConfig(threshold_step=0.15, lr=1e-3, batch=32)


def start(name: str, intents: int) -> Training:
    config = EncoderConfig(name=name, trainable_layers=0, head="tanh_logits")
    return Training(build_encoder(config, torch.device("cpu"), seed=0, n_intents=intents))


def run(training: Training, split: Split, config: PairsConfig, weight: float | None = None) -> None:
    rows = training.encoder.prepare(split.texts)
    learn_pairs(training, split, rows, config, labelled_weight=weight)


class TestThresholds:
    def test_published_ones_meet_after_46_epochs(self) -> None:
        assert epochs_to_meet(PairsConfig()) == 46
        assert thresholds(PairsConfig(), 0) == (0.95, 0.455)
        assert thresholds(PairsConfig(), 45) == pytest.approx((0.5045, 0.49955))

    @given(st.floats(0.5, 1), st.floats(0, 0.5), st.floats(0.005, 0.5), st.integers(min_value=0))
    def test_last_epoch_is_the_last_before_they_pass_each_other(
        self, upper: float, lower: float, step: float, most: int
    ) -> None:
        config = PairsConfig(epochs=most, upper=upper, lower=lower, threshold_step=step)
        epochs = epochs_to_meet(config)
        assert epochs <= most
        for epoch in range(epochs):
            above, below = thresholds(config, epoch)
            assert above >= below - 1e-6
        above, below = thresholds(config, epochs)
        assert epochs == most or above < below + 1e-6

    def test_that_stand_still_last_for_all_epochs(self) -> None:
        assert epochs_to_meet(PairsConfig(epochs=7, threshold_step=0.0)) == 7

    def test_in_the_wrong_order_leave_nothing_to_do(self) -> None:
        assert epochs_to_meet(PairsConfig(upper=0.2, lower=0.3)) == 0

    def test_of_every_epoch_reach_the_loss(
        self, tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = []
        plain = module.adaptive_pair_loss

        def spy(logits, upper, lower, targets):  # type: ignore[no-untyped-def]
            seen.append((float(upper), float(lower)))
            return plain(logits, upper, lower, targets)

        monkeypatch.setattr(module, "adaptive_pair_loss", spy)
        training = start(tiny("bert"), 6)
        run(training, few_utterances.split(), replace(CONFIG, batch=64))
        expected = [thresholds(CONFIG, epoch) for epoch in range(3 + 1)]
        np.testing.assert_allclose(seen, expected, rtol=1e-6)
        shown = [(row["upper"], row["lower"]) for row in training.history]
        np.testing.assert_allclose(shown, expected)


def test_pairs_of_one_intent_become_more_similar_than_others(
    tiny: TinyEncoder, utterances: Toy
) -> None:
    training, split = start(tiny("bert"), 8), utterances.split(known=0)
    rows = training.encoder.prepare(split.texts)
    same = utterances.classes[:, None] == utterances.classes

    def gap() -> float:
        unit = normalize(training.encoder.embed_all(rows), dim=1)
        cosines = (unit @ unit.T).numpy()
        return float(cosines[same].mean() - cosines[~same].mean())

    before = gap()
    run(training, split, replace(CONFIG, threshold_step=0.03, lr=3e-3))
    assert gap() > 2 * before
    assert training.finished == ["pairs"]


def test_labels_change_nothing_unless_they_are_asked_for(
    tiny: TinyEncoder, few_utterances: Toy
) -> None:
    histories = []
    for known in (0, 4):
        training = start(tiny("bert"), 6)
        run(training, few_utterances.split(known=known), CONFIG)
        histories.append(training.history)
    assert histories[0] == histories[1]
    assert "loss_given" not in histories[0][0]


def test_without_labels_given_pairs_change_nothing(tiny: TinyEncoder, few_utterances: Toy) -> None:
    histories = []
    for weight in (None, 5.0):
        training = start(tiny("bert"), 6)
        run(training, few_utterances.split(known=0), CONFIG, weight)
        histories.append(training.history)
    assert histories[0] == histories[1]


def test_given_pairs_are_learnt_first_and_with_their_weight(
    tiny: TinyEncoder, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    split = few_utterances.split(every=1)  # 40 rows of 60
    for name in ("given_pair_loss", "adaptive_pair_loss"):
        plain = getattr(module, name)

        def spy(logits, *rest, plain=plain, name=name):  # type: ignore[no-untyped-def]
            order.append(f"{name} {len(logits)} {int((rest[-1] >= 0).sum())}")
            return plain(logits, *rest) if "given" in name else logits.sum() * 0

        monkeypatch.setattr(module, name, spy)
    losses = []
    for weight in (1.0, 5.0):
        training = start(tiny("bert"), 6)
        run(training, split, replace(CONFIG, epochs=1, batch=40, lr=0.0), weight)
        losses.append(training.history[0]["loss_given"])
    assert order[0] == "given_pair_loss 40 40"
    assert [name.split()[:2] for name in order[1:3]] == [
        ["adaptive_pair_loss", "40"],
        ["adaptive_pair_loss", "20"],
    ]
    assert sum(int(name.split()[2]) for name in order[1:3]) == 40
    assert losses[1] == pytest.approx(5 * losses[0])


def test_finished_stage_is_not_run_again(tiny: TinyEncoder, few_utterances: Toy) -> None:
    training = start(tiny("bert"), 6)
    training.finished.append("pairs")
    run(training, few_utterances.split(), CONFIG)
    assert not training.history
