"""From a corpus to a `Split`, the problem a method solves; and the fixed splits of the benchmarks.

The benchmark protocol is that of the published code (DeepAligned and its descendants), so that
numbers can be compared: every draw below is pinned by golden tests.
"""

import csv
import hashlib
import json
import random
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ronid.data import benchmarks
from ronid.data.corpus import shortened
from ronid.errors import DataError, RonidWarning, UsageError
from ronid.types import UNLABELLED, Corpus, IntArray, Split

FORMAT_VERSION = 1

_HELD_OUT_ONE_IN = 5


def split_corpus(
    corpus: Corpus,
    n_intents: int | None,
    *,
    exact: bool = True,
    dev: Corpus | None = None,
    hold_out: bool = True,
    seed: int = 0,
) -> Split:
    """Make the discovery problem of a user's corpus.

    Early stopping needs labels that are not trained on. Without `dev`, one in five labels of each
    known intent that has at least five is held out; its utterance stays, as an unlabelled one.

    Args:
        corpus: Utterances, some labelled.
        n_intents: K, known and new intents together; None where the data shall tell.
        exact: Whether K is certain; else it is kept unless there are clearly fewer.
        dev: Labelled utterances for early stopping; those of other intents are left out.
        hold_out: Whether to hold out labels when `dev` is not given.
        seed: Decides which labels are held out.

    Returns:
        The split; known intents are sorted by name.

    Raises:
        UsageError: `n_intents` does not fit the corpus.
    """
    known = corpus.known
    if n_intents is not None:
        _check_n_intents(n_intents, known, len(corpus))
    _warn_used_once(corpus)
    index = {name: i for i, name in enumerate(known)}
    targets = _targets(corpus.labels, index)
    if dev is not None:
        dev_rows = _known_rows(dev, index)
        dev_source, dev_targets = dev, _targets(dev.labels, index)[dev_rows]
    else:
        dev_rows = _draw_held_out(targets, seed) if hold_out else np.empty(0, np.int64)
        dev_source, dev_targets = corpus, targets[dev_rows]
        targets[dev_rows] = UNLABELLED
    vectors, truth = dev_source.embeddings, corpus.truth
    return Split(
        texts=corpus.texts,
        targets=targets,
        known=known,
        n_intents=n_intents or 0,
        count_rule="auto" if n_intents is None else "given" if exact else "guess",
        dev_texts=[dev_source.texts[row] for row in dev_rows],
        dev_targets=dev_targets,
        embeddings=corpus.embeddings,
        dev_embeddings=None if vectors is None else vectors[dev_rows],
        truth=None if truth is None else _targets(truth, _all_classes(corpus)),
    )


def _check_n_intents(n_intents: int, known: Sequence[str], n: int) -> None:
    if not isinstance(n_intents, int | np.integer):
        raise UsageError(f"the number of intents is {n_intents!r}; give a whole number")
    if n_intents < 1:
        raise UsageError(f"the number of intents is {n_intents}; it must be at least 1")
    if n_intents < len(known):
        raise UsageError(
            f"{n_intents} intents asked for, but {len(known)} are labelled already "
            f"({shortened(known)}); ask for at least {len(known)}"
        )
    if n_intents > n:
        raise UsageError(
            f"{n_intents} intents asked for, but there are only {n} utterances; ask for fewer"
        )


def _warn_used_once(corpus: Corpus) -> None:
    once = corpus.report.used_once
    if once:
        warnings.warn(
            f"{len(once)} {'intent has' if len(once) == 1 else 'intents have'} one labelled "
            f"utterance only ({shortened(once)}); "
            "label more, or check the spelling",
            RonidWarning,
            stacklevel=3,
        )


def _targets(names: Sequence[str | None], index: dict[str, int]) -> IntArray:
    return np.array(
        [UNLABELLED if name is None else index.get(name, UNLABELLED) for name in names], np.int64
    )


def _all_classes(corpus: Corpus) -> dict[str, int]:
    """Known intents first, as in `Split.known`; the others of the truth follow, sorted."""
    others = {name for name in corpus.truth or () if name is not None} - set(corpus.known)
    return {name: i for i, name in enumerate([*corpus.known, *sorted(others)])}


def _known_rows(dev: Corpus, index: dict[str, int]) -> IntArray:
    rows = np.flatnonzero(_targets(dev.labels, index) != UNLABELLED)
    if len(rows) < len(dev):
        warnings.warn(
            f"{len(dev) - len(rows)} of {len(dev)} utterances for early stopping carry no intent "
            "labelled in the corpus and are left out",
            RonidWarning,
            stacklevel=3,
        )
    return rows


def _draw_held_out(targets: IntArray, seed: int) -> IntArray:
    rng = np.random.default_rng(seed)
    rows: list[int] = []
    for intent in range(targets.max() + 1 if len(targets) else 0):
        labelled = np.flatnonzero(targets == intent)
        rows.extend(rng.choice(labelled, len(labelled) // _HELD_OUT_ONE_IN, replace=False))
    return np.sort(np.array(rows, np.int64))


@dataclass(frozen=True)
class Cell:
    """One drawn benchmark split, shared by all methods.

    Args:
        dataset: Name of the benchmark.
        known_ratio: Share of its intents that are known.
        labelled_ratio: Share of the training utterances of known intents that are labelled.
        seed: Seed of both draws.
        known: Known intents in drawn order.
        labelled: Training rows that carry their label, in drawn order.
    """

    dataset: str
    known_ratio: float
    labelled_ratio: float
    seed: int
    known: tuple[str, ...]
    labelled: tuple[int, ...]

    @property
    def hash(self) -> str:
        """SHA-256 of the cell as canonical JSON."""
        canonical = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True)
class BenchmarkProblem:
    """A benchmark split with the test set it is judged on.

    Args:
        split: What a method may look at; `truth` is for diagnostics only.
        test_texts: Test utterances of all intents.
        test_targets: Their intents as index into `classes`.
        classes: All intents, the known ones first in drawn order, the new ones sorted.
    """

    split: Split
    test_texts: tuple[str, ...]
    test_targets: IntArray
    classes: tuple[str, ...]


def benchmark_cell(
    dataset: str, known_ratio: float = 0.75, labelled_ratio: float = 0.1, seed: int = 0
) -> Cell:
    """Draw the known intents and labelled utterances of a benchmark.

    Args:
        dataset: Name of the benchmark.
        known_ratio: Share of intents that are known; the count is rounded half to even.
        labelled_ratio: Share of each known intent's training utterances that are labelled.
        seed: Seed of both draws.

    Returns:
        The cell, the same on every machine.

    Raises:
        UsageError: A ratio is not in (0, 1], or the benchmark is unknown.
        DataError: Its files are missing or changed.
    """
    for name, ratio in (("known", known_ratio), ("labelled", labelled_ratio)):
        if not 0 < ratio <= 1:
            raise UsageError(f"the {name} ratio is {ratio}; it must be above 0 and at most 1")
    labels = np.array(benchmarks.read(dataset, "train").labels)
    intents = np.unique(labels)  # sorted as strings
    # The published protocol draws with the legacy generators of NumPy and Python.
    legacy = np.random.RandomState(seed)  # noqa: NPY002 - same draw as the published code
    known = legacy.choice(intents, round(len(intents) * known_ratio), replace=False).tolist()
    rng = random.Random(seed)
    labelled: list[int] = []
    for intent in known:
        rows = np.flatnonzero(labels == intent).tolist()
        labelled += rng.sample(rows, round(labelled_ratio * len(rows)))
    return Cell(dataset, known_ratio, labelled_ratio, seed, tuple(known), tuple(labelled))


def benchmark_problem(cell: Cell) -> BenchmarkProblem:
    """Read the benchmark of a cell and hide what the cell says is unknown.

    Args:
        cell: A drawn split.

    Returns:
        The problem: all training rows, known intents only for early stopping, the whole test set.

    Raises:
        DataError: The files are missing or changed.
    """
    train, dev, test = (benchmarks.read(cell.dataset, part) for part in benchmarks.PARTS)
    novel = sorted(set(train.known) - set(cell.known))
    classes = (*cell.known, *novel)
    index = {name: i for i, name in enumerate(classes)}
    truth = _targets(train.labels, index)
    targets = np.full(len(truth), UNLABELLED, np.int64)
    labelled = np.array(cell.labelled, np.int64)
    targets[labelled] = truth[labelled]
    dev_truth = _targets(dev.labels, index)
    dev_rows = np.flatnonzero(dev_truth < len(cell.known))
    split = Split(
        texts=tuple(train.texts),
        targets=targets,
        known=cell.known,
        n_intents=len(classes),
        dev_texts=tuple(dev.texts[row] for row in dev_rows),
        dev_targets=dev_truth[dev_rows],
        truth=truth,
    )
    return BenchmarkProblem(split, tuple(test.texts), _targets(test.labels, index), classes)


def cell_path(folder: str | Path, cell: Cell) -> Path:
    """File of a cell in a folder of cells."""
    name = (
        f"{cell.dataset}-known{cell.known_ratio:g}-labelled{cell.labelled_ratio:g}-seed{cell.seed}"
    )
    return Path(folder) / f"{name}.json"


def write_cell(path: str | Path, cell: Cell) -> Path:
    """Write a cell as JSON, with its hash; folders on the way are made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"format_version": FORMAT_VERSION, **asdict(cell), "hash": cell.hash}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def read_cell(path: str | Path) -> Cell:
    """Read a cell and verify its hash.

    Args:
        path: File written by `write_cell`.

    Returns:
        The cell.

    Raises:
        DataError: The file is missing, is no cell, or was changed.
    """
    try:
        content: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
        version, expected = content.pop("format_version"), content.pop("hash")
        content |= {key: tuple(content[key]) for key in ("known", "labelled")}
        cell = Cell(**content)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; write it with: ronid data split") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} is no benchmark cell ({error}); write it again") from None
    if version != FORMAT_VERSION:
        raise DataError(f"{path} has format {version}, this release reads {FORMAT_VERSION}")
    if cell.hash != expected:
        raise DataError(
            f"{path} was changed: its hash is {cell.hash}, not {expected}; write it again"
        )
    return cell


def write_problem(folder: str | Path, cell: Cell) -> list[Path]:
    """Write a cell and its utterances as CSV files, for other programs.

    Args:
        folder: Where `cell.json`, `train.csv`, `dev.csv` and `test.csv` go.
        cell: A drawn split.

    Returns:
        The files. Columns are id (row), text, intent (empty when hidden) and truth.
    """
    problem = benchmark_problem(cell)
    split, names = problem.split, problem.classes
    train_truth = split.truth if split.truth is not None else split.targets
    hidden = np.full(len(problem.test_targets), UNLABELLED, np.int64)
    folder = Path(folder)
    parts = {
        "train": (split.texts, split.targets, train_truth),
        "dev": (split.dev_texts, split.dev_targets, split.dev_targets),
        "test": (problem.test_texts, hidden, problem.test_targets),
    }
    files = [write_cell(folder / "cell.json", cell)]
    for part, (texts, targets, truth) in parts.items():
        path = folder / f"{part}.csv"
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(("id", "text", "intent", "truth"))
            for row, (text, target, true) in enumerate(zip(texts, targets, truth, strict=True)):
                writer.writerow((row, text, names[target] if target >= 0 else "", names[true]))
        files.append(path)
    return files
