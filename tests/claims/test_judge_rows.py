"""What the documentation says of judging without truth holds for the stored rows."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from scipy.stats import spearmanr

from tests.helpers import ROOT

pytestmark = pytest.mark.claims

RESULTS = ROOT / "benchmarks" / "results"


def groups() -> Iterator[list[dict[str, Any]]]:
    lines = (RESULTS / "judge.jsonl").read_text(encoding="utf-8").splitlines()
    rows = sorted(map(json.loads, lines), key=lambda row: (row["dataset"], row["seed"]))
    for _, own in itertools.groupby(rows, key=lambda row: (row["dataset"], row["seed"])):
        yield list(own)


def rank_correlation(rows: list[dict[str, Any]]) -> float:
    return float(spearmanr([r["score"] for r in rows], [r["acc"]["test"] for r in rows]).statistic)


@pytest.mark.parametrize(
    "rows", groups(), ids=lambda rows: f"{rows[0]['dataset']}-{rows[0]['seed']}"
)
def test_the_score_ranks_runs_much_as_the_truth_does(rows: list[dict[str, Any]]) -> None:
    assert len(rows) == 8
    assert rank_correlation(rows) > 0.6
    alike = [row for row in rows if "K x" not in row["variant"]]
    assert rank_correlation(alike) >= 0.8 - 1e-9


def test_all_benchmarks_were_judged_on_two_seeds() -> None:
    found = {(rows[0]["dataset"], rows[0]["seed"]) for rows in groups()}
    assert found == set(itertools.product(["banking", "clinc", "stackoverflow"], [0, 1]))
