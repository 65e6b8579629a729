"""Measure what a review teaches: a simulated reviewer against random labels.

    python benchmarks/review.py banking --seed 0 1 2 --work FOLDER
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from out_of_scope import CONFIG, Ready, embedded
from torch import Tensor
from torch.nn.functional import normalize

from ronid.assign.kmeans import class_means
from ronid.config import updated
from ronid.data.benchmarks import BENCHMARKS, read
from ronid.data.corpus import corpus_from
from ronid.data.splits import BenchmarkProblem, benchmark_cell, benchmark_problem
from ronid.encode.rows import VectorRows
from ronid.learn.decisions import Said, walk
from ronid.learn.lessons import Lessons, make_lessons
from ronid.learn.train import train_on
from ronid.metrics import score
from ronid.pipeline import discover
from ronid.review.base import Base
from ronid.review.desk import Desk
from ronid.review.events import *
from ronid.review.nearness import Centres, find_doubts, members
from ronid.review.problems import NotApplicable
from ronid.review.propose import propose_split
from ronid.review.state import OUT
from ronid.review.store import store_for
from ronid.review.suggest import suggest, still_stands
from ronid.train.state import Training

READ = 10
ONE = 0.9


class Reviewer:
    """A person who knows the true intent of every utterance that they read."""

    def __init__(self, desk: Desk, truth, rng) -> None:
        self.desk, self.truth, self.rng = desk, truth, rng
        self.done = Counter()
        self.left = 0

    def act(self, action) -> bool:
        try:
            self.desk.act(action, "simulated", self.desk.version)
        except NotApplicable as e:
            return False
        self.done[action.kind] += 1
        self.left -= 1
        return True

    def meaning(self, rows):
        """The true intent most of the rows have, and its share"""
        (name, count), = Counter(self.truth[r] for r in rows).most_common(1)
        return name, count / len(rows)

    def central(self, state, id, n=READ):
        m = members(self.desk.base, state, id, self.centres.of(state))
        return m.rows[:n]

    def work(self, budget: int) -> None:
        self.left = budget
        self.centres = Centres(self.desk.base)
        self.follow_suggestions()
        self.read_intents()
        self.answer_doubts()

    def follow_suggestions(self):
        view = self.desk.view()
        found = suggest(self.desk.base, view.state, view.version, self.centres).found
        for each in found:
            if self.left <= 0:
                return
            state = self.desk.view().state
            if not still_stands(each, state):
                continue
            if each.kind == "merge":
                if any(i not in state.intents or not state.size(i) for i in each.intents):
                    continue
                m = [self.meaning(self.central(state, i)) for i in each.intents]
                if m[0][0] == m[1][0] and min(x[1] for x in m) >= 0.7:
                    self.act(self.merged(state, each.intents))
                else:
                    self.act(KeepApart(each.intents))
            else:
                self.try_split(each.intents[0])

    def merged(self, state, ids):
        into = max(ids, key=lambda i: (state.intents[i].known, state.size(i)))
        return Merge(tuple(ids), into)

    def try_split(self, id, keep=True):
        state = self.desk.view().state
        try:
            p = propose_split(self.desk.base, state, id, 2)
        except NotApplicable:
            return False
        m = [self.meaning(part.rows[:READ]) for part in p.parts]
        if m[0][0] != m[1][0] and min(x[1] for x in m) >= 0.7:
            part = p.parts[1]
            name = f"part {self.desk.version}"
            return self.act(Split(id, (Part(new_id(), name, tuple(int(r) for r in part.rows)),)))
        return self.act(KeepWhole(id)) if keep else False

    def read_intents(self):
        state = self.desk.view().state
        order = sorted((i for i in state.intents.values() if i.status == "open"), key=lambda i: (i.known, -state.size(i.id)))
        for intent in order:
            if self.left <= 0:
                return
            state = self.desk.view().state
            if intent.id not in state.intents or not state.size(intent.id):
                continue
            mean, share = self.meaning(self.central(state, intent.id))
            twin = self.accepted.get(mean) if hasattr(self, "accepted") else None
            if share >= ONE:
                self.act(Accept(intent.id))
            elif share <= 0.7:
                self.try_split(intent.id, keep=False)

    def answer_doubts(self):
        state = self.desk.view().state
        base = self.desk.base
        centres = self.centres.of(state)
        doubts = find_doubts(base, state, centres)
        meanings = {}
        for i in state.intents.values():
            if state.size(i.id):
                name, share = self.meaning(self.central(state, i.id))
                if share >= 0.7 and (name not in meanings or i.known):
                    meanings[name] = i.id
        for row in doubts.rows:
            if self.left <= 0:
                return
            self.single(int(row), meanings)
        # then least sure ones
        rows = np.argsort(base.confidence, kind="stable")
        for row in rows:
            if self.left <= 0:
                return
            if self.desk.view().state.confirmed[row] or base.given[row] or self.desk.view().state.places[row]==OUT:
                continue
            self.single(int(row), meanings)

    def single(self, row, meanings):
        state = self.desk.view().state
        target = meanings.get(self.truth[row])
        if target is None:
            return
        if state.of_row(row) == target:
            self.act(Confirm((row,)))
        else:
            self.act(Move((row,), target))


def base_of(corpus, found, given):
    d = found.discovery
    return Base(
        run="made", title="t", texts=corpus.texts, ids=[str(i) for i in range(len(corpus))],
        given=given, labels=d.labels.astype(np.int32), confidence=d.confidence,
        places=d.embeddings[:, :2], intents=found.model.intents, vectors=d.embeddings)


def first_prototypes(lessons, split, model_protos, present, touched):
    rows = np.flatnonzero(lessons.taking_part)
    places = torch.from_numpy(lessons.places[rows])
    def first(embeddings: Tensor) -> Tensor:
        inside = places >= 0
        return normalize(class_means(embeddings[inside], places[inside], len(lessons.intents)), dim=-1)
    return first
