"""Write a model that was trained on as the next version of its run."""

from dataclasses import asdict, replace
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ronid.corpus_file import stamped
from ronid.export.card import write_card
from ronid.export.run_report import report_of_run
from ronid.files import FORMAT_VERSION, read_json, write_json
from ronid.learn.model import Trained
from ronid.learn.record import Learned
from ronid.metrics import renumber_known_first
from ronid.model import IntentModel
from ronid.name.beside import name_beside
from ronid.name.exemplars import exemplars
from ronid.name.intents import BY_MODEL
from ronid.review.base import Base, base_id
from ronid.review.desk import LEARNED
from ronid.review.events import Event
from ronid.review.state import OUT, ReviewIntent, State
from ronid.review.wire import event_to_json
from ronid.run import COLLECTED, OUT_OF_SCOPE, RunFolder
from ronid.types import Corpus, DataReport, Intent
from ronid.vectors import write_vectors


def described(trained: Trained, base: Base, state: State) -> tuple[Intent, ...]:
    """Return the intents as they are now, under the names that people know them by.

    Args:
        trained: What training on found.
        base: The run.
        state: The state it learnt from.
    """
    found = trained.found
    mine = [state.intents[id] for id in trained.ids]
    shown = [
        exemplars(base.texts, np.flatnonzero(found.labels == k), found.embeddings, prototype)
        for k, prototype in enumerate(found.prototypes)
    ]
    known = {k: intent.name for k, intent in enumerate(mine) if intent.known}
    kept = {k: _kept(k, intent) for k, intent in enumerate(mine) if not intent.known}
    intents = name_beside(base.texts, found, known, kept, shown)
    first = {base_id(i.index): i.description for i in base.intents}
    return tuple(
        replace(intent, description=own.description)
        if own.description and own.description != first.get(own.id)
        else intent
        for intent, own in zip(intents, mine, strict=True)
    )


def _kept(index: int, intent: ReviewIntent) -> Intent:
    """Return an intent that keeps its name; what people settled is not named anew."""
    by_person = intent.named_by.startswith("person:") or bool(intent.origin)
    named_by = "user" if by_person or intent.status == "accepted" else intent.named_by
    words = intent.description if intent.named_by.startswith(BY_MODEL) else ""
    return Intent(index, intent.name, False, 0, 0.0, 0.0, 0.0, named_by=named_by, description=words)


def write_version(
    run: RunFolder, folder: Path, trained: Trained, base: Base, state: State
) -> IntentModel:
    """Write model, utterances and vectors; return the model with its intents.

    Args:
        run: The version before.
        folder: An empty folder.
        trained: What training on found.
        base: The run.
        state: The state it learnt from.
    """
    found, model = trained.found, trained.model
    model = replace(model, intents=described(trained, base, state))
    if trained.encoder_changed:
        model.save(folder)
        about = read_json(folder / "model.json")
        before = read_json(run.path / "model.json").get("fitted_intents")
        fitted = before or len(run.intents())  # a head of logits has not grown
        write_json(folder / "model.json", about | {"fitted_intents": fitted})
    else:
        model.save_beside(run.path, folder)
    table = run.assignments()
    columns = {
        "intent": pa.array([model.intents[k].name for k in found.labels], pa.string()),
        "index": pa.array(found.labels, table.schema.field("index").type),
        "confidence": pa.array(found.confidence, table.schema.field("confidence").type),
        "start": pa.array(base.labels, pa.int32()),
        OUT_OF_SCOPE: pa.array(state.places == OUT, pa.bool_()),
    }
    for name, values in columns.items():
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, values)
        else:
            table = table.append_column(name, values)
    pq.write_table(stamped(table), folder / "assignments.parquet")
    write_vectors(folder, found.embeddings)
    if (run.path / COLLECTED).exists():
        copyfile(run.path / COLLECTED, folder / COLLECTED)
    return model


def write_rest(
    run: RunFolder, folder: Path, trained: Trained, base: Base, state: State, done: Learned,
    event: Event,
) -> None:  # fmt: skip
    """Write what the version tells of itself, its metrics, card and report.

    Args:
        run: The version before.
        folder: The version.
        trained: What training on found.
        base: The run.
        state: The state it learnt from.
        done: What training on did.
        event: What the log of the review will hold.
    """
    history = run.path / "history.jsonl"
    if history.exists():
        copyfile(history, folder / history.name)
    told = {"format_version": FORMAT_VERSION, "event": event_to_json(event)}
    write_json(folder / LEARNED, told | {"done": asdict(done)})
    new = RunFolder(folder)
    corpus = _corpus(run, base, state)
    known = [state.intents[id].known for id in trained.ids]
    labels = renumber_known_first(trained.found.labels, known)
    found = replace(trained.found, known=_known(state, trained), labels=labels)
    new.write_metrics(corpus, found, {"total": done.seconds})
    facts = run.facts()
    summary = asdict(done)
    summary = {k: v for k, v in summary.items() if k not in ("verdicts", "examples", "changes")}
    new.write_facts(
        {**facts, "review": _review_facts(facts, trained, base, state, done, event)}
        | {"updates": [*facts.get("updates", ()), summary]}
    )
    write_card(new)
    report_of_run(new)


def _known(state: State, trained: Trained) -> tuple[str, ...]:
    return tuple(state.intents[id].name for id in trained.ids if state.intents[id].known)


def _corpus(run: RunFolder, base: Base, state: State) -> Corpus:
    """Return the utterances with all that people said of them, so that no score counts it."""
    table = run.assignments()
    settled = state.confirmed | base.given
    truth = table["truth"].to_pylist() if "truth" in table.column_names else None
    labels: list[str | None] = ["" if each else None for each in settled]
    return Corpus(base.texts, labels, DataReport(0, 0), truth=truth)


def _review_facts(
    facts: dict[str, Any], trained: Trained, base: Base, state: State, done: Learned, event: Event
) -> dict[str, Any]:
    """Return what tells the intents of the model from those of the review, see `read_base`."""
    first = len(base.intents)
    at = {base_id(i.index): i.index for i in base.intents}

    def root(id: str) -> int:
        """Return the discovered intent that an intent goes back to."""
        for _ in range(len(state.slots)):
            if id in at or id not in state.intents or not state.intents[id].origin:
                break
            id = state.intents[id].origin[0]
        return at.get(id, 0)

    intents = [
        {"name": i.name, "description": i.description, "known": i.known, "named_by": i.named_by}
        for i in base.intents[:first]
    ]
    learned = facts.get("review", {}).get("learned", [])
    return {
        "ids": list(trained.ids),
        "roots": [root(id) for id in trained.ids],
        "intents": intents,
        "learned": [*learned, {"key": event.key, "version": done.version}],
    }
