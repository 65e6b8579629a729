"""One cell of the benchmark: split, fit, score; the row says how it went, or why it did not."""

import os
import platform
import re
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ronid.bench.plan import FORMAT_VERSION, BenchCell, Plan, config_hash, read_k_rule
from ronid.bench.rows import thinned
from ronid.bench.stages import SharedStages
from ronid.config import updated
from ronid.data.pile import Pile
from ronid.data.splits import (
    BenchmarkProblem,
    Cell,
    SplitKind,
    benchmark_cell,
    benchmark_problem,
)
from ronid.errors import RonidError, RonidWarning
from ronid.files import without_nan
from ronid.methods import METHODS, fit, frozen_recipe, method
from ronid.metrics import score
from ronid.progress import Progress, Stopwatch
from ronid.types import Discovery, IntArray, Scores
from ronid.version import __version__

if TYPE_CHECKING:
    import torch

    from ronid.encode.cache import FrozenCache
    from ronid.encode.encoder import Encoder

REFIT_RESTARTS = 20
PACKAGES = ("torch", "transformers", "numpy", "scikit-learn")


class CannotRunError(RonidError):
    """A cell cannot run here; the message is the reason in its row."""


@dataclass
class Bench:
    """What the cells of one process share.

    Args:
        plan: The benchmark config.
        device: `auto`, `cpu` or `cuda`.
        jobs: Processes that share the device, noted in every row.
        progress: Told about every stage.
        cache: Output of frozen layers, shared by all cells; made when first needed.
        stages: Early stages that several cells go on from; made when first needed.
    """

    plan: Plan
    device: str = "auto"
    jobs: int = 1
    progress: Progress | None = None
    cache: "FrozenCache | None" = None
    stages: SharedStages | None = None


@dataclass(frozen=True)
class Outcome:
    """How a cell ended.

    Args:
        row: What to store: scores, or `skip` with a reason.
        failure: Traceback of an error that nobody foresaw, or "".
        warned: Messages of warnings, each once.
    """

    row: dict[str, Any]
    failure: str = ""
    warned: tuple[str, ...] = field(default=())


def run_cell(bench: Bench, cell: BenchCell) -> Outcome:
    """Run one cell; whatever goes wrong inside becomes a row with the reason."""
    config = bench.plan.config(cell)
    row = asdict(cell) | {"format_version": FORMAT_VERSION, "config_hash": config_hash(config)}
    failure = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            row |= _measured(bench, cell, config)
        except RonidError as error:
            row["skip"] = _reason(bench.plan, cell, str(error))
        except Exception as error:
            if type(error).__name__ == "OutOfMemoryError":
                row["skip"] = "out of GPU memory"
            else:
                text = str(error).strip().splitlines()
                what = f"{type(error).__name__}: {text[0] if text else 'no message'}"
                row["skip"] = _reason(bench.plan, cell, f"failed: {what}")
                failure = traceback.format_exc()
    said = [str(w.message) for w in caught if issubclass(w.category, RonidWarning)]
    return Outcome(row, failure, tuple(dict.fromkeys(said)))


def split_of(cell: BenchCell) -> Cell:
    """Return the drawn split of a cell.

    Raises:
        DataError: The benchmark is not here.
    """
    return _split(
        cell.dataset, cell.known_ratio, cell.labelled_ratio, cell.seed, cell.pile, cell.split
    )


@lru_cache(maxsize=4096)
def _split(  # noqa: PLR0913, PLR0917 - the coordinates of a split
    dataset: str, known: float, labelled: float, seed: int, pile: Pile, kind: SplitKind
) -> Cell:
    return benchmark_cell(dataset, known, labelled, seed, pile, kind)


@lru_cache(maxsize=2)
def _problem(split: Cell) -> BenchmarkProblem:
    """Cells of one split are neighbours, so the newest problems are all that is worth keeping."""
    return benchmark_problem(split)


def problem_of(cell: BenchCell) -> BenchmarkProblem:
    """Return the problem of a cell, with the number of intents that its rule allows to know.

    Raises:
        DataError: The benchmark is not here.
    """
    return _with_rule(_problem(split_of(cell)), cell.k_rule)


def scored_rows(problem: BenchmarkProblem, cell: BenchCell) -> tuple[tuple[str, ...], IntArray]:
    """Return utterances of all intents to score, and their classes."""
    if cell.scored_on == "test":
        return problem.test_texts, problem.test_targets
    return problem.dev_texts, problem.dev_targets


def scores_of(
    problem: BenchmarkProblem, truth: IntArray, labels: IntArray, *, named: bool = True
) -> dict[str, Any]:
    """Return the scores of predicted intents in the form of a row: rounded, None for NaN.

    Args:
        problem: The problem that a method solved.
        truth: (n,) true classes of the scored rows.
        labels: (n,) predicted intents.
        named: Whether intent i is the known intent i, for every known intent.
    """
    sizes = _sizes(problem)
    return _figures(score(truth, labels, len(problem.split.known), sizes, named=named))


def _measured(bench: Bench, cell: BenchCell, config: Any) -> dict[str, Any]:
    """Fit and score one cell."""
    if cell.method not in METHODS:
        raise CannotRunError(f"no method '{cell.method}'; there are: {', '.join(METHODS)}")
    from ronid.head import predict
    from ronid.train.optim import choose_device
    from ronid.train.state import Training

    device = choose_device(bench.device)
    _import_all()
    _begin_memory(device)
    watch = Stopwatch(bench.progress)
    started = time.perf_counter()
    split, problem = split_of(cell), problem_of(cell)
    texts, truth = scored_rows(problem, cell)
    problem = _counted(bench, cell, config, problem, device)
    encoder = _encoder(bench, cell, config, device, problem.split.n_intents)
    hits = encoder.cache.hits
    stages = _stages(bench).of(cell, split.hash, device, watch)
    training = Training(encoder, cell.seed, config.optimiser, watch, stages)
    training.restore()
    discovery: Discovery = fit(problem.split, config, training)
    features = encoder.embed_all(encoder.prepare(texts, watch))
    vectors, prototypes = features.cpu().numpy(), discovery.prototypes
    labels = predict(vectors, prototypes, discovery.temperature, discovery.rule).labels
    scores = {"argmax": scores_of(problem, truth, labels)}
    wall_s = time.perf_counter() - started + stages.shared_s  # what the cell costs alone
    row = {"split_hash": split.hash, "k": discovery.n_intents, "scores": scores}
    row |= {"wall_s": round(wall_s, 3), "shared_s": round(stages.shared_s, 3)}
    row |= {"seconds": _rounded(watch.seconds), "jobs": bench.jobs}
    row |= {"cache_hits": encoder.cache.hits - hits, **_memory(device), **_where(device)}
    refit = _refit(cell, config, features, discovery)
    scores["refit"] = scores_of(problem, truth, refit, named=False)
    if "history" in bench.plan.keep:
        row["history"] = [_rounded(epoch) for epoch in thinned(discovery.history)]
    if "map" in bench.plan.keep:
        row["map"] = _map(vectors, truth, labels, cell.seed)
    return row


def _import_all() -> None:
    """Import the slow packages before the clock starts: the first cell is not a slow one."""
    import sklearn.metrics  # noqa: F401 - imported for its time only
    from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer  # noqa: F401 - same

    import ronid.encode.encoder  # noqa: F401 - same


def _with_rule(problem: BenchmarkProblem, k_rule: str) -> BenchmarkProblem:
    """Return the problem with the number of intents as known as the rule says."""
    rule, factor = read_k_rule(k_rule)
    if rule == "given":
        return problem
    start = round(factor * problem.split.n_intents)
    split = replace(problem.split, n_intents=start, count_rule=rule)
    return replace(problem, split=split)


def _counted(
    bench: Bench, cell: BenchCell, config: Any, problem: BenchmarkProblem, device: "torch.device"
) -> BenchmarkProblem:
    """Find the number of intents for a method that must know it before it begins."""
    if problem.split.count_rule == "given" or METHODS[cell.method].counts:
        return problem
    from ronid.train.count import count_on_frozen
    from ronid.train.state import Training

    frozen = frozen_recipe(config.encoder)
    encoder = _encoder(bench, cell, replace(config, encoder=frozen), device, 0)
    training = Training(encoder, cell.seed)
    return replace(problem, split=count_on_frozen(training, problem.split))


def _sizes(problem: BenchmarkProblem) -> IntArray:
    """Return the number of training utterances of each class; off-topic text has no class."""
    truth = problem.split.truth
    assert truth is not None  # a benchmark's always is
    return np.bincount(truth[truth >= 0], minlength=len(problem.classes))


def _encoder(
    bench: Bench, cell: BenchCell, config: Any, device: "torch.device", n_intents: int
) -> "Encoder":
    """Build the encoder of a cell from weights that are on this machine."""
    from ronid.encode.cache import FrozenCache
    from ronid.encode.encoder import build_encoder

    if bench.cache is None:
        bench.cache = FrozenCache(keep_weights=True)
    name = local_weights(bench.plan.encoder_path(cell.encoder))
    found = updated(config, {"encoder": {"name": name}})
    return build_encoder(
        found.encoder, device, seed=cell.seed, n_intents=n_intents, cache=bench.cache
    )


def _stages(bench: Bench) -> SharedStages:
    """Return what the cells of this process share of their training."""
    if bench.stages is None:
        bench.stages = SharedStages(bench.plan)
    return bench.stages


def local_weights(name: str) -> str:
    """Return the embedded name or the folder of an encoder's weights, without any network.

    Raises:
        CannotRunError: They are not on this machine.
    """
    from ronid.config import DEFAULT_ENCODER, TFIDF
    from ronid.encode.weights import locate

    if name in (DEFAULT_ENCODER, TFIDF):
        return name
    found = locate(name)
    if Path(found).is_dir():
        return str(Path(found).resolve())
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        cached = None
    if not isinstance(cached, str):
        raise CannotRunError("weights not available here")
    return str(Path(cached).parent)


def _refit(
    cell: BenchCell, config: Any, features: "torch.Tensor", discovery: Discovery
) -> IntArray:
    """Cluster the scored rows anew: how most published code makes its numbers.

    By k-means, or as the method's own `refit` does it.
    """
    from ronid.assign.kmeans import kmeans
    from ronid.train.state import generator_of

    generator = generator_of(features.device, cell.seed, "refit")
    own = getattr(method(cell.method), "refit", None)
    if own is not None:
        labels: IntArray = own(features, discovery, config, generator)
        return labels
    found = kmeans(features, discovery.n_intents, n_init=REFIT_RESTARTS, generator=generator)
    return found.labels.cpu().numpy()


def _map(features: np.ndarray, truth: IntArray, labels: IntArray, seed: int) -> dict[str, Any]:
    """Return a flat picture of the scored rows with their true and predicted classes."""
    from ronid.export.projection import project

    flat = project(features, labels=truth, seed=seed)
    x, y = ([round(float(value), 4) for value in column] for column in flat.T)
    return {"x": x, "y": y, "truth": truth.tolist(), "predicted": labels.tolist()}


def _begin_memory(device: "torch.device") -> None:
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)  # starts the driver, which the counters below need
        torch.cuda.empty_cache()  # what an earlier cell left, or died of
        torch.cuda.reset_peak_memory_stats(device)


def _memory(device: "torch.device") -> dict[str, Any]:
    """Peak bytes: of this cell on a GPU; of the process so far on a CPU."""
    if device.type == "cuda":
        import torch

        peak = torch.cuda.max_memory_allocated(device)
        return {"peak_memory_bytes": int(peak), "memory_kind": "cuda"}
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return {"peak_memory_bytes": int(peak), "memory_kind": "rss"}


def _where(device: "torch.device") -> dict[str, Any]:
    """Return the machine in words and the versions of what ran on it."""
    from ronid.train.optim import device_title

    return {"device": device_title(device), "versions": versions()}


def versions() -> dict[str, str]:
    """Return the versions that results may depend on."""
    found = {"ronid": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def _figures(scores: Scores) -> dict[str, Any]:
    """Return scores as a row holds them; None where there is nothing to score."""
    figures: dict[str, Any] = without_nan(_rounded(asdict(scores)))
    return figures


def _rounded(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in values.items()}


def _reason(plan: Plan, cell: BenchCell, message: str) -> str:
    """Return a message in one line that names no folder of this machine."""
    message = message.replace(plan.encoder_path(cell.encoder), cell.encoder)
    message = message.replace(str(Path.home()), "~")
    short = re.sub(rf"(?<![\w.~])~?(?:{re.escape(os.sep)}[^\s'\":;,]+)+", _last_part, message)
    return " ".join(short.split())


def _last_part(match: re.Match[str]) -> str:
    return match.group().rstrip(os.sep).rpartition(os.sep)[2]
