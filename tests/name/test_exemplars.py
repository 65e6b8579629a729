import numpy as np

from ronid.name.exemplars import exemplars

TEXTS = ["far", "Near", "near ", "  NEAR", "middle", "", "other intent"]
ANGLES = np.radians([80, 0, 1, 2, 40, 3, 0])
VECTORS = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1).astype(np.float32)
NORTH = np.array([1, 0], dtype=np.float32)


def test_exemplars_are_the_nearest_distinct_utterances() -> None:
    assert exemplars(TEXTS, np.arange(6), VECTORS, NORTH) == ("Near", "middle", "far")
    assert exemplars(TEXTS, np.arange(6), VECTORS, NORTH, top=2) == ("Near", "middle")


def test_exemplars_agree_with_a_plain_sort() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 8)).astype(np.float32)
    prototype = rng.normal(size=8).astype(np.float32)
    texts = [f"utterance {row}" for row in range(50)]
    expected = sorted(range(50), key=lambda row: float(np.linalg.norm(vectors[row] - prototype)))[
        :5
    ]
    assert exemplars(texts, np.arange(50), vectors, prototype) == tuple(
        texts[row] for row in expected
    )


def test_an_empty_intent_has_no_exemplars() -> None:
    assert exemplars(TEXTS, np.empty(0, np.int64), VECTORS, NORTH) == ()
