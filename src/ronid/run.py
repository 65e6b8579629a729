"""A run is a folder: what was asked, what was found, and enough in between to go on after a kill.

    run.json  config.toml  corpus.parquet  work/           while it runs
    model.json  encoder/  intents.json  assignments.parquet  embeddings.safetensors
    history.jsonl  metrics.json  README.md  report.html    when it is done
    versions/                                              when it was updated, see `versions`
    sent.jsonl                                             when a language model was asked for names

Nothing here needs torch.
"""

import json
import math
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ronid.config import MethodConfig, to_dict
from ronid.corpus_file import NUMBERED, read_corpus, stamped, write_corpus
from ronid.errors import DataError, UsageError
from ronid.files import FORMAT_VERSION, read_json, whole, write_json
from ronid.intents_file import read_intents
from ronid.methods import from_toml
from ronid.metrics import score
from ronid.toml import to_toml
from ronid.types import UNLABELLED, Corpus, DataReport, Discovery, FloatArray, Intent, Scores
from ronid.vectors import write_vectors
from ronid.version import __version__
from ronid.versions import current_folder, frozen_cache

COLLECTED = "collected.parquet"
"""Where an updated run keeps the utterances that fit none of its intents so far."""

OUT_OF_SCOPE = "out_of_scope"
"""Column of a run that was trained on: whether people had put the utterance out of scope."""

MOST_KEPT_BYTES = 512 << 20
"""Output of a frozen encoder that a run keeps at most; beyond, it is made anew when needed."""


@dataclass(frozen=True)
class Job:
    """What a run was asked to do.

    Args:
        corpus: Utterances, some labelled.
        dev: Held-out labelled utterances, or None.
        n_intents: How many intents there are; None to find out.
        config: The recipe.
        seed: Everything random derives from it.
        device: Where it is trained.
        exact: Whether `n_intents` is certain.
    """

    corpus: Corpus
    dev: Corpus | None
    n_intents: int | None
    config: MethodConfig
    seed: int
    device: str
    exact: bool = True


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run.

    Args:
        path: The folder.
    """

    path: Path

    @property
    def work(self) -> Path:
        """Checkpoint and cache of a fit in progress."""
        return self.path / "work"

    @property
    def finished(self) -> bool:
        """Whether the results are there."""
        return bool(self.facts().get("finished"))

    def facts(self) -> dict[str, Any]:
        """Return what `run.json` says."""
        return read_json(self.path / "run.json")

    @staticmethod
    def create(path: Path, job: Job, source: str) -> "RunFolder":
        """Make the folder of a new run.

        Args:
            path: A folder that does not exist yet, or is empty.
            job: What is asked.
            source: Where the utterances came from, for the card.

        Raises:
            UsageError: The folder is in use, or cannot be made.
        """
        check_unused(path)
        run = RunFolder(path)
        with place_for(path):
            path.mkdir(parents=True, exist_ok=True)
            run.work.mkdir()
        try:
            run._write_job(job, source)
        except BaseException:  # interrupted, or the disk is full: the same command can come again
            run.discard()
            raise
        return run

    def _write_job(self, job: Job, source: str) -> None:
        """Write what is asked."""
        config = {"format_version": FORMAT_VERSION, **to_dict(job.config)}
        (self.path / "config.toml").write_text(to_toml(config), encoding="utf-8")
        write_corpus(self.path / "corpus.parquet", job.corpus)
        if job.dev is not None:
            write_corpus(self.path / "dev.parquet", job.dev)
        facts = {
            "format_version": FORMAT_VERSION,
            "ronid_version": __version__,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "source": source,
            "method": job.config.method,
            "preset": job.config.preset,
            "n_intents": job.n_intents,
            "exact": job.exact,
            "seed": job.seed,
            "device": job.device,
            "data_report": asdict(job.corpus.report),
            "finished": False,
        }
        # Written last: a folder with run.json has all that a resume needs.
        self.write_facts(facts)

    def discard(self) -> None:
        """Remove the folder of a run that could not begin."""
        shutil.rmtree(self.path)

    def job(self) -> Job:
        """Read back what was asked."""
        facts = self.facts()
        dev_path = self.path / "dev.parquet"
        return Job(
            corpus=read_corpus(self.path / "corpus.parquet", self.data_report()),
            dev=read_corpus(dev_path, DataReport(0, 0)) if dev_path.exists() else None,
            n_intents=facts["n_intents"],
            config=from_toml(self.path / "config.toml"),
            seed=facts["seed"],
            device=facts["device"],
            exact=facts.get("exact", True),  # older runs knew no other
        )

    def data_report(self) -> DataReport:
        """Return what reading the utterances found."""
        values = self.facts()["data_report"]
        return DataReport(**{**values, "messages": tuple(values["messages"])})

    def write_results(
        self,
        corpus: Corpus,
        discovery: Discovery,
        intents: tuple[Intent, ...],
        coordinates: FloatArray,
    ) -> None:
        """Write one row per utterance, its vector, and one row per epoch."""
        names = [intents[i].name for i in discovery.labels]
        columns: dict[str, Any] = {
            "id": corpus.ids or [str(i + 1) for i in range(len(corpus))],
            "text": corpus.texts,
            "given": pa.array(corpus.labels, pa.string()),  # there may be none so far
            "intent": names,
            "index": discovery.labels,
            "confidence": discovery.confidence,
            "x": coordinates[:, 0],
            "y": coordinates[:, 1],
            NUMBERED: pa.array([corpus.ids is None] * len(corpus), pa.bool_()),
        }
        if corpus.truth is not None:
            columns["truth"] = corpus.truth
        pq.write_table(stamped(pa.table(columns)), self.path / "assignments.parquet")
        write_vectors(self.path, discovery.embeddings)
        with (self.path / "history.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in discovery.history)

    def write_metrics(
        self, corpus: Corpus, discovery: Discovery, seconds: Mapping[str, float]
    ) -> None:
        """Write the scores where truth was given, and how long each stage took.

        Args:
            corpus: The utterances, with their truth.
            discovery: What was found. Its intents 0..m-1 are the m known intents.
            seconds: Seconds of each stage.
        """
        scores = _truth_scores(corpus, discovery)
        metrics = {
            "format_version": FORMAT_VERSION,
            "scores": scores and asdict(scores),
            "seconds": {stage: round(spent, 3) for stage, spent in seconds.items()},
        }
        write_json(self.path / "metrics.json", metrics)

    def keep_frozen(self, rows: int) -> None:
        """Keep what a frozen encoder said of the utterances: training on needs it again.

        Args:
            rows: Utterances of the run.
        """
        made, kept = self.work / "cache", frozen_cache(self.path, rows)
        size = sum(file.stat().st_size for file in made.glob("*")) if made.is_dir() else 0
        if 0 < size <= MOST_KEPT_BYTES:
            kept.parent.mkdir(exist_ok=True)
            shutil.rmtree(kept, ignore_errors=True)
            made.replace(kept)

    def finish(self) -> None:
        """Mark the run as done and remove what only a resume needs."""
        self.write_facts({**self.facts(), "finished": True})
        shutil.rmtree(self.work, ignore_errors=True)
        for name in ("corpus.parquet", "dev.parquet"):
            (self.path / name).unlink(missing_ok=True)

    def write_facts(self, facts: Mapping[str, Any]) -> None:
        """Replace `run.json` as a whole: a kill leaves the old one or the new one."""
        with whole(self.path / "run.json") as partial:
            write_json(partial, facts)

    def assignments(self) -> pa.Table:
        """Return one row per utterance."""
        table = pq.read_table(self.path / "assignments.parquet")
        given = table.schema.get_field_index("given")
        if pa.types.is_null(table.schema.field(given).type):  # no label, in runs of old versions
            table = table.set_column(given, "given", table["given"].cast(pa.string()))
        return table

    def n_collected(self) -> int:
        """Return how many utterances fit none of the intents so far."""
        path = self.path / COLLECTED
        return int(pq.read_metadata(path).num_rows) if path.exists() else 0

    def labelled(self) -> NDArray[np.bool_]:
        """Return (n,) which utterances have a label that counts.

        What people put out of scope before the run was trained on keeps the label that the file
        gave it, so that it is there if they take that back, but the label says nothing meanwhile.
        """
        table = self.assignments()
        given: NDArray[np.bool_] = table["given"].is_valid().to_numpy()
        if OUT_OF_SCOPE in table.column_names:
            given &= ~table[OUT_OF_SCOPE].fill_null(False).to_numpy()
        return given

    def intents(self) -> tuple[Intent, ...]:
        """Return the intents found."""
        return read_intents(self.path)

    def history(self) -> list[dict[str, Any]]:
        """Return one mapping per epoch."""
        path = self.path / "history.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def count(self) -> dict[str, Any] | None:
        """Return how the number of intents was found: `k`, bounds and curve; None if given."""
        return next((row for row in self.history() if row.get("stage") == "count"), None)

    def scores(self) -> Mapping[str, float] | None:
        """Return the agreement with the truth given to `fit`, if there was one."""
        path = self.path / "metrics.json"
        scores = read_json(path)["scores"] if path.exists() else None
        if scores is None:
            return None
        return {name: math.nan if value is None else value for name, value in scores.items()}


def open_run(path: Path) -> RunFolder:
    """Return the run in `path`, in its current version.

    Raises:
        DataError: There is none.
    """
    if not (path / "run.json").is_file():
        reason = "has no run.json" if path.is_dir() else "does not exist"
        raise DataError(f"'{path}' is not a run: it {reason}; give the folder of `ronid fit --out`")
    return RunFolder(current_folder(path))


def open_finished(path: Path) -> RunFolder:
    """Return the finished run in `path`.

    Raises:
        DataError: There is none, or it is not finished.
    """
    run = open_run(path)
    if not run.finished:
        raise DataError(f"run '{path}' is not finished; finish it with: ronid fit --resume {path}")
    return run


@contextmanager
def place_for(out: Path) -> Iterator[None]:
    """Say of a place that the machine refuses, while it is looked at or made, to give another.

    Args:
        out: The place as the user gave it.

    Raises:
        UsageError: The machine refused.
    """
    try:
        yield
    except OSError as problem:
        raise UsageError(
            f"cannot write to '{out}' ({problem.strerror}); give another --out"
        ) from problem


def check_unused(path: Path) -> None:
    """Refuse an output folder that holds anything.

    Raises:
        UsageError: The folder is in use, is a file, or cannot be looked into.
    """
    with place_for(path):
        is_file, used = path.is_file(), path.is_dir() and any(path.iterdir())
    if is_file:
        raise UsageError(f"output '{path}' is a file; give a folder with --out")
    if not used:
        return
    raise UsageError(f"output folder '{path}' is already used; give another --out{_hint(path)}")


def _hint(path: Path) -> str:
    """Return what else can be done with a used folder."""
    if (path / "run.json").exists():
        unfinished = not RunFolder(path).finished
        return f", or finish the run in it: ronid fit --resume {path}" if unfinished else ""
    if (path / "work").is_dir() and (path / "config.toml").exists():
        return ", or delete it: it holds a run that was stopped before it began"
    return ""


def _truth_scores(corpus: Corpus, discovery: Discovery) -> Scores | None:
    """Score the unlabelled rows against the truth; given labels would flatter the figure."""
    if corpus.truth is None:
        return None
    others = {t for t in corpus.truth if t is not None} - set(discovery.known)
    index = {name: i for i, name in enumerate((*discovery.known, *sorted(others)))}
    truth = np.array([UNLABELLED if t is None else index[t] for t in corpus.truth])
    free = np.array([label is None for label in corpus.labels]) & (truth >= 0)
    if not free.any():
        return None
    return score(truth[free], discovery.labels[free], len(discovery.known))
