"""Several files of a folder, replaced together: a kill leaves all old ones or all new ones.

    FOLDER/renaming/          new files while they are written; the next call removes what is left
    FOLDER/renaming.ready/    the new files, whole: once this name is there, they count

Each file is then moved to its place. A kill in between leaves the rest where it is, and whoever
opens the folder next moves it, see `finish`.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ronid.errors import DataError

STAGED = "renaming"
READY = "renaming.ready"


@contextmanager
def replaced_together(folder: Path) -> Iterator[Path]:
    """Hand out an empty folder; when the block ends well, its files replace those of `folder`.

    Args:
        folder: Where the files belong. Nothing of it changes before the block has ended; one
            process at a time may do this, see `versions.locked`.
    """
    finish(folder)
    staged = folder / STAGED
    shutil.rmtree(staged, ignore_errors=True)  # left by a call that was killed
    try:
        staged.mkdir()
        yield staged
        staged.replace(folder / READY)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    finish(folder)


def finish(folder: Path) -> None:
    """Move new files to their places, where a call was killed before it had moved them all.

    Several processes may do this at once: what is ready is whole, whoever moves it.

    Args:
        folder: Any folder; one without such files stays as it is.

    Raises:
        DataError: The folder cannot be written to.
    """
    ready = folder / READY
    if not ready.is_dir():
        return
    try:
        for file in sorted(ready.iterdir()):
            with suppress(FileNotFoundError):  # another process was faster
                file.replace(folder / file.name)
    except FileNotFoundError:  # and has removed the folder, too
        return
    except OSError as error:
        raise DataError(
            f"the names in '{folder}' are changed by half and the rest cannot be moved out of "
            f"'{ready}' ({error.strerror}); make the folder writable and try again"
        ) from None
    with suppress(OSError):
        ready.rmdir()
