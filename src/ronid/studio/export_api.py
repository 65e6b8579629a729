"""The Export page over HTTP: what a target would get, and the files of it as one archive."""

import re
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from fastapi.responses import FileResponse, JSONResponse
from starlette.background import BackgroundTask

from ronid.errors import RonidError, UsageError
from ronid.export.archive import zip_folder
from ronid.export.audit import AUDIT, NAMES
from ronid.export.batch import SYSTEM, Batch, Choice, Options
from ronid.export.catalogue import Catalogue
from ronid.export.formats import FORMATS
from ronid.export.limits import reasons
from ronid.export.reviewed import catalogue_of_review
from ronid.export.write import batch_for, export_catalogue
from ronid.studio.hall import Hall
from ronid.studio.room import Room

MOST_SHOWN = 200
"""Names and changed utterances that are sent at most."""

Values = dict[str, Any]
Asked = tuple[Choice, Options]


def asked(
    open: bool = False,
    rejected: bool = False,
    out_of_scope: bool = False,
    language: Annotated[str, Query(max_length=40)] = "en",
    name: Annotated[str, Query(max_length=80)] = "ronid",
    system: Annotated[str, Query(max_length=4000)] = SYSTEM,
) -> Asked:
    """Return which intents are wanted, and what the target is told."""
    return Choice(open, rejected, out_of_scope), Options(language.strip(), name.strip(), system)


def make_export_api(hall: Hall) -> APIRouter:
    """Return the routes of the Export page.

    Args:
        hall: Leads to the review.
    """
    api = APIRouter(prefix="/api/export")
    catalogues = Catalogues(hall)
    Wish = Annotated[Asked, Depends(asked)]

    @api.get("")
    def targets() -> JSONResponse:
        rows = [
            {"to": to, "title": each.title, "files": [*each.files, NAMES, AUDIT]}
            for to, each in FORMATS.items()
        ]
        return JSONResponse({"targets": rows, "system": SYSTEM})

    @api.get("/{to}")
    def preview(to: str, wish: Wish) -> JSONResponse:
        version, catalogue = catalogues.now()
        try:
            batch = batch_for(catalogue, to, *wish)
        except UsageError as problem:
            raise UsageError(for_page(str(problem))) from None
        return JSONResponse({"version": version, "to": to, **preview_of(batch)})

    @api.get("/{to}/file")
    def file(to: str, wish: Wish) -> FileResponse:
        _, catalogue = catalogues.now()
        folder = Path(tempfile.mkdtemp(prefix="ronid-export-"))
        packed = folder / "packed.zip"
        try:
            export_catalogue(catalogue, to, folder / f"export-{_safe(to)}", *wish)
            zip_folder(packed, folder / f"export-{_safe(to)}")
        except BaseException as problem:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(problem, RonidError):
                raise UsageError(for_page(str(problem))) from None
            raise
        return FileResponse(
            packed,
            media_type="application/zip",
            filename=f"export-{_safe(to)}.zip",
            headers={"cache-control": "no-store"},
            background=BackgroundTask(shutil.rmtree, folder, ignore_errors=True),
        )

    return api


def _safe(to: str) -> str:
    """Return the name of a target as part of a file name; unknown ones are refused elsewhere."""
    return to if to in FORMATS else "unknown"


class Catalogues:
    """What can leave, worked out once per version of the review.

    Args:
        hall: Leads to the review.
    """

    def __init__(self, hall: Hall) -> None:
        self._hall = hall
        self._lock = threading.Lock()
        self._of: tuple[Room, int, Catalogue] | None = None

    def now(self) -> tuple[int, Catalogue]:
        """Return the version of the review, and what can leave it."""
        with self._lock:
            room = self._hall.room
            version = room.desk.version
            if self._of is None or self._of[0] is not room or self._of[1] != version:
                self._of = (room, version, catalogue_of_review(self._hall.run, room.desk))
            return self._of[1], self._of[2]


def preview_of(batch: Batch) -> Values:
    """Return what would be written, changed and left out."""
    renamed, changed = batch.renamed, batch.changed
    return {
        "intents": len(batch.intents),
        "utterances": len(batch.lines),
        "notes": [for_page(note) for note in batch.notes],
        "left_out": [
            {"why": why, "count": count} for why, count in reasons(batch.left_out).items()
        ],
        "empty": [intent.name for intent in batch.empty],
        "renamed": [{"name": name, "as": legal} for name, legal in renamed.items()][:MOST_SHOWN],
        "renamed_in_all": len(renamed),
        "changed": [
            {"text": line.row.text, "as": line.text, "intent": batch.names[line.intent]}
            for line in changed[:MOST_SHOWN]
        ],
        "changed_in_all": len(changed),
    }


def for_page(text: str) -> str:
    """Return a line of the command in words of the page, which has no options."""
    text = text.replace("; --all exports open intents too", "")
    text = text.replace("accept some in `ronid review`, or", "accept some, or")
    text = text.replace(" too with --all", " too")
    return re.sub(r"--([a-z-]+)", r"the \1", text)
