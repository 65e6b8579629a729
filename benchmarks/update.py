"""Measure updates: intents arrive in five rounds, against fitting everything at once.

    python benchmarks/update.py banking --seed 0 1 2 --work FOLDER

Of a benchmark split (75% known, 10% labelled) round 1 holds 60% of the intents, three quarters of
them known; labels come with round 1 alone. Every later round brings 10% of the intents, none of
them labelled, and more utterances of the old ones: four fifths of an intent's utterances come with
it, the rest is spread over the rounds that follow. Round 1 is fitted with preset `fast`; each later
round is one `ronid update`, which is told nothing but the utterances. Beside it `fast` is fitted to
all that has arrived, and is told the true number of intents.

Accuracy is that of the test file, of the intents that have arrived, by one matching over all of
them. Both are timed from texts to the written report; a fit with its share of the time that
embedding the whole training file took once, and `learnt_s` says how much of it is not map, files
and report. Settings were chosen with --part dev and seeds of 100 and up.
"""

import argparse
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from out_of_scope import CONFIG, Ready, embedded

from ronid.data.benchmarks import BENCHMARKS, read
from ronid.data.corpus import corpus_from
from ronid.data.splits import BenchmarkProblem, benchmark_cell, benchmark_problem
from ronid.encode.cache import FrozenCache
from ronid.encode.rows import VectorRows
from ronid.encode.transformer import TransformerBackbone
from ronid.export.card import write_card
from ronid.export.projection import project
from ronid.export.run_report import report_of_run
from ronid.metrics import hungarian_map
from ronid.model import IntentModel, load_model
from ronid.pipeline import Found, discover
from ronid.run import Job, RunFolder
from ronid.types import Corpus, FloatArray, IntArray
from ronid.update import update_run
from ronid.version import __version__
from ronid.versions import frozen_cache

ROUNDS = 5
FIRST, KNOWN, AT_ONCE = 0.6, 0.75, 0.8
"""Share of the intents in round 1, of them known, and of an intent's utterances that come first."""


@dataclass(frozen=True)
class Stream:
    """A benchmark split whose intents arrive one after another.

    Args:
        problem: The split.
        arrives: (k,) round of every intent, from 0.
        when: (n,) round of every training utterance.
    """

    problem: BenchmarkProblem
    arrives: IntArray
    when: IntArray

    def corpus(self, rows: IntArray) -> Corpus:
        """Return some utterances; labels of intents that come later are not known."""
        split, names = self.problem.split, self.problem.classes
        given = [int(t) if t >= 0 and self.arrives[t] == 0 else -1 for t in split.targets[rows]]
        return corpus_from(
            [split.texts[i] for i in rows], [names[t] if t >= 0 else None for t in given]
        )


def make_stream(problem: BenchmarkProblem, seed: int) -> Stream:
    """Draw which intents and which of their utterances come in which round."""
    k, known = len(problem.classes), len(problem.split.known)
    rng = np.random.default_rng([seed, ROUNDS])
    first = round(FIRST * k)
    labelled = round(KNOWN * first)
    old, new = rng.permutation(known), known + rng.permutation(k - known)
    arrives = np.zeros(k, np.int64)
    later = rng.permutation(np.concatenate([old[labelled:], new[first - labelled :]]))
    for turn, part in enumerate(np.array_split(later, ROUNDS - 1), 1):
        arrives[part] = turn
    truth = problem.split.truth
    assert truth is not None
    order, when = rng.permutation(len(truth)), np.zeros(len(truth), np.int64)
    for intent, turn in enumerate(arrives):
        rows = order[truth[order] == intent]
        left = ROUNDS - 1 - turn
        at_once = int(np.ceil(AT_ONCE * len(rows))) if left else len(rows)
        when[rows[:at_once]] = turn
        for i, part in enumerate(np.array_split(rows[at_once:], left) if left else ()):
            when[part] = turn + 1 + i
    return Stream(problem, arrives, when)


@dataclass(frozen=True)
class Asked:
    """The file that models are asked: what the frozen encoder says of it, and its true intents."""

    vectors: torch.Tensor
    truth: IntArray

    def accuracy(self, model: IntentModel, arrives: IntArray, turn: int) -> dict[str, float]:
        """Return the accuracy on all intents that have arrived, on old ones and on those new."""
        rows = np.flatnonzero(arrives[self.truth] <= turn)
        features = model.encoder.embed_all(VectorRows(self.vectors)).cpu().numpy()[rows]
        labels, truth = (features @ model.prototypes.T).argmax(1), self.truth[rows]
        match = hungarian_map(truth, labels)
        right = np.array([match.get(int(label), -1) for label in labels]) == truth
        new = arrives[truth] == turn
        parts = {"acc": right, "old": right[~new], "new": right[new]}
        return {name: round(100 * float(part.mean()), 2) for name, part in parts.items()}


def make_run(  # noqa: PLR0917 - what a run is made of
    folder: Path,
    corpus: Corpus,
    found: Found,
    vectors: torch.Tensor,
    seed: int,
    flat: FloatArray,
) -> RunFolder:
    """Write a run as `ronid fit` does, but for its card and report.

    Args:
        folder: Where to.
        corpus: Its utterances.
        found: What was found.
        vectors: What the frozen encoder said of them.
        seed: Of the fit.
        flat: (n, 2) places on its map.
    """
    job = Job(corpus, None, found.discovery.n_intents, CONFIG, seed, "cpu")
    run = RunFolder.create(folder, job, "round 1")
    found.model.save(folder)
    run.write_results(corpus, found.discovery, found.model.intents, flat)
    run.write_metrics(corpus, found.discovery, {})
    backbone = found.model.encoder.backbone
    assert isinstance(backbone, TransformerBackbone)
    backbone.keep(corpus.texts, vectors, FrozenCache(frozen_cache(folder, len(corpus))))
    run.finish()
    return run


def measure(dataset: str, seed: int, part: str, work: Path) -> list[dict[str, Any]]:
    """Play the rounds; return a row for every one after the first."""
    stream = make_stream(benchmark_problem(benchmark_cell(dataset, seed=seed)), seed)
    names, texts = stream.problem.classes, stream.problem.split.texts
    asked = read(dataset, part)
    number = {name: i for i, name in enumerate(names)}
    ask = Asked(
        embedded(asked.texts, work), np.array([number[str(label)] for label in asked.labels])
    )
    fresh = work / "timed"  # an empty folder, so that the time of embedding is seen
    shutil.rmtree(fresh, ignore_errors=True)
    started = time.perf_counter()
    vectors = embedded(texts, fresh)
    embedding_s = time.perf_counter() - started

    def fitted(turn: int) -> tuple[Corpus, Found, float]:
        rows = np.flatnonzero(stream.when <= turn)
        corpus, k = stream.corpus(rows), int((stream.arrives <= turn).sum())
        begun = time.perf_counter()
        ready = Ready(vectors[torch.from_numpy(rows)])
        found = discover(corpus, k, CONFIG, seed=seed, device="cpu", cache=ready)
        spent = time.perf_counter() - begun
        return corpus, found, spent + embedding_s * len(rows) / len(texts)

    def written(turn: int, folder: Path, corpus: Corpus, found: Found) -> float:
        shutil.rmtree(folder, ignore_errors=True)
        begun = time.perf_counter()
        discovery, rows = found.discovery, torch.from_numpy(stream.when <= turn)
        flat = project(discovery.embeddings, seed=seed, labels=discovery.labels)
        run = make_run(folder, corpus, found, vectors[rows], seed, flat)
        write_card(run)
        report_of_run(run)
        return time.perf_counter() - begun

    run, other = (work / f"{name}_{dataset}_{seed}" for name in ("run", "whole"))
    corpus, found, _ = fitted(0)
    written(0, run, corpus, found)
    rows = []
    for turn in range(1, ROUNDS):
        came = stream.corpus(np.flatnonzero(stream.when == turn))
        started = time.perf_counter()
        done = update_run(run, came, source=f"round {turn + 1}", device="cpu")
        update_s = time.perf_counter() - started
        ours = ask.accuracy(load_model(run, "cpu"), stream.arrives, turn)
        whole, full, learnt_s = fitted(turn)
        full_s = learnt_s + written(turn, other, whole, full)
        theirs = ask.accuracy(full.model, stream.arrives, turn)
        counts = {"rows": len(came), "intents": int((stream.arrives <= turn).sum())}
        counts |= {"made": done.intents, "collected": done.collected, "drifted": len(done.drift)}
        rows.append(
            {"dataset": dataset, "seed": seed, "part": part, "round": turn + 1, **counts}
            | {"update": ours | {"seconds": round(update_s, 1)}}
            | {"at_once": theirs | {"seconds": round(full_s, 1), "learnt_s": round(learnt_s, 1)}}
            | {"threads": torch.get_num_threads(), "ronid_version": __version__}
            | {"preset": "fast", "version": ""}
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", nargs="+", choices=sorted(BENCHMARKS))
    parser.add_argument("--seed", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--work", type=Path, required=True, help="folder for embeddings and runs")
    parser.add_argument("--out", type=Path, default=None, help="file to add rows to")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    asked.work.mkdir(parents=True, exist_ok=True)
    for dataset in asked.dataset:
        for seed in asked.seed:
            rows = measure(dataset, seed, asked.part, asked.work)
            if asked.out is not None:
                with asked.out.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
