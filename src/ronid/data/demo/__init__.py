"""The demo corpus: a made-up bike-share help desk, with the true intents in a file apart."""

import csv
from importlib.resources import as_file, files

from ronid.data.readers import load
from ronid.types import Corpus


def demo_corpus() -> Corpus:
    """Return the demo corpus: 16 known intents with a few labels, 8 new ones without any."""
    folder = files("ronid.data.demo")
    with as_file(folder / "utterances.csv") as path:
        corpus = load(path, text="text", label="intent", id="id")
    lines = (folder / "truth.csv").read_text(encoding="utf-8").splitlines()
    truth = {row["id"]: row["intent"] for row in csv.DictReader(lines)}
    return Corpus(
        texts=corpus.texts,
        labels=corpus.labels,
        report=corpus.report,
        ids=corpus.ids,
        truth=[truth[key] for key in corpus.ids or ()],
    )
