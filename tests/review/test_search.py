import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.review.search import Index, fold

TEXTS = [
    "Where is my ORDER?",
    "Où est ma commande à Zürich",
    "STRASSE oder Straße",
    "我的信用卡丢了",
    "カードをなくした",
    "ｆｕｌｌｗｉｄｔｈ",
    "أَيْنَ طَلَبِي",
    "मेरा ऑर्डर कहाँ है",
    "cancel my order, please\ncancel it now",
    "Łódź ağacı",
    "",
    "카드를 잃어버렸어요",
]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("order", [0, 8]),
        ("ORDER my", [0, 8]),
        ("ou zurich", [1]),
        ("strasse", [2]),
        ("信用卡", [3]),
        ("卡丢", [3]),
        ("なくした", [4]),
        ("FULLWIDTH", [5]),
        ("اين طلبي", [6]),
        ("أين طلبي", [6]),
        ("ऑर्डर", [7]),
        ('"order, please cancel"', [8]),
        ("“cancel it”", [8]),
        ("please order", [8]),
        ("lodz agaci", [9]),
        ("카드", [11]),
        ("", []),
        ('  "" ', []),
        ("nothing of this", []),
    ],
)
def test_people_find_what_they_type(query: str, rows: list[int]) -> None:
    assert Index(TEXTS).find(query).tolist() == rows


@given(st.lists(st.text(alphabet="ab é\n界"), max_size=12), st.text(alphabet="ab é界", max_size=4))
def test_search_equals_looking_at_every_utterance(texts: list[str], query: str) -> None:
    words = [fold(word) for word in query.split()]
    naive = [i for i, t in enumerate(texts) if words and all(w in fold(t) for w in words)]
    assert Index(texts).find(query).tolist() == naive


def test_search_is_quick_among_a_hundred_thousand() -> None:
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(5_000)])
    texts = [" ".join(row) for row in words[rng.integers(0, 5_000, (100_000, 8))]]
    index = Index(texts)
    for query, least in (("word1 word2", 1), ("o", 100_000), ("word4999", 1), ("nothing", 0)):
        taken = []
        for _ in range(5):
            start = time.process_time()
            found = index.find(query)
            taken.append(time.process_time() - start)
        assert min(taken) < 0.5
        assert len(found) >= least
