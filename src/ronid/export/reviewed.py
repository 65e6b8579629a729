"""What can leave a run that people reviewed: their decisions stand over what was found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ronid.errors import DataError
from ronid.export.catalogue import (
    Catalogue,
    about_run,
    build_catalogue,
    catalogue_of_run,
    check_spoken,
    completed,
)
from ronid.review.desk import FILE, Desk, open_desk
from ronid.review.events import Learn
from ronid.review.outcome import Label, Outcome, outcome
from ronid.run import open_finished

_BY = {"given": "given", "person": "person", "discovered": "model"}


def catalogue_of(
    path: Path, where: str | None = None, said: Callable[[str], None] = lambda _: None
) -> Catalogue:
    """Read what can leave a run: as people decided where it was reviewed, else as it was found.

    Args:
        path: Folder of the run.
        where: Path or postgresql:// URL of the decisions; `review.sqlite` in the folder when None.
        said: Told in one line where decisions do not fit the run any more.

    Raises:
        DataError: There is no finished run, or it was made of embeddings without texts.
        UsageError: The decisions cannot be opened.
    """
    open_finished(path)
    if where is None and not (path / FILE).exists():
        return catalogue_of_run(path)
    desk = open_desk(path, where, said)
    try:
        return catalogue_of_review(path, desk)
    finally:
        desk.close()


def catalogue_of_review(path: Path, desk: Desk) -> Catalogue:
    """Return what can leave a review as it stands.

    Args:
        path: Folder of the run.
        desk: Its review.

    Raises:
        DataError: The run has no texts, or was changed since the review was opened.
    """
    base = desk.base
    check_spoken(path, base.texts)
    run = open_finished(path)
    table = run.assignments().to_pydict()
    if table["text"] != base.texts:
        raise DataError(f"run '{path}' has another version since; export again")
    found = outcome(desk)
    trained = frozenset(
        entry.seq for entry in desk.entries() if isinstance(entry.event.action, Learn)
    )
    rows = _rows(found, trained, base.confidence.tolist())
    rows |= {"text": base.texts, "id": base.ids}
    intents = [
        {
            "id": intent.id,
            "name": intent.name,
            "known": intent.known,
            "status": intent.status,
            "description": intent.description,
        }
        for intent in found.intents
    ]
    about = about_run(path, run) | {"review_version": found.version}
    return build_catalogue(intents, completed(run, table, rows), about)


def _rows(found: Outcome, trained: frozenset[int], confidence: list[float]) -> dict[str, list[Any]]:
    """Return where every utterance belongs and who says so.

    Whoever merged or split an intent decided where its utterances are, though not of each of them:
    the label is still the model's, and the person is named.
    """

    def decided(label: Label, value: str) -> str:
        return "" if label.source == "given" or label.event in trained else value

    labels = found.labels
    return {
        "intent": [label.intent for label in labels],
        "by": [_BY[label.source] for label in labels],
        "who": [decided(label, label.who) for label in labels],
        "when": [decided(label, label.at) for label in labels],
        "confidence": [
            confidence[label.row] if label.source == "discovered" else None for label in labels
        ],
    }
