"""Commands in their own processes, without the seconds that importing torch takes each time.

One process imports what the commands need and is forked for each command (the fork server of
`multiprocessing`). The fork runs the command as a new process would, with its own arguments,
folder, environment and streams. If the environment holds a setting of Python itself
(`PYTHON...`), the command starts in a new interpreter.
"""

import atexit
import contextlib
import multiprocessing
import os
import signal
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


class Started:
    """A command that runs in a process of its own."""

    def __init__(
        self, words: list[str], env: Mapping[str, str], cwd: Path | None, stdin: bytes
    ) -> None:
        self.words = words
        self._folder = tempfile.TemporaryDirectory()
        self._streams = [Path(self._folder.name, name) for name in ("stdin", "stdout", "stderr")]
        self._streams[0].write_bytes(stdin)
        place = Path.cwd() if cwd is None else cwd
        self.process = _CONTEXT.Process(target=_run, args=(words, dict(env), place, self._streams))
        before = dict(os.environ)
        os.environ.update(FIXED)  # for the waiting process, if this is the first command
        try:
            self.process.start()
        finally:
            os.environ.clear()
            os.environ.update(before)

    def ended(self) -> bool:
        """Return whether the process is gone."""
        return self.process.exitcode is not None

    def send_signal(self, number: signal.Signals) -> None:
        """Send the process a signal; does nothing if it has just ended."""
        assert self.process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    def wait(self, timeout_s: float) -> Done:
        """Wait until the command ends and return what it wrote.

        Raises:
            subprocess.TimeoutExpired: It did not end in time, and was killed.
        """
        self.process.join(timeout_s)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
            self.process.join()
        written = [path.read_text("utf-8") if path.exists() else "" for path in self._streams[1:]]
        self._folder.cleanup()
        if code is None:
            raise subprocess.TimeoutExpired(self.words, timeout_s, *written)
        return Done(self.words, code, *written)


def start(
    arguments: Sequence[str | Path],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: bytes = b"",
) -> Started:
    """Start `ronid` with arguments; see `command`."""
    return Started(["ronid", *map(str, arguments)], env, cwd, stdin)


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
    changed = {key for key in FIXED if env.get(key, FIXED[key]) != FIXED[key]}
    if changed or any(key.startswith("PYTHON") and os.environ.get(key) != env[key] for key in env):
        words = ["ronid", *map(str, arguments)]
        cold = [sys.executable, "-m", *words]
        done = subprocess.run(
            cold, input=stdin, capture_output=True, cwd=cwd, env=env, check=False, timeout=timeout_s
        )
        return Done(words, done.returncode, done.stdout.decode(), done.stderr.decode())
    return start(arguments, env=env, cwd=cwd, stdin=stdin).wait(timeout_s)


def _run(words: list[str], env: dict[str, str], cwd: Path, streams: list[Path]) -> None:
    """Be the command; ends the process."""
    for number, path in enumerate(streams):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_APPEND
        os.dup2(os.open(path, flags), number)
    # A shell may have started the tests in the background, where interrupts are ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
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
