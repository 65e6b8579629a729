import csv
import re
from collections import Counter, defaultdict
from importlib.resources import files

import pytest

NEW_INTENTS = {
    "child_seat_or_helmet",
    "delete_account_and_data",
    "ebike_battery_dead",
    "gift_card_purchase",
    "group_booking",
    "invoice_for_employer",
    "pause_membership",
    "student_discount",
}
NEAR_DUPLICATE = 0.8

Row = dict[str, str]


def rows_of(name: str) -> list[Row]:
    with (files("ronid.data.demo") / name).open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


@pytest.fixture(scope="module")
def utterances() -> list[Row]:
    return rows_of("utterances.csv")


@pytest.fixture(scope="module")
def truth() -> dict[str, str]:
    return {row["id"]: row["intent"] for row in rows_of("truth.csv")}


def squashed(text: str) -> str:
    return " ".join(text.lower().split())


def near_duplicates(texts: list[str]) -> set[int]:
    """Return the rows whose word set has a Jaccard similarity over 0.8 with another row's."""
    words = [set(re.findall(r"[\w']+", text.lower())) for text in texts]
    holders: dict[str, list[int]] = defaultdict(list)
    found: set[int] = set()
    for row, own in enumerate(words):
        shared = Counter(other for word in own for other in holders[word])
        for other, both in shared.items():
            if both > NEAR_DUPLICATE * (len(own) + len(words[other]) - both):
                found |= {row, other}
        for word in own:
            holders[word].append(row)
    return found


def test_files_have_the_documented_columns(utterances: list[Row]) -> None:
    assert list(utterances[0]) == ["id", "text", "intent"]
    assert list(rows_of("truth.csv")[0]) == ["id", "intent"]


def test_files_are_utf8_with_unix_line_ends() -> None:
    for name in ("utterances.csv", "truth.csv"):
        content = (files("ronid.data.demo") / name).read_bytes()
        assert b"\r" not in content
        assert not content.startswith(b"\xef\xbb\xbf")
        assert content.decode("utf-8").endswith("\n")


def test_ids_are_unique_and_the_same_in_both_files(utterances: list[Row]) -> None:
    ids = [row["id"] for row in utterances]
    assert ids == [f"u{number:04d}" for number in range(1, len(ids) + 1)]
    assert ids == [row["id"] for row in rows_of("truth.csv")]


def test_there_are_24_intents_of_unequal_but_usable_size(truth: dict[str, str]) -> None:
    sizes = Counter(truth.values())
    assert len(sizes) >= 24
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)+", intent) for intent in sizes)
    assert min(sizes.values()) >= 45
    assert max(sizes.values()) <= 95
    assert len(set(sizes.values())) > 5


def test_there_are_at_least_1500_distinct_utterances(utterances: list[Row]) -> None:
    distinct = {squashed(row["text"]) for row in utterances}
    assert len(distinct) >= 1500
    assert len(distinct) == len(utterances)


def test_sixteen_known_intents_carry_seven_to_nine_labels_each(utterances: list[Row]) -> None:
    labels = Counter(row["intent"] for row in utterances if row["intent"])
    assert len(labels) == 16
    assert set(labels.values()) <= {7, 8, 9}


def test_eight_new_intents_carry_no_label(utterances: list[Row], truth: dict[str, str]) -> None:
    labelled = {row["intent"] for row in utterances if row["intent"]}
    assert set(truth.values()) - labelled == NEW_INTENTS


def test_labels_equal_the_truth(utterances: list[Row], truth: dict[str, str]) -> None:
    wrong = [row for row in utterances if row["intent"] not in ("", truth[row["id"]])]
    assert wrong == []


def test_rows_are_shuffled_over_the_intents(truth: dict[str, str]) -> None:
    intents = list(truth.values())
    repeats = sum(a == b for a, b in zip(intents, intents[1:], strict=False))
    assert repeats < 0.1 * len(intents)


def test_every_text_is_one_clean_line_of_two_to_sixty_words(utterances: list[Row]) -> None:
    for row in utterances:
        text = row["text"]
        assert text == " ".join(text.split())
        assert 2 <= len(text.split()) <= 60


def test_lengths_vary_from_keywords_to_whole_messages(utterances: list[Row]) -> None:
    lengths = [len(row["text"].split()) for row in utterances]
    assert sum(length <= 3 for length in lengths) >= 50
    assert sum(length > 25 for length in lengths) >= 50


def test_under_two_percent_are_near_duplicates(utterances: list[Row]) -> None:
    texts = [row["text"] for row in utterances]
    assert len(near_duplicates(texts)) < 0.02 * len(texts)


def test_near_duplicate_check_sees_a_one_word_change() -> None:
    texts = [
        "my bike will not unlock at the station",
        "my bike will not unlock at this the station",
        "where is the refund",
    ]
    assert near_duplicates(texts) == {0, 1}
