"""Belonging and calibration against plain loops, their invariants, and hand-made cases."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ronid.head import (
    NEAREST,
    THRESHOLD,
    Scope,
    calibrated,
    closeness,
    fit_temperature,
    neighbourhood,
    p_values,
    predict,
    scope_of,
    squared_distances,
)
from ronid.types import Discovery, Rule

RULES: tuple[Rule, ...] = ("cosine", "distance")
points = arrays(np.float64, st.tuples(st.integers(2, 12), st.just(3)), elements=st.integers(-4, 4))


def clouds(seed: int, per_intent: int = 60, spread: float = 0.15, k: int = 5) -> Discovery:
    """Unit vectors around k directions, labelled by the nearest."""
    rng = np.random.default_rng(seed)
    centres = np.eye(8)[:k]
    vectors = np.repeat(centres, per_intent, 0) + spread * rng.normal(size=(k * per_intent, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Discovery(
        labels=(vectors @ centres.T).argmax(1),
        confidence=np.zeros(len(vectors), np.float32),
        embeddings=vectors.astype(np.float32),
        prototypes=centres.astype(np.float32),
        prior=np.full(k, 1 / k),
        temperature=0.1,
        known=("a", "b"),
    )


@given(points, points)
def test_distances_are_those_of_a_loop(a: np.ndarray, b: np.ndarray) -> None:
    plain = [[sum((x - y) ** 2 for x, y in zip(p, q, strict=True)) for q in b] for p in a]
    np.testing.assert_allclose(squared_distances(a, b), plain, atol=1e-9)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=20),
    st.lists(st.integers(0, 9), min_size=1, max_size=20),
)
def test_p_values_count_what_is_as_far(usual: list[int], found: list[int]) -> None:
    plain = [(1 + sum(u >= f for u in usual)) / (1 + len(usual)) for f in found]
    got = p_values(np.sort(np.array(usual, float)), np.array(found, float))
    assert got.tolist() == pytest.approx(plain)
    assert all(0 < p <= 1 for p in got)
    # Farther never belongs better.
    assert np.all(np.diff(got[np.argsort(found)]) <= 0)


@given(points, st.integers(0, 10**6))
def test_neighbourhood_is_that_of_a_loop(vectors: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    # No two distances alike, so that there is one right order.
    vectors = vectors + rng.normal(size=vectors.shape)
    n, k = len(vectors), 3
    labels = rng.integers(0, k, n)
    asked = np.arange(0, n, 2)
    nearest, shares = neighbourhood(vectors, labels, asked, k)
    for place, row in enumerate(asked):
        others = sorted(
            (i for i in range(n) if i != row),
            key=lambda i, row=row: math.dist(vectors[i], vectors[row]),
        )
        size = sum(labels[i] == labels[row] for i in others)
        wanted = others[: max(1, math.ceil(NEAREST * size))]
        plain = [sum(labels[i] == c for i in wanted) / len(wanted) for c in range(k)]
        assert nearest[place] == pytest.approx(math.dist(vectors[others[0]], vectors[row]) ** 2)
        assert shares[place].tolist() == pytest.approx(plain)


def test_temperature_is_the_best_of_a_grid() -> None:
    rng = np.random.default_rng(1)
    close = rng.normal(size=(200, 4))
    shares = np.eye(4)[(close + rng.normal(size=close.shape)).argmax(1)]

    def surprise(temperature: float) -> float:
        scaled = close / temperature
        log_sum = np.log(np.exp(scaled).sum(1, keepdims=True))
        return -float((shares * (scaled - log_sum)).sum())

    found = fit_temperature(close, shares, 0.3)
    grid = np.geomspace(0.3 / 32, 0.3 * 32, 400)
    assert surprise(found) <= min(map(surprise, grid)) + 1e-6


def test_temperature_of_two_intents_in_closed_form() -> None:
    # Lead 1 and three quarters of the neighbours agree: sigmoid(1 / T) = 3 / 4.
    found = fit_temperature(np.array([[1.0, 0.0]]), np.array([[0.75, 0.25]]), 1.0)
    assert found == pytest.approx(1 / math.log(3), rel=1e-4)


def test_temperature_stays_within_bounds_and_needs_two_intents() -> None:
    sure = fit_temperature(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]]), 0.1)
    lost = fit_temperature(np.array([[1.0, 0.0]]), np.array([[0.5, 0.5]]), 0.1)
    assert 0.1 / 32 <= sure < 0.1 < lost <= 0.1 * 32
    assert fit_temperature(np.ones((3, 1)), np.ones((3, 1)), 0.1) == 0.1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_threshold_rejects_about_its_share_of_what_belongs(seed: int) -> None:
    _, scope = calibrated(clouds(seed))
    assert scope is not None
    fresh = clouds(seed + 100, per_intent=200).embeddings
    assert np.mean(scope.belonging(fresh) < THRESHOLD) == pytest.approx(THRESHOLD, abs=0.05)
    assert np.mean(scope.belonging(fresh) < 0.3) == pytest.approx(0.3, abs=0.08)


def test_an_intent_never_seen_is_rejected() -> None:
    _, scope = calibrated(clouds(0))
    assert scope is not None
    strange = clouds(7, k=8).embeddings[5 * 60 :]
    assert np.mean(scope.belonging(strange) < scope.threshold) > 0.95


def test_training_utterances_belong_fully() -> None:
    found = clouds(3)
    _, scope = calibrated(found)
    assert scope is not None
    # Half precision moves a vector, but far less than utterances differ.
    assert scope.belonging(found.embeddings).min() > 0.99
    assert scope.belonging(found.embeddings[:0]).shape == (0,)


@given(st.sampled_from([1e-8, 1e-3, 1.0, 1e6, 1e12]))
def test_unit_of_the_vectors_does_not_matter(unit: float) -> None:
    found, fresh = clouds(0), clouds(1).embeddings
    _, plain = calibrated(found)
    scaled = replace(found, embeddings=np.float32(unit) * found.embeddings)
    _, other = calibrated(scaled)
    assert plain is not None
    assert other is not None
    np.testing.assert_allclose(
        other.belonging(np.float32(unit) * fresh), plain.belonging(fresh), atol=0.02
    )


def test_calibration_changes_no_label_and_fills_in_the_confidences() -> None:
    before = clouds(0, spread=0.3)
    after, _ = calibrated(before)
    assert np.array_equal(after.labels, before.labels)
    close = closeness(before.embeddings, before.prototypes, "cosine")
    probabilities = np.exp(close / after.temperature)
    probabilities /= probabilities.sum(1, keepdims=True)
    rows = np.arange(len(close))
    np.testing.assert_allclose(after.confidence, probabilities[rows, after.labels], rtol=1e-5)


def test_calibrated_temperature_does_not_depend_on_that_of_the_fit() -> None:
    fits = [replace(clouds(0, spread=0.25), temperature=start) for start in (0.02, 0.1, 1.0)]
    found = [calibrated(fit)[0] for fit in fits]
    assert [one.temperature for one in found] == pytest.approx([found[0].temperature] * 3, rel=1e-2)
    accuracy = np.mean(fits[0].labels == np.repeat(np.arange(5), 60))
    gaps = [abs(one.confidence.mean() - accuracy) for one in found]
    assert max(gaps) < 0.1
    untouched = closeness(fits[2].embeddings, fits[2].prototypes, "cosine")
    assert (np.exp(untouched).max(1) / np.exp(untouched).sum(1)).mean() < accuracy - 0.5


def test_one_utterance_has_no_scope() -> None:
    whole = clouds(0)
    one = replace(whole, labels=whole.labels[:1], embeddings=whole.embeddings[:1])
    found, scope = calibrated(one)
    assert found is one
    assert scope is None


def test_identical_or_zero_vectors_are_no_trouble() -> None:
    found = clouds(0)
    same = replace(found, embeddings=np.zeros_like(found.embeddings))
    after, scope = calibrated(same)
    assert np.isfinite(after.confidence).all()
    assert scope is not None
    assert scope.belonging(same.embeddings).tolist() == [1.0] * len(same.embeddings)


@pytest.mark.parametrize("noise", [0.0, 2e-7])  # an encoder says the same in any batch but for this
def test_a_text_that_came_many_times_belongs(noise: float) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5, 384))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    vectors = np.concatenate([np.repeat(rows[:1], 60, 0), rows[1:]]).astype(np.float32)

    def said_again(times: int = 1) -> np.ndarray:
        again = np.repeat(vectors, times, 0)
        return (again + noise * rng.uniform(-1, 1, again.shape)).astype(np.float32)

    found = replace(
        clouds(0),
        labels=np.repeat([0, 1], [60, 4]),
        embeddings=said_again(),
        prototypes=vectors[[0, -1]],
    )
    _, fitted = calibrated(found)
    assert fitted is not None
    for scope in (fitted, scope_of(said_again())):
        assert scope.belonging(said_again(10)).min() == 1.0
        assert scope.belonging(-vectors).max() < scope.threshold


def test_golden_belonging() -> None:
    scope = Scope(np.array([[0, 0], [1, 0]], np.float16), 2.0, np.array([0.25, 1.0, 4.0]))
    # Over the scale (0,0), (3,0), (1,2), (9,9): squared distances 0, 4, 4 and 145.
    asked = np.array([[0, 0], [6, 0], [2, 4], [18, 18]], np.float32)
    assert scope.belonging(asked).tolist() == [1.0, 0.5, 0.5, 0.25]


def test_scope_of_vectors_is_that_of_a_fit_where_all_are_asked() -> None:
    found = clouds(2)
    _, fitted = calibrated(found)
    assert fitted is not None
    scope = scope_of(found.embeddings, asked=len(found.labels))
    np.testing.assert_array_equal(scope.usual, fitted.usual)
    np.testing.assert_array_equal(scope.vectors, fitted.vectors)
    assert scope.scale == fitted.scale
    fewer = scope_of(found.embeddings, asked=50)
    assert len(fewer.usual) == 50
    assert set(fewer.usual) <= set(fitted.usual)


def gaussian(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


@pytest.mark.parametrize("rule", RULES)
def test_probabilities_equal_a_plain_loop(rule: Rule) -> None:
    a, b, tau = gaussian(7, 3), gaussian(4, 3, 1), 0.5
    found = predict(a, b, tau, rule)
    for i, row in enumerate(a):
        near = [
            float(row @ centre)
            if rule == "cosine"
            else -np.log1p(float(np.sum((row - centre) ** 2)))
            for centre in b
        ]
        weights = np.exp(np.array(near) / tau)
        np.testing.assert_allclose(found.probabilities[i], weights / weights.sum(), rtol=1e-6)
        assert found.labels[i] == int(np.argmax(near))


def test_golden_distances() -> None:
    found = predict([[0.0]], [[0.0], [1.0], [3.0]], 1.0, "distance")
    # 1 / (1 + d^2) at distances 0, 1 and 3, over their sum.
    np.testing.assert_allclose(found.probabilities[0], np.array([1, 0.5, 0.1]) / 1.6)


@given(seed=st.integers(0, 99), rule=st.sampled_from(RULES))
def test_order_of_prototypes_is_the_order_of_columns(seed: int, rule: Rule) -> None:
    a, b = gaussian(5, 3, seed), gaussian(4, 3, seed + 1)
    order = np.random.default_rng(seed).permutation(4)
    straight, moved = predict(a, b, 1.0, rule), predict(a, b[order], 1.0, rule)
    np.testing.assert_allclose(moved.probabilities, straight.probabilities[:, order], rtol=1e-9)


def test_golden_probability() -> None:
    found = predict([[1.0, 0.0]], np.eye(2), 1.0)
    assert found.probabilities[0, 0] == pytest.approx(1 / (1 + math.exp(-1)))


def test_one_utterance_is_answered_as_in_any_batch() -> None:
    vectors, prototypes = gaussian(9000, 3), gaussian(4, 3, 1)
    whole = predict(vectors, prototypes, 0.07)
    for row in (0, 8191, 8192, 8999):  # around the border of a block
        alone = predict(vectors[[row]], prototypes, 0.07)
        assert alone.labels[0] == whole.labels[row]
        np.testing.assert_allclose(alone.probabilities[0], whole.probabilities[row], rtol=1e-12)
    empty = predict(vectors[:0], prototypes, 0.07)
    assert (empty.labels.shape, empty.probabilities.shape) == ((0,), (0, 4))
