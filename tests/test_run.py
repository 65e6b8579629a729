import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ronid.run
from ronid.config import updated
from ronid.data.corpus import corpus_from
from ronid.errors import DataError, UsageError
from ronid.metrics import score
from ronid.presets import preset
from ronid.run import Job, RunFolder, check_unused, open_finished, open_run
from ronid.types import Corpus, Discovery, Intent

TEXTS = ["où est ma carte", "card lost", "pay me back", "is it raining"]
LABELS = ["card", None, "refund", None]
TRUTH = ["card", "card", "refund", "weather"]


def job(corpus: Corpus | None = None, dev: Corpus | None = None) -> Job:
    config = updated(preset("fast"), {"m_step": {"alpha": 0.25}})
    given = corpus or corpus_from(TEXTS, LABELS, truth=TRUTH, ids=["a", "b", "c", "d"])
    return Job(given, dev, 3, config, 7, "cpu")


def found(labels: list[int]) -> Discovery:
    vectors = np.eye(4, dtype=np.float32)
    return Discovery(
        labels=np.array(labels),
        confidence=np.array([0.9, 0.8, 0.7, 0.6], np.float32),
        embeddings=vectors,
        prototypes=vectors[:3],
        prior=np.full(3, 1 / 3),
        temperature=0.07,
        known=("card", "refund"),
        history=({"stage": "em", "epoch": 1, "loss": 0.5},),
    )


def intents() -> tuple[Intent, ...]:
    names = ("card", "refund", "rain")
    return tuple(Intent(i, name, i < 2, 1, 0.3, 0.3, 0.8) for i, name in enumerate(names))


def test_job_comes_back_as_it_was_asked(tmp_path: Path) -> None:
    dev = corpus_from(["card gone"], ["card"])
    asked = job(dev=dev)
    back = RunFolder.create(tmp_path / "run", asked, "calls.csv").job()
    assert (back.config, back.n_intents, back.seed, back.device) == (asked.config, 3, 7, "cpu")
    for name in ("texts", "labels", "ids", "truth"):
        assert getattr(back.corpus, name) == getattr(asked.corpus, name)
    assert back.corpus.report == asked.corpus.report
    assert back.dev is not None
    assert (back.dev.texts, back.dev.labels) == (dev.texts, dev.labels)


def test_given_embeddings_come_back_bit_for_bit(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    asked = job(corpus_from(None, ["card", None, None, None, None], embeddings=vectors))
    back = RunFolder.create(tmp_path / "run", asked, "calls.csv").job().corpus
    assert back.embeddings is not None
    np.testing.assert_array_equal(back.embeddings, vectors)
    assert (back.ids, back.truth) == (None, None)


def test_folder_killed_before_run_json_is_no_run_and_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(ronid.run, "write_json", killed)
        patch.setattr(RunFolder, "discard", lambda _: None)  # nobody tidies up after a kill
        with pytest.raises(KeyboardInterrupt):
            RunFolder.create(path, job(), "calls.csv")
    with pytest.raises(DataError, match="has no run.json"):
        open_run(path)
    with pytest.raises(UsageError, match="delete it: it holds a run that was stopped before"):
        RunFolder.create(path, job(), "calls.csv")


def test_half_written_facts_never_replace_the_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.create(tmp_path / "run", job(), "calls.csv")

    def half(path: Path, _: object) -> None:
        path.write_text("{")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ronid.run, "write_json", half)
        with pytest.raises(KeyboardInterrupt):
            run.finish()
    assert run.finished is False
    run.finish()
    assert open_finished(run.path).finished is True
    assert not run.work.exists()
    assert not (run.path / "corpus.parquet").exists()


def test_empty_folder_may_be_used_and_a_full_one_not(tmp_path: Path) -> None:
    check_unused(tmp_path / "new")
    (tmp_path / "empty").mkdir()
    check_unused(tmp_path / "empty")
    run = RunFolder.create(tmp_path / "empty", job(), "calls.csv")
    with pytest.raises(UsageError, match="ronid fit --resume"):
        check_unused(run.path)
    with pytest.raises(DataError, match="not finished"):
        open_finished(run.path)


def test_discarded_run_leaves_nothing(tmp_path: Path) -> None:
    RunFolder.create(tmp_path / "run", job(), "calls.csv").discard()
    assert list(tmp_path.iterdir()) == []


def test_results_are_one_row_per_utterance(tmp_path: Path) -> None:
    run, asked = RunFolder.create(tmp_path / "run", job(), "calls.csv"), job()
    places = np.arange(8, dtype=np.float32).reshape(4, 2)
    run.write_results(asked.corpus, found([0, 0, 1, 2]), intents(), places)
    table = run.assignments().to_pydict()
    assert table["id"] == ["a", "b", "c", "d"]
    assert table["text"] == TEXTS
    assert table["given"] == LABELS
    assert table["intent"] == ["card", "card", "refund", "rain"]
    assert table["x"] == [0, 2, 4, 6]
    assert table["truth"] == TRUTH
    assert run.history() == [{"stage": "em", "epoch": 1, "loss": 0.5}]


def test_ids_count_from_one_where_none_were_given(tmp_path: Path) -> None:
    corpus = corpus_from(TEXTS, LABELS)
    run = RunFolder.create(tmp_path / "run", job(corpus), "calls.csv")
    run.write_results(corpus, found([0, 0, 1, 2]), intents(), np.zeros((4, 2), np.float32))
    table = run.assignments()
    assert table["id"].to_pylist() == ["1", "2", "3", "4"]
    assert "truth" not in table.column_names


@pytest.mark.parametrize("labels", [[0, 0, 1, 2], [0, 2, 1, 0]])
def test_scores_count_unlabelled_rows_only(tmp_path: Path, labels: list[int]) -> None:
    asked = job()
    run = RunFolder.create(tmp_path / "run", asked, "calls.csv")
    assert run.scores() is None
    run.write_metrics(asked.corpus, found(labels), {"em": 1.0})
    expected = score([0, 2], [labels[1], labels[3]], 2)
    scores = run.scores()
    assert scores is not None
    assert scores["acc"] == expected.acc
    assert scores["nmi"] == expected.nmi


def test_no_truth_gives_no_scores(tmp_path: Path) -> None:
    corpus = replace(job().corpus, truth=None)
    run = RunFolder.create(tmp_path / "run", job(corpus), "calls.csv")
    run.write_metrics(corpus, found([0, 0, 1, 2]), {})
    assert run.scores() is None


def test_every_json_file_carries_its_format(tmp_path: Path) -> None:
    asked = job()
    run = RunFolder.create(tmp_path / "run", asked, "calls.csv")
    run.write_metrics(asked.corpus, found([0, 0, 1, 2]), {})
    for path in run.path.glob("*.json"):
        assert json.loads(path.read_text())["format_version"] == 1
