"""Known intents and labeled rows that BOLT and TLSA publish, to compare results with theirs."""

import csv
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from ronid.data import benchmarks
from ronid.errors import DataError, UsageError

RATIOS = (0.25, 0.5, 0.75)
LABELED_RATIO = 0.1
BOLT_FOLDS = 5


@dataclass(frozen=True)
class PublishedSplit:
    """Published known intents and labeled rows of one data set.

    Args:
        known: Known intents, in the published order.
        labeled: Labeled rows of the training file, ascending.
        dev: Labeled rows of the development file, ascending.
    """

    known: tuple[str, ...]
    labeled: tuple[int, ...]
    dev: tuple[int, ...]


def published_split(
    dataset: str, known_ratio: float, labeled_ratio: float, seed: int
) -> PublishedSplit:
    """Read the published split of a data set.

    Args:
        dataset: Name of a benchmark that publishes splits.
        known_ratio: Share of known intents: 0.25, 0.5 or 0.75.
        labeled_ratio: Share of labeled rows: 0.1.
        seed: For BOLT the number of the fold, 0 to 4. TLSA has one split, which it returns for
            every seed.

    Raises:
        UsageError: The data set publishes no such split.
        DataError: A file is missing or is not the published one.
    """
    check_published(dataset, known_ratio, labeled_ratio, seed)
    folder = benchmarks.verify(dataset)
    if benchmarks.benchmark(dataset).own_split == "bolt":
        names = _lines(folder / f"label/fold5/part{seed}/label_known_{known_ratio:g}.list")
        train, dev = (_bolt_rows(dataset, part, folder) for part in ("train", "dev"))
    else:
        names = _lines(folder / f"label/label_{known_ratio:g}.list")
        train, dev = (_tlsa_rows(dataset, part, folder) for part in ("train", "dev"))
    known = set(names)
    return PublishedSplit(
        tuple(names),
        tuple(row for row, name in train if name in known),
        tuple(row for row, name in dev if name in known),
    )


def check_published(dataset: str, known_ratio: float, labeled_ratio: float, seed: int) -> None:
    """Refuse a split that is not published; see `published_split`. Reads no file.

    Raises:
        UsageError: The data set publishes no such split.
    """
    source = benchmarks.benchmark(dataset).own_split
    if not source:
        raise UsageError(f"'{dataset}' publishes no split; use split = 'drawn'")
    if known_ratio not in RATIOS or labeled_ratio != LABELED_RATIO:
        raise UsageError(
            f"'{dataset}' publishes splits for known ratios 0.25, 0.5 and 0.75 and labeled ratio "
            f"0.1, not for {known_ratio:g} and {labeled_ratio:g}"
        )
    if source == "bolt" and not 0 <= seed < BOLT_FOLDS:
        raise UsageError(
            f"'{dataset}' has no fold {seed}; with split = 'own' the seed is the fold, 0 to "
            f"{BOLT_FOLDS - 1}"
        )


def _bolt_rows(dataset: str, part: str, folder: Path) -> list[tuple[int, str]]:
    """Return row and intent of the labeled rows; the file has one line for each row of the data."""
    path = folder / f"labeled_data/0.1/{part}.tsv"
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file, delimiter="\t"))
    labels = benchmarks.read(dataset, part).labels
    if [line["label"] for line in lines] != list(labels):
        raise DataError(f"{path}: the labels differ from those of '{dataset}', file {part}.tsv")
    return [(row, line["label"]) for row, line in enumerate(lines) if line["labeled"] == "True"]


def _tlsa_rows(dataset: str, part: str, folder: Path) -> list[tuple[int, str]]:
    """Return row and intent of the labeled rows; the file repeats their text and intent."""
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    corpus = benchmarks.read(dataset, part)
    for row, (text, name) in enumerate(zip(corpus.texts, corpus.labels, strict=True)):
        places[text.strip(), str(name)].append(row)
    found = []
    path = folder / f"labeled_data/{part}_0.1.tsv"
    for line in _lines(path)[1:]:
        text, _, name = line.rpartition("\t")
        rows = places[text.strip(), name.strip()]
        if not rows:
            raise DataError(f"{path}: {part}.tsv has no row {text!r} with intent {name!r}")
        found.append((rows.pop(0), name.strip()))
    return sorted(found)


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
