import numpy as np
import pytest

from ronid.name.nearest import nearest_known

VECTORS = np.array([[1, 0], [0, 2], [-1, 0], [0.9, 0.1], [0, 0]], np.float32)
KNOWN = ("east", "north", "west")


def test_nearest_known_intents_come_first_with_their_cosine() -> None:
    near = nearest_known(VECTORS, KNOWN)
    assert [each.name for each in near[3]] == ["east", "north", "west"]
    assert near[3][0].similarity == pytest.approx(0.9 / np.hypot(0.9, 0.1), abs=1e-4)
    assert near[3][2].similarity < 0


def test_a_known_intent_is_not_its_own_neighbour() -> None:
    near = nearest_known(VECTORS, KNOWN)
    assert [each.name for each in near[0]] == ["north", "west"]


def test_distances_become_similarities_of_at_most_one() -> None:
    near = nearest_known(VECTORS, KNOWN, "distance", top=1)[3][0]
    squared = float(np.square(VECTORS[3] - VECTORS[0]).sum())
    assert near.name == "east"
    assert near.similarity == pytest.approx(1 / (1 + squared), abs=1e-4)


def test_without_known_intents_there_are_no_neighbours() -> None:
    assert nearest_known(VECTORS, ()) == [()] * 5


def test_a_prototype_of_zeros_has_finite_similarities() -> None:
    assert all(np.isfinite(each.similarity) for each in nearest_known(VECTORS, KNOWN)[4])
