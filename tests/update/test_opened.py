"""A scope that more and more utterances join."""

import numpy as np
import pytest

from ronid.head import KEPT, Scope, scope_of
from ronid.update.version import opened


def drawn(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.normal(size=(count, 6)).astype(np.float32)


def rejected(scope: Scope, rng: np.random.Generator) -> float:
    return float(np.mean(scope.belonging(drawn(rng, 2_000)) < scope.threshold))


def test_the_threshold_rejects_its_share_however_much_came() -> None:
    rng = np.random.default_rng(0)
    scope = scope_of(drawn(rng, 300))
    for _ in range(4):
        scope = opened(scope, drawn(rng, 1_000))
    assert len(scope.vectors) == 4_300
    assert rejected(scope, rng) == pytest.approx(scope.threshold, abs=0.03)


def test_what_was_there_stays_as_it_was_and_nothing_changes_nothing() -> None:
    rng = np.random.default_rng(1)
    scope = Scope(**{**vars(scope_of(1e3 * drawn(rng, 50))), "threshold": 0.3})
    came = 2e3 * drawn(rng, 20)
    grown = opened(scope, came)
    assert (grown.scale, grown.threshold) == (scope.scale, 0.3)
    np.testing.assert_array_equal(grown.vectors[:50], scope.vectors)
    np.testing.assert_array_equal(grown.vectors[50:], (came / scope.scale).astype(np.float16))
    assert opened(scope, came[:0]) is scope


def test_no_more_is_kept_than_may_be() -> None:
    rng = np.random.default_rng(2)
    grown = opened(scope_of(drawn(rng, KEPT - 10)), drawn(rng, 500))
    assert len(grown.vectors) == KEPT
