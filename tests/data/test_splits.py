import csv
import json
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.data.cell_files import cell_path, read_cell, write_cell, write_problem
from ronid.data.corpus import corpus_from
from ronid.data.splits import Cell, benchmark_cell, benchmark_problem, split_corpus
from ronid.errors import DataError, RonidWarning, UsageError
from ronid.types import UNLABELLED, Corpus

Toy = Callable[[], Path]


def labelled_corpus(counts: dict[str | None, int]) -> Corpus:
    labels = [label for label, n in counts.items() for _ in range(n)]
    return corpus_from(
        [f"utterance {i}" for i in range(len(labels))], labels, embeddings=np.eye(len(labels))
    )


def test_one_in_five_labels_is_held_out_and_hidden_from_training() -> None:
    corpus = labelled_corpus({"b": 10, "a": 5, "c": 4, None: 20})
    split = split_corpus(corpus, 6)
    assert split.known == ("a", "b", "c")
    assert Counter(split.dev_targets.tolist()) == {0: 1, 1: 2}
    assert Counter(split.targets.tolist()) == {0: 4, 1: 8, 2: 4, UNLABELLED: 23}
    rows = [split.texts.index(text) for text in split.dev_texts]
    assert (split.targets[rows] == UNLABELLED).all()
    assert [corpus.labels[row] for row in rows] == [split.known[t] for t in split.dev_targets]
    assert split.dev_embeddings is not None
    np.testing.assert_array_equal(split.dev_embeddings, np.eye(39, dtype=np.float32)[rows])


def test_held_out_labels_depend_on_the_seed_alone() -> None:
    corpus = labelled_corpus({"a": 50, None: 5})
    first, again, other = (split_corpus(corpus, 2, seed=seed).dev_texts for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_nothing_is_held_out_when_not_wanted() -> None:
    split = split_corpus(labelled_corpus({"a": 10}), 1, hold_out=False)
    assert len(split.dev_texts) == len(split.dev_targets) == 0
    assert (split.targets == 0).all()


def test_given_dev_corpus_replaces_the_held_out_labels() -> None:
    corpus = labelled_corpus({"a": 10, "b": 10})
    dev = corpus_from(["x", "y", "z"], ["b", "unheard", None])
    with pytest.warns(RonidWarning, match="2 of 3 utterances for early stopping"):
        split = split_corpus(corpus, 3, dev=dev)
    assert (split.dev_texts, split.dev_targets.tolist()) == (["x"], [1])
    assert split.dev_embeddings is None
    assert len(split.labelled) == 20


def test_corpus_without_labels_splits() -> None:
    split = split_corpus(labelled_corpus({None: 3}), 2)
    assert (split.known, len(split.unlabelled), len(split.dev_texts)) == ((), 3, 0)


def test_truth_counts_known_intents_first() -> None:
    corpus = corpus_from(list("wxyz"), ["m", "m", None, None], truth=["m", "m", "a", None])
    truth = split_corpus(corpus, 2).truth
    assert truth is not None
    assert truth.tolist() == [0, 0, 1, UNLABELLED]


@pytest.mark.parametrize(
    ("n_intents", "says"),
    [
        (0, "it must be at least 1"),
        (2, r"2 intents asked for, but 3 are labelled already \(a, b, c\)"),
        (8, "only 7 utterances"),
    ],
)
def test_impossible_number_of_intents_is_refused(n_intents: int, says: str) -> None:
    corpus = labelled_corpus({"a": 2, "b": 2, "c": 2, None: 1})
    with pytest.raises(UsageError, match=says):
        split_corpus(corpus, n_intents)


def test_labels_that_differ_in_case_only_are_warned_of() -> None:
    corpus = corpus_from(list("abcd"), ["alarm", "alarm", "ALARM", "ALARM"])
    told = r"'alarm' \(2\) beside 'ALARM' \(2\); .* write them alike"
    with pytest.warns(RonidWarning, match=told):
        assert split_corpus(corpus, 3).known == ("ALARM", "alarm")


def test_label_used_once_is_warned_of() -> None:
    with pytest.warns(RonidWarning, match=r"1 intent has one labelled utterance only \(typo\)"):
        split_corpus(labelled_corpus({"a": 4, "typo": 1}), 2)


@given(st.dictionaries(st.sampled_from("abcde"), st.integers(2, 30), min_size=1), st.integers(0, 9))
def test_held_out_and_trained_labels_are_all_labels(counts: dict[str, int], seed: int) -> None:
    corpus = labelled_corpus({**counts, None: 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        split = split_corpus(corpus, len(counts), seed=seed)
    assert len(split.labelled) + len(split.dev_targets) == sum(counts.values())
    for index, name in enumerate(split.known):
        assert np.count_nonzero(split.dev_targets == index) == counts[name] // 5


def test_toy_problem_hides_what_is_not_labelled(toy: Toy) -> None:
    toy()
    cell = benchmark_cell("toy", 0.5, 0.2, seed=3)
    problem = benchmark_problem(cell)
    split = problem.split
    assert len(cell.known) == 2
    assert problem.classes[:2] == split.known == cell.known
    assert problem.classes[2:] == tuple(sorted(problem.classes[2:]))
    assert split.n_intents == 4
    assert split.truth is not None
    assert sorted(cell.labelled) == split.labelled.tolist()
    np.testing.assert_array_equal(split.targets[split.labelled], split.truth[split.labelled])
    for text, true in zip(split.texts, split.truth, strict=True):
        assert text.startswith(f"train {problem.classes[true]}, ")
    assert set(split.dev_targets) == {0, 1}
    assert len(split.dev_texts) == 6
    for text, target in zip(problem.test_texts, problem.test_targets, strict=True):
        assert text.startswith(f"test {problem.classes[target]}, ")
    assert len(problem.test_texts) == 8


def test_labelled_count_rounds_half_to_even(toy: Toy) -> None:
    toy()
    cell = benchmark_cell("toy", 1.0, 0.5)
    sizes = {"a": 20, "b": 10, "c": 5, "d": 30}
    assert len(cell.labelled) == sum(round(0.5 * n) for n in sizes.values()) == 32
    assert len(benchmark_cell("toy", 0.625).known) == 2


@pytest.mark.parametrize(("known", "labelled"), [(-0.1, 0.1), (1.5, 0.1), (0.5, -1), (0.5, 2)])
def test_ratio_outside_its_range_is_refused(known: float, labelled: float) -> None:
    with pytest.raises(UsageError, match="must be from 0 to 1"):
        benchmark_cell("clinc", known, labelled)


CELL = Cell("clinc", 0.75, 0.1, 0, ("é", "b"), (3, 1))


def test_cell_is_read_back_and_has_a_stable_hash(tmp_path: Path) -> None:
    path = write_cell(cell_path(tmp_path / "new", CELL), CELL)
    assert path.name == "clinc-known0.75-labelled0.1-seed0.json"
    assert read_cell(path) == CELL
    assert CELL.hash == "af9816e4a0e8f5d59868798b5c5942458cef35dc86e735c8a7585adfafbf589f"


def test_changed_cell_is_refused(tmp_path: Path) -> None:
    path = write_cell(tmp_path / "cell.json", CELL)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"labelled": [3, 2]}))
    with pytest.raises(DataError, match="was changed"):
        read_cell(path)
    path.write_text(json.dumps(content | {"format_version": 9}))
    with pytest.raises(DataError, match="format 9"):
        read_cell(path)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"format_version": 1, "hash": ""}'])
def test_file_that_is_no_cell_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "cell.json"
    path.write_text(content)
    with pytest.raises(DataError, match="no benchmark cell"):
        read_cell(path)
    with pytest.raises(DataError, match="does not exist"):
        read_cell(tmp_path / "other.json")


def test_written_problem_has_empty_intents_where_hidden(toy: Toy, tmp_path: Path) -> None:
    toy()
    cell = benchmark_cell("toy", 0.5, 0.2)
    files = write_problem(tmp_path / "out", cell)
    assert [path.name for path in files] == ["cell.json", "train.csv", "dev.csv", "test.csv"]
    rows = {}
    for path in files[1:]:
        with path.open(encoding="utf-8", newline="") as stream:
            rows[path.stem] = list(csv.DictReader(stream))
    assert list(rows["train"][0]) == ["id", "text", "intent", "truth"]
    given_rows = {int(row["id"]) for row in rows["train"] if row["intent"]}
    assert given_rows == set(cell.labelled)
    assert all(row["intent"] in ("", row["truth"]) for row in rows["train"])
    assert {row["intent"] for row in rows["dev"]} == set(cell.known)
    assert {row["intent"] for row in rows["test"]} == {""}
    assert {row["truth"] for row in rows["test"]} == set("abcd")


@pytest.mark.benchmark_data
@pytest.mark.parametrize(
    ("dataset", "n_known", "n_labelled", "known", "labelled"),
    [
        ("clinc", 112, 1344, ("spelling", "jump_start", "date"), (16193, 7092, 14370)),
        (
            "banking",
            58,
            673,
            ("pending_top_up", "why_verify_identity", "top_up_failed"),
            (6592, 7048, 658),
        ),
        ("stackoverflow", 15, 1350, ("8", "10", "9"), (17449, 7734, 15455)),
    ],
)
def test_published_draws_are_reproduced(
    benchmark_data: None,
    dataset: str,
    n_known: int,
    n_labelled: int,
    known: tuple[str, ...],
    labelled: tuple[int, ...],
) -> None:
    cell = benchmark_cell(dataset)
    assert (len(cell.known), len(cell.labelled)) == (n_known, n_labelled)
    assert (cell.known[:3], cell.labelled[:3]) == (known, labelled)


@pytest.mark.benchmark_data
@pytest.mark.parametrize(
    ("dataset", "ratio", "n_known", "fewest", "most"),
    [
        ("clinc", 0.25, 38, 456, 456),
        ("clinc", 0.5, 75, 900, 900),
        ("banking", 0.25, 19, 209, 238),
        ("banking", 0.5, 38, 413, 479),
        ("banking", 0.75, 58, 657, 694),
        ("stackoverflow", 0.25, 5, 450, 450),
        ("stackoverflow", 0.5, 10, 900, 900),
    ],
)
def test_label_counts_are_those_of_the_protocol(
    benchmark_data: None, dataset: str, ratio: float, n_known: int, fewest: int, most: int
) -> None:
    cells = [benchmark_cell(dataset, ratio, seed=seed) for seed in range(10)]
    counts = [len(cell.labelled) for cell in cells]
    assert {len(cell.known) for cell in cells} == {n_known}
    assert (min(counts), max(counts)) == (fewest, most)


@pytest.mark.benchmark_data
@pytest.mark.parametrize(
    ("dataset", "n", "n_dev", "n_test"),
    [
        ("clinc", 18_000, 1680, 2250),
        ("banking", 9003, None, 3080),
        ("stackoverflow", 18_000, 750, 1000),
    ],
)
def test_benchmark_problem_has_the_published_sizes(
    benchmark_data: None, dataset: str, n: int, n_dev: int | None, n_test: int
) -> None:
    problem = benchmark_problem(benchmark_cell(dataset))
    assert (len(problem.split), len(problem.test_texts)) == (n, n_test)
    n_found = len(problem.split.dev_texts)
    assert n_found == n_dev or (n_dev is None and 728 <= n_found <= 772)
    assert len(set(Counter(problem.test_targets.tolist()).values())) == 1  # balanced
