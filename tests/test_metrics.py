"""Scores against plain enumeration and hand-made cases."""

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.metrics import (
    auroc,
    calibration_error,
    clustering_accuracy,
    f1,
    false_acceptance,
    h_score,
    hungarian_map,
    normalised_entropy,
    renumber_known_first,
    score,
    small_classes,
    strict_hits,
)

labels = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


def best_of_all_maps(truth: list[int], predicted: list[int]) -> float:
    best = 0
    for target in permutations(range(4)):
        best = max(best, sum(target[p] == t for t, p in zip(truth, predicted, strict=True)))
    return 100 * best / len(truth)


@given(labels)
def test_accuracy_is_the_best_of_all_maps(pairs: list[tuple[int, int]]) -> None:
    truth, predicted = [t for t, _ in pairs], [p for _, p in pairs]
    assert clustering_accuracy(truth, predicted) == pytest.approx(
        best_of_all_maps(truth, predicted)
    )


@given(labels, st.permutations(range(4)))
def test_names_of_clusters_do_not_matter(pairs: list[tuple[int, int]], renaming: list[int]) -> None:
    truth, predicted = [t for t, _ in pairs], [p for _, p in pairs]
    renamed = [renaming[p] + 100 for p in predicted]
    first, second = score(truth, predicted, 2), score(truth, renamed, 2)
    assert (first.nmi, first.ari, first.acc) == pytest.approx((second.nmi, second.ari, second.acc))


@given(labels)
def test_known_and_novel_accuracy_add_up_to_the_whole(pairs: list[tuple[int, int]]) -> None:
    truth, predicted = [t for t, _ in pairs], [p for _, p in pairs]
    found = score(truth, predicted, 2)
    known = sum(t < 2 for t in truth)
    parts = [(known, found.known_acc), (len(truth) - known, found.novel_acc)]
    hits = sum(count * acc for count, acc in parts if count)
    assert hits / len(truth) == pytest.approx(found.acc)


def test_perfect_clusters_score_hundred() -> None:
    found = score([0, 0, 1, 2, 2], [7, 7, 3, 0, 0], known=2)
    assert (found.nmi, found.ari, found.acc) == pytest.approx((100, 100, 100))
    assert (found.known_acc, found.novel_acc, found.h_score) == pytest.approx((100, 100, 100))


def test_golden_scores() -> None:
    truth = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]
    predicted = [5, 5, 4, 4, 4, 4, 6, 6, 6, 5]
    found = score(truth, predicted, known={0, 1})
    assert found == score(truth, predicted, known=np.int64(2))
    assert found.acc == pytest.approx(80)
    assert found.known_acc == pytest.approx(100 * 5 / 6)
    assert found.novel_acc == pytest.approx(75)
    assert found.h_score == pytest.approx(2 * (500 / 6) * 75 / (500 / 6 + 75))
    # Pairs together in both 3 + 3 + 1; in truth 12, in predicted 12; of 45 in all.
    expected = 12 * 12 / 45
    assert found.ari == pytest.approx(100 * (7 - expected) / (12 - expected))


def test_nmi_is_over_the_arithmetic_mean_of_entropies() -> None:
    found = score([0, 0, 1, 1], [0, 0, 0, 1], known=1)
    truth_entropy, cluster_entropy = math.log(2), -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    joint = -(0.5 * math.log(0.5) + 2 * 0.25 * math.log(0.25))
    mutual = truth_entropy + cluster_entropy - joint
    assert found.nmi == pytest.approx(100 * mutual / ((truth_entropy + cluster_entropy) / 2))


def test_one_matching_serves_known_and_novel() -> None:
    # Alone, the novel rows would be all right; cluster 0 belongs to the known class, though.
    found = score([0, 0, 0, 1, 1], [0, 0, 0, 0, 0], known=1)
    assert (found.known_acc, found.novel_acc, found.h_score) == (100, 0, 0)


strict_rows = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 5)), min_size=1, max_size=30)


def best_strict_hits(truth: list[int], predicted: list[int], known: int) -> int:
    """Count right rows: known ones by name, the others under the best map of new intents."""
    pairs = list(zip(truth, predicted, strict=True))
    right = sum(t == p for t, p in pairs if t < known)
    novel = range(known, 5)
    best = 0
    for target in permutations([*novel, *[-9] * 6], 6 - known):  # -9: matched to no class
        match = dict(zip(range(known, 6), target, strict=True))
        best = max(best, sum(match.get(p, -9) == t for t, p in pairs if t >= known))
    return right + best


@given(strict_rows, st.integers(2, 5))
def test_strict_accuracy_is_the_best_of_all_maps_of_new_intents(
    pairs: list[tuple[int, int]], known: int
) -> None:
    truth, predicted = [t for t, _ in pairs], [p for _, p in pairs]
    expected = best_strict_hits(truth, predicted, known)
    assert strict_hits(truth, predicted, range(known)).sum() == expected
    assert score(truth, predicted, known).strict_acc == pytest.approx(100 * expected / len(pairs))


@given(strict_rows, st.integers(0, 5))
def test_strict_scores_add_up_to_the_whole(pairs: list[tuple[int, int]], known: int) -> None:
    truth, predicted = [t for t, _ in pairs], [p for _, p in pairs]
    found = score(truth, predicted, known)
    n_known = sum(t < known for t in truth)
    parts = [(n_known, found.known_by_name), (len(truth) - n_known, found.strict_novel_acc)]
    hits = sum(count * acc for count, acc in parts if count)
    assert hits / len(truth) == pytest.approx(found.strict_acc)
    assert [math.isnan(acc) for _, acc in parts] == [count == 0 for count, _ in parts]


@given(strict_rows, st.integers(0, 5))
def test_strict_accuracy_is_at_most_what_can_be_right(
    pairs: list[tuple[int, int]], known: int
) -> None:
    truth, predicted = [t for t, _ in pairs], [p for _, p in pairs]
    found = score(truth, predicted, known)
    # An utterance can be right only if known and novel are told apart.
    possible = sum((t < known) == (0 <= p < known) and p >= 0 for t, p in pairs)
    assert found.strict_acc <= 100 * possible / len(pairs) + 1e-9
    assert found.strict_acc <= found.acc + 1e-9


@given(strict_rows, st.integers(0, 4), st.permutations(range(6)))
def test_numbers_of_new_intents_do_not_matter_for_strict_accuracy(
    pairs: list[tuple[int, int]], known: int, order: list[int]
) -> None:
    truth, predicted = [t for t, _ in pairs], [p for _, p in pairs]
    renamed = [p if p < known else 100 + order[p] for p in predicted]
    first, second = score(truth, predicted, known), score(truth, renamed, known)
    assert first.strict_acc == pytest.approx(second.strict_acc)
    assert first.known_by_name == pytest.approx(second.known_by_name, nan_ok=True)


def test_golden_strict_scores() -> None:
    # Known intents 0 and 1, novel ones 2 and 3. ACC matches known intent 1 to class 2.
    truth = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]
    predicted = [0, 0, 4, 5, 5, 1, 1, 1, 4, 4]
    found = score(truth, predicted, 2)
    assert found.acc == pytest.approx(90)
    assert found.known_by_name == pytest.approx(100 * 2 / 5)
    assert found.strict_novel_acc == pytest.approx(100 * 2 / 5)
    assert found.strict_acc == pytest.approx(40)


def test_nothing_new_found_scores_no_novel_utterance() -> None:
    found = score([0, 1, 2, 2], [0, 1, 0, 0], known=2)
    assert (found.known_by_name, found.strict_novel_acc, found.strict_acc) == (100, 0, 50)
    assert found.acc == 75


def test_rows_without_an_intent_are_not_right() -> None:
    found = score([2, 2, 2, 3], [-1, -1, -1, 4], known=2)
    assert found.strict_novel_acc == pytest.approx(25)


def test_strict_scores_need_clusters_with_names() -> None:
    found = score([0, 1, 2], [0, 1, 2], known=2, named=False)
    assert math.isnan(found.strict_acc)
    assert math.isnan(found.known_by_name)
    assert math.isnan(found.strict_novel_acc)
    assert found.acc == 100


def test_known_intents_are_numbered_first() -> None:
    found = renumber_known_first([0, 1, 2, 3, -1, 3], [False, True, False, True])
    assert found.tolist() == [2, 0, 3, 1, -1, 1]
    assert renumber_known_first([0, 1], [True, True]).tolist() == [0, 1]
    assert renumber_known_first([], []).tolist() == []


def test_surplus_clusters_are_errors() -> None:
    assert clustering_accuracy([0, 0, 0, 1, 1], [0, 0, 2, 1, 3]) == pytest.approx(60)
    assert set(hungarian_map([0, 0, 0, 1, 1], [0, 0, 2, 1, 3]).values()) == {0, 1}


def test_missing_clusters_leave_classes_unmatched() -> None:
    assert clustering_accuracy([0, 0, 1, 2], [5, 5, 5, 5]) == pytest.approx(50)
    assert hungarian_map([0, 0, 1, 2], [5, 5, 5, 5]) == {5: 0}


def test_rows_without_truth_are_ignored() -> None:
    assert score([0, 1, -1, -1], [1, 0, 1, 0], 1) == score([0, 1], [1, 0], 1)
    with pytest.raises(ValueError, match="nothing to score"):
        clustering_accuracy([-1, -1], [0, 1])


def test_scores_of_an_absent_kind_are_not_a_number() -> None:
    found = score([0, 1], [0, 1], known=2)
    assert found.known_acc == 100
    assert math.isnan(found.novel_acc)
    assert math.isnan(found.h_score)


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="shape"):
        score([0, 1], [0], 1)


def test_h_score_is_the_harmonic_mean() -> None:
    assert h_score(0, 0) == 0
    assert h_score(80, 40) == pytest.approx(3200 / 60)


def test_entropy_of_priors() -> None:
    assert normalised_entropy(np.full(7, 1 / 7)) == pytest.approx(1)
    assert normalised_entropy([1.0, 0.0, 0.0]) == 0
    assert normalised_entropy([3.0]) == 1
    assert normalised_entropy([0.25, 0.75]) == pytest.approx(0.8112781)


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=10))
def test_entropy_lies_between_zero_and_one(prior: list[float]) -> None:
    assert 0 <= normalised_entropy(prior) <= 1 + 1e-12


@pytest.mark.parametrize("prior", [[], [0.0, 0.0], [-1.0, 2.0], [math.nan, 1.0]])
def test_impossible_priors_are_refused(prior: list[float]) -> None:
    with pytest.raises(ValueError, match="prior"):
        normalised_entropy(prior)


scores = st.lists(st.integers(0, 9), min_size=1, max_size=25)


@given(scores, scores)
def test_auroc_is_the_share_of_pairs_in_order(inside: list[int], outside: list[int]) -> None:
    wins = sum((a > b) + 0.5 * (a == b) for a in inside for b in outside)
    expected = 100 * wins / (len(inside) * len(outside))
    assert auroc(inside, outside) == pytest.approx(expected)
    assert auroc(outside, inside) == pytest.approx(100 - expected)


@given(scores, scores, st.integers(1, 100))
def test_false_acceptance_is_the_least_of_all_thresholds(
    inside: list[int], outside: list[int], kept: int
) -> None:
    least = min(
        sum(b >= threshold for b in outside)
        for threshold in inside
        if 100 * sum(a >= threshold for a in inside) >= kept * len(inside)
    )
    assert false_acceptance(inside, outside, kept) == pytest.approx(100 * least / len(outside))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_f1_is_the_harmonic_mean_of_precision_and_recall(pairs: list[tuple[bool, bool]]) -> None:
    truth, predicted = [t for t, _ in pairs], [p for _, p in pairs]
    both = sum(t and p for t, p in pairs)
    if both == 0:
        assert f1(truth, predicted) == 0
    else:
        precision, recall = both / sum(predicted), both / sum(truth)
        expected = 200 * precision * recall / (precision + recall)
        assert f1(truth, predicted) == pytest.approx(expected)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60),
    st.integers(1, 20),
)
def test_calibration_error_is_that_of_a_loop(rows: list[tuple[float, bool]], bins: int) -> None:
    ordered = sorted(rows, key=lambda row: row[0])
    larger = len(ordered) % bins  # so many bins hold one more
    total, start = 0.0, 0
    for i in range(bins):
        part = ordered[start : start + len(ordered) // bins + (i < larger)]
        start += len(part)
        if part:
            accuracy = sum(right for _, right in part) / len(part)
            sure = sum(confidence for confidence, _ in part) / len(part)
            total += len(part) * abs(accuracy - sure)
    found = calibration_error([c for c, _ in rows], [r for _, r in rows], bins)
    assert found == pytest.approx(100 * total / len(rows))
    assert 0 <= found <= 100


def test_golden_out_of_scope_scores() -> None:
    inside, outside = [0.9, 0.8, 0.7, 0.3], [0.6, 0.3, 0.1, 0.75]
    assert auroc(inside, outside) == pytest.approx(100 * 12.5 / 16)
    assert false_acceptance(inside, outside) == 75
    assert false_acceptance(inside, outside, kept=75) == 25
    assert f1([True, True, False, False], [True, False, True, False]) == 50
    assert f1([False], [False]) == 0


def test_golden_calibration_error() -> None:
    confidence, correct = [0.6, 0.6, 0.9, 0.9], [True, False, True, True]
    assert calibration_error(confidence, correct, bins=2) == pytest.approx(10)
    assert calibration_error(confidence, correct, bins=1) == pytest.approx(0)
    assert calibration_error([1.0, 1.0], [False, False]) == pytest.approx(100)


def test_impossible_scores_are_refused() -> None:
    for bad in ([], [math.nan], [[1.0]]):
        with pytest.raises(ValueError, match="inside must be"):
            auroc(bad, [1.0])
    with pytest.raises(ValueError, match="kept"):
        false_acceptance([1.0], [1.0], kept=0)
    with pytest.raises(ValueError, match="shape"):
        f1([True], [True, False])
    with pytest.raises(ValueError, match="shape"):
        calibration_error([0.5], [True, False])
    with pytest.raises(ValueError, match=r"not in 0\.\.1"):
        calibration_error([1.5], [True])


@given(labels)
def test_macro_accuracy_is_the_mean_recall_over_intents(pairs: list[tuple[int, int]]) -> None:
    truth, predicted = [t for t, _ in pairs], [p for _, p in pairs]
    match = hungarian_map(truth, predicted)
    recalls = []
    for intent in set(truth):
        own = [match.get(p) == intent for t, p in pairs if t == intent]
        recalls.append(sum(own) / len(own))
    expected = 100 * sum(recalls) / len(recalls)
    assert score(truth, predicted, 2).macro_acc == pytest.approx(expected)


def test_accuracy_of_the_tail_is_that_of_the_smallest_third() -> None:
    truth = [0] * 6 + [1] * 3 + [2] * 2
    predicted = [0] * 6 + [1] * 3 + [2, 0]
    found = score(truth, predicted, 3)
    assert found.tail_acc == pytest.approx(50)
    assert found.macro_acc == pytest.approx(100 * (1 + 1 + 0.5) / 3)
    assert score(truth, predicted, 3, sizes=[1, 5, 9]).tail_acc == pytest.approx(100)
    assert math.isnan(score([0, 1, 2], [0, 1, 2], 3).tail_acc)


@given(st.lists(st.integers(0, 9), max_size=12))
def test_small_classes_are_a_third_and_their_equals(sizes: list[int]) -> None:
    small = small_classes(sizes)
    others = [s for i, s in enumerate(sizes) if i not in small]
    if len(small):
        assert max(sizes[i] for i in small) < min(others)
        assert len(small) >= max(1, len(sizes) // 3)
    else:
        assert len(set(sizes)) <= 2 or sorted(sizes)[max(0, len(sizes) // 3 - 1)] == max(sizes)
