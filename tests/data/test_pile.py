import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.data.benchmark_entries import BENCHMARKS
from ronid.data.cell_files import cell_path, read_cell, write_cell, write_problem
from ronid.data.corrupted_text import FRAGMENTS, OPENERS, SMALL_TALK, small_talk, with_entities
from ronid.data.pile import (
    BY_RATIO,
    MIN_UTTERANCES_BESIDE_DOMINANT,
    MIXED_SHOTS,
    THIN_SHOTS,
    Pile,
    absent_intents,
    chatter_rows,
    dominated,
    misnamed,
    shots_per_intent,
    tail_sizes,
    thinned,
)
from ronid.data.splits import benchmark_cell, benchmark_problem
from ronid.errors import UsageError
from ronid.types import UNLABELLED

Toy = Callable[[], Path]
SIZES = {"a": 20, "b": 10, "c": 5, "d": 30}


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"shots": -1}, "shots is -1"),
        ({"label_noise": 1.5}, "label_noise is 1.5; give a number from 0 to 1"),
        ({"absent_ratio": -0.1}, "absent_ratio is -0.1"),
        ({"tail": 0.5}, "tail is 0.5; give 1 or more"),
        ({"chatter_ratio": 1}, "chatter_ratio is 1; give 0 or more and below 1"),
        ({"mixed_shots": 2}, "mixed_shots is 2; give 0 or 1"),
        ({"thin_shots": 0.5}, "thin_shots is 0.5; give 0 or 1"),
        ({"dominant": 1}, "dominant is 1; give 0 or more and below 1"),
        ({"entities": 1.1}, "entities is 1.1; give a number from 0 to 1"),
        ({"small_talk": -0.1}, "small_talk is -0.1; give 0 or more and below 1"),
    ],
)
def test_pile_out_of_range_is_refused(values: dict[str, float], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Pile(**values)  # type: ignore[arg-type]


def test_tail_sizes_fall_exponentially() -> None:
    found = tail_sizes(np.full(5, 100), 16, np.random.default_rng(0))
    # naive reference: every step divides by the fourth root of 16
    assert sorted(found.tolist(), reverse=True) == [100, 50, 25, 12, 6]


@pytest.mark.parametrize("ratio", [3, 5, 10, 30])
@pytest.mark.parametrize("intents", [20, 77, 150])
def test_tail_sizes_are_the_profiles_of_imbanid(ratio: float, intents: int) -> None:
    largest = 120
    found = tail_sizes(np.full(intents, largest), ratio, np.random.default_rng(1))
    for k, size in enumerate(sorted(found.tolist(), reverse=True)):
        assert abs(size - largest * ratio ** (-k / (intents - 1))) <= 0.5


@given(
    st.lists(st.integers(1, 200), min_size=1, max_size=20),
    st.floats(1, 100),
    st.integers(0, 2**20),
)
def test_thinned_rows_are_rows_and_no_class_dies(sizes: list[int], ratio: float, seed: int) -> None:
    classes = np.repeat(np.arange(len(sizes)), sizes)
    rows = thinned(classes, ratio, seed)
    np.testing.assert_array_equal(rows, np.unique(rows))
    left = np.bincount(classes[rows], minlength=len(sizes))
    assert (left >= 1).all()
    assert (left <= sizes).all()
    assert left.max() / left.min() <= max(ratio, 1) * 1.5 + max(sizes) / min(sizes)
    np.testing.assert_array_equal(rows, thinned(classes, ratio, seed))


def test_which_class_is_large_is_drawn() -> None:
    classes = np.repeat(np.arange(6), 50)
    largest = {int(np.bincount(classes[thinned(classes, 10, seed)]).argmax()) for seed in range(30)}
    assert len(largest) > 3


@given(st.integers(0, 60), st.integers(2, 6), st.floats(0, 1), st.integers(0, 99))
def test_misnamed_labels_are_as_many_as_asked_and_all_wrong(
    n: int, k: int, noise: float, seed: int
) -> None:
    known = [f"intent {i}" for i in range(k)]
    names = [known[i % k] for i in range(n)]
    found = misnamed(names, known, noise, seed)
    changed = sum(a != b for a, b in zip(names, found, strict=True))
    assert changed == round(noise * n)
    assert set(found) <= set(known)


def test_wrong_names_are_spread_evenly() -> None:
    known = list("abcd")
    found = Counter(misnamed(["a"] * 3000, known, 1.0, 0))
    assert set(found) == {"b", "c", "d"}
    assert min(found.values()) > 900


def test_a_single_known_intent_cannot_be_misnamed() -> None:
    assert misnamed(["a", "a"], ["a"], 1.0, 0) == ["a", "a"]


def test_chatter_is_the_share_asked_for() -> None:
    rows = chatter_rows({"x": 100, "y": 50}, 400, 0.2, 0)
    assert len(rows) == len(set(rows)) == 100  # a fifth of 500
    assert rows == sorted(rows)
    assert {name for name, _ in rows} == {"x", "y"}
    with pytest.raises(UsageError, match="needs 100 utterances from elsewhere, and there are 99"):
        chatter_rows({"x": 99}, 400, 0.2, 0)


@given(
    st.lists(st.integers(1, 400), min_size=2, max_size=30), st.floats(0.01, 0.95), st.integers(0, 9)
)
def test_dominant_intent_has_its_share(sizes: list[int], share: float, seed: int) -> None:
    classes = np.repeat(np.arange(len(sizes)), sizes)
    try:
        rows = dominated(classes, share, seed)
    except UsageError:
        # naive reference: no intent reaches the share, or all exceed it
        fewest = [min(size, MIN_UTTERANCES_BESIDE_DOMINANT) for size in sizes]
        for size, least in zip(sizes, fewest, strict=True):
            assert size / (size + sum(fewest) - least) < share or size / sum(sizes) > share
        return
    np.testing.assert_array_equal(rows, np.unique(rows))
    np.testing.assert_array_equal(rows, dominated(classes, share, seed))
    left = np.bincount(classes[rows], minlength=len(sizes))
    whole = np.flatnonzero(left == sizes)
    errors = [abs(left.sum() - sizes[one] / share) for one in whole]
    assert min(errors) <= 0.5 + 1e-6  # the number of other rows is rounded
    assert (left >= np.minimum(sizes, MIN_UTTERANCES_BESIDE_DOMINANT)).all()


def test_other_intents_keep_their_proportions_beside_a_dominant_one() -> None:
    sizes = [900, 300, 200, 100, 8, 3]
    classes = np.repeat(np.arange(6), sizes)
    left = np.bincount(classes[dominated(classes, 0.94, 0)], minlength=6)  # only the first can
    # 57 others: 5 and 3 rows at least of the small ones, and 49 rows in proportion 3 : 2 : 1
    assert left.tolist() == [900, 25, 16, 8, 5, 3]


def test_which_intent_dominates_is_drawn() -> None:
    classes = np.repeat(np.arange(6), 50)
    found = {
        int(np.bincount(classes[dominated(classes, 0.6, seed)]).argmax()) for seed in range(30)
    }
    assert len(found) > 3


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_share_that_no_intent_can_have_is_refused(share: float) -> None:
    classes = np.repeat(np.arange(10), 20)
    with pytest.raises(UsageError, match=r"at least 0.100 and at most 0.308 of the utterances"):
        dominated(classes, share, 0)


@given(st.lists(st.integers(1, 300), max_size=40), st.integers(0, 99))
def test_mixed_shots_do_not_depend_on_sizes(sizes: list[int], seed: int) -> None:
    count = np.array(sizes, np.int64)
    found = shots_per_intent(count, Pile(mixed_shots=1), seed)
    assert set(found.tolist()) <= set(MIXED_SHOTS)
    np.testing.assert_array_equal(found, shots_per_intent(count[::-1], Pile(mixed_shots=1), seed))


def test_thin_shots_are_those_of_small_intents() -> None:
    sizes = np.array([50, 3, 40, 4, 30, 20, 60, 5, 70])
    found = shots_per_intent(sizes, Pile(thin_shots=1), 0)
    small = np.isin(sizes, [3, 4, 5])
    assert set(found[small].tolist()) <= set(THIN_SHOTS)
    assert (found[~small] == BY_RATIO).all()
    both = shots_per_intent(sizes, Pile(thin_shots=1, shots=10), 0)
    np.testing.assert_array_equal(both, np.where(small, found, 10))
    assert shots_per_intent(np.empty(0, np.int64), Pile(thin_shots=1), 0).tolist() == []


def test_thin_shots_need_small_intents() -> None:
    with pytest.raises(UsageError, match="no known intent is smaller than the others; give tail"):
        shots_per_intent(np.full(9, 20), Pile(thin_shots=1), 0)


TEXTS = [f"move {i} euros to my savings." for i in range(2000)]


def test_entities_change_their_share_of_the_texts_and_keep_the_words() -> None:
    found = with_entities(TEXTS, 0.3, np.random.default_rng(0))
    changed = [(old, new) for old, new in zip(TEXTS, found, strict=True) if old != new]
    assert len(changed) == pytest.approx(600, abs=80)
    for old, new in changed:
        assert old.rstrip(" ?.!") in new
        assert len(new) > len(old)
    assert with_entities(TEXTS, 0.3, np.random.default_rng(0)) == found
    assert with_entities(TEXTS, 0.0, np.random.default_rng(0)) == tuple(TEXTS)
    assert all(
        old != new
        for old, new in zip(TEXTS, with_entities(TEXTS, 1.0, np.random.default_rng(0)), strict=True)
    )


def test_entities_are_of_every_kind_and_at_both_ends() -> None:
    found = with_entities(["pay the bill"] * 400, 1.0, np.random.default_rng(0))
    for word in (" in ", " on ", " for $", " with number "):
        assert any(text.startswith("pay the bill" + word) for text in found)
        assert any(text.startswith(word.lstrip()) for text in found)
    assert any("for Anna Schmidt" in text for text in found)


def test_small_talk_states_no_intent_and_grows_with_the_count() -> None:
    found = small_talk(300, np.random.default_rng(0))
    known = {*SMALL_TALK, *FRAGMENTS}
    for text in found:
        openers = [opener for opener in OPENERS if opener and text.startswith(f"{opener} ")]
        assert text in known or any(text.removeprefix(f"{one} ") in known for one in openers)
    assert len(set(found)) > 150
    assert small_talk(400, np.random.default_rng(0))[:300] == found


def test_absent_intents_are_a_share_of_the_known() -> None:
    known = list("abcdefghij")
    found = absent_intents(known, 0.2, 1)
    assert len(found) == 2
    assert found <= set(known)
    assert absent_intents([], 0.5, 1) == set()


def test_default_pile_leaves_cells_and_their_hashes_alone(toy: Toy) -> None:
    toy()
    plain, same = benchmark_cell("toy", 0.5, 0.2), benchmark_cell("toy", 0.5, 0.2, 0, Pile())
    assert plain == same
    assert set(plain.content) == {
        "dataset", "known_ratio", "labelled_ratio", "seed", "known", "labelled",
    }  # fmt: skip


@pytest.mark.parametrize("changes", [{"known_ratio": 0}, {"labelled_ratio": 0}])
def test_ratio_of_zero_means_no_labels_at_all(toy: Toy, changes: dict[str, float]) -> None:
    toy()
    problem = benchmark_problem(benchmark_cell("toy", **changes))  # type: ignore[arg-type]
    assert (problem.split.known, len(problem.split.labelled)) == ((), 0)
    assert (len(problem.split), len(problem.split.dev_texts)) == (65, 0)
    assert problem.split.n_intents == 4


def test_shots_label_as_many_of_each_and_more_hold_fewer(toy: Toy) -> None:
    toy()
    cells = [benchmark_cell("toy", 0.5, 0, 3, Pile(shots=shots)) for shots in (1, 2, 30)]
    for cell, shots in zip(cells, (1, 2, 30), strict=True):
        split = benchmark_problem(cell).split
        counts = Counter(split.known[t] for t in split.targets[split.labelled])
        assert counts == {name: min(shots, SIZES[name]) for name in cell.known}
    assert set(cells[0].labelled) < set(cells[1].labelled) < set(cells[2].labelled)
    assert len({cell.hash for cell in cells}) == 3


def test_whole_numbers_and_others_hash_alike(toy: Toy) -> None:
    toy()
    one, other = (benchmark_cell("toy", pile=Pile(tail=ratio)) for ratio in (10, 10.0))
    assert one.hash == other.hash


def test_noise_changes_labels_and_never_the_truth(toy: Toy) -> None:
    toy()
    clean = benchmark_cell("toy", 1.0, 0.5)
    noisy = benchmark_cell("toy", 1.0, 0.5, 0, Pile(label_noise=0.25))
    assert noisy.labelled == clean.labelled
    assert noisy.hash != clean.hash
    ours, theirs = benchmark_problem(noisy).split, benchmark_problem(clean).split
    assert (ours.targets != theirs.targets).sum() == round(0.25 * len(clean.labelled))
    np.testing.assert_array_equal(ours.truth, theirs.truth)


def test_absent_intents_keep_their_labels_only(toy: Toy) -> None:
    toy()
    cell = benchmark_cell("toy", 1.0, 0.2, 0, Pile(absent_ratio=0.5))
    split = benchmark_problem(cell).split
    assert split.truth is not None
    raw = set(split.truth[split.unlabelled].tolist())
    assert len(raw) == 2
    assert set(split.targets[split.labelled].tolist()) == {0, 1, 2, 3}


def test_long_tail_thins_the_pile_and_leaves_the_test_whole(toy: Toy) -> None:
    toy()
    cell = benchmark_cell("toy", 0.5, 0.1, 2, Pile(tail=10))
    problem = benchmark_problem(cell)
    split = problem.split
    assert split.truth is not None
    assert len(split) == len(cell.kept) < 65
    assert len(problem.test_texts) == 8
    for text, true in zip(split.texts, split.truth, strict=True):
        assert text.startswith(f"train {problem.classes[true]}, ")
    np.testing.assert_array_equal(split.targets[split.labelled], split.truth[split.labelled])
    assert set(split.targets[split.labelled].tolist()) == {0, 1}  # a label each at least


def test_mixed_shots_label_few_rows_of_every_known_intent(toy: Toy) -> None:
    toy()
    cell = benchmark_cell("toy", 1.0, 0, 3, Pile(mixed_shots=1))
    split = benchmark_problem(cell).split
    counts = Counter(split.known[t] for t in split.targets[split.labelled])
    assert set(counts) == set(SIZES)
    for name, count in counts.items():
        assert count in MIXED_SHOTS or count == SIZES[name]  # fewer rows than shots
    assert cell == benchmark_cell("toy", 1.0, 0, 3, Pile(mixed_shots=1))


def test_thin_shots_leave_the_other_intents_to_the_ratio(toy: Toy) -> None:
    toy()
    cell = benchmark_cell("toy", 1.0, 0.5, 0, Pile(thin_shots=1))
    split = benchmark_problem(cell).split
    counts = Counter(split.known[t] for t in split.targets[split.labelled])
    assert counts.pop("c") in THIN_SHOTS  # the smallest third of four is one
    assert counts == {"a": 10, "b": 5, "d": 15}
    assert benchmark_cell("toy", 0, 0.5, 0, Pile(thin_shots=1)).known == ()


def test_dominant_intent_thins_the_others_and_leaves_the_test_whole(toy: Toy) -> None:
    toy()
    cell = benchmark_cell("toy", 0.5, 0.2, 0, Pile(dominant=0.6))
    problem = benchmark_problem(cell)
    truth = problem.split.truth
    assert truth is not None
    assert np.bincount(truth).max() / len(truth) == pytest.approx(0.6, abs=0.01)
    assert np.bincount(truth).max() == 30
    assert len(problem.test_texts) == 8
    with pytest.raises(UsageError, match="dominant is 0.9, but"):
        benchmark_cell("toy", pile=Pile(dominant=0.9))


def test_entities_change_texts_of_all_parts_and_no_label(toy: Toy) -> None:
    toy()
    plain, other = (
        benchmark_problem(benchmark_cell("toy", 0.5, 0.2, 0, pile))
        for pile in (Pile(), Pile(entities=0.5))
    )
    np.testing.assert_array_equal(plain.split.targets, other.split.targets)
    np.testing.assert_array_equal(plain.split.truth, other.split.truth)
    for before, after in (
        (plain.split.texts, other.split.texts),
        (plain.dev_texts, other.dev_texts),
        (plain.test_texts, other.test_texts),
    ):
        changed = sum(a != b for a, b in zip(before, after, strict=True))
        assert 0 < changed < len(before)
    # Early stopping and tuning read the same dev utterances.
    assert set(other.split.dev_texts) <= set(other.dev_texts)


def test_small_talk_stands_last_and_has_no_class(toy: Toy) -> None:
    toy()
    plain = benchmark_problem(benchmark_cell("toy", 0.5, 0.2)).split
    split = benchmark_problem(benchmark_cell("toy", 0.5, 0.2, 0, Pile(small_talk=0.2))).split
    assert split.truth is not None
    assert len(split) == 65 + round(65 * 0.2 / 0.8)
    assert tuple(split.texts[:65]) == tuple(plain.texts)
    assert (split.truth[65:] == UNLABELLED).all()
    assert (split.targets[65:] == UNLABELLED).all()
    assert split.n_intents == 4


def test_one_change_does_not_move_the_draws_of_another(toy: Toy) -> None:
    toy()
    noise, talk = Pile(label_noise=0.5), Pile(small_talk=0.3)
    both = Pile(label_noise=0.5, small_talk=0.3, entities=0.4)
    cells = [benchmark_cell("toy", 1.0, 0.5, 0, pile) for pile in (noise, talk, both)]
    assert len({cell.labelled for cell in cells}) == 1
    assert cells[0].given == cells[2].given
    texts = [benchmark_problem(cell).split.texts for cell in cells]
    assert texts[1][65:] == texts[2][65:]
    alone = benchmark_problem(benchmark_cell("toy", 1.0, 0.5, 0, Pile(entities=0.4))).split.texts
    assert texts[2][:65] == alone
    # A thinned training file keeps the texts that its rows have in the whole one.
    thin = benchmark_cell("toy", 1.0, 0.5, 0, Pile(entities=0.4, dominant=0.6))
    assert benchmark_problem(thin).split.texts == tuple(alone[row] for row in thin.kept)


def test_seeds_draw_different_changes(toy: Toy) -> None:
    toy()
    pile = Pile(entities=0.4, small_talk=0.3)
    texts = [
        benchmark_problem(benchmark_cell("toy", 0.5, 0.2, seed, pile)).split.texts
        for seed in (0, 0, 1)
    ]
    assert texts[0] == texts[1]
    assert texts[0][:65] != texts[2][:65]
    assert texts[0][65:] != texts[2][65:]


@pytest.fixture
def toy_among_strangers(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = toy()
    other = folder.parent / "other"
    folder.rename(other)
    folder.mkdir()
    for path in other.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    monkeypatch.setitem(BENCHMARKS, "other", BENCHMARKS["toy"])
    entry = BENCHMARKS["toy"]
    monkeypatch.setitem(BENCHMARKS, "toy", type(entry)(**{**vars(entry), "foreign": ("other",)}))


def test_chatter_stands_behind_the_pile_without_a_class(
    toy_among_strangers: None, tmp_path: Path
) -> None:
    cell = benchmark_cell("toy", 0.5, 0.2, 0, Pile(chatter_ratio=0.2))
    split = benchmark_problem(cell).split
    assert split.truth is not None
    assert len(cell.chatter) == 16
    assert len(split) == 65 + 16
    assert (split.truth[65:] == UNLABELLED).all()
    assert (split.targets[65:] == UNLABELLED).all()
    assert split.n_intents == 4
    lines = write_problem(tmp_path / "out", cell)[1].read_text().splitlines()
    assert all(line.endswith(",,") for line in lines[-16:])


def test_cell_with_everything_is_read_back(toy_among_strangers: None, tmp_path: Path) -> None:
    pile = Pile(
        shots=2, label_noise=0.5, absent_ratio=0.5, tail=3, chatter_ratio=0.1, thin_shots=1,
        entities=0.2, small_talk=0.1,
    )  # fmt: skip
    cell = benchmark_cell("toy", 1.0, 0, 1, pile)
    path = write_cell(cell_path(tmp_path, cell), cell)
    assert path.name == (
        "toy-known1-labelled0-seed1-shots2-label_noise0.5-absent_ratio0.5-tail3-"
        "chatter_ratio0.1-thin_shots1-entities0.2-small_talk0.1.json"
    )
    assert read_cell(path) == cell


def test_benchmark_without_strangers_gets_no_chatter(toy: Toy) -> None:
    toy()
    with pytest.raises(UsageError, match="foreign to 'toy'"):
        benchmark_cell("toy", pile=Pile(chatter_ratio=0.2))


@pytest.mark.benchmark_data
def test_draws_on_the_benchmarks_stay_what_they_were(benchmark_data: None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tail = benchmark_cell("clinc", pile=Pile(tail=50))
        chatter = benchmark_cell("stackoverflow", pile=Pile(chatter_ratio=0.2))
    sizes = np.bincount(benchmark_problem(tail).split.truth)  # type: ignore[arg-type]
    assert (sizes.max(), sizes.min(), len(tail.kept)) == (120, 2, sizes.sum())
    assert len(chatter.chatter) == 4500
    assert {name for name, _ in chatter.chatter} == {"clinc", "banking"}
