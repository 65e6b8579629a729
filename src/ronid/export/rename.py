"""Name the new intents of a finished run anew; all files that hold names change together."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ronid.errors import DataError
from ronid.export.card import write_card
from ronid.export.run_report import report_of_run
from ronid.files import read_json, write_intents
from ronid.name.beside import name_beside
from ronid.name.llm import Namer, name_by_model
from ronid.progress import Progress
from ronid.run import RunFolder
from ronid.types import Discovery, Intent

_READ = ("run.json", "config.toml", "metrics.json", "history.jsonl")
_WRITTEN = ("assignments.parquet", "README.md", "report.html", "intents.json")
"""intents.json comes last: until it is there, the run has its old names."""


@dataclass(frozen=True)
class Renamed:
    """What `rename_run` did.

    Args:
        before: The intents as they were.
        after: The intents as they are.
        message: One line on the answers of the namer, empty without one.
    """

    before: tuple[Intent, ...]
    after: tuple[Intent, ...]
    message: str = ""

    @property
    def changes(self) -> list[tuple[str, str]]:
        """Old and new name of every intent that has another name now."""
        pairs = zip(self.before, self.after, strict=True)
        return [(old.name, new.name) for old, new in pairs if old.name != new.name]


def rename_run(
    run: RunFolder, namer: Namer | None = None, progress: Progress | None = None
) -> Renamed:
    """Name the new intents of a finished run, and write its table, report and card anew.

    Args:
        run: A finished run. Nothing in it changes before everything is ready to be put in place.
        namer: The language model to ask; without one the names come from the utterances alone.
        progress: Told about each answer of the namer.

    Returns:
        The intents before and after. Known intents keep their names, and so do new ones that the
        user named.
    """
    before = run.intents()
    after, message = named_anew(run), ""
    if namer is not None:
        named = name_by_model(after, namer, progress)
        after, message = named.intents, named.summary()
    staged = run.path / "renaming"
    shutil.rmtree(staged, ignore_errors=True)  # left by a call that was killed
    try:
        _write(run, staged, after)
        for name in _WRITTEN:
            (staged / name).replace(run.path / name)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return Renamed(before, after, message)


def named_anew(run: RunFolder) -> tuple[Intent, ...]:
    """Return the intents of a finished run as `name_intents` describes them today.

    Args:
        run: A finished run; it is not changed.
    """
    before, table = run.intents(), run.assignments()
    discovery = Discovery(
        labels=table["index"].to_numpy(),
        confidence=table["confidence"].to_numpy(),
        embeddings=np.empty((len(table), 0), np.float32),
        prototypes=_prototypes(run.path, len(before)),
        prior=np.array([intent.prior for intent in before]),
        temperature=1.0,
        known=(),
        rule=read_json(run.path / "model.json").get("rule", "cosine"),
    )
    examples = [intent.exemplars for intent in before]
    known = {intent.index: intent.name for intent in before if intent.known}
    by_user = {i.index: i for i in before if i.named_by == "user" and not i.known}
    return name_beside(table["text"].to_pylist(), discovery, known, by_user, examples)


def _prototypes(folder: Path, k: int) -> np.ndarray:
    """Return the prototypes of a model folder."""
    from safetensors import SafetensorError, safe_open

    path = folder / "encoder" / "intents.safetensors"  # of a run that was updated
    if not path.exists():
        path = folder / "encoder" / "weights.safetensors"
    try:
        with safe_open(path, framework="numpy") as tensors:
            prototypes: np.ndarray = tensors.get_tensor("prototypes")
    except (OSError, SafetensorError) as error:
        raise DataError(f"weights '{path}' cannot be read ({error}); copy the run anew") from None
    if len(prototypes) != k:
        raise DataError(f"'{folder}' has {k} intents but {len(prototypes)} prototypes")
    return prototypes


def _write(run: RunFolder, staged: Path, intents: tuple[Intent, ...]) -> None:
    """Write the files that hold names into a folder of their own."""
    staged.mkdir()
    for name in _READ:
        if (run.path / name).exists():
            shutil.copyfile(run.path / name, staged / name)
    table = run.assignments()
    names = pa.array([intents[index].name for index in table["index"].to_pylist()], pa.string())
    position = table.column_names.index("intent")
    pq.write_table(table.set_column(position, "intent", names), staged / "assignments.parquet")
    write_intents(staged, intents)
    write_card(RunFolder(staged))
    report_of_run(RunFolder(staged))
