"""Data that keeps coming: bring new utterances into a finished run.

    run + new utterances -> neighbours that are new? -> new intents -> (adapter learns them)
                         -> what fits joins its intent, the rest is collected -> new version

Old intents keep index, name and prototype, bit for bit. All but the adapter of a frozen encoder
stands still, which is what makes an update cheap. The run before stays as it is, see
`ronid.versions`.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from ronid.corpus_file import numbered, read_corpus
from ronid.data.corpus import differing_in_case
from ronid.encode.language import warn_of_language
from ronid.errors import RonidWarning, UsageError
from ronid.files import read_json
from ronid.head import closeness
from ronid.model import IntentModel, load_model
from ronid.progress import Progress, Silent
from ronid.run import COLLECTED, RunFolder, open_finished
from ronid.types import Corpus, DataReport, FloatArray, IntArray, Intent, Rule
from ronid.update.adapt import adapt, can_adapt
from ronid.update.drift import Drift, Members, find_drift
from ronid.update.grow import Beside, Grown, grow, least_size, prototype_of
from ronid.update.record import NewIntent, Update
from ronid.update.source import Source
from ronid.update.version import Arrivals, Version, opened
from ronid.versions import current_number, forget_caches, next_version

BLOCK = 8192
"""Utterances that are compared with all intents at a time."""


def update_run(  # noqa: PLR0913 - what comes, where to, and how
    path: Path,
    corpus: Corpus,
    *,
    source: str = "new utterances",
    threshold: float | None = None,
    least: int | None = None,
    device: str = "auto",
    encoder: str | None = None,
    progress: Progress | None = None,
    said: Callable[[str], None] = lambda _: None,
) -> Update:
    """Bring new utterances into a finished run; the outcome is its next version.

    Args:
        path: Folder of the run.
        corpus: Utterances; labels in it are kept, those of a new name make known intents.
        source: Where they came from.
        threshold: Least belonging that fits, 0 (all) to 1; None for the model's own.
        least: Fewest utterances of a new intent; None for a third of what old ones have.
        device: Where the encoder runs.
        encoder: Folder of the base encoder, if it has moved.
        progress: Told what is going on.
        said: Receives one line per step that has no progress of its own.

    Raises:
        DataError: The run is not finished.
        UsageError: The run cannot be updated, or a number is impossible.
    """
    started = time.perf_counter()
    _check(open_finished(path), path, threshold, least)
    with next_version(path) as folder:
        run = open_finished(path)  # now that nobody else can make a version
        model = load_model(path, device, encoder)
        warn_of_language(corpus.texts, model.encoder.backbone)
        assert model.scope is not None  # as was checked
        enough = model.scope.threshold if threshold is None else threshold
        table = run.assignments()
        vectors = Source(path, run, table, model, progress or Silent())
        waiting = _collected(run)
        warn_of_doubles(corpus, table, waiting)
        warn_of_size(len(corpus), len(table))
        came = _after_collected(len(table), waiting, corpus)
        seen = vectors.seen(came)
        given, model = _with_given(model, came, seen.came.vectors)
        old = Beside(
            model.prototypes,
            model.rule,
            opened(model.scope, seen.came.vectors[given >= 0]),
            enough,
            least or least_size(np.array([intent.size for intent in run.intents()])),
            seen.old,
            seen.labels,
        )
        learn, frozen = None, seen.frozen
        if frozen is None and can_adapt(model):
            said("too many utterances to embed them anew: the adapter learns nothing new")
        said("looking for new intents")
        came = replace(came, frozen=None if frozen is None else frozen.came.cpu().numpy())
        if frozen is not None:
            learn = partial(adapt, model, frozen, progress=progress or Silent())
        fixed = np.where(given >= 0, given, repeated(table, came.texts))
        grown = grow(seen.came, fixed, old, seed=model.seed, learn=learn)
        before = vectors.features
        if grown.before is not None:  # the encoder has learnt
            before, model = grown.before, replace(model, scope=grown.scope)
        drift = _drift(run, model, came, grown, len(corpus))
        elsewhere = seen_elsewhere(before, vectors.labels, grown.prototypes, model.rule)
        said("naming and writing")
        version = Version(run, folder, came, grown, before)
        model = version.write_model(model)
        done = _summary((len(table), len(run.intents())), model, corpus, grown, drift)
        done = replace(done, version=current_number(path) + 1, source=source, elsewhere=elsewhere)
        done = replace(done, seconds=round(time.perf_counter() - started, 3))
        version.write_rest(corpus.report, done)
        if frozen is not None:
            kept = version.rows
            vectors.keep([came.texts[i] for i in kept], frozen.came[torch.from_numpy(kept)])
    # The version before may be gone back to; older ones are embedded anew where they are.
    forget_caches(path, len(table), done.utterances)
    return done


def _check(run: RunFolder, path: Path, threshold: float | None, least: int | None) -> None:
    """Refuse what cannot be done before anything is loaded."""
    about = read_json(run.path / "model.json")
    if about.get("given_dim") is not None:
        raise UsageError(
            f"run '{path}' was made from embeddings; only runs of texts can be updated"
        )
    if not about.get("scope"):
        raise UsageError(
            f"run '{path}' cannot tell what fits its intents; fit it again with this version, on "
            "two utterances or more"
        )
    if threshold is not None and not 0 <= threshold <= 1:
        raise UsageError(f"the threshold is {threshold}; give a number from 0 (all fit) to 1")
    if least is not None and least < 2:  # noqa: PLR2004 - one utterance is no cluster
        raise UsageError(f"the least size of a new intent is {least}; give 2 or more")


def warn_of_doubles(corpus: Corpus, table: pa.Table, waiting: Arrivals) -> None:
    """Say it where any id, or every text, is there already: a file may come twice."""
    # A number that ronid gave is of no file: the same one in a file is another utterance.
    pairs = chain(
        zip(table["id"].to_pylist(), numbered(table), strict=True),
        zip(waiting.ids, waiting.numbered, strict=True),
    )
    ids = {id for id, made_up in pairs if id and not made_up}
    texts = {*table["text"].to_pylist(), *waiting.texts}
    some = _tell_doubles("id", corpus.ids or [], ids, least=1)
    if not some:
        _tell_doubles("text", corpus.texts, texts, least=max(1, len(corpus)))


def warn_of_size(came: int, old: int) -> None:
    """Say it where more came than is there: what is new is seen beside what is old."""
    if came > old:
        warnings.warn(
            f"{came:,} utterances came and the run has {old:,}; where most is new, `ronid fit` of "
            "all of them finds intents better than an update",
            RonidWarning,
            stacklevel=2,
        )


def _tell_doubles(what: str, own: list[str], there: set[str], *, least: int) -> bool:
    """Warn where at least so many are there already; return whether they are."""
    doubles = sum(value in there for value in own)
    if doubles < least:
        return False
    warnings.warn(
        f"{doubles:,} of {len(own):,} {what}s are in the run already; if this file was "
        "brought in before, `ronid undo` takes it out again",
        RonidWarning,
        stacklevel=3,
    )
    return True


def _collected(run: RunFolder) -> Arrivals:
    """Return what earlier updates collected."""
    if not (run.path / COLLECTED).exists():
        return Arrivals([], [], [], [])
    made_up = numbered(pq.read_table(run.path / COLLECTED))
    kept = read_corpus(run.path / COLLECTED, DataReport(0, 0))
    assert kept.ids is not None
    return Arrivals(kept.texts, kept.labels, kept.ids, made_up, kept.embeddings)


def _after_collected(old: int, waiting: Arrivals, corpus: Corpus) -> Arrivals:
    """Put what earlier updates collected before the new utterances; ids go on counting."""
    before = old + len(waiting.texts)
    ids = corpus.ids or [str(before + i + 1) for i in range(len(corpus))]
    return Arrivals(
        waiting.texts + corpus.texts,
        waiting.given + corpus.labels,
        waiting.ids + ids,
        waiting.numbered + [corpus.ids is None] * len(corpus),
        waiting.frozen,
    )


def _with_given(
    model: IntentModel, came: Arrivals, vectors: FloatArray
) -> tuple[IntArray, IntentModel]:
    """Return the (n,) intents that labels give, and the model with an intent per new name."""
    index = {intent.name: intent.index for intent in model.intents}
    labelled = {name for name in came.given if name is not None}
    fresh = sorted(labelled - set(index))
    _warn_of_likeness(fresh, list(index))
    index |= {name: len(index) + i for i, name in enumerate(fresh)}
    given = np.array([-1 if name is None else index[name] for name in came.given], np.int64)
    means = [prototype_of(vectors[given == index[name]], model.rule) for name in fresh]
    made = [Intent(index[n], n, True, 0, 0.0, 0.0, 0.0, named_by="user") for n in fresh]
    intents = tuple(
        replace(intent, named_by="user") if intent.name in labelled else intent
        for intent in (*model.intents, *made)
    )
    prototypes = np.concatenate([model.prototypes, *(mean[None] for mean in means)])
    return given, replace(model, intents=intents, prototypes=prototypes.astype(np.float32))


def repeated(table: pa.Table, texts: list[str]) -> IntArray:
    """Return the (n,) intents of texts that are in the run already, -1 where they are not.

    Often the same text comes many times, such as by a button; that makes no intent beside its own.

    Args:
        table: Utterances of the run. One that stands there several times may have several intents,
            as people may have moved it: the last counts.
        texts: What came.
    """
    index = dict(zip(table["text"].to_pylist(), table["index"].to_pylist(), strict=True))
    return np.array([index.get(text, -1) for text in texts], np.int64)


def _warn_of_likeness(fresh: list[str], there: list[str]) -> None:
    """Say it where a label differs from another name by upper and lower case only."""
    for first, *others in differing_in_case([*there, *fresh]):
        for name in others:
            if name in fresh:
                warnings.warn(
                    f"label '{name}' makes an intent of its own beside '{first}'; if they are one, "
                    "undo this update and write them alike",
                    RonidWarning,
                    stacklevel=2,
                )


def seen_elsewhere(
    vectors: FloatArray | None, labels: IntArray, prototypes: FloatArray, rule: Rule
) -> int | None:
    """Return how many utterances are nearest to another intent than theirs.

    Args:
        vectors: (n, d) features, or None where they are not known.
        labels: (n,) their intents.
        prototypes: (k, d) of all intents.
        rule: What closeness is.
    """
    if vectors is None:
        return None
    blocks = range(0, len(vectors), BLOCK)  # no n x k matrix is held
    nearest = [closeness(vectors[i : i + BLOCK], prototypes, rule).argmax(1) for i in blocks]
    return int((np.concatenate([*nearest, labels[:0]]) != labels).sum())


def _drift(
    run: RunFolder, model: IntentModel, came: Arrivals, grown: Grown, own: int
) -> tuple[Drift, ...]:
    """Compare what came to the old intents with what they had.

    Only the last `own` utterances came now. Those collected earlier were set aside for being
    unusual: where they fit now, they say nothing of how their intent is used now.
    """
    names = [intent.name for intent in run.intents()]
    assert model.scope is not None
    vectors = model.scope.vectors.astype(np.float32) * model.scope.scale
    nearest = closeness(vectors, model.prototypes[: len(names)], model.rule).argmax(1)
    now_came = np.arange(len(grown.labels)) >= len(grown.labels) - own
    rows = np.flatnonzero(grown.fits & (grown.labels < len(names)) & now_came)
    now = Members(grown.vectors[rows], grown.labels[rows])
    return find_drift(Members(vectors, nearest), now, [came.texts[row] for row in rows], names)


def _summary(
    counts: tuple[int, int],
    model: IntentModel,
    corpus: Corpus,
    grown: Grown,
    drift: tuple[Drift, ...],
) -> Update:
    """Count what became of the utterances beside `counts` old ones and their intents."""
    (old, before), earlier = counts, len(grown.labels) - len(corpus)
    new = model.intents[before:]
    return Update(
        version=0,
        when=datetime.now(UTC).isoformat(timespec="milliseconds"),
        source="",
        rows=len(corpus),
        labelled=sum(label is not None for label in corpus.labels),
        fitted=int((grown.fits & (grown.labels < before))[earlier:].sum()),
        waited=int(grown.fits[:earlier].sum()),
        collected=int((~grown.fits).sum()),
        aside=int((~grown.fits)[earlier:].sum()),
        new=tuple(NewIntent(i.index, i.name, i.size, i.known) for i in new),
        drift=drift,
        old=old,
        elsewhere=None,
        utterances=old + int(grown.fits.sum()),
        intents=len(model.intents),
        seconds=0.0,
    )
