import numpy as np
import pytest

from ronid.export.updates import drift_line
from ronid.update.drift import MOVED, Members, farthest, find_drift, mean_shift

NAMES = ("refund", "unlock")


def cloud(centre: list[float], count: int, seed: int, spread: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (np.array(centre) + spread * rng.normal(size=(count, len(centre)))).astype(np.float32)


def members(first: np.ndarray, second: np.ndarray) -> Members:
    labels = np.repeat([0, 1], [len(first), len(second)])
    return Members(np.concatenate([first, second]), labels)


def texts(count: int) -> list[str]:
    return [f"utterance {i}" for i in range(count)]


def test_nothing_drifts_where_the_same_comes_again() -> None:
    before = members(cloud([1, 0, 0], 100, 0), cloud([0, 1, 0], 100, 1))
    now = members(cloud([1, 0, 0], 20, 2), cloud([0, 1, 0], 20, 3))
    assert find_drift(before, now, texts(40), NAMES) == ()


def test_an_intent_that_moved_is_told_with_its_angle_and_utterances() -> None:
    before = members(cloud([1, 0, 0], 100, 0, 0.01), cloud([0, 1, 0], 100, 1, 0.01))
    moved = cloud([1, 0, 1], 20, 2, 0.01)
    now = members(moved, cloud([0, 1, 0], 20, 3, 0.01))
    (drift,) = find_drift(before, now, texts(40), NAMES)
    assert (drift.index, drift.name, drift.moved) == (0, "refund", True)
    assert drift.angle == pytest.approx(45, abs=1)
    assert drift.shows == tuple(f"utterance {i}" for i in np.argsort(-moved[:, 2])[:3])
    assert "refund drifted: moved by 45\N{DEGREE SIGN}, share 50.0%" in drift_line(vars(drift))


def test_an_intent_that_became_rare_is_told_with_its_shares() -> None:
    before = members(cloud([1, 0, 0], 100, 0), cloud([0, 1, 0], 100, 1))
    now = members(cloud([1, 0, 0], 2, 2), cloud([0, 1, 0], 60, 3))
    (drift,) = find_drift(before, now, texts(62), NAMES)
    assert (drift.index, drift.moved, drift.angle) == (0, False, 0.0)
    assert drift.share_before == 0.5
    assert drift.share_now == pytest.approx(2 / 62)


def test_repeats_that_only_half_precision_sees_elsewhere_have_not_moved() -> None:
    rng = np.random.default_rng(0)
    said = rng.normal(size=(2, 384)).astype(np.float32)
    now = members(said[:1].repeat(10, 0), said[1:].repeat(10, 0))
    before = Members(now.vectors.astype(np.float16).astype(np.float32), now.labels)
    assert mean_shift(before.of(0), now.of(0))[1] > MOVED
    assert find_drift(before, now, texts(20), NAMES) == ()


def test_nothing_came_is_no_drift() -> None:
    before = members(cloud([1, 0, 0], 10, 0), cloud([0, 1, 0], 10, 1))
    none = Members(np.empty((0, 3), np.float32), np.empty(0, np.int64))
    assert find_drift(before, none, [], NAMES) == ()


def test_mean_shift_is_what_loops_give() -> None:
    old, new = cloud([1, 0, 0], 9, 4), cloud([0.9, 0.2, 0], 7, 5)
    a, b = old.mean(0), new.mean(0)
    chance = 0.0
    for part in (old, new):
        centre = part.mean(0)
        chance += sum(((x - centre) ** 2).sum() for x in part) / (len(part) - 1) / len(part)
    angle, ratio = mean_shift(old, new)
    assert ratio == pytest.approx(((a - b) ** 2).sum() / chance, rel=1e-4)
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert angle == pytest.approx(np.degrees(np.arccos(cosine)), rel=1e-3)


def test_mean_shift_of_points_that_are_all_alike() -> None:
    same = np.ones((5, 2), np.float32)
    assert mean_shift(same, same)[1] == 0.0
    assert mean_shift(same, same * [1, -1])[1] == np.inf


def test_farthest_of_nothing_is_nothing() -> None:
    assert farthest(np.ones((3, 2), np.float32), np.empty((0, 2), np.float32)) == []
