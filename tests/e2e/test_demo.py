"""The demo as a newcomer meets it: the embedded encoder, the whole corpus, the real command."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.cluster import KMeans

from ronid.cli.tables import SCORES
from ronid.metrics import score
from ronid.run import open_run
from tests.helpers.cli_corpus import ronid

pytestmark = pytest.mark.slow

KIND = re.compile("  (new|known)  ")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """Run the demo once: its folder, stdout and stderr."""
    out = tmp_path_factory.mktemp("demo") / "demo-run"
    done = ronid("demo", "--out", out)
    assert done.returncode == 0, done.stderr
    return out, done.stdout, done.stderr


def test_demo_ends_with_tables_and_the_report(demo: tuple[Path, str, str]) -> None:
    out, stdout, stderr = demo
    lines = stdout.splitlines()
    scores = len(SCORES) + 1  # and a line of titles
    kinds = [match.group() for match in map(KIND.search, lines[:-scores]) if match]
    assert (kinds.count("  new  "), kinds.count("  known  ")) == (8, 16)
    assert [" ".join(line.split()[:-1]) for line in lines[-scores:]] == [
        "score", *map(str.strip, SCORES.values())
    ]  # fmt: skip
    assert stderr.splitlines()[-1] == f"report: {out / 'report.html'}"
    assert (out / "report.html").is_file()


def test_demo_beats_kmeans_on_the_same_embeddings(demo: tuple[Path, str, str]) -> None:
    import torch

    from ronid.config import EncoderConfig
    from ronid.encode.encoder import build_encoder

    run = open_run(demo[0])
    table, scores = run.assignments(), run.scores()
    assert scores is not None
    encoder = build_encoder(EncoderConfig(), torch.device("cpu"), seed=0)
    vectors = encoder.embed_all(encoder.prepare(table["text"].to_pylist())).numpy()
    found = KMeans(24, n_init=5, random_state=0).fit_predict(vectors)
    known = [intent.name for intent in run.intents() if intent.known]
    names = table["truth"].to_pylist()
    classes = [*known, *sorted(set(names) - set(known))]
    free = np.array([given is None for given in table["given"].to_pylist()])
    truth = np.array([classes.index(name) for name in names])
    plain = score(truth[free], found[free], len(known))
    assert scores["acc"] > plain.acc + 3
    assert scores["nmi"] > plain.nmi


def test_demo_replaces_an_older_demo_but_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "folder"
    out.mkdir()
    (out / "letter.txt").write_text("mine")
    done = ronid("demo", "--out", out)
    assert done.returncode == 2
    assert "is already used" in done.stderr
    assert (out / "letter.txt").read_text() == "mine"
