"""From a corpus to a `Split`, the problem a method solves; and the fixed splits of the benchmarks.

The benchmark protocol is that of the published code (DeepAligned and its descendants), so that
numbers can be compared: every draw below is pinned by golden tests.
"""

import hashlib
import json
import random
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ronid.data import benchmarks
from ronid.data.benchmark_entries import PARTS
from ronid.data.corpus import case_warning, shortened
from ronid.data.corrupted_text import small_talk, with_entities
from ronid.data.pile import (
    BY_RATIO,
    Pile,
    absent_intents,
    chatter_rows,
    dominated,
    generator_of,
    misnamed,
    shots_per_intent,
    thinned,
)
from ronid.data.published_splits import published_split
from ronid.errors import RonidWarning, UsageError
from ronid.types import UNLABELLED, Corpus, IntArray, Split

_HELD_OUT_ONE_IN = 5

SplitKind = Literal["drawn", "own"]
"""Origin of known intents and labeled rows: `drawn` by the seed, or the data set's `own`."""


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
        exact: Whether K is certain; else it is kept unless there are fewer.
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
    _warn_of_case(corpus)
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
            f"{n_intents} {'intent' if n_intents == 1 else 'intents'} asked for, but {len(known)} "
            f"are labelled already ({shortened(known)}); ask for at least {len(known)}"
        )
    if n_intents > n:
        raise UsageError(
            f"{n_intents} intents asked for, but there {'is' if n == 1 else 'are'} only {n} "
            f"{'utterance' if n == 1 else 'utterances'}; ask for fewer"
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


def _warn_of_case(corpus: Corpus) -> None:
    told = case_warning(corpus.report.label_counts)
    if told:
        warnings.warn(told, RonidWarning, stacklevel=3)


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
        labelled: Training rows that carry a label, in drawn order.
        pile: How the pile differs from the published protocol.
        kept: Training rows that are left, ascending; empty for all.
        given: Labels of `labelled` where some are wrong; empty where all are true.
        chatter: Benchmark and training row of every utterance from elsewhere.
        split: `drawn` by the seed, or the published split of the data set (`own`), see
            `published_split`.
    """

    dataset: str
    known_ratio: float
    labelled_ratio: float
    seed: int
    known: tuple[str, ...]
    labelled: tuple[int, ...]
    pile: Pile = field(default_factory=Pile)
    kept: tuple[int, ...] = ()
    given: tuple[str, ...] = ()
    chatter: tuple[tuple[str, int], ...] = ()
    split: SplitKind = "drawn"

    @property
    def content(self) -> dict[str, Any]:
        """The cell as plain values; what the published protocol does not have, only if it is so."""
        plain = asdict(self) | {"pile": self.pile.changes}
        later = ("pile", "kept", "given", "chatter")
        content = {key: value for key, value in plain.items() if value or key not in later}
        if self.split == "drawn":
            del content["split"]
        return content

    @property
    def hash(self) -> str:
        """SHA-256 of the cell as canonical JSON."""
        canonical = json.dumps(self.content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


@dataclass(frozen=True)
class BenchmarkProblem:
    """A benchmark split with the test set it is judged on.

    Args:
        split: What a method may look at; `truth` is for diagnostics only.
        test_texts: Test utterances of all intents.
        test_targets: Their intents as index into `classes`.
        classes: All intents, the known ones first in drawn order, the new ones sorted.
        dev_texts: Development utterances of all intents, to choose settings.
        dev_targets: Their intents as index into `classes`.
    """

    split: Split
    test_texts: tuple[str, ...]
    test_targets: IntArray
    classes: tuple[str, ...]
    dev_texts: tuple[str, ...] = ()
    dev_targets: IntArray = field(default_factory=lambda: np.empty(0, np.int64))


def benchmark_cell(
    dataset: str,
    known_ratio: float = 0.75,
    labelled_ratio: float = 0.1,
    seed: int = 0,
    pile: Pile | None = None,
    split: SplitKind = "drawn",
) -> Cell:
    """Draw the known intents and labelled utterances of a benchmark, and change its pile.

    Args:
        dataset: Name of the benchmark.
        known_ratio: Share of intents that are known; the count is rounded half to even. 0 for no
            labels at all.
        labelled_ratio: Share of each known intent's training utterances that are labelled; not
            asked where the pile has `shots`. 0 for no labels at all.
        seed: Seed of all draws.
        pile: How the pile differs from the published protocol; None for not at all.
        split: `own` reads the published split of the data set, where the seed is the fold.

    Returns:
        The cell, the same on every machine.

    Raises:
        UsageError: A ratio is not in 0..1, or the benchmark is unknown.
        DataError: Its files are missing or changed.
    """
    for name, ratio in (("known", known_ratio), ("labelled", labelled_ratio)):
        if not 0 <= ratio <= 1:
            raise UsageError(f"the {name} ratio is {ratio}; it must be from 0 to 1")
    pile = pile or Pile()
    if split == "own":
        if pile.changes:
            changed = ", ".join(pile.changes)
            raise UsageError(f"split = 'own' does not allow {changed}; use split = 'drawn'")
        own = published_split(dataset, known_ratio, labelled_ratio, seed)
        return Cell(dataset, known_ratio, labelled_ratio, seed, own.known, own.labeled, split="own")
    labels = np.array(benchmarks.read(dataset, "train").labels)
    intents, classes = np.unique(labels, return_inverse=True)  # sorted as strings
    # The published protocol draws with the legacy generators of NumPy and Python.
    legacy = np.random.RandomState(seed)  # noqa: NPY002 - same draw as the published code
    known = legacy.choice(intents, round(len(intents) * known_ratio), replace=False).tolist()
    if not labelled_ratio and not pile.shots and not pile.mixed_shots:
        known = []
    kept = np.arange(len(labels)) if pile.tail == 1 else thinned(classes, pile.tail, seed)
    if pile.dominant:
        kept = kept[dominated(classes[kept], pile.dominant, seed)]
    labelled = _draw_labelled(labels, kept, known, labelled_ratio, seed, pile)
    given = [str(labels[row]) for row in labelled]
    if pile.absent_ratio:
        gone = np.isin(labels[kept], list(absent_intents(known, pile.absent_ratio, seed)))
        kept = kept[~gone | np.isin(kept, labelled)]
    chatter: list[tuple[str, int]] = []
    if pile.chatter_ratio:
        sizes = {name: len(benchmarks.read(name, "train")) for name in _foreign(dataset)}
        chatter = chatter_rows(sizes, len(kept), pile.chatter_ratio, seed)
    noisy = misnamed(given, known, pile.label_noise, seed) if pile.label_noise else []
    return Cell(
        dataset,
        known_ratio,
        labelled_ratio,
        seed,
        tuple(known),
        tuple(labelled),
        pile,
        tuple(kept.tolist()) if len(kept) < len(labels) else (),
        tuple(noisy),
        tuple(chatter),
    )


def _draw_labelled(  # noqa: PLR0913, PLR0917 - all of them decide the draw
    labels: NDArray[np.str_],
    kept: IntArray,
    known: Sequence[str],
    ratio: float,
    seed: int,
    pile: Pile,
) -> list[int]:
    """Draw the labelled rows intent by intent, in the order of `known`."""
    rng = random.Random(seed)
    labelled: list[int] = []
    each = [kept[labels[kept] == intent].tolist() for intent in known]
    shots = shots_per_intent(np.array([len(rows) for rows in each]), pile, seed)
    for rows, count in zip(each, shots, strict=True):
        if count == BY_RATIO:
            # At least one label, because an intent without labels is not known.
            labelled += rng.sample(rows, max(1, round(ratio * len(rows))))
        else:  # the first of a shuffle, so that more shots contain all rows of fewer
            labelled += rng.sample(rows, len(rows))[:count]
    return labelled


def _foreign(dataset: str) -> tuple[str, ...]:
    """Return the benchmarks that chatter is drawn from."""
    names = benchmarks.benchmark(dataset).foreign
    if not names:
        raise UsageError(f"no other benchmark is foreign to '{dataset}', so it can get no chatter")
    return names


def benchmark_problem(cell: Cell) -> BenchmarkProblem:
    """Read the benchmark of a cell and hide what the cell says is unknown.

    Args:
        cell: A drawn split.

    Returns:
        The problem: the remaining training rows, followed by off-topic text and small talk, which
        have no true class; utterances of known intents for early stopping; the whole dev and test
        files.

    Raises:
        DataError: The files are missing or changed.
    """
    train, dev, test = (benchmarks.read(cell.dataset, part) for part in PARTS)
    texts = {
        part: _texts(cell, part, one.texts)
        for part, one in zip(PARTS, (train, dev, test), strict=True)
    }
    novel = sorted(set(train.known) - set(cell.known))
    classes = (*cell.known, *novel)
    index = {name: i for i, name in enumerate(classes)}
    kept = np.array(cell.kept, np.int64) if cell.kept else np.arange(len(train))
    foreign = {name: benchmarks.read(name, "train").texts for name, _ in cell.chatter}
    off_topic = tuple(foreign[name][row] for name, row in cell.chatter)
    off_topic += _small_talk(cell, len(kept) + len(off_topic))
    none = np.full(len(off_topic), UNLABELLED, np.int64)
    all_truth = _targets(train.labels, index)
    targets = np.full(len(train), UNLABELLED, np.int64)
    labelled = np.array(cell.labelled, np.int64)
    targets[labelled] = _targets(cell.given, index) if cell.given else all_truth[labelled]
    dev_truth = _targets(dev.labels, index)
    dev_rows = np.flatnonzero(dev_truth < len(cell.known))
    if cell.split == "own":
        own = published_split(cell.dataset, cell.known_ratio, cell.labelled_ratio, cell.seed)
        dev_rows = dev_rows[np.isin(dev_rows, own.dev)]
    split = Split(
        texts=(*(texts["train"][row] for row in kept), *off_topic),
        targets=np.concatenate([targets[kept], none]),
        known=cell.known,
        n_intents=len(classes),
        dev_texts=tuple(texts["dev"][row] for row in dev_rows),
        dev_targets=dev_truth[dev_rows],
        truth=np.concatenate([all_truth[kept], none]),
    )
    return BenchmarkProblem(
        split, texts["test"], _targets(test.labels, index), classes, texts["dev"], dev_truth
    )


def _texts(cell: Cell, part: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Return the utterances of a part, with random entities if the cell has any."""
    if not cell.pile.entities:
        return tuple(texts)
    rng = generator_of(cell.seed, "entities", PARTS.index(part))
    return with_entities(texts, cell.pile.entities, rng)


def _small_talk(cell: Cell, n: int) -> tuple[str, ...]:
    """Return the small talk that follows `n` utterances of the training file."""
    share = cell.pile.small_talk
    return small_talk(round(n * share / (1 - share)), generator_of(cell.seed, "small_talk"))
