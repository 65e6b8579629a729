"""Commands in processes of their own that need not import torch anew, which takes seconds of each.

A process that has imported what commands import waits, and is forked for each (the fork server of
`multiprocessing`): the copy runs the command to its end as a new process would, with its own
arguments, folder, environment and streams. A command is started from nothing where its environment
tells Python itself something.
"""

import atexit
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

IMPORTED = (
    "ronid.cli.app",
    "ronid.pipeline",
    "ronid.learn",
    "ronid.update.flow",
    "sklearn.manifold",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bert.modeling_bert",
    "transformers.models.bert.tokenization_bert",
)
"""What commands import, with what takes longest."""
FIXED = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
"""What is read on import, so that it is the same for all."""

Done = subprocess.CompletedProcess[str]

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(list(IMPORTED))


def command(
    arguments: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: bytes = b"",
    timeout_s: float = 300,
) -> Done:
    """Run `ronid` with arguments to its end.

    Args:
        arguments: What follows `ronid`.
        env: Its whole environment.
        cwd: Its folder.
        stdin: What it may read.
        timeout_s: When to give up.

    Raises:
        subprocess.TimeoutExpired: It did not end in time, and was killed.
    """
    words = ["ronid", *map(str, arguments)]
    changed = {key for key in FIXED if env.get(key, FIXED[key]) != FIXED[key]}
    if changed or any(key.startswith("PYTHON") and os.environ.get(key) != env[key] for key in env):
        cold = [sys.executable, "-m", *words]
        done = subprocess.run(
            cold, input=stdin, capture_output=True, cwd=cwd, env=env, check=False, timeout=timeout_s
        )
        return Done(words, done.returncode, done.stdout.decode(), done.stderr.decode())
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        streams[0].write_bytes(stdin)
        place = Path.cwd() if cwd is None else cwd
        process = _CONTEXT.Process(target=_run, args=(words, dict(env), place, streams))
        before = dict(os.environ)
        os.environ.update(FIXED)  # for the waiting process, if this is the first command
        try:
            process.start()
        finally:
            os.environ.clear()
            os.environ.update(before)
        process.join(timeout_s)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(words, timeout_s)
        return Done(words, process.exitcode, *(path.read_text("utf-8") for path in streams[1:]))


def _run(words: list[str], env: dict[str, str], cwd: Path, streams: list[Path]) -> None:
    """Be the command; ends the process."""
    for number, path in enumerate(streams):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.dup2(os.open(path, flags), number)
    sys.stdin = os.fdopen(0, closefd=False)  # multiprocessing had closed it
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = words
    from ronid.cli import main

    code: object = 0
    try:
        main()
    except SystemExit as end:
        code = end.code
    # As Python ends, but for taking modules apart, which takes as long as imports.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))
