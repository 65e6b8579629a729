from pathlib import Path

import pytest

from tests.helpers import cli_corpus
from tests.helpers.postgres_server import postgres_url

__all__ = ["postgres_url"]


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny random BERT."""
    return cli_corpus.write_encoder(tmp_path_factory.mktemp("encoder") / "bert")


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of 360 utterances with columns text, intent and truth."""
    return cli_corpus.write_csv(tmp_path_factory.mktemp("corpus") / "calls.csv")


@pytest.fixture(scope="session")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TOML file of settings for a run of a few epochs."""
    path = tmp_path_factory.mktemp("quick") / "quick.toml"
    path.write_text(cli_corpus.QUICK)
    return path


@pytest.fixture(scope="session")
def fitted(
    tmp_path_factory: pytest.TempPathFactory, encoder: Path, corpus: Path, quick: Path
) -> Path:
    """A finished run; tests only read it."""
    run = tmp_path_factory.mktemp("fitted") / "run"
    cli_corpus.ok(
        "fit", corpus, "--out", run, "--intents", str(cli_corpus.N_INTENTS), "--truth", "truth",
        "--encoder", encoder, "--config", quick, "--quiet",
    )  # fmt: skip
    return run
