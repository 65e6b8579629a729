"""Writes the run folder of a version: the run before, and what came."""

from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ronid.corpus_file import NUMBERED, numbered, stamped, write_corpus
from ronid.export.card import write_card
from ronid.export.projection import place
from ronid.export.run_report import report_of_run
from ronid.files import FORMAT_VERSION, write_json
from ronid.head import Scope, predict, scope_of
from ronid.model import IntentModel
from ronid.name.beside import name_beside
from ronid.name.exemplars import exemplars
from ronid.run import COLLECTED, RunFolder
from ronid.types import Corpus, DataReport, Discovery, FloatArray, IntArray, Intent
from ronid.update.grow import Grown
from ronid.update.record import Update
from ronid.vectors import write_vectors


@dataclass(frozen=True)
class Arrivals:
    """Utterances that have no intent yet: collected before, or new.

    Args:
        texts: n utterances.
        given: n intent names, None where the user gave none.
        ids: n identifiers.
        numbered: n times whether ronid made the identifier up.
        frozen: (n, w) what the frozen part of an encoder says of the first ones, where that was
            kept, or of all.
    """

    texts: list[str]
    given: list[str | None]
    ids: list[str]
    numbered: list[bool]
    frozen: FloatArray | None = None


@dataclass(frozen=True)
class Version:
    """A version that is being written.

    Args:
        run: The run before.
        folder: An empty folder.
        came: Utterances that came or were collected, with ids.
        grown: What became of them.
        before: (m, d) features of the utterances of the run before, as the encoder is now; None
            where they are not known.
    """

    run: RunFolder
    folder: Path
    came: Arrivals
    grown: Grown
    before: FloatArray | None

    @property
    def rows(self) -> IntArray:
        """Utterances that came and have an intent."""
        return np.flatnonzero(self.grown.fits)

    def write_model(self, model: IntentModel) -> IntentModel:
        """Write prototypes, scope, intents and assignments; return the model that they make."""
        vectors = self.grown.vectors[self.rows]
        labels = self.grown.labels[self.rows]
        prototypes = self.grown.prototypes
        table = self._assignments(model, vectors, labels)
        everything = table["index"].to_numpy()
        prior = np.bincount(everything, minlength=len(prototypes)) / max(1, len(everything))
        found = Discovery(
            labels=everything,
            confidence=table["confidence"].to_numpy(),
            embeddings=np.empty((len(everything), 0), np.float32),
            prototypes=prototypes,
            prior=prior,
            temperature=model.temperature,
            known=(),
            rule=model.rule,
        )
        intents = self._named(model, found, vectors, labels, table["text"].to_pylist())
        names = pa.array([intents[i].name for i in everything], pa.string())
        table = table.set_column(table.column_names.index("intent"), "intent", names)
        pq.write_table(stamped(table), self.folder / "assignments.parquet")
        if self.before is not None:  # runs of older versions kept none
            write_vectors(self.folder, np.concatenate([self.before, vectors]))
        scope = opened(model.scope, vectors)
        grown = replace(model, prototypes=prototypes, prior=prior, intents=intents, scope=scope)
        grown.save_beside(self.run.path, self.folder)
        return grown

    def _assignments(self, model: IntentModel, vectors: FloatArray, labels: IntArray) -> pa.Table:
        """Return the rows of the run before, and behind them those that came."""
        before = self.run.assignments()
        if NUMBERED not in before.column_names:  # a run of an older version
            before = before.append_column(NUMBERED, pa.array(numbered(before), pa.bool_()))
        answer = predict(vectors, self.grown.prototypes, model.temperature, model.rule)
        x, y = self._places(model, before, vectors).T
        columns: dict[str, Any] = {
            "id": [self.came.ids[i] for i in self.rows],
            "text": [self.came.texts[i] for i in self.rows],
            "given": [self.came.given[i] for i in self.rows],
            "intent": [""] * len(labels),
            "index": labels,
            "confidence": answer.probabilities[np.arange(len(labels)), labels],
            "x": x,
            "y": y,
            "truth": [None] * len(labels),
            NUMBERED: [self.came.numbered[i] for i in self.rows],
        }
        none = [None] * len(labels)  # what is of the rows before only
        arrays = [pa.array(columns.get(f.name, none), f.type) for f in before.schema]
        return pa.concat_tables([before, pa.Table.from_arrays(arrays, schema=before.schema)])

    def _places(self, model: IntentModel, before: pa.Table, vectors: FloatArray) -> FloatArray:
        """Return (n, 2) places on the map, near the utterances that are most alike."""
        assert model.scope is not None
        flat = np.stack([before["x"].to_numpy(), before["y"].to_numpy()], 1).astype(np.float32)
        anchors = model.scope.vectors.astype(np.float32)
        if len(anchors) != len(flat):  # only a sample was kept: near their intents, then
            labels = before["index"].to_numpy()
            used = np.unique(labels)
            anchors = self.grown.prototypes[used]
            flat = np.stack([flat[labels == i].mean(0) for i in used])
        return place(vectors, anchors, flat)

    def _named(
        self,
        model: IntentModel,
        found: Discovery,
        vectors: FloatArray,
        labels: IntArray,
        texts: list[str],
    ) -> tuple[Intent, ...]:
        """Describe all intents as they are now; those that had a name keep it."""
        own = [self.came.texts[i] for i in self.rows]
        shown = [
            model.intents[k].exemplars
            if k < len(model.intents) and model.intents[k].exemplars
            else exemplars(own, np.flatnonzero(labels == k), vectors, prototype)
            for k, prototype in enumerate(found.prototypes)
        ]
        known = {i.index: i.name for i in model.intents if i.known}
        kept = {i.index: i for i in model.intents if not i.known}
        return name_beside(texts, found, known, kept, shown)

    def write_rest(self, report: DataReport, done: Update) -> None:
        """Write what is collected, the facts, the card and the report."""
        waiting = np.flatnonzero(~self.grown.fits)
        came = self.came
        if len(waiting):
            collected = Corpus(
                texts=[came.texts[i] for i in waiting],
                labels=[None] * len(waiting),
                report=DataReport(0, 0),
                ids=[came.ids[i] for i in waiting],
                embeddings=None if came.frozen is None else came.frozen[waiting],
            )
            write_corpus(self.folder / COLLECTED, collected, [came.numbered[i] for i in waiting])
        history = self.run.path / "history.jsonl"
        if history.exists():
            copyfile(history, self.folder / history.name)
        metrics = {"format_version": FORMAT_VERSION, "scores": None}
        write_json(self.folder / "metrics.json", metrics | {"seconds": {"total": done.seconds}})
        facts = self.run.facts()
        new = RunFolder(self.folder)
        facts["data_report"] = _added(facts["data_report"], asdict(report))
        new.write_facts({**facts, "updates": [*facts.get("updates", ()), asdict(done)]})
        write_card(new)
        report_of_run(new)


def _added(before: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return what reading found, in both files together."""
    counts = ("rows_read", "rows_kept", "empties_dropped", "duplicates", "over_long")
    labels = Counter(before["label_counts"]) + Counter(more["label_counts"])
    return (
        before
        | {name: before[name] + more[name] for name in counts}
        | {"label_counts": dict(labels.most_common())}
    )


def opened(scope: Scope | None, vectors: FloatArray) -> Scope:
    """Return a scope with more utterances that belong; where there are too many, a sample of all.

    The more there are, the nearer they lie: what is usual is measured anew.

    Args:
        scope: Of the model before.
        vectors: (n, d) features of utterances that belong.
    """
    assert scope is not None
    if not len(vectors):
        return scope
    before = scope.vectors.astype(np.float32) * scope.scale
    # The same scale: what was rounded to half precision once stays as it is.
    grown = scope_of(np.concatenate([before, vectors]), scale=scope.scale)
    return replace(grown, threshold=scope.threshold)
