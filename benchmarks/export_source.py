"""Export the source of an earlier commit, to compare its answers with those of today.

python benchmarks/export_source.py
"""

import io
import subprocess
import tarfile
from pathlib import Path

COMMIT = "8ba84b5"
"""The commit before the answer changed. Results called "before" are those of its code."""

VERSION = "before"
"""Version of these results in stored rows."""

ROOT = Path(__file__).resolve().parent.parent


def export_source(commit: str = COMMIT, folder: Path | None = None) -> Path:
    """Return a folder that holds `src` as it was at a commit.

    Args:
        commit: The commit.
        folder: Where to put it; `carry/<commit>`, which git ignores, if None.

    Returns:
        The folder. An earlier export in it is used again.
    """
    target = folder or ROOT / "carry" / commit
    if not (target / "src" / "ronid" / "__init__.py").exists():
        command = ["git", "-C", str(ROOT), "archive", commit, "src"]
        archive = subprocess.run(command, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(target, filter="data")
    return target


if __name__ == "__main__":
    print(export_source())
