"""Seconds of an EM epoch, ours against the loop that published repositories use.

    python benchmarks/training_speed.py --dataset banking --device cpu --out speed.jsonl

Both train the last layer of the same encoder with the same losses on batches of the same rows, in
one process. The published loop pads every utterance to the fixed length of the protocol, computes
in float32, runs all layers at every step, embeds all rows once per epoch in the same way, and gets
its pseudo-labels from scikit-learn's k-means with ten restarts. Ours is the real code: the epochs
of `ronid.methods.ronid.alternate` with preset `paper`, E-step and M-step. One epoch of each warms
up and is not counted. What ours does once before the first epoch, the frozen layers, is given as
`prepare_s`. The share of matrix products in one of our epochs says how much could still be saved.
"""

import argparse
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader, TensorDataset

from ronid.assign.align import match
from ronid.assign.kmeans import class_means
from ronid.bench.cell import versions
from ronid.config import DEFAULT_ENCODER, MStepConfig, RoNIDConfig, updated
from ronid.data.benchmarks import BENCHMARKS, benchmark
from ronid.data.splits import benchmark_cell, benchmark_problem
from ronid.encode.encoder import Encoder, build_encoder
from ronid.encode.rows import Rows
from ronid.encode.weights import load_pretrained
from ronid.errors import RonidError, UsageError
from ronid.losses.prototype import (
    inter_cluster_loss,
    intra_cluster_loss,
    prototype_cross_entropy,
    update_prototypes,
)
from ronid.methods.ronid import alternate
from ronid.presets import preset
from ronid.progress import Silent
from ronid.train.optim import choose_device, device_title
from ronid.train.state import Training
from ronid.types import FloatArray, IntArray, Split

PRODUCTS = re.compile(
    r"aten::(mm|addmm|_addmm_activation|bmm|baddbmm|_scaled_mm)$|scaled_dot_product|mkldnn.*linear"
    r"|flash_attention|efficient_attention"
)
"""Operators that multiply matrices."""
PRODUCT_KERNELS = re.compile(
    r"gemm|nvjet|cutlass|sdpa|flash|fmha|^_forward$|^_backward$",  # the last two are our attention
    re.IGNORECASE,
)
"""The same by names of GPU kernels."""


@dataclass(frozen=True)
class Task:
    """What both loops train.

    Args:
        split: The problem.
        encoder: Name or folder.
        length_tokens: Longest utterance; the published loop pads to it.
        device: Where.
        epochs: Timed epochs, after one that is not.
    """

    split: Split
    encoder: str
    length_tokens: int
    device: torch.device
    epochs: int


@dataclass(frozen=True)
class Measured:
    """How a loop went.

    Args:
        seconds: Of every timed epoch.
        loss: Mean of the last epoch.
        moved: Largest change of a trained weight.
    """

    seconds: list[float]
    loss: float
    moved: float

    @property
    def mean_s(self) -> float:
        """Seconds per epoch."""
        return sum(self.seconds) / len(self.seconds)


class PublishedLoop:
    """Fixed-length padding, float32, all layers at every step, k-means on the host.

    Args:
        task: What to train.
        config: Losses, batch sizes and learning rate.
    """

    def __init__(self, task: Task, config: MStepConfig) -> None:
        torch.manual_seed(0)
        self.task = task
        self.config = config
        tokenizer, model, _ = load_pretrained(task.encoder)
        self.model = model.to(task.device)
        last = re.compile(rf"\blayers?\.{model.config.num_hidden_layers - 1}\.")
        for name, weight in self.model.named_parameters():
            weight.requires_grad = bool(last.search(name))
        self.trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        if not self.trained:
            raise UsageError(f"encoder '{task.encoder}' has no last layer known here; use BERT")
        self.optimiser = torch.optim.AdamW(self.trained, lr=config.lr, weight_decay=0.01)
        padded = tokenizer(
            list(task.split.texts),
            padding="max_length",
            truncation=True,
            max_length=task.length_tokens,
            return_tensors="pt",
        )
        rows = torch.arange(len(task.split))
        self.rows = TensorDataset(padded["input_ids"], padded["attention_mask"], rows)
        self.targets = torch.from_numpy(task.split.targets)
        self.labelled = TensorDataset(*self.rows[torch.from_numpy(task.split.labelled)])

    def epoch(self) -> float:
        """Pseudo-labels, then one pass of training steps; return the mean loss."""
        labels, prototypes = self.pseudo_labels(self.embed())
        self.model.train(True)
        total, steps = torch.zeros((), device=self.task.device), 0
        known = self.labelled_batches()
        for batch in DataLoader(self.rows, self.config.batch, shuffle=True):
            loss, prototypes = self.step(next(known), batch, labels, prototypes)
            total, steps = total + loss, steps + 1
        return float(total) / steps

    @torch.no_grad()
    def embed(self) -> FloatArray:
        """Return the unit vectors of all rows."""
        self.model.train(False)
        batches = DataLoader(self.rows, self.config.batch)
        return np.concatenate([self.vectors(ids, mask).cpu().numpy() for ids, mask, _ in batches])

    def vectors(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the unit vectors of padded rows: the mean over their tokens."""
        ids, mask = ids.to(self.task.device), mask.to(self.task.device)
        hidden = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).float()
        return normalize((hidden * weights).sum(1) / weights.sum(1), dim=-1)

    def pseudo_labels(self, embeddings: FloatArray) -> tuple[Tensor, Tensor]:
        """Cluster all rows; return labels and prototypes, known intents first."""
        from sklearn.cluster import KMeans

        k = self.task.split.n_intents
        found = KMeans(k, n_init=10, random_state=0).fit(embeddings)
        centres = torch.from_numpy(found.cluster_centers_).float()
        means = class_means(torch.from_numpy(embeddings), self.targets, len(self.task.split.known))
        known = match(means, centres)
        others = np.setdiff1d(np.arange(k), known.numpy())
        order = torch.cat([known, torch.from_numpy(others)])
        labels = order.argsort()[torch.from_numpy(found.labels_).long()]
        given = torch.where(self.targets >= 0, self.targets, labels)
        return given.to(self.task.device), normalize(centres[order], dim=-1).to(self.task.device)

    def labelled_batches(self) -> Iterator[list[Tensor]]:
        """Yield labelled rows for ever."""
        size = min(self.config.labelled_batch, len(self.labelled))
        while True:
            yield from DataLoader(self.labelled, size, shuffle=True, drop_last=True)

    def step(
        self, known: list[Tensor], batch: list[Tensor], labels: Tensor, prototypes: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Make one optimiser step; return the loss and the moved prototypes."""
        config, device = self.config, self.task.device
        joined = [torch.cat(pair) for pair in zip(known, batch, strict=True)]
        vectors = self.vectors(joined[0], joined[1])
        first, rest = vectors[: len(known[0])], vectors[len(known[0]) :]
        pseudo, given = labels[batch[2].to(device)], self.targets[known[2]].to(device)
        moved = update_prototypes(prototypes, rest, pseudo, config.prototype_momentum)
        loss = (
            config.alpha * intra_cluster_loss(rest, moved, pseudo, config.temperature)
            + (1 - config.alpha) * inter_cluster_loss(moved, config.temperature)
            + prototype_cross_entropy(first, moved, given, config.temperature)
        )
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.optimiser.step()
        return loss.detach(), moved.detach()


class EpochWatch(Silent):
    """Notes when epochs end; profiles the last one if asked.

    Args:
        profiler: Runs from the end of the first epoch on, or None.
    """

    def __init__(self, profiler: Any = None) -> None:
        self.profiler = profiler
        self.ends: list[float] = []

    def advance(self, steps: int = 1, figures: Mapping[str, Any] | None = None) -> None:
        """An epoch is over: its losses were read, so a GPU has finished too."""
        if figures is None:
            return
        self.ends.append(time.perf_counter())
        if self.profiler is not None and len(self.ends) == 1:
            self.profiler.start()

    def end(self) -> None:
        """The last epoch is over."""
        if self.profiler is not None:
            self.profiler.stop()


def measure_published(task: Task) -> Measured:
    loop = PublishedLoop(task, preset("paper").m_step)
    before = [weight.detach().clone() for weight in loop.trained]
    ends, loss = [], 0.0
    for _ in range(1 + task.epochs):
        loss = loop.epoch()
        ends.append(time.perf_counter())
    return Measured(np.diff(ends).tolist(), loss, _moved(before, loop.trained))


def measure_ours(task: Task, encoder: Encoder, rows: Rows) -> Measured:
    watch = EpochWatch()
    training = Training(encoder, progress=watch)
    weights = list(encoder.trained_state().values())
    before = [weight.detach().clone() for weight in weights]
    alternate(training, task.split, rows, _recipe(task, 1 + task.epochs))
    loss = float(training.history[-1]["loss"])
    return Measured(np.diff(watch.ends).tolist(), loss, _moved(before, weights))


def profile_ours(task: Task, encoder: Encoder, rows: Rows) -> tuple[float, float]:
    """Return the seconds of matrix products, and of all operations, in one epoch."""
    cuda = task.device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    if cuda:  # known to the tracer before steps are recorded, or their kernels have no names
        with profile(activities=activities):
            torch.zeros(1, device=task.device).add_(1)
    profiler = profile(activities=activities)
    training = Training(encoder, progress=EpochWatch(profiler))
    alternate(training, task.split, rows, _recipe(task, 2))
    products = total = 0.0
    for event in profiler.key_averages():
        if cuda:
            on_gpu = event.device_type == torch.autograd.DeviceType.CUDA
            spans = getattr(event, "is_user_annotation", False)  # they cover kernels, twice counted
            spent = event.self_device_time_total if on_gpu and not spans else 0.0
            product = PRODUCT_KERNELS.search(event.key)
        else:
            spent, product = event.self_cpu_time_total, PRODUCTS.search(event.key)
        total += spent / 1e6
        products += spent / 1e6 if product else 0.0
    return products, total


def _recipe(task: Task, epochs: int) -> RoNIDConfig:
    """Return preset `paper`, never stopping early."""
    changes = {
        "encoder": {"name": task.encoder, "max_length_tokens": task.length_tokens},
        "m_step": {"epochs": epochs, "stop_change": 0.0},
    }
    config: RoNIDConfig = updated(preset("paper"), changes)
    return config


def _moved(before: list[Tensor], after: list[Tensor]) -> float:
    pairs = zip(before, after, strict=True)
    return max(float((new.detach() - old).abs().max()) for old, new in pairs)


def measure(task: Task) -> dict[str, Any]:
    """Run both loops and describe them in one row."""
    split = task.split
    published = measure_published(task)  # first: the profiler may slow what comes after it
    encoder = build_encoder(_recipe(task, 1).encoder, task.device, seed=0)
    started = time.perf_counter()
    rows = encoder.prepare(split.texts)
    prepare_s = time.perf_counter() - started
    ours = measure_ours(task, encoder, rows)
    products_s, operations_s = profile_ours(task, encoder, rows)
    folder = Path(task.encoder)
    return {
        "rows": len(split),
        "labelled": len(split.labelled),
        "k": split.n_intents,
        "length_tokens": task.length_tokens,
        "mean_tokens": round(float(np.mean(rows.lengths)), 2),
        "encoder": folder.name if folder.is_dir() else task.encoder,
        "device": device_title(task.device),
        "epochs": task.epochs,
        "published": _described(published),
        "ours": _described(ours) | {"prepare_s": round(prepare_s, 4)},
        "ratio": round(published.mean_s / ours.mean_s, 3),
        "matmul_s": round(products_s, 4),
        "matmul_share": round(products_s / operations_s, 4),
        "versions": versions(),
    }


def _described(measured: Measured) -> dict[str, Any]:
    return {
        "epoch_s": round(measured.mean_s, 4),
        "epochs_s": [round(seconds, 4) for seconds in measured.seconds],
        "loss": measured.loss,
        "moved": measured.moved,
    }


def read_split(dataset: str, rows: int | None) -> Split:
    """Return a benchmark's training rows (seed 0, 75 % known, 10 % labelled), or some of them."""
    split = benchmark_problem(benchmark_cell(dataset, 0.75, 0.1, 0)).split
    split = replace(split, truth=None)  # nobody else scores every epoch
    return split if rows is None else subsample(split, rows)


def subsample(split: Split, rows: int) -> Split:
    """Return `rows` random rows of `split`, a labelled one of every known intent among them.

    Raises:
        UsageError: Too few for the intents, or more than there are.
    """
    if not split.n_intents <= rows <= len(split):
        raise UsageError(f"--rows is {rows}; give {split.n_intents} to {len(split)}")
    labelled = split.labelled
    first = np.unique(split.targets[labelled], return_index=True)[1]
    kept = labelled[first]
    others = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(len(split)), kept))
    index: IntArray = np.sort(np.concatenate([kept, others[: rows - len(kept)]]))
    texts = [split.texts[i] for i in index]
    return replace(split, texts=texts, targets=split.targets[index])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--dataset", default="banking", choices=list(BENCHMARKS))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--epochs", type=int, default=3, help="timed, after one that is not")
    parser.add_argument("--rows", type=int, help="so many random training rows instead of all")
    parser.add_argument("--encoder", default=DEFAULT_ENCODER, help="name, folder or hub id")
    parser.add_argument("--out", type=Path, help="file of JSON lines to add the row to")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")
    try:
        split, device = read_split(options.dataset, options.rows), choose_device(options.device)
    except RonidError as error:
        parser.error(str(error))
    length = benchmark(options.dataset).max_length_tokens
    task = Task(split, options.encoder, length, device, options.epochs)
    row = {"format_version": 1, "dataset": options.dataset, **measure(task)}
    print(f"{row['dataset']}, {row['rows']} rows, {row['device']}, seconds per epoch")
    print(f"  published loop  {row['published']['epoch_s']:.3f}")
    print(f"  ours            {row['ours']['epoch_s']:.3f}, {row['ratio']:.1f} times faster")
    print(f"  {row['matmul_share']:.0%} of our time is matrix products ({row['matmul_s']:.3f} s)")
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
