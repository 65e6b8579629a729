"""The nouns of the data flow; every stage is a function from one of them to the next.

    Corpus -> Split -> (encoder) -> Assignment, once per epoch -> Discovery -> Intents

All of them are frozen dataclasses over numpy arrays: none needs torch, so that a result can be
read, named and shown on a machine that could not have trained it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]

UNLABELLED = -1
"""Target of an utterance whose intent is not given."""

Rule = Literal["cosine", "distance"]
"""How near an utterance is to a prototype: the `cosine` of unit vectors, or for vectors of any
length minus log(1 + squared `distance`), whose softmax is Student's t-distribution."""


CountRule = Literal["given", "guess", "auto", "deep_aligned", "dpn", "usnid"]
"""Where the number of intents comes from: it is `given`; it is a `guess`, kept unless the data say
that there are fewer; it is found from the data, `auto`, with a bound where one is given;
or by the filter of a published method, which needs a number to start from."""


@dataclass(frozen=True)
class DataReport:
    """What reading found and did.

    Args:
        rows_read: Data rows in the source, header not counted.
        rows_kept: Rows that became utterances.
        empties_dropped: Rows without text.
        duplicates: Utterances that repeat an earlier one (kept: predictions stay row by row).
        over_long: Utterances of more than `over_long_words` words; the encoder may cut them.
        over_long_words: The bound behind `over_long`.
        label_counts: Labelled utterances per intent, largest first.
        messages: Choices made for the user, such as guessed columns; one line each.
    """

    rows_read: int
    rows_kept: int
    empties_dropped: int = 0
    duplicates: int = 0
    over_long: int = 0
    over_long_words: int = 100
    label_counts: Mapping[str, int] = field(default_factory=dict)
    messages: tuple[str, ...] = ()

    @property
    def labelled(self) -> int:
        """Number of labelled utterances."""
        return sum(self.label_counts.values())

    @property
    def used_once(self) -> tuple[str, ...]:
        """Labels carried by one utterance only."""
        return tuple(label for label, count in self.label_counts.items() if count == 1)


@dataclass(frozen=True)
class Corpus:
    """Utterances, and the intents of those that are labelled.

    Args:
        texts: n utterances; empty strings where only `embeddings` are known.
        labels: n intent names, None where unlabelled.
        ids: n identifiers of the source, or None.
        truth: n true intent names for diagnostics only, or None; never used in training.
        embeddings: (n, d) vectors given by the user instead of text, or None.
        report: What reading found.
    """

    texts: list[str]
    labels: list[str | None]
    report: DataReport
    ids: list[str] | None = None
    truth: list[str | None] | None = None
    embeddings: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the intents that carry labels, sorted."""
        return tuple(sorted({label for label in self.labels if label is not None}))


@dataclass(frozen=True)
class Split:
    """One discovery problem: all a method may look at.

    Args:
        texts: n training utterances.
        targets: (n,) index into `known`, or UNLABELLED.
        known: M names of the known intents; known intents are always 0..M-1.
        n_intents: K, known and new together; where it is not given, what `count_rule` starts from.
        dev_texts: Held-out utterances of known intents, for early stopping only.
        dev_targets: Their targets.
        embeddings: (n, d) vectors given instead of text, or None.
        dev_embeddings: The same for the held-out utterances.
        truth: (n,) true classes for diagnostics only, UNLABELLED where unknown, or None.
        count_rule: Where K comes from, see `CountRule`.
        forbidden: (m, 2) rows, and an intent that each must not get.
        closed: Intents that no unlabelled row may get.
        shares: (k,) share of the intents whose size somebody vouches for, NaN for others; or None.
    """

    texts: Sequence[str]
    targets: IntArray
    known: tuple[str, ...]
    n_intents: int
    dev_texts: Sequence[str] = ()
    dev_targets: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    embeddings: FloatArray | None = None
    dev_embeddings: FloatArray | None = None
    truth: IntArray | None = None
    count_rule: CountRule = "given"
    forbidden: IntArray = field(default_factory=lambda: np.empty((0, 2), np.int64))
    closed: tuple[int, ...] = ()
    shares: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def labelled(self) -> IntArray:
        """Rows with a given intent."""
        return np.flatnonzero(self.targets != UNLABELLED)

    @property
    def unlabelled(self) -> IntArray:
        """Rows without a given intent."""
        return np.flatnonzero(self.targets == UNLABELLED)


@dataclass(frozen=True)
class Assignment:
    """Outcome of one E-step.

    Args:
        labels: (n,) intent of every training row; labelled rows keep theirs.
        prior: (k,) class prior after the step.
        iterations: Solver iterations.
        residual: L1 distance of the plan's class marginal from the one asked for.
        converged: Whether the residual is below the tolerance.
    """

    labels: IntArray
    prior: NDArray[np.float64]
    iterations: int = 0
    residual: float = 0.0
    converged: bool = True


@dataclass(frozen=True)
class Discovery:
    """What a method found.

    Args:
        labels: (n,) intent of every training row.
        confidence: (n,) probability of that intent.
        embeddings: (n, d) vectors of the trained encoder.
        prototypes: (k, d), one per intent; known intents first.
        prior: (k,) estimated share of each intent.
        temperature: Softmax temperature that turns closeness into probabilities.
        known: Names of the known intents, in prototype order.
        history: One mapping per epoch: stage, epoch, losses and diagnostics.
        rule: What closeness is, see `Rule`.
    """

    labels: IntArray
    confidence: FloatArray
    embeddings: FloatArray
    prototypes: FloatArray
    prior: NDArray[np.float64]
    temperature: float
    known: tuple[str, ...]
    history: tuple[Mapping[str, Any], ...] = ()
    rule: Rule = "cosine"

    @property
    def n_intents(self) -> int:
        """Number of intents, known and new."""
        return len(self.prototypes)


@dataclass(frozen=True)
class Neighbour:
    """A known intent near another one: its name, and how alike their prototypes are (1: equal)."""

    name: str
    similarity: float


@dataclass(frozen=True)
class Intent:
    """One intent as people see it.

    Args:
        index: Position among the prototypes.
        name: Unique readable name; that of the user for a known intent.
        known: Whether the user had labelled it.
        size: Utterances assigned to it.
        share: `size` over all utterances.
        prior: Estimated share from the moving class prior.
        confidence: Mean probability of its utterances.
        keyphrases: Words and phrases typical of it, strongest first.
        exemplars: Its most central utterances.
        description: What it is about, in one line.
        borderline: The utterances least sure to belong to it, least sure first.
        nearest: The known intents most like it, most alike first.
        named_by: Where the name comes from: `user`, `keyphrases`, `utterance` (the most central
            one), `number` (it has no words), or `model:` and the name of a language model.
    """

    index: int
    name: str
    known: bool
    size: int
    share: float
    prior: float
    confidence: float
    keyphrases: tuple[str, ...] = ()
    exemplars: tuple[str, ...] = ()
    description: str = ""
    borderline: tuple[str, ...] = ()
    nearest: tuple[Neighbour, ...] = ()
    named_by: str = "keyphrases"


@dataclass(frozen=True)
class Scores:
    """Agreement of predicted intents with the truth, in percent.

    `acc`, `known_acc`, `novel_acc`, `macro_acc` and `tail_acc` come from one Hungarian matching of
    all clusters to all classes. `macro_acc` is the mean over intents; `tail_acc` is the same over
    the smallest third of the intents.

    The strict scores count a row of a known intent only under its own name (`known_by_name`), and a
    row of a novel intent only in a new intent (`strict_novel_acc`). `strict_acc` covers all rows.

    Scores that cannot be computed are NaN, and so are those that an older version did not compute.
    """

    nmi: float
    ari: float
    acc: float
    known_acc: float
    novel_acc: float
    h_score: float
    macro_acc: float = math.nan
    tail_acc: float = math.nan
    strict_acc: float = math.nan
    known_by_name: float = math.nan
    strict_novel_acc: float = math.nan
