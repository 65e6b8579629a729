import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ronid.reject import Scope
from ronid.update.grow import Beside, candidate_intents, grow, keep_intents, least_size, tightness

DIM, SPREAD = 12, 0.05


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def around(centre: int, count: int, rng: np.random.Generator, spread: float = SPREAD) -> np.ndarray:
    return unit(np.eye(DIM)[centre] + spread * rng.normal(size=(count, DIM)))


def make_old(rng: np.random.Generator, intents: int = 4, least: int = 8) -> Beside:
    rows = np.concatenate([around(i, 30, rng) for i in range(intents)])
    far = ((rows[:, None] - rows) ** 2).sum(-1)
    np.fill_diagonal(far, np.inf)
    scope = Scope(rows.astype(np.float16), 1.0, np.sort(far.min(1)))
    return Beside(unit(np.eye(DIM)[:intents]), "cosine", scope, 0.1, least)


NONE = -1


def test_new_intents_are_found_behind_the_old_ones_which_stay_as_they_are() -> None:
    rng = np.random.default_rng(0)
    old = make_old(rng)
    came = np.concatenate([around(1, 20, rng), around(6, 20, rng), around(7, 20, rng)])
    found = grow(came, np.full(60, NONE), old)
    assert found.prototypes[:4].tobytes() == old.prototypes.tobytes()
    assert len(found.prototypes) == 6
    assert (found.labels[:20] == 1).all()
    groups = {tuple(set(found.labels[part])) for part in (slice(20, 40), slice(40, 60))}
    assert groups == {(4,), (5,)}
    assert found.fits[20:].all()


def test_what_fits_makes_no_intent() -> None:
    rng = np.random.default_rng(1)
    old = make_old(rng)
    came = np.concatenate([around(i, 30, rng) for i in range(4)])
    found = grow(came, np.full(120, NONE), old)
    assert len(found.prototypes) == 4
    assert (found.labels == np.repeat(np.arange(4), 30)).all()
    assert found.fits.mean() > 0.75


def test_too_few_strangers_are_collected() -> None:
    rng = np.random.default_rng(2)
    old = make_old(rng, least=8)
    found = grow(around(6, 7, rng), np.full(7, NONE), old)
    assert len(found.prototypes) == 4
    assert not found.fits.any()


def test_strangers_all_over_the_place_are_no_intent() -> None:
    rng = np.random.default_rng(3)
    old = make_old(rng)
    found = grow(unit(rng.normal(size=(80, DIM))), np.full(80, NONE), old)
    assert len(found.prototypes) == 4
    assert not found.fits.any()


def test_given_intents_are_kept_whatever_is_near() -> None:
    rng = np.random.default_rng(4)
    old = make_old(rng)
    came = np.concatenate([around(0, 5, rng), around(6, 30, rng)])
    fixed = np.array([3] * 5 + [2] * 3 + [NONE] * 27)
    found = grow(came, fixed, old)
    assert (found.labels[:8] == fixed[:8]).all()
    assert found.fits[:8].all()


def test_prototypes_of_a_distance_rule_are_plain_means() -> None:
    rng = np.random.default_rng(5)
    old = make_old(rng)
    far = Beside(3 * old.prototypes, "distance", old.scope, 0.1, 8)
    points = around(6, 20, rng)
    assert far.mean(points) == pytest.approx(points.mean(0))
    assert np.linalg.norm(old.mean(points)) == pytest.approx(1.0)


def test_no_utterance_is_an_answer_too() -> None:
    old = make_old(np.random.default_rng(6))
    found = grow(np.empty((0, DIM), np.float32), np.empty(0, np.int64), old)
    assert len(found.labels) == len(found.fits) == 0
    assert found.prototypes.tobytes() == old.prototypes.tobytes()


def test_tightness_counts_members_with_a_near_neighbour() -> None:
    rng = np.random.default_rng(7)
    old = make_old(rng)
    members = np.concatenate([around(5, 6, rng, 0.001), unit(np.eye(DIM)[8:10])])
    usual, expected = old.scope.usual, 0
    for i, one in enumerate(members):
        nearest = min(((one - other) ** 2).sum() for j, other in enumerate(members) if j != i)
        expected += (1 + sum(u >= nearest for u in usual)) / (1 + len(usual)) >= 0.1
    assert tightness(members, old) == pytest.approx(expected / len(members))
    assert expected == 6
    assert tightness(members[:1], old) == 0.0


def test_small_clusters_are_given_up_and_others_move_to_their_members() -> None:
    rng = np.random.default_rng(8)
    old = make_old(rng, least=8)
    came = np.concatenate([around(6, 20, rng), around(7, 4, rng)])
    kept = keep_intents(came, unit(np.eye(DIM)[[7, 6]]), old)
    assert kept.shape == (1, DIM)
    assert kept[0] @ unit(came[:20].mean(0)) > 0.999 or (kept[0] @ np.eye(DIM)[6]) > 0.9


def test_candidates_do_not_depend_on_anything_but_the_seed() -> None:
    rng = np.random.default_rng(9)
    old = make_old(rng)
    came = np.concatenate([around(i, 20, rng) for i in (5, 6, 7)])
    first, again = (candidate_intents(came, old, 3) for _ in range(2))
    assert first.tobytes() == again.tobytes()
    assert len(first) == 3


@pytest.mark.parametrize(
    ("sizes", "least"), [([], 5), ([3, 4, 5], 5), ([100, 100, 1000], 35), ([40, 60], 18)]
)
def test_least_size_follows_the_old_intents(sizes: list[int], least: int) -> None:
    assert least_size(np.array(sizes, np.int64)) == least


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), strange=st.integers(0, 40), given_rows=st.integers(0, 5))
def test_growing_keeps_its_promises(seed: int, strange: int, given_rows: int) -> None:
    rng = np.random.default_rng(seed)
    old = make_old(rng)
    came = np.concatenate([around(2, 10, rng), around(9, strange, rng), around(5, given_rows, rng)])
    fixed = np.full(len(came), NONE)
    fixed[10 + strange :] = 1
    found = grow(came, fixed, old, seed=seed)
    k = len(found.prototypes)
    assert found.prototypes[:4].tobytes() == old.prototypes.tobytes()
    assert ((found.labels >= 0) & (found.labels < k)).all()
    assert (found.labels[fixed >= 0] == 1).all()
    assert found.fits[fixed >= 0].all()
    sizes = np.bincount(found.labels, minlength=k)[4:]
    assert (sizes >= old.least).all()
    assert found.fits[found.labels >= 4].all()
