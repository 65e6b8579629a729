"""The stored rows of all methods say what docs/comparison.md claims of them."""

import re
from itertools import pairwise
from statistics import mean

import pytest

from ronid.bench.published import matching
from ronid.methods import METHODS
from tests.helpers import ROOT
from tests.helpers.benchmark_script import load_benchmark

pytestmark = pytest.mark.claims

tables = load_benchmark("method_tables")
DATASETS = ("clinc", "banking", "stackoverflow")


MORE = {"ronid": 10} | dict.fromkeys(("gcd", "dpn", "clnn", "usnid", "dwgf"), 5)
"""Seeds of methods that have more than three."""


def test_every_method_has_its_seeds_on_every_benchmark() -> None:
    wanted = {
        (name, dataset, seed)
        for name in METHODS
        for dataset in DATASETS
        for seed in range(MORE.get(name, 3))
    }
    found = [(row["method"], row["dataset"], row["seed"]) for row in tables.compared_rows()]
    assert len(found) == len(set(found))
    assert set(found) == wanted


@pytest.mark.parametrize("dataset", DATASETS)
def test_ours_is_first_by_either_rule_of_inference(dataset: str) -> None:
    best: dict[str, float] = {}
    for name in METHODS:
        own = [row["scores"] for row in tables.compared_rows() if row["dataset"] == dataset
               and row["method"] == name]  # fmt: skip
        best[name] = max(mean(row[rule]["acc"] for row in own) for rule in ("argmax", "refit"))
    assert max(best, key=best.__getitem__) == "ronid"


@pytest.mark.parametrize("dataset", DATASETS)
def test_families_keep_their_order(dataset: str) -> None:
    means = [
        mean(tables.accuracy(name, dataset) for name in names) for names in tables.FAMILIES.values()
    ]
    assert all(weaker < stronger for weaker, stronger in pairwise(means))
    listed = [name for names in tables.FAMILIES.values() for name in names]
    assert sorted(listed) == sorted(METHODS)


def test_every_method_that_stays_below_its_paper_is_explained() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    section = page.split("## Where a method falls short of its paper")[1].split("<!--")[0]
    explained = " ".join(re.findall(r"\*\*(.+?)\*\*", section, re.DOTALL))
    for name in METHODS:
        for dataset in ("clinc", "banking"):
            printed = matching(name, "", 0.75, 0.1)[0].scores[dataset]["acc"]
            if tables.accuracy(name, dataset) < printed - 2:
                assert METHODS[name].title in explained


def test_the_whole_table_costs_at_most_ninety_minutes_of_a_gpu() -> None:
    assert tables.spent_minutes([*tables.gpu_rows(), *tables.larger_rows()]) <= 90
