"""Runs made by hand, right and wrong in known ways: does the judge see it?"""

from dataclasses import replace

import numpy as np
import pytest

from ronid.errors import DataError
from ronid.judge import Evidence, judge, list_findings
from ronid.types import IntArray

INTENTS, SIZE, KNOWN = 12, 40, 8


def centred(labels: IntArray, vectors: np.ndarray) -> np.ndarray:
    """The means of the labelled groups, at length 1."""
    means = np.stack([vectors[labels == i].mean(axis=0) for i in range(labels.max() + 1)])
    return (means / np.linalg.norm(means, axis=1, keepdims=True)).astype(np.float32)


def evidence_of(labels: IntArray, vectors: np.ndarray, truth: IntArray) -> Evidence:
    """A run that found `labels`; one in five utterances of known intents is labelled."""
    shown = (truth < KNOWN) & (np.arange(len(truth)) % 5 == 0)
    k = int(labels.max()) + 1
    return Evidence(
        texts=[f"utterance {i} of {label}" for i, label in enumerate(truth)],
        embeddings=vectors,
        labels=labels,
        targets=np.where(shown, truth, -1),
        prototypes=centred(labels, vectors),
        names=tuple(f"intent {i}" for i in range(k)),
        known=tuple(i < KNOWN for i in range(k)),
        rows=len(labels),
    )


@pytest.fixture(scope="module")
def truth() -> IntArray:
    return np.repeat(np.arange(INTENTS), SIZE)


@pytest.fixture(scope="module")
def vectors(truth: IntArray) -> np.ndarray:
    """Unit vectors around twelve directions."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(len(truth), 24)) * 0.12
    found = np.eye(24)[truth] + noise
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def right(truth: IntArray, vectors: np.ndarray) -> Evidence:
    return evidence_of(truth, vectors, truth)


@pytest.fixture(scope="module")
def split_intent(truth: IntArray, vectors: np.ndarray) -> Evidence:
    """The last intent, a new one, is cut in two along no line of its own."""
    labels = truth.copy()
    rows = np.flatnonzero(truth == INTENTS - 1)
    labels[rows[::2]] = INTENTS
    return evidence_of(labels, vectors, truth)


@pytest.fixture(scope="module")
def merged_intents(truth: IntArray, vectors: np.ndarray) -> Evidence:
    """The last two intents, new ones, are taken for one."""
    return evidence_of(np.minimum(truth, INTENTS - 2), vectors, truth)


def test_a_clear_run_has_no_findings(right: Evidence) -> None:
    found = judge(right)
    assert list_findings(found) == ()
    assert found.parts.seeds > 0.8
    assert found.parts.resampling == found.parts.given == 1
    assert found.parts.sure > 0.95
    assert found.judged == found.rows == len(right)


def test_a_split_intent_is_found_as_twins(split_intent: Evidence) -> None:
    found = judge(split_intent)
    assert found.twins[0].intents == (INTENTS - 1, INTENTS)
    assert found.twins[0].chance > 0.9
    assert len(found.twins) == 1
    for first, second in found.twins[0].pairs:
        assert first != second
        assert first.endswith(f"of {INTENTS - 1}")
        assert second.endswith(f"of {INTENTS - 1}")
    said = list_findings(found)[0]
    assert (said.kind, said.intents) == ("twins", ("intent 11", "intent 12"))


def test_merged_intents_are_found_as_a_mixture(merged_intents: Evidence) -> None:
    found = judge(merged_intents)
    assert [mixture.intent for mixture in found.mixtures] == [INTENTS - 2]
    mixture = found.mixtures[0]
    assert mixture.chance > 0.9
    assert mixture.share == pytest.approx(0.5, abs=0.1)
    kinds = [{text.rsplit(maxsplit=1)[-1] for text in half} for half in mixture.halves]
    assert kinds in ([{"10"}, {"11"}], [{"11"}, {"10"}])
    assert not found.twins


def test_the_right_run_scores_above_wrong_ones(
    right: Evidence, split_intent: Evidence, merged_intents: Evidence, truth: IntArray
) -> None:
    best = judge(right).score
    assert judge(split_intent).score < best
    assert judge(merged_intents).score < best
    mixed = truth.copy()
    rows = np.random.default_rng(1).permutation(len(truth))[: len(truth) // 2]
    mixed[rows] = np.random.default_rng(2).permutation(mixed[rows])
    assert judge(evidence_of(mixed, right.embeddings, truth)).score < best - 10


def test_the_same_seed_gives_the_same_judgement(split_intent: Evidence) -> None:
    assert judge(split_intent, seed=3) == judge(split_intent, seed=3)


def test_known_intents_are_never_called_twins(truth: IntArray, vectors: np.ndarray) -> None:
    rows = np.flatnonzero(truth == 0)
    labels = np.where(np.isin(np.arange(len(truth)), rows[::2]), 1, truth)
    judged = judge(evidence_of(labels, vectors, labels))
    assert all(max(twins.intents) >= KNOWN for twins in judged.twins)


def test_labels_that_lie_with_another_intent_are_named(right: Evidence) -> None:
    targets = right.targets.copy()
    astray = np.flatnonzero(targets == 0)[:3]
    targets[astray] = 5
    found = judge(replace(right, targets=targets))
    stray = found.strays[0]
    assert (stray.intent, stray.other, stray.count) == (5, 0, 3)
    assert stray.texts == tuple(right.texts[row] for row in astray)
    assert found.parts.given < 1
    said = next(finding for finding in list_findings(found) if finding.kind == "strays")
    assert said.intents == ("intent 5", "intent 0")


def test_a_run_without_labels_is_judged_too(split_intent: Evidence) -> None:
    bare = replace(
        split_intent,
        targets=np.full(len(split_intent), -1),
        known=(False,) * split_intent.n_intents,
    )
    found = judge(bare)
    assert np.isnan(found.parts.given)
    assert np.isnan(found.parts.hidden)
    assert 0 <= found.score <= 100
    assert found.twins[0].intents == (INTENTS - 1, INTENTS)


def test_an_empty_intent_is_said(right: Evidence) -> None:
    extra = np.zeros((1, right.embeddings.shape[1]), np.float32)
    extra[0, -1] = 1
    found = judge(
        replace(
            right,
            prototypes=np.concatenate([right.prototypes, extra]),
            names=(*right.names, "nobody"),
            known=(*right.known, False),
        )
    )
    assert [(f.kind, f.intents) for f in list_findings(found) if f.kind == "empty"] == [
        ("empty", ("nobody",))
    ]


def test_a_large_run_is_judged_by_a_sample(right: Evidence) -> None:
    drawn = right.sampled(100, np.random.default_rng(0))
    assert len(drawn) == 100
    assert drawn.rows == len(right)
    for text, label in zip(drawn.texts, drawn.labels, strict=True):
        assert text.endswith(f"of {label}")
    found = judge(drawn)
    assert (found.judged, found.rows) == (100, len(right))


def test_agreement_with_a_second_fit(right: Evidence) -> None:
    assert judge(right).refit is None
    assert judge(right, refit=(right.labels + 3) % INTENTS).refit == 1


@pytest.mark.parametrize("rows", [1, 10])
def test_too_little_to_judge_is_said(right: Evidence, rows: int) -> None:
    few = right.sampled(rows, np.random.default_rng(0))
    with pytest.raises(DataError, match="needs more than 10"):
        judge(few)


def test_what_is_too_little_is_counted_in_good_english(right: Evidence) -> None:
    one = replace(right.sampled(1, np.random.default_rng(0)), prototypes=right.prototypes[:1])
    with pytest.raises(DataError, match=r"^the run has 1 utterance and 1 intent; "):
        judge(one)
