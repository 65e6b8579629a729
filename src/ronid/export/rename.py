"""Name the new intents of a finished run anew; all files that hold names change together."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ronid.errors import DataError
from ronid.export.card import write_card
from ronid.export.run_report import report_of_run
from ronid.files import read_json
from ronid.intents_file import write_intents
from ronid.name.beside import name_beside
from ronid.name.intents import BY_MODEL
from ronid.name.llm import Namer, name_by_model, spell_out
from ronid.name.sent import SENT, keep_sent
from ronid.progress import Progress
from ronid.run import RunFolder, open_finished
from ronid.together import replaced_together
from ronid.types import Discovery, Intent
from ronid.versions import locked

_READ = ("run.json", "config.toml", "metrics.json", "history.jsonl")
"""What card and report are made of besides the files that hold names."""


@dataclass(frozen=True)
class Renamed:
    """What `rename_run` did.

    Args:
        before: The intents as they were.
        after: The intents as they are.
        message: One line on the answers of the namer, empty without one.
        unanswered: Intents that the namer was to name and did not.
    """

    before: tuple[Intent, ...]
    after: tuple[Intent, ...]
    message: str = ""
    unanswered: int = 0

    @property
    def changes(self) -> list[tuple[str, str]]:
        """Old and new name of every intent that has another name now."""
        pairs = zip(self.before, self.after, strict=True)
        return [(old.name, new.name) for old, new in pairs if old.name != new.name]


def rename_run(
    path: Path,
    namer: Namer | None = None,
    progress: Progress | None = None,
    said: Callable[[str], None] = lambda _: None,
) -> Renamed:
    """Name the new intents of a finished run, and write its table, report and card anew.

    Args:
        path: Folder of the run. No name in it changes before everything is ready to be put in
            place; what is sent to a namer is kept in it as it goes.
        namer: The language model to ask; without one the names come from the utterances alone.
        progress: Told about each answer of the namer.
        said: Receives the text of the first request before anything is sent.

    Returns:
        The intents before and after. Known intents keep their names, and so do new ones that the
        user named. One that the namer has no answer for keeps what a model gave it before.

    Raises:
        DataError: The run is not finished.
        UsageError: Another process is changing the run.
    """
    open_finished(path)  # a folder that is no run is refused before a lock is put into it
    with locked(path):
        run, message, unanswered = open_finished(path), "", 0
        before, after = run.intents(), named_anew(run, keep_models=namer is not None)
        if namer is not None:
            kept = path / SENT
            _tell_first(after, namer, kept, said)
            named = name_by_model(after, namer, progress, partial(keep_sent, kept))
            after, message, unanswered = named.intents, named.summary(), named.unanswered
        with replaced_together(run.path) as staged:
            _write(run, staged, after)
    return Renamed(before, after, message, unanswered)


def _tell_first(
    intents: Sequence[Intent], namer: Namer, kept: Path, said: Callable[[str], None]
) -> None:
    """Show the text of the first request, and say how many more there are and where they go."""
    texts = spell_out(intents)
    if texts:
        more = f", then up to {len(texts) - 1} more of this form" if len(texts) > 1 else ""
        said(texts[0])
        said(f"this goes to {namer.address}{more}; '{kept}' keeps all that is sent")


def named_anew(run: RunFolder, *, keep_models: bool = False) -> tuple[Intent, ...]:
    """Return the intents of a finished run as `name_intents` describes them today.

    Args:
        run: A finished run; it is not changed.
        keep_models: Whether names that a language model gave stay, as those of the user do.
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
    kept = {i.index: i for i in before if not i.known and _stays(i, keep_models)}
    return name_beside(table["text"].to_pylist(), discovery, known, kept, examples)


def _stays(intent: Intent, keep_models: bool) -> bool:
    """Say whether an intent keeps its name whatever its utterances suggest."""
    return intent.named_by == "user" or (keep_models and intent.named_by.startswith(BY_MODEL))


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
    """Write the files that hold names, and nothing else, into an empty folder."""
    read = [name for name in _READ if (run.path / name).exists()]
    for name in read:
        shutil.copyfile(run.path / name, staged / name)
    table = run.assignments()
    names = pa.array([intents[index].name for index in table["index"].to_pylist()], pa.string())
    position = table.column_names.index("intent")
    pq.write_table(table.set_column(position, "intent", names), staged / "assignments.parquet")
    write_intents(staged, intents)
    write_card(RunFolder(staged))
    report_of_run(RunFolder(staged))
    for name in read:
        (staged / name).unlink()
