import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]


@pytest.fixture
def ronid(tmp_path: Path) -> Command:
    """Run the command in the test's folder, without network."""

    def run(*arguments: str | Path, stdin: bytes = b"", **env: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-c", "from ronid.cli import main; main()", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **env},
            check=False,
            timeout=120,
        )
        return Done(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """A good file: six utterances, two known intents."""
    path = tmp_path / "calls.csv"
    path.write_text(
        "id,utterance,intent\n"
        "1,where is my card,card\n2,card lost,card\n3,pay me back,refund\n"
        "4,refund please,refund\n5,what is the weather,\n6,is it raining,\n"
    )
    return path
