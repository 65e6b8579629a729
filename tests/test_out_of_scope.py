"""The out-of-scope benchmark takes out what it says, and its scores tell good from bad."""

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ronid.data.benchmark_entries import BENCHMARKS, CLASSIC, PARTS
from ronid.data.splits import BenchmarkProblem
from ronid.types import Discovery, Split
from tests.helpers.benchmark_script import load_benchmark
from tests.helpers.toy_corpus import Recipe, make_toy

WAYS = {
    "max softmax",
    "max softmax, calibrated",
    "distance to prototype",
    "distance to 10th neighbour",
    "belonging (ours)",
}


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """The benchmark as a module."""
    return load_benchmark("out_of_scope")


def clouds(rng: np.random.Generator, centres: np.ndarray, each: int) -> np.ndarray:
    vectors = np.repeat(centres, each, 0) + 0.1 * rng.normal(size=(each * len(centres), 8))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def toy_fit(bench: ModuleType) -> object:
    rng, centres = np.random.default_rng(0), np.eye(8)
    found = Discovery(
        labels=np.repeat(np.arange(6), 50),
        confidence=np.zeros(300, np.float32),
        embeddings=clouds(rng, centres[:6], 50),
        prototypes=centres[:6].astype(np.float32),
        prior=np.full(6, 1 / 6),
        temperature=0.15,
        known=("0",),
    )
    truth = np.repeat(np.arange(8), 20)
    return bench.Fit(found, clouds(rng, centres, 20), truth, truth >= 6)


def test_half_of_the_missing_intents_are_known(bench: ModuleType) -> None:
    split = Split((), np.empty(0, np.int64), tuple("abcdefghijklmno"), 20)
    problem = BenchmarkProblem(split, (), np.empty(0, np.int64), tuple("abcdefghijklmnopqrst"))
    for seed in range(5):
        missing = bench.missing_intents(problem, seed)
        assert len(set(missing)) == 4
        assert sum(missing < 15) == 2
        assert np.array_equal(missing, bench.missing_intents(problem, seed))


def test_row_holds_every_score(bench: ModuleType) -> None:
    row = bench.measure(toy_fit(bench))
    assert json.loads(json.dumps(row)) == row
    assert (row["inside"], row["outside"]) == (120, 40)
    assert set(row["scores"]) == WAYS
    assert row["acc"] == 100
    assert row["ece_after"] < row["ece_before"]
    for judged in row["scores"].values():
        assert judged["auroc"] > 95
        assert judged["acc_kept"] == 100


def test_utterances_that_only_claim_to_be_strange_cannot_be_told(bench: ModuleType) -> None:
    fit = toy_fit(bench)
    claimed = np.arange(len(fit.truth)) % 2 == 0
    inside = np.flatnonzero(fit.truth < 6)
    row = bench.measure(
        replace(fit, asked=fit.asked[inside], truth=fit.truth[inside], outside=claimed[inside])
    )
    for judged in row["scores"].values():
        assert 30 < judged["auroc"] < 70


STRANGE = ["how tall is the moon", 'who wrote "the storm"', "qwertz"]


@pytest.fixture
def own_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small CLINC under RONID_DATA, with out-of-scope queries among others of its test file."""
    toys = {part: make_toy(120, 6, seed) for seed, part in enumerate(PARTS)}
    rows = {
        part: [f"{text}\t{name}" for text, name in zip(toy.texts, toy.truth, strict=True)]
        for part, toy in toys.items()
    }
    content = {f"clinc/{part}": lines for part, lines in rows.items()}
    content["clinc_oos/test"] = rows["test"][:9] + [f"{text}\toos" for text in STRANGE]
    for name, lines in content.items():
        path = tmp_path / "data" / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["text\tlabel", *lines]), encoding="utf-8")
    files = {part: (tmp_path / "data" / "clinc" / f"{part}.tsv").read_bytes() for part in PARTS}
    sha256 = {part: hashlib.sha256(data).hexdigest() for part, data in files.items()}
    monkeypatch.setitem(BENCHMARKS, "clinc", replace(BENCHMARKS["clinc"], sha256=sha256))
    monkeypatch.setenv("RONID_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("RONID_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("own_queries")
def test_clinc_is_fitted_whole_and_asked_its_own_queries_where_they_are_there(
    bench: ModuleType, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "CONFIG", recipe("fast"))
    monkeypatch.setattr(bench, "CLASSIC", ())  # what is asked by default is the queries alone
    out = tmp_path / "rows.jsonl"
    monkeypatch.setattr(sys, "argv", ["", *f"--seed 0 --work {tmp_path} --out {out}".split()])
    bench.main()
    (row,) = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert (row["dataset"], row["inside"], row["outside"]) == ("clinc_oos", 120, len(STRANGE))
    assert set(row["scores"]) == WAYS
    fit = bench.get_fit(bench.OWN, 0, "test", tmp_path)
    assert len(fit.found.prototypes) == 6  # none is taken out
    assert fit.outside.tolist() == [False] * 120 + [True] * len(STRANGE)


@pytest.mark.claims
def test_stored_rows_are_of_the_seeds_and_files_that_are_reported() -> None:
    rows = load_benchmark("table_rows").read_rows("out_of_scope.jsonl")
    cells = [(row["dataset"], row["seed"]) for row in rows]
    assert len(set(cells)) == len(cells)
    assert set(cells) >= {(dataset, seed) for dataset in CLASSIC for seed in range(3)}
    assert {row["part"] for row in rows} == {"test"}
    for row in rows:
        assert set(row["scores"]) == WAYS
