"""A random encoder and a small corpus, so that a whole run of the command takes seconds."""

import csv
import itertools
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import forkserver_cli

TOPICS = {
    "refund": ["refund", "money", "charge", "invoice"],
    "unlock": ["unlock", "bike", "lock", "scan"],
    "password": ["password", "login", "reset", "account"],
    "station": ["station", "dock", "map", "nearest"],
    "battery": ["battery", "motor", "empty", "power"],
}
OPENINGS = ["please", "hello", "why", "my", "the", "where"]
ENDINGS = ["now", "today", "again"]
KNOWN = ("refund", "unlock", "password")
N_INTENTS = len(TOPICS)

# Every stage runs, and is long enough for a kill to hit it.
SETTINGS = """
preset = "paper"
[encoder]
trainable_layers = 1
adapter_width = 16
[pretrain]
epochs = 8
patience = 12
labelled_batch = 8
language_batch = 32
[contrast]
epochs = 8
batch = 64
[start]
restarts = 2
[m_step]
epochs = 18
stop_change = 0.0
lr = 1e-3
batch = 32
labelled_batch = 16
"""
QUICK = """
[contrast]
epochs = 6
[m_step]
epochs = 4
"""


@dataclass(frozen=True)
class Row:
    """One utterance: its text, the given intent (may be empty) and the true one."""

    text: str
    intent: str
    truth: str


def rows() -> list[Row]:
    """Return 360 utterances of five intents; three are known by some labels."""
    found = []
    for truth, words in TOPICS.items():
        texts = itertools.product(OPENINGS, words, ENDINGS)
        for i, (opening, word, ending) in enumerate(texts):
            other = words[(i + 1) % len(words)]
            label = truth if truth in KNOWN and i % 5 == 0 else ""
            found.append(Row(f"{opening} {word} {other} {ending}", label, truth))
    return found


def write_csv(path: Path, utterances: list[Row] | None = None) -> Path:
    """Write utterances with the columns text, intent and truth."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "intent", "truth"))
        writer.writerows((row.text, row.intent, row.truth) for row in utterances or rows())
    return path


def write_encoder(folder: Path, words: Sequence[str] = ()) -> Path:
    """Write a random BERT of two layers with a tokenizer of some words, the corpus's by default."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = words or sorted({word for row in rows() for word in row.text.split()})
    letters = [f"{mark}{c}" for mark in ("", "##") for c in "abcdefghijklmnopqrstuvwxyz0123456789"]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words, *letters]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    return folder


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a command: one thread for equal bits, no network."""
    return {**os.environ, **forkserver_cli.FIXED, "COLUMNS": "120", **more}


def start(*arguments: str | Path, **env: str) -> forkserver_cli.Started:
    """Start the command."""
    return forkserver_cli.start(arguments, env=environment(**env))


def ronid(
    *arguments: str | Path, cwd: Path | None = None, stdin: bytes = b"", **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return forkserver_cli.command(arguments, env=environment(**env), cwd=cwd, stdin=stdin)


def ok(*arguments: str | Path, cwd: Path | None = None, stdin: bytes = b"", **env: str) -> str:
    """Run a command that must succeed and return what it printed."""
    done = ronid(*arguments, cwd=cwd, stdin=stdin, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout
