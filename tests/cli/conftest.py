import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers import forkserver_cli

Done = subprocess.CompletedProcess[str]
Command = Callable[..., Done]


@pytest.fixture
def ronid(tmp_path: Path) -> Command:
    """Run the command in the test's folder, without network."""

    def run(*arguments: str | Path, stdin: bytes = b"", **env: str) -> Done:
        whole = {**os.environ, **forkserver_cli.FIXED, **env}
        return forkserver_cli.command(
            arguments, env=whole, cwd=tmp_path, stdin=stdin, timeout_s=120
        )

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
