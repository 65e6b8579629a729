"""PostgreSQL for real: Debian's package on loopback."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


def find_postgres() -> Path | None:
    """Return the folder of the server's programs."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    on_path = shutil.which("initdb")
    if found:
        return Path(found[-1]).parent
    return Path(os.path.realpath(on_path)).parent if on_path else None


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """Start a server of our own, as a user without rights where we are root."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = find_postgres()
    if programs is None:
        pytest.skip("no PostgreSQL on this machine")
    folder = Path(tempfile.mkdtemp(prefix="ronid-postgres-"))
    who: dict[str, int] = {}
    if os.getuid() == 0:
        try:
            account = pwd.getpwnam("postgres")
        except KeyError:
            account = pwd.getpwnam("nobody")
        who = {"user": account.pw_uid, "group": account.pw_gid}
        os.chown(folder, account.pw_uid, account.pw_gid)

    def run(program: str, *arguments: str) -> None:
        subprocess.run(
            [str(programs / program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=folder,
            **who,  # type: ignore[call-overload]
        )

    data = str(folder / "data")
    run("initdb", "-D", data, "-U", "ronid", "-A", "trust", "--no-sync")
    # Only a Unix socket in a folder of our own, so that no port can be taken.
    options = f"-c listen_addresses= -c unix_socket_directories={folder}"
    run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql://ronid@/postgres?host={folder}"
    finally:
        run("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)
