import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.update.novelty import (
    FELLOWS,
    NEIGHBOURS,
    neighbours_of,
    novelty,
    own_share,
    tightness,
)


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def some(count: int, seed: int, dim: int = 6) -> np.ndarray:
    return unit(np.random.default_rng(seed).normal(size=(count, dim)))


def nearest(point: int, points: np.ndarray, count: int) -> list[int]:
    """The nearest other points, one cosine at a time."""
    cosines = [(float(points[point] @ other), i) for i, other in enumerate(points) if i != point]
    return [i for _, i in sorted(cosines, reverse=True)[:count]]


@given(old=st.integers(2, 40), came=st.integers(1, 30), seed=st.integers(0, 99))
def test_newness_is_that_of_a_loop_over_all(old: int, came: int, seed: int) -> None:
    points = some(old + came, seed)
    found = novelty(points[:old], points[old:], seed=seed)
    count = min(NEIGHBOURS, len(points) - 1)
    shares = [np.mean([j >= old for j in nearest(i, points, count)]) for i in range(len(points))]
    for row in range(came):
        as_new = sum(share >= shares[old + row] - 1e-12 for share in shares[:old])
        assert found.newness[row] == pytest.approx((1 + as_new) / (1 + old))
    usual = [
        1 - max(float(points[i] @ points[j]) for j in range(old) if j != i) for i in range(old)
    ]
    assert found.usual == pytest.approx(sorted(usual), abs=1e-6)


def test_what_came_together_is_new_and_what_joins_old_ones_is_not() -> None:
    rng = np.random.default_rng(0)
    old = unit(np.eye(6)[rng.integers(0, 3, 200)] + 0.1 * rng.normal(size=(200, 6)))
    joins = unit(np.eye(6)[rng.integers(0, 3, 20)] + 0.1 * rng.normal(size=(20, 6)))
    news = unit(np.eye(6)[[5] * 30] + 0.1 * rng.normal(size=(30, 6)))
    found = novelty(old, np.concatenate([joins, news])).newness
    assert (found[20:] < 0.01).all()
    assert np.median(found[:20]) > 0.2


@given(group=st.integers(2, 30), others=st.integers(2, 30), seed=st.integers(0, 99))
def test_own_share_is_a_share_and_that_of_a_loop_where_sides_are_equal(
    group: int, others: int, seed: int
) -> None:
    points = some(group + others, seed)
    found = own_share(points[:group], points[group:], seed=seed)
    assert 0 <= found <= 1
    if group == others:
        count = min(FELLOWS, group - 1)
        own = [np.mean([j < group for j in nearest(i, points, count)]) for i in range(group)]
        assert found == pytest.approx(np.mean(own))


def test_own_share_does_not_grow_with_the_number() -> None:
    same = some(400, 1)
    assert own_share(same[:350], same[350:]) == pytest.approx(0.5, abs=0.12)
    apart = unit(np.eye(6)[[0] * 300] + 0.1 * some(300, 2))
    assert own_share(apart, unit(np.eye(6)[[1] * 40] + 0.1 * some(40, 3))) == 1.0


def test_tightness_counts_members_with_a_near_fellow() -> None:
    rng = np.random.default_rng(7)
    usual = np.sort(rng.uniform(0.01, 0.05, 50))
    near = unit(np.eye(6)[[0] * 6] + 0.01 * rng.normal(size=(6, 6)))
    group = np.concatenate([near, np.eye(6, dtype=np.float32)[3:5]])
    assert tightness(group, usual, 0.1) == pytest.approx(6 / 8)
    assert tightness(group[:6], usual, 0.1) == 1.0


@pytest.mark.parametrize(("sizes", "wanted"), [([90, 120, 400], 15), ([20, 24], 11), ([4], 5)])
def test_no_more_neighbours_than_half_an_old_intent(sizes: list[int], wanted: int) -> None:
    assert neighbours_of(np.array(sizes)) == wanted


@pytest.mark.parametrize("neighbours", [1, 5, 15])
def test_as_many_neighbours_are_asked_as_told(neighbours: int) -> None:
    # Pairs of equal points: the first neighbour is its twin, all others are of any kind.
    points = np.repeat(some(30, 0), 2, axis=0)
    old, came = points[:40], points[40:]
    newness = novelty(old, came, neighbours=neighbours).newness
    assert (newness < 0.03).all() == (neighbours == 1)


@given(n=st.integers(0, 12), m=st.integers(0, 8), least=st.floats(0, 1), seed=st.integers(0, 99))
def test_near_is_what_so_many_old_ones_are_no_nearer_to_another(
    n: int, m: int, least: float, seed: int
) -> None:
    old, points, others = some(9, seed), some(n, seed + 1), some(m, seed + 2)
    seen = novelty(old, some(1, seed), seed=seed)
    expected = []
    for point in points:
        distances = [1 - float(point @ other) for other in others]
        beyond = sum(usual >= min(distances, default=np.inf) for usual in seen.usual)
        expected.append(bool(m) and (1 + beyond) / (1 + len(seen.usual)) >= least)
    assert seen.is_near(points, others, least).tolist() == expected


def test_a_point_is_near_to_itself_and_not_to_its_opposite() -> None:
    old = some(30, 0)
    seen = novelty(old, old[:1])
    assert seen.is_near(old[:3], old[:3], 0.1).all()
    assert not seen.is_near(old[:3], -old[:3], 0.1).any()
