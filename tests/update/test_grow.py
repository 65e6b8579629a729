from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.head import Scope
from ronid.types import FloatArray, IntArray
from ronid.update.grow import (
    Beside,
    Flags,
    Learnt,
    Views,
    clusters,
    grow,
    joined,
    keep_large,
    least_size,
    means_of,
    prototype_of,
)

DIM, SPREAD = 12, 0.05


def unit(vectors: np.ndarray) -> np.ndarray:
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def around(centre: int, count: int, rng: np.random.Generator, spread: float = SPREAD) -> np.ndarray:
    return unit(np.eye(DIM)[centre] + spread * rng.normal(size=(count, DIM)))


def scope_of_rows(rows: FloatArray) -> Scope:
    far = ((rows[:, None] - rows) ** 2).sum(-1)
    np.fill_diagonal(far, np.inf)
    return Scope(rows.astype(np.float16), 1.0, np.sort(far.min(1)))


def make_old(rng: np.random.Generator, intents: int = 4, least: int = 8) -> Beside:
    rows = np.concatenate([around(i, 30, rng) for i in range(intents)])
    labels = np.repeat(np.arange(intents), 30)
    centres = unit(np.eye(DIM)[:intents])
    return Beside(centres, "cosine", scope_of_rows(rows), 0.1, least, Views(rows, rows), labels)


def seen(rows: np.ndarray) -> Views:
    return Views(rows, rows)


NONE = -1


def test_new_intents_are_found_behind_the_old_ones_which_stay_as_they_are() -> None:
    rng = np.random.default_rng(0)
    old = make_old(rng)
    came = np.concatenate([around(1, 20, rng), around(6, 20, rng), around(7, 20, rng)])
    found = grow(seen(came), np.full(60, NONE), old)
    assert found.prototypes[:4].tobytes() == old.prototypes.tobytes()
    assert len(found.prototypes) == 6
    assert (found.labels[:20] == 1).all()
    groups = {tuple(set(found.labels[part])) for part in (slice(20, 40), slice(40, 60))}
    assert groups == {(4,), (5,)}
    assert found.fits[20:].all()


@pytest.mark.parametrize("labelled", [8, 20])
def test_what_is_like_rows_labelled_anew_goes_to_them(labelled: int) -> None:
    rng = np.random.default_rng(3)
    old = make_old(rng)
    came = np.concatenate([around(1, 20, rng), around(6, 60, rng)])
    fixed = np.full(80, NONE)
    fixed[20 : 20 + labelled] = 4
    told = unit(came[fixed == 4].mean(0, keepdims=True))
    rows = np.concatenate([old.seen.vectors, came[fixed == 4]])
    old = replace(old, prototypes=np.concatenate([old.prototypes, told]), scope=scope_of_rows(rows))
    found = grow(seen(came), fixed, old)
    assert len(found.prototypes) == 5
    assert (found.labels[20:] == 4).all()
    assert found.fits[20:].mean() > 0.75


@pytest.mark.parametrize("each", [5, 30, 120])
def test_more_of_the_old_intents_makes_no_new_one(each: int) -> None:
    rng = np.random.default_rng(1)
    old = make_old(rng)
    came = np.concatenate([around(i, each, rng) for i in range(4)])
    found = grow(seen(came), np.full(len(came), NONE), old)
    assert len(found.prototypes) == 4
    assert (found.labels == np.repeat(np.arange(4), each)).all()
    assert found.fits.mean() > 0.75


@pytest.mark.parametrize("count", [40, 80])
def test_a_burst_of_one_old_intent_makes_no_new_one(count: int) -> None:
    rng = np.random.default_rng(11)
    found = grow(seen(around(2, count, rng)), np.full(count, NONE), make_old(rng))
    assert len(found.prototypes) == 4
    assert (found.labels == 2).all()
    assert found.fits.mean() > 0.75


def test_a_new_intent_that_features_hide_shows_in_plain_vectors() -> None:
    # The trained space has it on top of an old intent; the encoder before it did not.
    rng = np.random.default_rng(12)
    old, more = make_old(rng, least=20), np.concatenate([around(i, 5, rng) for i in range(4)])
    came = Views(
        np.concatenate([around(1, 30, rng), more]), np.concatenate([around(8, 30, rng), more])
    )
    asked: list[tuple[IntArray, Flags]] = []

    def learn(labels: IntArray, certain: Flags) -> Learnt:
        asked.append((labels, certain))
        apart = np.concatenate([around(9, 30, rng), came.vectors[30:]])
        return Learnt(apart, means_of(apart, labels - 4, "cosine"), old.scope)

    found = grow(came, np.full(50, NONE), old, learn=learn)
    ((labels, certain),) = asked
    assert (labels[:30] == 4).all()
    assert (labels[30:] == np.repeat(np.arange(4), 5)).all()
    assert not certain[:30].any()
    assert certain[30:].all()
    assert (found.labels[:30] == 4).all()
    assert found.fits[:30].all()
    assert np.argmax(found.prototypes[4]) == 9


@pytest.mark.parametrize("alike", [0, 8])
def test_scattered_utterances_make_no_intent_though_some_are_alike(alike: int) -> None:
    rng = np.random.default_rng(14)
    apart = rng.normal(size=(40, DIM)) * (np.arange(DIM) >= 4)  # like none of the old intents
    pairs = apart[: alike // 2] + 0.01 * rng.normal(size=(alike // 2, DIM))
    came = unit(np.concatenate([apart, pairs]))
    found = grow(seen(came), np.full(len(came), NONE), make_old(rng))
    assert len(found.prototypes) == 4
    assert not found.fits.any()


def test_nothing_is_learnt_where_nothing_is_new() -> None:
    rng = np.random.default_rng(13)

    def learn(labels: IntArray, certain: Flags) -> Learnt:
        raise AssertionError

    grow(seen(around(2, 20, rng)), np.full(20, NONE), make_old(rng), learn=learn)


def test_too_few_strangers_are_collected() -> None:
    rng = np.random.default_rng(2)
    old = make_old(rng, least=8)
    found = grow(seen(around(6, 7, rng)), np.full(7, NONE), old)
    assert len(found.prototypes) == 4
    assert not found.fits.any()


def test_strangers_all_over_the_place_are_no_intent() -> None:
    rng = np.random.default_rng(3)
    old = make_old(rng)
    found = grow(seen(unit(rng.normal(size=(80, DIM)))), np.full(80, NONE), old)
    assert len(found.prototypes) == 4
    assert not found.fits.any()


def test_one_utterance_far_from_all_is_collected() -> None:
    rng = np.random.default_rng(14)
    came = np.concatenate([around(0, 12, rng), around(7, 1, rng)])
    found = grow(seen(came), np.full(13, NONE), make_old(rng))
    assert found.fits[:12].mean() > 0.75
    assert not found.fits[12]


def test_a_threshold_of_nothing_lets_all_fit() -> None:
    rng = np.random.default_rng(15)
    old = make_old(rng)
    open_to_all = replace(old, threshold=0.0)
    found = grow(seen(around(6, 40, rng)), np.full(40, NONE), open_to_all)
    assert len(found.prototypes) == 4
    assert found.fits.all()


def test_given_intents_are_kept_whatever_is_near() -> None:
    rng = np.random.default_rng(4)
    old = make_old(rng)
    came = np.concatenate([around(0, 5, rng), around(6, 30, rng)])
    fixed = np.array([3] * 5 + [2] * 3 + [NONE] * 27)
    found = grow(seen(came), fixed, old)
    assert (found.labels[:8] == fixed[:8]).all()
    assert found.fits[:8].all()


def test_prototypes_of_a_distance_rule_are_plain_means() -> None:
    points = around(6, 20, np.random.default_rng(5))
    assert prototype_of(points, "distance") == pytest.approx(points.mean(0))
    assert np.linalg.norm(prototype_of(points, "cosine")) == pytest.approx(1.0)


def test_no_utterance_is_an_answer_too() -> None:
    old = make_old(np.random.default_rng(6))
    found = grow(seen(np.empty((0, DIM), np.float32)), np.empty(0, np.int64), old)
    assert len(found.labels) == len(found.fits) == 0
    assert found.prototypes.tobytes() == old.prototypes.tobytes()


def test_small_clusters_are_given_up_and_others_move_to_their_members() -> None:
    rng = np.random.default_rng(8)
    old = make_old(rng, least=8)
    came = np.concatenate([around(6, 20, rng), around(7, 4, rng)])
    kept, labels = keep_large(came, unit(np.eye(DIM)[[7, 6]]), old)
    assert kept.shape == (1, DIM)
    assert kept[0] @ np.eye(DIM)[6] > 0.9
    assert (labels[:20] == 4).all()
    nothing = replace(old, prototypes=old.prototypes[:0])
    alone, own = keep_large(came, unit(np.eye(DIM)[[7, 6]]), nothing)
    assert len(alone) == 1
    assert (own == 0).all()


def test_no_prototype_at_all_gives_no_intent() -> None:
    old = make_old(np.random.default_rng(16))
    old = replace(old, prototypes=old.prototypes[:0])
    kept, labels = keep_large(old.seen.plain[:3], old.prototypes, old)
    assert len(kept) == 0
    assert (labels == NONE).all()


def test_pieces_of_one_intent_are_joined_and_intents_are_not() -> None:
    rng = np.random.default_rng(17)
    plain = np.concatenate([around(5, 60, rng), around(6, 40, rng), around(7, 20, rng)])
    mixed = rng.permutation(60)
    parts = [mixed[:20], np.arange(60, 100), mixed[20:45], np.arange(100, 120), mixed[45:]]
    found = joined(seen(plain), parts, lambda _: True, 0)
    assert sorted(map(tuple, found)) == [
        tuple(range(60)),
        tuple(range(60, 100)),
        tuple(range(100, 120)),
    ]
    assert joined(seen(plain), [], lambda _: True, 0) == []
    assert len(joined(seen(plain), parts, lambda _: False, 0)) == 5


def test_clusters_do_not_depend_on_anything_but_the_seed() -> None:
    rng = np.random.default_rng(9)
    came = np.concatenate([around(i, 20, rng) for i in (5, 6, 7)])
    first, again = (clusters(came, 10, 3) for _ in range(2))
    assert first.tobytes() == again.tobytes()
    assert len(np.unique(first)) == 3
    assert len(np.unique(clusters(came, 2, 3))) == 2
    assert len(np.unique(clusters(came, 1, 3))) == 1


@pytest.mark.parametrize(
    ("sizes", "least"), [([], 5), ([3, 4, 5], 5), ([100, 100, 1000], 35), ([40, 60], 18)]
)
def test_least_size_follows_the_old_intents(sizes: list[int], least: int) -> None:
    assert least_size(np.array(sizes, np.int64)) == least


@given(seed=st.integers(0, 1000), strange=st.integers(0, 40), given_rows=st.integers(0, 5))
def test_growing_keeps_its_promises(seed: int, strange: int, given_rows: int) -> None:
    rng = np.random.default_rng(seed)
    old = make_old(rng)
    came = np.concatenate([around(2, 10, rng), around(9, strange, rng), around(5, given_rows, rng)])
    fixed = np.full(len(came), NONE)
    fixed[10 + strange :] = 1
    found = grow(seen(came), fixed, old, seed=seed)
    k = len(found.prototypes)
    assert found.prototypes[:4].tobytes() == old.prototypes.tobytes()
    assert ((found.labels >= 0) & (found.labels < k)).all()
    assert (found.labels[fixed >= 0] == 1).all()
    assert found.fits[fixed >= 0].all()
    sizes = np.bincount(found.labels, minlength=k)[4:]
    assert (sizes >= old.least).all()
    assert found.fits[found.labels >= 4].all()
