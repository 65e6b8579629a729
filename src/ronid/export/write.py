"""Writes an export: a folder of its own, whole or not at all."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from ronid.errors import UsageError
from ronid.export.audit import AUDIT, NAMES, write_audit
from ronid.export.batch import Batch, Choice, Options, make_batch
from ronid.export.catalogue import Catalogue
from ronid.export.formats import FORMATS, load_format
from ronid.run import place_for

ACCEPTED = Choice()
USUAL = Options()
_LANGUAGE = re.compile("[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_MARK = "ronid-export"
"""File that says who made a hidden folder beside an export, and that it is in use."""


@dataclass(frozen=True)
class Exported:
    """What an export did.

    Args:
        folder: Where it is.
        batch: What was written.
        summary: The same in plain values, as the audit has it.
    """

    folder: Path
    batch: Batch
    summary: dict[str, Any]

    @property
    def files(self) -> list[Path]:
        """The files of the target, without audit and names."""
        return [self.folder / name for name in self.summary["sha256"]]


def export_catalogue(
    catalogue: Catalogue,
    to: str,
    out: Path,
    choice: Choice = ACCEPTED,
    options: Options = USUAL,
    force: bool = False,
) -> Exported:
    """Write intents and utterances in the format of another system.

    Args:
        catalogue: All that could be written.
        to: One of `FORMATS`.
        out: Folder to make. An older export there is replaced if `force` says so.
        choice: Which intents are written.
        options: What some targets want to know.
        force: Whether an older export may be replaced; nothing else ever is.

    Raises:
        UsageError: Nothing can be written, or not there.
    """
    module = load_format(to)
    _check_options(options)
    with place_for(out):
        _tidy(out)
        _check_place(out, force)
    batch = batch_for(catalogue, to, choice, options)
    asked = {"to": to, "choice": asdict(choice), "options": asdict(options)}
    with _whole(out) as staged:
        module.write(batch, staged, options)
        summary = write_audit(staged, batch, catalogue, asked)
    return Exported(out, batch, summary)


def batch_for(catalogue: Catalogue, to: str, choice: Choice, options: Options) -> Batch:
    """Return what an export would write, without writing it.

    Args:
        catalogue: All that could be written.
        to: One of `FORMATS`.
        choice: Which intents are written.
        options: What some targets want to know.

    Raises:
        UsageError: There is no such target, or nothing can be written.
    """
    module = load_format(to)
    _check_options(options)
    return make_batch(catalogue, module.target(options), choice)


def _check_options(options: Options) -> None:
    if not _LANGUAGE.fullmatch(options.language):
        raise UsageError(f"--language '{options.language}' is none; give one such as en or pt-BR")
    if not options.name.strip() or not options.name.isprintable():
        raise UsageError("--name must be a name on one line, such as help-desk")


def _check_place(out: Path, force: bool) -> None:
    """Refuse a place where something would be lost."""
    if not out.absolute().parent.is_dir():
        raise UsageError(f"folder '{out.parent}' for --out does not exist; make it first")
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise UsageError(f"--out '{out}' is not a folder; give another name")
    if not out.exists() or not any(out.iterdir()):
        return
    if not is_export(out):
        raise UsageError(f"--out '{out}' holds other files; give another name, or remove it first")
    if not force:
        raise UsageError(f"--out '{out}' holds an export already; --force replaces it")


def is_export(folder: Path) -> bool:
    """Whether a folder holds an export and nothing that was put there later."""
    if not (folder / AUDIT).is_file():
        return False
    ours = {AUDIT, NAMES} | {name for each in FORMATS.values() for name in each.files}
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return found <= ours


@contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """Hand out an empty folder beside `out`; when the block ends well, it takes its place."""
    parent = out.absolute().parent
    with place_for(out):
        staged = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=parent))
    new, old = staged / "new", staged / "old"
    try:
        with (staged / _MARK).open("w") as mark:
            _held(mark)
            new.mkdir()
            yield new
            if out.exists():
                out.rename(old)
            try:
                new.rename(out)
            except OSError:
                if old.exists():
                    old.rename(out)
                raise
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _tidy(out: Path) -> None:
    """Remove what exports to the same place left behind when they were killed.

    A folder is ours if it is named as we name them and holds our mark, which nobody holds any
    more, and nothing besides. If it was killed while two exports changed places, the older one is
    put back.
    """
    parent, ours = out.absolute().parent, re.compile(rf"\.{re.escape(out.name)}-[a-z0-9_]{{8}}")
    if not parent.is_dir():
        return
    for staged in [path for path in parent.iterdir() if ours.fullmatch(path.name)]:
        if staged.is_symlink() or not (staged / _MARK).is_file():
            continue
        if not {path.name for path in staged.iterdir()} <= {_MARK, "new", "old"}:
            continue
        with (staged / _MARK).open("r+") as mark:
            if not _held(mark):
                continue
            if (staged / "old").is_dir() and not out.exists():
                (staged / "old").rename(out)
            shutil.rmtree(staged, ignore_errors=True)


def _held(file: IO[str]) -> bool:
    """Lock a file until it is closed; return whether that was possible. A kill frees it."""
    try:
        import fcntl
    except ImportError:  # no such locks here: nothing can be told of others
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
