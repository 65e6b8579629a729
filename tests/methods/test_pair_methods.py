"""DAC and CDAC+ beyond the contract of all methods."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from ronid.assign.start import known_first
from ronid.encode.encoder import build_encoder
from ronid.losses.student_t import student_t
from ronid.methods import cdac_plus, dac
from ronid.methods.cdac_plus import RefineConfig, refine
from ronid.train import self_train
from ronid.train.state import Training
from ronid.types import Split
from tests.helpers.method_configs import QUICK, published_short, without_labels
from tests.helpers.toy_corpus import TinyEncoder, Toy

REFINE = RefineConfig(epochs=3, lr=1e-3, batch=32, stop_change=0.0)


@pytest.fixture
def begin(tiny: TinyEncoder) -> Any:
    def make(name: str, split: Split, changes: Mapping[str, Any] | None = None) -> Any:
        config = published_short(name, tiny, dict(changes or QUICK[name]))
        encoder = build_encoder(
            config.encoder, torch.device("cpu"), seed=0, n_intents=split.n_intents
        )
        return config, Training(encoder, 0, config.optimiser)

    return make


class TestDAC:
    def test_intent_is_the_greatest_logit(self, begin: Any, few_utterances: Toy) -> None:
        split = few_utterances.split(known=0)
        config, training = begin("dac", split)
        found = dac.fit(split, config, training)
        assert np.array_equal(found.labels, found.embeddings.argmax(axis=1))
        assert (found.confidence > 1 / 6).all()

    def test_columns_of_known_intents_come_first(self, begin: Any, few_utterances: Toy) -> None:
        split = few_utterances.split(known=4, every=1)
        config, training = begin("dac", split)
        # Columns that say 4, 0, 5, 1, 3, 2 of the true classes.
        truth = torch.tensor([4, 0, 5, 1, 3, 2])
        features = torch.eye(6)[truth.argsort()[torch.from_numpy(few_utterances.classes)]]
        ordered = known_first(torch.eye(6), features, split)
        assert ordered.argmax(dim=1).tolist()[:4] == [1, 3, 5, 4]
        found = dac.fit(split, config, training)
        assert sorted(found.prototypes.argmax(axis=1)) == list(range(6))
        assert set(found.prototypes.flatten()) == {0.0, 1.0}

    def test_given_labels_do_not_train(self, begin: Any, few_utterances: Toy) -> None:
        vectors = []
        for known in (0, 4):
            split = few_utterances.split(known=known)
            config, training = begin("dac", split)
            vectors.append(dac.fit(split, config, training).embeddings)
        assert np.array_equal(*vectors)


class TestRefinement:
    def refined(self, begin: Any, split: Split, config: RefineConfig) -> tuple[Training, Any]:
        _, training = begin("cdac_plus", split)
        rows = training.encoder.prepare(split.texts)
        return training, refine(training, split, rows, config)

    def test_moves_encoder_and_centres(self, begin: Any, few_utterances: Toy) -> None:
        split = few_utterances.split()
        _, untrained = begin("cdac_plus", split)
        before = untrained.encoder.embed_all(untrained.encoder.prepare(split.texts))
        _, first = self.refined(begin, split, RefineConfig(epochs=0))
        training, centres = self.refined(begin, split, REFINE)
        after = training.encoder.embed_all(training.encoder.prepare(split.texts))
        assert not torch.allclose(before, after, atol=1e-3)
        assert not torch.allclose(first, centres, atol=1e-3)

    def test_makes_the_assignment_surer(self, begin: Any, utterances: Toy) -> None:
        split = utterances.split(known=0)
        sureness = []
        for epochs in (0, 10):
            config = RefineConfig(epochs=epochs, lr=1e-3, batch=64, stop_change=0.0)
            training, centres = self.refined(begin, split, config)
            features = training.encoder.embed_all(training.encoder.prepare(split.texts))
            best = student_t(features, centres).amax(dim=1)
            sureness.append(float(best.mean()) - 1 / 8)  # beyond chance
        assert sureness[1] > 2 * sureness[0]

    def test_stops_when_labels_have_settled(self, begin: Any, few_utterances: Toy) -> None:
        config = RefineConfig(epochs=20, lr=0.0, batch=32)
        training, _ = self.refined(begin, few_utterances.split(), config)
        assert [row["changed"] for row in training.history] == [0.0, 0.0, 0.0]  # two of warm-up

    def test_stops_when_held_out_rows_agree_no_better(
        self, begin: Any, few_utterances: Toy
    ) -> None:
        config = RefineConfig(epochs=20, lr=0.0, batch=32, stop_change=0.0, patience=4)
        training, _ = self.refined(begin, few_utterances.split(dev=12), config)
        assert len(training.history) == 5
        assert all("dev_nmi" in row for row in training.history)

    def test_leaves_the_epoch_that_agrees_best(
        self, begin: Any, few_utterances: Toy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        figures = iter([10.0, 30.0, 20.0])
        monkeypatch.setattr(cdac_plus, "agreement", lambda *_: {"dev_nmi": next(figures)})
        kept: list[torch.Tensor] = []
        plain = self_train.renew_targets

        def spy(state, rows):  # type: ignore[no-untyped-def]
            kept.append(state.heads["centres"].weight.detach().clone())
            return plain(state, rows)

        monkeypatch.setattr(self_train, "renew_targets", spy)
        _, centres = self.refined(begin, few_utterances.split(dev=12), REFINE)
        assert torch.equal(centres, kept[2])  # kept[0] is the start
        assert not torch.equal(centres, kept[3])


def test_without_refinement_nothing_is_held_out() -> None:
    assert cdac_plus.Config().holds_out
    assert not cdac_plus.Config(refine=RefineConfig(epochs=0)).holds_out


def test_cdac_plus_without_labels_has_no_given_pairs(begin: Any, few_utterances: Toy) -> None:
    split = without_labels(few_utterances.split())
    config, training = begin("cdac_plus", split)
    found = cdac_plus.fit(split, config, training)
    assert {row["stage"] for row in found.history} == {"pairs", "refine"}
    assert not any("loss_given" in row or "dev_nmi" in row for row in found.history)
