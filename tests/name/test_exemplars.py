import numpy as np

from ronid.name.exemplars import borderline, exemplars

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


def test_the_same_request_in_almost_the_same_words_is_shown_once_if_there_is_more() -> None:
    texts = ["Cancel my order!", "cancel the order", "please cancel my order", "stop it", "undo"]
    vectors = np.arange(5, dtype=np.float32)[:, None]
    found = exemplars(texts, np.arange(5), vectors, np.zeros(1, np.float32), top=3)
    assert found == ("Cancel my order!", "stop it", "undo")
    assert len(exemplars(texts, np.arange(5), vectors, np.zeros(1, np.float32))) == 5


def test_borderline_utterances_are_the_least_sure_and_no_exemplars() -> None:
    texts = ["a card", "b bank", "c cash", "A card.", "d debt"]
    sure = np.array([0.1, 0.9, 0.2, 0.3, 0.8], np.float32)
    found = borderline(texts, np.arange(5), sure, central=("b bank",))
    assert found == ("a card", "c cash", "d debt")
    assert borderline(texts, np.empty(0, np.int64), sure, ()) == ()
