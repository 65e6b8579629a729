"""Commands in processes of their own that need not import torch anew, which takes seconds of each.

A process that has imported what commands import waits for orders; for each it forks, and the copy
runs the command to its end as a new process would: with its own arguments, folder, environment and
streams. A command is started from nothing where its environment tells Python itself something.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

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
    """
    words = ["ronid", *map(str, arguments)]
    changed = {key for key in FIXED if env.get(key, FIXED[key]) != FIXED[key]}
    if changed or any(key.startswith("PYTHON") and os.environ.get(key) != env[key] for key in env):
        cold = [sys.executable, "-m", *words]
        done = subprocess.run(
            cold, input=stdin, capture_output=True, cwd=cwd, env=env, check=False, timeout=timeout_s
        )
        return Done(words, done.returncode, done.stdout.decode(), done.stderr.decode())
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = _WARM.run(words, dict(env), str(cwd or Path.cwd()), stdin, out, err, timeout_s)
        out.seek(0)
        err.seek(0)
        return Done(words, code, out.read().decode(), err.read().decode())


class _Warm:
    """The waiting process, started by the first order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._line: socket.socket | None = None

    def run(
        self,
        words: list[str],
        env: dict[str, str],
        cwd: str,
        stdin: bytes,
        out: IO[bytes],
        err: IO[bytes],
        timeout_s: float,
    ) -> int:
        """Have a command run; one at a time."""
        with self._lock:
            line = self._line or self._start()
            reading, writing = os.pipe()
            feeder = threading.Thread(target=_feed, args=(writing, stdin))
            order = json.dumps({"words": words, "env": env, "cwd": cwd}).encode()
            line.settimeout(timeout_s)
            socket.send_fds(
                line, [len(order).to_bytes(8, "big")], [reading, out.fileno(), err.fileno()]
            )
            os.close(reading)
            feeder.start()
            line.sendall(order)
            code = int.from_bytes(_receive(line, 8), "big", signed=True)
            feeder.join()
            return code

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env={**os.environ, **FIXED},
        )
        theirs.close()
        self._line = ours
        atexit.register(process.wait)
        atexit.register(ours.close)  # first: without a line the process ends
        return ours


_WARM = _Warm()


def _feed(pipe: int, data: bytes) -> None:
    """Write what a command may read; it may end before it has."""
    with open(pipe, "wb") as file:
        try:
            file.write(data)
            file.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), pipe)


def _receive(line: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        piece = line.recv(length - len(found))
        if not piece:
            raise ConnectionError("the waiting process has ended")
        found += piece
    return found


def _wait(line: socket.socket) -> None:
    """Fork for every order; only copies return, to run it."""
    while True:
        head, streams, _, _ = socket.recv_fds(line, 8, 3)
        if not head:
            raise SystemExit
        order = json.loads(_receive(line, int.from_bytes(head, "big")))
        child = os.fork()
        if not child:
            line.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.chdir(order["cwd"])
            os.environ.clear()
            os.environ.update(order["env"])
            sys.argv = order["words"]
            return
        for stream in streams:
            os.close(stream)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        line.sendall(status.to_bytes(8, "big", signed=True))


def _leave(code: int) -> None:
    """End a copy as Python ends, but for taking modules apart, which takes as long as imports."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    import gc
    import importlib

    for name in IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    _wait(socket.socket(fileno=int(sys.argv[1])))
    from ronid.cli import main

    try:
        main()
    except SystemExit as end:
        _leave(end.code if isinstance(end.code, int) else int(end.code is not None))
