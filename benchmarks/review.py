"""Measure what a review teaches: a simulated reviewer against random labels.

    python benchmarks/review.py banking clinc --seed 0 1 2 --work FOLDER

A benchmark split (75% known, 10% labelled, the number of intents given) is fitted with preset
`fast`. Then a reviewer acts 50 times, the run learns (`ronid learn`), and so on up to 100 and 200
actions. The reviewer knows the true intent of what they read, and of nothing else:

1. What the tool suggests comes first: two intents whose ten most central utterances mean the same
   are merged, else kept apart; an intent is split where the proposed parts mean two things, one of
   which no intent has, and kept whole where both mean one.
2. Then intents that lie close are compared in pairs, those that share most doubtful utterances
   first. Of each pair 20 doubtful utterances are read, from the middle of their list: what lies on
   the very border is often of neither, and teaches less. Those that are right are confirmed
   together, those that belong to another intent are moved there together, each an action.
3. A new intent that is met this way is accepted when nine of its ten most central utterances mean
   the same.

Every event counts as an action, those that teach nothing too. Against it as many utterances as
there were actions are drawn at random and labelled truly, and, a harder rival, as many as the
reviewer moved or confirmed; the run learns from these labels by the very same training. A label of
an intent that has no name yet goes to the new intent that holds most utterances of its kind.

Accuracy is that of the test file, by one matching over all intents: what was taught about others.
`pile` is that of the utterances without a label that the run was made of, those that somebody spoke
of included: what leaves in an export. Settings were chosen with --part dev and seeds of 100 and up.
"""

import argparse
import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from out_of_scope import CONFIG, Ready, embedded
from update import make_run

from ronid.data.benchmarks import BENCHMARKS, read
from ronid.data.corpus import corpus_from
from ronid.data.splits import BenchmarkProblem, benchmark_cell, benchmark_problem
from ronid.encode.rows import VectorRows
from ronid.learn.flow import learn_run
from ronid.metrics import score
from ronid.model import load_model
from ronid.pipeline import discover
from ronid.review import Desk, NotApplicable, State, open_desk
from ronid.review.events import (
    Accept,
    Action,
    Confirm,
    KeepApart,
    KeepWhole,
    Merge,
    Move,
    Part,
    Split,
    new_id,
)
from ronid.review.nearness import Centres, members
from ronid.review.propose import propose_split
from ronid.review.suggest import still_stands, suggest
from ronid.types import IntArray
from ronid.version import __version__

ROUNDS = (50, 100, 200)
CENTRAL, DOUBTFUL = 10, 20
"""Utterances read of an intent, and of a pair of intents."""
CLEAR, SURE = 0.7, 0.9
"""Share of one meaning among utterances read, to call it theirs, and to accept it."""


class Reviewer:
    """Somebody who knows the true intent of every utterance that they read.

    Args:
        truth: (n,) true intents.
    """

    def __init__(self, truth: IntArray) -> None:
        self.truth = truth
        self.read: set[int] = set()
        self.done: Counter[str] = Counter()
        self.spoken: set[int] = set()
        self.left = 0

    def work(self, desk: Desk, actions: int) -> None:
        """Act so many times."""
        self.desk, self.left, self.centres = desk, actions, Centres(desk.base)
        self._follow_suggestions()
        while self.left > 0:
            before = self.left
            self.homes = self._homes(desk.view().state)
            for one, other, rows in self._pairs():
                if self.left > 0:
                    self._compare(one, other, rows)
            if self.left == before:
                return

    def act(self, action: Action) -> None:
        """Do one thing; what makes no sense any more is not done and not counted."""
        if self.left <= 0:
            return
        try:
            self.desk.act(action, "reviewer", self.desk.version)
        except NotApplicable:
            return
        self.left -= 1
        self.done[action.kind] += 1
        if isinstance(action, Move | Confirm):
            self.spoken.update(action.rows)

    def _meaning(self, rows: Sequence[int] | IntArray) -> tuple[int, float]:
        """Return the true intent of most utterances, and of which share of them."""
        self.read.update(int(row) for row in rows)
        name, count = Counter(int(self.truth[row]) for row in rows).most_common(1)[0]
        return name, count / len(rows)

    def _central(self, state: State, id: str) -> IntArray:
        return members(self.desk.base, state, id, self.centres.of(state)).rows[:CENTRAL]

    def _homes(self, state: State) -> dict[int, str]:
        """Return the intent of every meaning, as the central utterances show."""
        found: dict[int, list[tuple[bool, int, str]]] = {}
        for intent in state.intents.values():
            if state.size(intent.id):
                meaning, share = self._meaning(self._central(state, intent.id))
                if share >= 0.5:
                    ranked = (intent.known, state.size(intent.id), intent.id)
                    found.setdefault(meaning, []).append(ranked)
        return {meaning: max(ranked)[2] for meaning, ranked in found.items()}

    def _follow_suggestions(self) -> None:
        view = self.desk.view()
        for each in suggest(self.desk.base, view.state, view.version, self.centres).found:
            state = self.desk.view().state
            if self.left <= 0:
                return
            if not still_stands(each, state) or not all(state.size(id) for id in each.intents):
                continue
            if each.kind == "split":
                self._answer_split(state, each.intents[0])
                continue
            found = [self._meaning(self._central(state, id)) for id in each.intents]
            same = found[0][0] == found[1][0] and min(share for _, share in found) >= CLEAR
            self.act(_merge(state, each.intents) if same else KeepApart(each.intents))

    def _answer_split(self, state: State, id: str) -> None:
        try:
            parts = propose_split(self.desk.base, state, id, 2).parts
        except NotApplicable:
            return
        found = [self._meaning(part.rows[:CENTRAL]) for part in parts]
        if found[0][0] == found[1][0]:
            self.act(KeepWhole(id))
        elif min(share for _, share in found) >= CLEAR:
            home = self._homes(state).get(found[1][0], id)
            if home == id:
                rows = tuple(int(row) for row in parts[1].rows)
                self.act(Split(id, (Part(new_id(), f"part {self.desk.version}", rows),)))

    def _pairs(self) -> list[tuple[str, str, list[int]]]:
        """Return pairs of intents and what is doubtful between them, those with most first."""
        state, base = self.desk.view().state, self.desk.base
        settled = state.confirmed | base.given
        doubtful: list[tuple[float, int, int]] = []
        for intent in state.intents.values():
            if not state.size(intent.id):
                continue
            own = members(base, state, intent.id, self.centres.of(state))
            for row, margin, other in zip(own.rows, own.margin, own.other, strict=True):
                if not settled[row] and other is not None:
                    doubtful.append((float(margin), int(row), state.intents[other].slot))
        doubtful.sort()
        pairs: dict[frozenset[int], list[int]] = {}
        for _, row, slot in doubtful[: max(1_000, len(doubtful) // 5)]:
            pairs.setdefault(frozenset((int(state.places[row]), slot)), []).append(row)
        ordered = sorted(pairs.items(), key=lambda pair: (-len(pair[1]), sorted(pair[0])))
        return [(state.slots[min(p)], state.slots[max(p)], rows) for p, rows in ordered]

    def _compare(self, one: str, other: str, rows: list[int]) -> None:
        state = self.desk.view().state
        if not all(id in state.intents and state.size(id) for id in (one, other)):
            return
        found = {id: self._meaning(self._central(state, id)) for id in (one, other)}
        if found[one][0] == found[other][0]:
            if min(share for _, share in found.values()) >= CLEAR:
                self.act(_merge(state, (one, other)))
            return
        fine, elsewhere = self._sorted_out(state, middle(rows, DOUBTFUL))
        for target in sorted(elsewhere, key=lambda id: (-len(elsewhere[id]), id)):
            if target in (one, other) or len(elsewhere[target]) > 1:
                self.act(Move(tuple(elsewhere[target]), target))
        if fine:
            self.act(Confirm(tuple(fine)))
        for id in (one, other):
            intent = self.desk.view().state.intents[id]
            if not intent.known and intent.status == "open" and found[id][1] >= SURE:
                self.act(Accept(id))

    def _sorted_out(self, state: State, rows: list[int]) -> tuple[list[int], dict[str, list[int]]]:
        """Return the utterances that are right where they are, and where the others belong."""
        self.read.update(rows)
        fine: list[int] = []
        elsewhere: dict[str, list[int]] = {}
        for row in rows:
            home = self.homes.get(int(self.truth[row]))
            if home == state.of_row(row):
                fine.append(row)
            elif home in state.intents:
                elsewhere.setdefault(str(home), []).append(row)
        return fine, elsewhere


def middle(rows: list[int], count: int) -> list[int]:
    """Return so many rows from the middle of a list, or all that there are."""
    first = max(0, (len(rows) - count) // 2)
    return rows[first : first + count]


def _merge(state: State, ids: Sequence[str]) -> Merge:
    into = max(ids, key=lambda id: (state.intents[id].known, state.size(id)))
    return Merge(tuple(ids), into)


def label_randomly(desk: Desk, truth: IntArray, known: dict[int, str], rows: IntArray) -> None:
    """Label utterances with their true intents.

    Args:
        desk: The review.
        truth: (n,) true intents.
        known: Intent of every true intent that has a name; those named now are added.
        rows: What to label.
    """
    state = desk.view().state
    for meaning in np.unique(truth[rows]):
        if int(meaning) not in known:
            own = rows[truth[rows] == meaning]
            taken = set(known.values())
            votes = Counter(str(state.of_row(int(row))) for row in own)
            free = [id for id, _ in votes.most_common() if id not in taken]
            if not free:  # none is left where they lie: the largest that has no name
                unnamed = [id for id in state.intents if id not in taken]
                free = sorted(unnamed, key=state.size, reverse=True)
            known[int(meaning)] = free[0] if free else votes.most_common(1)[0][0]
    for row in rows:
        target = known[int(truth[row])]
        stays = state.of_row(int(row)) == target
        one = (int(row),)
        desk.act(Confirm(one) if stays else Move(one, target), "labels", desk.version)


@dataclass(frozen=True)
class Asked:
    """The file that models are asked: what the frozen encoder says of it, and its true intents.

    Args:
        vectors: (t, d) of the file.
        truth: (t,) of the file.
        known: How many intents are known.
        pile: (n,) true intents of the utterances of the run.
        free: Those that had no label.
    """

    vectors: torch.Tensor
    truth: IntArray
    known: int
    pile: IntArray
    free: IntArray

    def accuracy(self, run: Path) -> dict[str, float]:
        """Return the accuracy of the current version on all, known and new intents."""
        model = load_model(run, "cpu")
        features = model.encoder.embed_all(VectorRows(self.vectors)).cpu().numpy()
        found = score(self.truth, (features @ model.prototypes.T).argmax(1), self.known)
        shown = {"acc": found.acc, "known": found.known_acc, "novel": found.novel_acc}
        shown["pile"] = self._pile_accuracy(run)
        return {name: round(value, 2) for name, value in shown.items()}

    def _pile_accuracy(self, run: Path) -> float:
        desk = open_desk(run)
        places = np.asarray(desk.view().state.places, np.int64)
        desk.close()
        return score(self.pile[self.free], places[self.free], self.known).acc


def first_run(problem: BenchmarkProblem, seed: int, work: Path, run: Path) -> float:
    """Fit a split and write its run; return the seconds of the fit without its embedding."""
    split = problem.split
    vectors = embedded(split.texts, work)
    labels = [split.known[t] if t >= 0 else None for t in split.targets]
    corpus = corpus_from(list(split.texts), labels)
    started = time.perf_counter()
    found = discover(corpus, split.n_intents, CONFIG, seed=seed, device="cpu", cache=Ready(vectors))
    spent = time.perf_counter() - started
    nowhere = found.discovery.embeddings[:, :2]  # its map is not looked at
    make_run(run, corpus, found, vectors, seed, nowhere)
    return spent


def learnt(run: Path, ask: Asked) -> dict[str, float]:
    """Let a run learn; return its accuracy and how long it took, the report written."""
    started = time.perf_counter()
    done = learn_run(run, device="cpu")
    seconds = round(time.perf_counter() - started, 1)
    held = {"labels": done.labels, "held": done.held, "not_held": done.not_held}
    return ask.accuracy(run) | held | {"seconds": seconds}


def measure(dataset: str, seed: int, part: str, work: Path) -> list[dict[str, Any]]:
    """Play the rounds; return a row for each."""
    problem = benchmark_problem(benchmark_cell(dataset, seed=seed))
    truth = problem.split.truth
    assert truth is not None
    asked = read(dataset, part)
    number = {name: i for i, name in enumerate(problem.classes)}
    true = np.array([number[str(label)] for label in asked.labels])
    free = np.flatnonzero(problem.split.targets < 0)
    ask = Asked(embedded(asked.texts, work), true, len(problem.split.known), truth, free)
    ways = {way: work / f"{way}_{dataset}_{seed}" for way in ("review", "random", "random_rows")}
    for run in ways.values():
        shutil.rmtree(run, ignore_errors=True)
    fit_s = first_run(problem, seed, work, ways["review"])
    for way in ("random", "random_rows"):
        shutil.copytree(ways["review"], ways[way], symlinks=True)
    start = ask.accuracy(ways["review"]) | {"seconds": round(fit_s, 1)}
    reviewer, drawn = (
        Reviewer(truth),
        np.random.default_rng([seed, 7]).permutation(free),
    )
    first = open_desk(ways["review"])
    named = {number[i.name]: i.id for i in first.view().state.intents.values() if i.known}
    first.close()
    known = {way: dict(named) for way in ways}
    used, rows = {"random": 0, "random_rows": 0}, []
    for actions in ROUNDS:
        desk = open_desk(ways["review"])
        reviewer.work(desk, actions - sum(reviewer.done.values()))
        desk.close()
        found = {"review": learnt(ways["review"], ask)}
        for way, upto in (("random", actions), ("random_rows", len(reviewer.spoken))):
            desk = open_desk(ways[way])
            label_randomly(desk, truth, known[way], drawn[used[way] : upto])
            desk.close()
            used[way] = upto
            found[way] = learnt(ways[way], ask)
        rows.append(
            {"dataset": dataset, "seed": seed, "part": part, "actions": actions, "start": start}
            | found
            | {"did": dict(reviewer.done), "spoken": len(reviewer.spoken)}
            | {"read": len(reviewer.read), "threads": torch.get_num_threads()}
            | {"preset": "fast", "version": "", "ronid_version": __version__}
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def stored(path: Path | None) -> set[tuple[str, int, str]]:
    """Return the cells that a file of rows holds; they are not measured again."""
    if path is None or not path.exists():
        return set()
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(row["dataset"], row["seed"], row["part"]) for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", nargs="+", choices=sorted(BENCHMARKS))
    parser.add_argument("--seed", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--work", type=Path, required=True, help="folder for embeddings and runs")
    parser.add_argument("--out", type=Path, default=None, help="file to add rows to")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    cells = [(dataset, seed) for seed in options.seed for dataset in options.dataset]
    for dataset, seed in cells:
        if (dataset, seed, options.part) not in stored(options.out):
            rows = measure(dataset, seed, options.part, options.work)
            if options.out is not None:
                with options.out.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
