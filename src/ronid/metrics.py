"""How well predicted intents agree with the true ones, and what confidence is worth. In percent.

Clusters have no names, so accuracy (ACC) needs a matching of clusters to classes. There is exactly
one, over all rows together; accuracy on known and on novel intents is read off the same matching,
as separate matchings would flatter both.

This matching can assign a novel class to a known intent, or a known class to a new intent. Strict
accuracy does not allow that: an utterance of a known intent is right only under its own name, an
utterance of a novel intent only in a new intent. A second matching assigns new intents to novel
classes.
"""

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ronid.types import UNLABELLED, IntArray, Scores


def score(
    truth: ArrayLike,
    predicted: ArrayLike,
    known: Collection[int] | int,
    sizes: ArrayLike | None = None,
    *,
    named: bool = True,
) -> Scores:
    """Return NMI, ARI and accuracy, overall and separately for known, novel and small intents.

    NMI is normalised by the arithmetic mean of the entropies.

    Args:
        truth: (n,) true classes; rows of class -1 are ignored.
        predicted: (n,) predicted clusters, any integers and any number of them. Clusters beyond
            the number of classes count as errors.
        known: The known classes, or their number M if they are 0..M-1.
        sizes: (k,) how many utterances each class has in the pile that was clustered, to tell the
            small ones; by default as many as in `truth`.
        named: Whether cluster i is the known intent i, for every known intent. If False, the
            strict scores are NaN.

    Returns:
        The scores in percent. The accuracy on known or novel intents is NaN where no row is of
        that kind, and so is the H-score then; that on small ones where all are of one size.

    Raises:
        ValueError: The lengths differ or no row has a true class.
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    truth, predicted = _checked(truth, predicted)
    known_classes = list(known) if isinstance(known, Collection) else list(range(known))
    hits = _hits(truth, predicted)
    is_known = np.isin(truth, known_classes)
    known_acc, novel_acc = _percent(hits[is_known]), _percent(hits[~is_known])
    strict = np.full(len(truth), math.nan)
    if named:
        strict = strict_hits(truth, predicted, known_classes).astype(np.float64)
    return Scores(
        nmi=100 * float(normalized_mutual_info_score(truth, predicted)),
        ari=100 * float(adjusted_rand_score(truth, predicted)),
        acc=_percent(hits),
        known_acc=known_acc,
        novel_acc=novel_acc,
        h_score=h_score(known_acc, novel_acc),
        macro_acc=_macro(truth, hits),
        tail_acc=_macro(truth, hits, small_classes(np.bincount(truth) if sizes is None else sizes)),
        strict_acc=_percent(strict),
        known_by_name=_percent(strict[is_known]),
        strict_novel_acc=_percent(strict[~is_known]),
    )


def strict_hits(
    truth: ArrayLike, predicted: ArrayLike, known: Collection[int]
) -> NDArray[np.bool_]:
    """Return which rows are right by strict accuracy.

    Args:
        truth: (n,) true classes.
        predicted: (n,) predicted clusters, -1 for rows without an intent. Cluster i is the known
            intent i, for every i in `known`; all others are new intents.
        known: The known classes.

    Returns:
        (n,) whether a row of a known class is predicted as this class, and whether a row of a novel
        class is in the new intent that the best one-to-one matching of new intents to novel classes
        assigns to its class.
    """
    classes, clusters = np.asarray(truth, np.int64), np.asarray(predicted, np.int64)
    names = list(known)
    right = np.isin(classes, names) & (classes == clusters)
    found_new = ~np.isin(classes, names) & ~np.isin(clusters, names) & (clusters != UNLABELLED)
    if found_new.any():
        right[found_new] = _hits(classes[found_new], clusters[found_new])
    return np.asarray(right)


def renumber_known_first(predicted: ArrayLike, known: Sequence[bool]) -> IntArray:
    """Renumber clusters so that those of known intents come first, as `score` expects.

    Args:
        predicted: (n,) cluster of every row, -1 for none.
        known: (k,) whether each cluster is a known intent.

    Returns:
        (n,) the new numbers. Known intents keep their order, and so do the others.
    """
    order = np.argsort(~np.asarray(known, np.bool_), kind="stable")
    number = np.empty(len(order) + 1, np.int64)
    number[order] = np.arange(len(order))
    number[UNLABELLED] = UNLABELLED
    return np.asarray(number[np.asarray(predicted, np.int64)])


def small_classes(sizes: ArrayLike) -> IntArray:
    """Return the classes of the smallest third, and those as small as its largest.

    Args:
        sizes: (k,) how many utterances each class has.

    Returns:
        Their indices, ascending; none where that would be all classes.
    """
    count = np.asarray(sizes, np.int64)
    if not count.size:
        return np.empty(0, np.int64)
    small = count <= np.sort(count)[max(0, len(count) // 3 - 1)]
    return np.flatnonzero(small) if not small.all() else np.empty(0, np.int64)


def clustering_accuracy(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Share of rows, in percent, that the best one-to-one matching gets right.

    Args:
        truth: (n,) true classes; rows of class -1 are ignored.
        predicted: (n,) predicted clusters.

    Returns:
        Accuracy in percent.

    Raises:
        ValueError: The lengths differ or no row has a true class.
    """
    return _percent(_hits(*_checked(truth, predicted)))


def hungarian_map(truth: ArrayLike, predicted: ArrayLike) -> dict[int, int]:
    """The one-to-one matching of clusters to classes that gets the most rows right.

    Args:
        truth: (n,) true classes; rows of class -1 are ignored.
        predicted: (n,) predicted clusters.

    Returns:
        Class of each matched cluster. Where there are more clusters than classes some clusters
        are missing from the keys; where there are fewer, some classes from the values.

    Raises:
        ValueError: The lengths differ or no row has a true class.
    """
    return _matching(*_checked(truth, predicted))


def h_score(known_acc: float, novel_acc: float) -> float:
    """Harmonic mean of the accuracies on known and novel intents; 0 if both are.

    Args:
        known_acc: Accuracy on known intents.
        novel_acc: Accuracy on novel intents.

    Returns:
        The harmonic mean, in the unit of the arguments.
    """
    total = known_acc + novel_acc
    return 0.0 if total == 0 else 2 * known_acc * novel_acc / total


def normalised_entropy(prior: ArrayLike) -> float:
    """Evenness of a class prior: 1 if uniform, 0 if all mass is on one class.

    Args:
        prior: (k,) shares >= 0; normalised here.

    Returns:
        Entropy over log k, in 0..1; 1 for a single class.

    Raises:
        ValueError: A share is negative or NaN, or all are 0.
    """
    share = np.asarray(prior, np.float64)
    if share.size == 0 or not np.isfinite(share).all() or share.min() < 0 or share.sum() == 0:
        raise ValueError("prior must hold shares >= 0, not all 0 and none NaN")
    if share.size == 1:
        return 1.0
    share = share / share.sum()
    positive = share[share > 0]
    return float(-(positive * np.log(positive)).sum() / math.log(share.size))


def auroc(inside: ArrayLike, outside: ArrayLike) -> float:
    """How well a score tells utterances within scope from those out of it.

    Args:
        inside: (n,) scores of utterances within scope, higher the surer they belong.
        outside: (m,) scores of utterances out of scope.

    Returns:
        Area under the ROC curve in percent: how often an utterance within scope scores above one
        out of it, ties counted half. 50 is chance.

    Raises:
        ValueError: One side is empty, or a score is NaN.
    """
    within, without = _scored(inside, "inside"), _scored(outside, "outside")
    ranked = np.sort(without)
    below = np.searchsorted(ranked, within, "left") + np.searchsorted(ranked, within, "right")
    return 100 * float(below.mean()) / (2 * len(without))


def false_acceptance(inside: ArrayLike, outside: ArrayLike, kept: float = 95.0) -> float:
    """Share of utterances out of scope that pass where a given share within scope must pass.

    Args:
        inside: (n,) scores of utterances within scope, higher the surer they belong.
        outside: (m,) scores of utterances out of scope.
        kept: Percent of `inside` that must pass; 95 gives what is known as FPR95.

    Returns:
        Percent of `outside` that passes the highest threshold which keeps that many.

    Raises:
        ValueError: One side is empty, a score is NaN, or `kept` is not in (0, 100].
    """
    within, without = _scored(inside, "inside"), _scored(outside, "outside")
    if not 0 < kept <= 100:
        raise ValueError(f"kept is {kept}; it must be above 0 and at most 100")
    needed = math.ceil(kept / 100 * len(within) - 1e-9)
    return _percent(without >= np.sort(within)[-needed])


def f1(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Harmonic mean of precision and recall of the rows marked true.

    Args:
        truth: (n,) whether a row is of the kind looked for, such as out of scope.
        predicted: (n,) whether it was taken for it.

    Returns:
        F1 in percent; 0 where there is nothing to find and nothing was found.

    Raises:
        ValueError: The lengths differ.
    """
    wanted, found = np.asarray(truth, bool), np.asarray(predicted, bool)
    if wanted.shape != found.shape or wanted.ndim != 1:
        raise ValueError(f"truth has shape {wanted.shape}, predicted {found.shape}")
    marked = int(wanted.sum()) + int(found.sum())
    return 200 * int((wanted & found).sum()) / marked if marked else 0.0


def calibration_error(confidence: ArrayLike, correct: ArrayLike, bins: int = 15) -> float:
    """Expected calibration error: how far confidence is from accuracy, bin by bin.

    Args:
        confidence: (n,) probability given to each answer, in 0..1.
        correct: (n,) whether the answer was right.
        bins: Number of bins of equal mass, by ascending confidence; n where that is fewer.

    Returns:
        Mean over the rows of |accuracy - mean confidence| of their bin, in percent.

    Raises:
        ValueError: The lengths differ, there is no row, or a confidence is not in 0..1.
    """
    sure, right = _scored(confidence, "confidence"), np.asarray(correct, np.float64)
    if sure.shape != right.shape:
        raise ValueError(f"confidence has shape {sure.shape}, correct {right.shape}")
    if sure.min() < 0 or sure.max() > 1:
        raise ValueError("a confidence is not in 0..1")
    gap = (right - sure)[np.argsort(sure, kind="stable")]
    return 100 * sum(abs(float(part.sum())) for part in np.array_split(gap, bins)) / len(gap)


def _scored(scores: ArrayLike, what: str) -> NDArray[np.float64]:
    """The scores as float64, at least one and none NaN."""
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or values.size == 0 or np.isnan(values).any():
        raise ValueError(f"{what} must be a row of numbers, at least one and none NaN")
    return values


def _checked(truth: ArrayLike, predicted: ArrayLike) -> tuple[IntArray, IntArray]:
    """Both as int64, without the rows whose class is not known."""
    classes, clusters = np.asarray(truth, np.int64), np.asarray(predicted, np.int64)
    if classes.shape != clusters.shape or classes.ndim != 1:
        raise ValueError(f"truth has shape {classes.shape}, predicted {clusters.shape}")
    judged = classes != UNLABELLED
    if not judged.any():
        raise ValueError("no row has a true class, so there is nothing to score")
    return classes[judged], clusters[judged]


def _matching(truth: IntArray, predicted: IntArray) -> dict[int, int]:
    from scipy.optimize import linear_sum_assignment  # slow to load, and seldom needed

    classes, column = np.unique(truth, return_inverse=True)
    clusters, row = np.unique(predicted, return_inverse=True)
    together = np.zeros((len(clusters), len(classes)), np.int64)
    np.add.at(together, (row, column), 1)
    rows, columns = linear_sum_assignment(together, maximize=True)
    return {int(clusters[i]): int(classes[j]) for i, j in zip(rows, columns, strict=True)}


def _hits(truth: IntArray, predicted: IntArray) -> NDArray[np.bool_]:
    """Rows whose cluster is matched to their class."""
    matching = _matching(truth, predicted)
    clusters, row = np.unique(predicted, return_inverse=True)
    # UNLABELLED equals no true class here, so the rows of an unmatched cluster are errors.
    matched = np.array([matching.get(int(cluster), UNLABELLED) for cluster in clusters])
    return np.asarray(matched[row] == truth)


def _macro(truth: IntArray, hits: NDArray[np.bool_], classes: IntArray | None = None) -> float:
    """Mean over classes, all or those given, of the share of their rows that are right."""
    wanted = np.unique(truth if classes is None else truth[np.isin(truth, classes)])
    if not wanted.size:
        return math.nan
    return 100 * float(np.mean([hits[truth == each].mean() for each in wanted]))


def _percent(hits: NDArray[np.bool_] | NDArray[np.float64]) -> float:
    return 100 * float(hits.mean()) if hits.size else math.nan
