"""`ronid fit` on piles without labels, and with labels of intents that do not occur in them."""

import csv
import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.helpers.toy_corpus import TinyEncoder, Toy

Command = Callable[..., subprocess.CompletedProcess[str]]
Rows = Sequence[tuple[str, str | None]]


@pytest.fixture
def fit(ronid: Command, tiny: TinyEncoder, tmp_path: Path) -> Callable[..., tuple[str, list]]:
    """Fit rows of text and label; what it said on one line, and the intents found."""
    (tmp_path / "quick.toml").write_text(
        "[contrast]\nepochs = 1\nfew_labels_epochs = 1\n[m_step]\nepochs = 1\n"
    )

    def run(rows: Rows) -> tuple[str, list]:
        with (tmp_path / "pile.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("text", "intent"), *rows])
        done = ronid(
            "fit", "pile.csv", "--out", "run", "--intents", "6", "--exactly", "--device", "cpu",
            "--encoder", tiny("bert"), "--config", "quick.toml", "--json",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return " ".join(done.stderr.split()), json.loads(done.stdout)["intents"]

    return run


def test_without_labels_it_says_that_it_is_unsupervised(
    fit: Callable[..., tuple[str, list]], few_utterances: Toy
) -> None:
    said, intents = fit([(text, None) for text in few_utterances.texts])
    assert said.count("unsupervised") == 1
    assert [intent["known"] for intent in intents] == [False] * 6


def test_with_labels_it_does_not(fit: Callable[..., tuple[str, list]], few_utterances: Toy) -> None:
    said, _ = fit(list(zip(few_utterances.texts, few_utterances.labels(), strict=True)))
    assert "unsupervised" not in said


def test_known_intents_that_are_not_in_the_pile_stay_known(
    fit: Callable[..., tuple[str, list]], few_utterances: Toy
) -> None:
    labels, absent = few_utterances.labels(), few_utterances.names[0]
    triples = zip(few_utterances.texts, labels, few_utterances.truth, strict=True)
    rows = [(text, label) for text, label, truth in triples if label or truth != absent]
    _, intents = fit(rows)
    by_name = {intent["name"]: intent for intent in intents}
    assert by_name[absent]["known"]
    assert by_name[absent]["size"] >= labels.count(absent)


def test_one_label_of_each_intent_is_enough_to_run(
    fit: Callable[..., tuple[str, list]], few_utterances: Toy
) -> None:
    seen: set[str] = set()
    rows: list[tuple[str, str | None]] = []
    for text, truth in zip(few_utterances.texts, few_utterances.truth, strict=True):
        rows.append((text, None if truth in seen else truth))
        seen.add(truth)
    _, intents = fit(rows)
    assert all(intent["known"] for intent in intents)
