"""The three public benchmarks: what they are, where they lie, how to get and check them."""

import difflib
import hashlib
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ronid.data.readers import load
from ronid.errors import DataError, RonidError, UsageError
from ronid.types import Corpus

PARTS = ("train", "dev", "test")
RAW_GITHUB = "https://raw.githubusercontent.com"

_TIMEOUT_S = 30
_BLOCK_BYTES = 1 << 16


@dataclass(frozen=True)
class Benchmark:
    """A public data set of labelled utterances.

    Args:
        title: Name in the literature.
        intents: Number of intents.
        rows: Utterances per part.
        sha256: SHA-256 of the file of each part, `<part>.tsv`.
        licence: Under which it is published.
        origin: Who made it.
        location: Owner, repository, revision and folder of the files on GitHub.
        max_length_tokens: Length to which published code pads and cuts every input. No fit here
            does: it reads up to `encoder.max_length_tokens`, more than the longest utterance has.
            Only the comparison of training speed takes it.
        foreign: Other benchmarks, of whose utterances none belongs to an intent of this one.
    """

    title: str
    intents: int
    rows: Mapping[str, int]
    sha256: Mapping[str, str]
    licence: str
    origin: str
    location: str
    max_length_tokens: int
    foreign: tuple[str, ...] = ()


BENCHMARKS = {
    "clinc": Benchmark(
        title="CLINC150, in-scope queries",
        intents=150,
        rows={"train": 18_000, "dev": 2_250, "test": 2_250},
        sha256={
            "train": "927bbeacbe134c524d1967196c3209d7e7fcd76e8de9ff24e43dc76ed5400dad",
            "dev": "f5ec4e85abfb84b377bd0fcecafd60de8e1ff111f48b3680226c0dad1511f2d5",
            "test": "a056d1e4981d36c783cbee0dd6d055b48537a5eaca94b2cf44b34b1df83a1684",
        },
        licence="CC BY 3.0",
        origin="clinc/oos-eval",
        location="thuiar/DeepAligned-Clustering/HEAD/data/clinc",
        max_length_tokens=30,
        foreign=("stackoverflow",),  # not BANKING: CLINC has intents of a bank, too
    ),
    "banking": Benchmark(
        title="BANKING77",
        intents=77,
        rows={"train": 9_003, "dev": 1_000, "test": 3_080},
        sha256={
            "train": "ed07418e59a34b76baad3dc697f3ede12139cd8f56e7a746fb38ab78d2b4d196",
            "dev": "b808b9f0b01574ca30d233fa690f43b8c44899a0ce1a737be66b06e1132802a7",
            "test": "684f0b9df082f50ae78243fd56b99d5c8f7debbbfb7086d6df9c5d08ced7d574",
        },
        licence="CC BY 4.0",
        origin="PolyAI-LDN/task-specific-datasets",
        location="thuiar/DeepAligned-Clustering/HEAD/data/banking",
        max_length_tokens=55,
        foreign=("stackoverflow",),
    ),
    "stackoverflow": Benchmark(
        title="StackOverflow titles",
        intents=20,
        rows={"train": 18_000, "dev": 1_000, "test": 1_000},
        sha256={
            "train": "9b5eeaf8ffa9f16b692684419695d7b8f2d093e9da9528658fe631ac026fc28d",
            "dev": "4c02e8d422e3db998b95e8af49fbae59443e6c2617b3d4c9279aaa7705434921",
            "test": "08a8bd2e82cef0a5b61715687953302abaa9fb43a17f847e260b15ae5fdadc8c",
        },
        licence="CC BY-SA",
        origin="jacoxu/StackOverflow",
        location="Lackel/DPN/HEAD/data/stackoverflow",
        max_length_tokens=45,
        foreign=("clinc", "banking"),
    ),
}


@dataclass(frozen=True)
class FileCheck:
    """State of one benchmark file: "ok", "missing" or "wrong hash"."""

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
    benchmark(name)
    places = _places()
    for place in places:
        if (place / name).is_dir():
            return place / name
    looked = " or ".join(map(str, places))
    raise DataError(
        f"benchmark {name!r} is not in {looked}; run: ronid data fetch {name}, or set RONID_DATA "
        f"to a folder that holds {name}/train.tsv"
    )


def check(name: str) -> list[FileCheck]:
    """Compare the files of a benchmark with their published SHA-256.

    Args:
        name: Name of the benchmark.

    Returns:
        One state per part; all are missing where the benchmark is not found.
    """
    entry = benchmark(name)
    folders = [place / name for place in _places()]
    folder = next((folder for folder in folders if folder.is_dir()), folders[-1])
    return [_check_file(entry, part, folder / f"{part}.tsv") for part in PARTS]


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
    path = find(name) / f"{part}.tsv"
    state = _check_file(benchmark(name), part, path)
    if state.status != "ok":
        raise DataError(
            f"{path}: {state.status}; run: ronid data fetch {name}, with RONID_DATA unset"
        )
    return load(path, text="text", label="label")


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
    target = (folder or cache_folder()) / name
    target.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        path = target / f"{part}.tsv"
        if _check_file(entry, part, path).status != "ok":
            _download(f"{base_url}/{entry.location}/{part}.tsv", path, entry.sha256[part])
    return target


def _places() -> list[Path]:
    given = os.environ.get("RONID_DATA")
    return [*([Path(given)] if given else []), cache_folder()]


def _check_file(entry: Benchmark, part: str, path: Path) -> FileCheck:
    if not path.is_file():
        return FileCheck(part, path, "missing")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    return FileCheck(part, path, "ok" if found == entry.sha256[part] else "wrong hash")


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
