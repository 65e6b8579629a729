"""A finished run folder made without training, of utterances that tests choose."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from ronid.data.corpus import corpus_from
from ronid.export.card import write_card
from ronid.export.run_report import report_of_run
from ronid.files import write_json
from ronid.intents_file import write_intents
from ronid.name import name_intents
from ronid.presets import preset
from ronid.run import Job, RunFolder
from ronid.types import Discovery

SHOP = {
    "track_order": ["where is my order", "track my order", "order status please", "order late"],
    "lost": [
        "I lost my card",
        "report a lost card",
        "how do I report a lost card",
        "my card is lost",
    ],
    "gift": ["buy a gift card", "gift card for a friend", "do you sell a gift card", "gift cards?"],
    "pause": ["pause my membership", "can you pause my membership", "I want to pause membership"],
}


def make_discovery(
    groups: Sequence[Sequence[str]], known: tuple[str, ...] = ()
) -> tuple[list[str], Discovery]:
    """Return the utterances of intents, and a discovery that has them apart."""
    texts = [text for group in groups for text in group]
    labels = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    rng = np.random.default_rng(0)
    prototypes = rng.normal(size=(len(groups), 8)).astype(np.float32)
    embeddings = prototypes[labels] + 0.1 * rng.normal(size=(len(texts), 8)).astype(np.float32)
    return texts, Discovery(
        labels=labels,
        confidence=np.linspace(0.4, 0.9, len(texts)).astype(np.float32),
        embeddings=embeddings.astype(np.float32),
        prototypes=prototypes,
        prior=np.full(len(groups), 1 / len(groups)),
        temperature=0.1,
        known=known,
    )


def make_run(path: Path, groups: Mapping[str, Sequence[str]] = SHOP, known: int = 1) -> RunFolder:
    """Write a finished run; the first `known` intents carry labels."""
    names = tuple(list(groups)[:known])
    texts, discovery = make_discovery(list(groups.values()), names)
    given = [names[i] if i < known else None for i in discovery.labels]
    corpus = corpus_from(texts, given)
    run = RunFolder.create(path, Job(corpus, None, len(groups), preset("fast"), 0, "cpu"), "a.csv")
    intents = name_intents(texts, discovery)
    (path / "encoder").mkdir()
    save_file({"prototypes": discovery.prototypes}, path / "encoder" / "weights.safetensors")
    write_json(path / "model.json", {"format_version": 1, "rule": "cosine"})
    write_intents(path, intents)
    run.write_results(corpus, discovery, intents, discovery.embeddings[:, :2])
    run.write_metrics(corpus, discovery, {})
    write_card(run)
    report_of_run(run)
    run.finish()
    return run
