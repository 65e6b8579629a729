"""Versions of a run: every update writes a whole run folder beside the old ones.

    RUN/                what `ronid fit` wrote: version 0, never touched again
    RUN/versions/1/     a run folder of its own, complete; big files that did not change are links
    RUN/versions/current    the number of the version that counts

One small file decides, and it is replaced as a whole: a kill leaves the old version or the new one.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from ronid.errors import DataError, UsageError
from ronid.files import whole
from ronid.together import finish

FOLDER = "versions"
POINTER = "current"


def current_number(run: Path) -> int:
    """Return the version of a run that counts, 0 where it was never updated.

    Raises:
        DataError: The pointer is damaged, or what it points to is gone.
    """
    pointer = run / FOLDER / POINTER
    try:
        number = int(pointer.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return 0
    except ValueError:
        raise DataError(f"'{pointer}' is damaged: it must hold the number of a version") from None
    if number and not (version_folder(run, number) / "run.json").is_file():
        raise DataError(f"version {number} of run '{run}' is gone; copy the whole folder anew")
    return number


def version_folder(run: Path, number: int) -> Path:
    """Return where a version of a run lies; version 0 is the run's own folder."""
    return run / FOLDER / str(number) if number else run


def current_folder(run: Path) -> Path:
    """Return the folder of the version that counts; any other folder is returned as it is.

    Raises:
        DataError: The version is damaged.
    """
    folder = version_folder(run, current_number(run))
    finish(folder)  # what a killed `ronid name` left to be done
    return folder


@contextmanager
def locked(run: Path) -> Iterator[None]:
    """Keep other processes from changing the run; a kill frees it.

    Args:
        run: Folder of the run, not of a version.

    Raises:
        UsageError: Another process is changing it.
    """
    (run / FOLDER).mkdir(exist_ok=True)
    try:
        import fcntl
    except ImportError:  # no such locks here; the pointer is still replaced as a whole
        yield
        return
    with (run / FOLDER / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"run '{run}' is being updated by another process; wait for it"
            ) from None
        yield


@contextmanager
def next_version(run: Path) -> Iterator[Path]:
    """Hand out an empty folder; when the block ends well, what is in it is the current version.

    Args:
        run: Folder of the run. Nothing of it changes before the block has ended.

    Raises:
        UsageError: Another process is updating the run.
    """
    with locked(run):
        following = current_number(run) + 1
        staged, final = run / FOLDER / "next", version_folder(run, following)
        shutil.rmtree(staged, ignore_errors=True)  # of an update that was killed
        _remove_from(run, following)
        staged.mkdir()
        try:
            yield staged
            staged.replace(final)
            _point_to(run, following)
        finally:
            shutil.rmtree(staged, ignore_errors=True)


def undo(run: Path, expected: int | None = None) -> int:
    """Go back to the version before; what it replaced is removed, what was cached of it too.

    Args:
        run: Folder of the run.
        expected: The version that is to be undone; None for whichever is the last.

    Returns:
        The number of the version that counts now.

    Raises:
        UsageError: The run was never updated or is being updated, or its last version is another.
    """
    with locked(run):  # first: before that, somebody else may undo the version that we looked at
        number = current_number(run)
        if number < 1:  # version 0 is the run itself, and must not be removed
            raise UsageError(f"run '{run}' has no update to undo: it is as `ronid fit` made it")
        if expected not in (None, number):
            raise UsageError(
                f"version {expected} of run '{run}' is not the last one: that is {number}"
            )
        _point_to(run, number - 1)
        _remove_from(run, number)
        # Nothing may be left of utterances that are taken out, not even as vectors.
        left = (version_folder(run, each) / "assignments.parquet" for each in range(number))
        forget_caches(run, *(pq.read_metadata(path).num_rows for path in left if path.exists()))
    return number - 1


def frozen_cache(run: Path, rows: int) -> Path:
    """Return where a run keeps what a frozen encoder says of its utterances.

    Args:
        run: Folder of the run; its versions share it.
        rows: Utterances of the version.
    """
    return run / "cache" / str(rows)


def forget_caches(run: Path, *rows: int) -> None:
    """Remove what a run kept of its frozen encoder, but for versions of some sizes.

    Args:
        run: Folder of the run.
        rows: Utterances of the versions that may be needed soon.
    """
    needed = {frozen_cache(run, number) for number in rows}
    for other in set(frozen_cache(run, 0).parent.glob("*")) - needed:
        shutil.rmtree(other, ignore_errors=True)


def link(source: Path, target: Path) -> None:
    """Put a file that nobody writes to into another folder without a second copy of its bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)


def _remove_from(run: Path, number: int) -> None:
    """Remove a version and all behind it, which a killed undo or update may have left."""
    for folder in (run / FOLDER).iterdir():
        if folder.name.isdecimal() and int(folder.name) >= number:
            shutil.rmtree(folder, ignore_errors=True)


def _point_to(run: Path, number: int) -> None:
    with whole(run / FOLDER / POINTER) as partial:
        partial.write_text(f"{number}\n", encoding="utf-8")
