"""Which utterances are surely placed, in intents of every size."""

import numpy as np
import pytest

from ronid.judge.evidence import Evidence
from ronid.judge.judgement import NEIGHBOURS, judge
from ronid.judge.placement import SURE, measure_placement
from ronid.types import IntArray


def evidence_of(sizes: list[int], spread: float = 0.05) -> Evidence:
    """Intents of some sizes around directions of their own."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    vectors = np.eye(24)[labels] + spread * rng.normal(size=(len(labels), 24))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Evidence(
        texts=[f"utterance {i}" for i in range(len(labels))],
        embeddings=vectors.astype(np.float32),
        labels=labels,
        targets=np.full(len(labels), -1),
        prototypes=np.eye(24, dtype=np.float32)[: len(sizes)],
        names=tuple(f"intent {i}" for i in range(len(sizes))),
        known=(False,) * len(sizes),
        rows=len(labels),
    )


def neighbours_of(evidence: Evidence) -> IntArray:
    """The ten nearest others of every row, nearest first."""
    alike = evidence.embeddings @ evidence.embeddings.T
    np.fill_diagonal(alike, -np.inf)
    return (-alike).argsort(axis=1, kind="stable")[:, :NEIGHBOURS]


@pytest.mark.parametrize("size", [2, 3, 5, 8, 9, 10, 11, 30])
def test_a_clear_intent_is_sure_however_small_it_is(size: int) -> None:
    evidence = evidence_of([size, 20, 20])
    assert measure_placement(evidence, neighbours_of(evidence)).sure.all()


def test_a_run_of_small_clear_intents_has_a_score() -> None:
    judged = judge(evidence_of([5] * 6))
    assert judged.parts.sure == 1
    assert judged.score > 50


def test_small_intents_that_lie_in_others_are_not_sure() -> None:
    evidence = evidence_of([40, 20])
    labels = evidence.labels.copy()
    labels[:4] = 2  # four of the first intent, by chance
    mixed = Evidence(
        **{**vars(evidence), "labels": labels, "prototypes": np.eye(24, dtype=np.float32)[:3]}
    )
    assert not measure_placement(mixed, neighbours_of(mixed)).sure[:4].any()


def test_an_utterance_without_any_of_its_kind_is_not_sure() -> None:
    evidence = evidence_of([1, 20])
    sure = measure_placement(evidence, neighbours_of(evidence)).sure
    assert not sure[0]
    assert sure[1:].all()


@pytest.mark.parametrize("spread", [0.1, 0.3, 0.5])
def test_intents_larger_than_the_neighbourhood_are_judged_by_all_of_it(spread: float) -> None:
    evidence = evidence_of([NEIGHBOURS + 1, 25, 40, 3], spread)
    neighbours = neighbours_of(evidence)
    share = (evidence.labels[neighbours] == evidence.labels[:, None]).mean(axis=1)
    sure = measure_placement(evidence, neighbours).sure
    large = evidence.labels < 3
    np.testing.assert_array_equal(sure[large], (share >= SURE)[large])
    assert sure[large].any()
