"""The verbs one after another, through the real command and a tiny encoder."""

import csv
import gzip
import io
import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from ronid.metrics import score
from ronid.presets import WITHOUT_GPU
from tests.helpers import cli_corpus
from tests.helpers.cli_corpus import ok, ronid

INTENTS = ("--intents", str(cli_corpus.N_INTENTS))
RESULTS = {
    "README.md",
    "assignments.parquet",
    "config.toml",
    "encoder",
    "history.jsonl",
    "embeddings.safetensors",
    "intents.json",
    "metrics.json",
    "model.json",
    "report.html",
    "run.json",
}


def assigned(run: Path) -> dict[str, list[object]]:
    """Read what a run says about its utterances."""
    columns: dict[str, list[object]] = pq.read_table(run / "assignments.parquet").to_pydict()
    return columns


def test_fit_writes_the_whole_run_and_nothing_else(fitted: Path) -> None:
    assert {path.name for path in fitted.iterdir()} == RESULTS | {"cache"}  # nothing is trained
    found = assigned(fitted)
    assert found["text"] == [row.text for row in cli_corpus.rows()]
    assert found["given"] == [row.intent or None for row in cli_corpus.rows()]
    kept = [
        (given, intent)
        for given, intent in zip(found["given"], found["intent"], strict=True)
        if given is not None
    ]
    assert kept
    assert all(given == intent for given, intent in kept)


def test_fit_puts_results_on_stdout_and_progress_on_stderr(
    tmp_path: Path, encoder: Path, corpus: Path, quick: Path
) -> None:
    run = tmp_path / "run"
    done = ronid(
        "fit", corpus, "--out", run, *INTENTS, "--encoder", encoder, "--config", quick
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = [intent["name"] for intent in json.loads((run / "intents.json").read_text())["intents"]]
    assert all(name in done.stdout for name in names)
    assert len(done.stdout.splitlines()) >= 1 + cli_corpus.N_INTENTS
    said = done.stderr.splitlines()
    assert said[:2] == [WITHOUT_GPU, "360 utterances"]
    assert "discovering (EM) ..." in said
    assert said[-1] == f"report: {run / 'report.html'}"
    assert "utterances" not in done.stderr.replace("360 utterances", "").replace(
        "embedding utterances", ""
    )


def test_quiet_json_is_all_there_is(
    tmp_path: Path, encoder: Path, corpus: Path, quick: Path
) -> None:
    done = ronid(
        "fit", corpus, "--out", tmp_path / "run", *INTENTS, "--truth", "truth", "--json",
        "--encoder", encoder, "--config", quick, "--quiet",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert Path(found["report"]).is_file()
    assert [i["known"] for i in found["intents"]] == [True] * 3 + [False] * 2
    assert sum(i["size"] for i in found["intents"]) == len(cli_corpus.rows())
    parts = {"known_acc", "novel_acc", "h_score", "macro_acc", "tail_acc"}
    parts |= {"strict_acc", "known_by_name", "strict_novel_acc"}
    assert set(found["scores"]) == {"nmi", "ari", "acc", *parts}


def test_same_input_gives_the_same_run_whichever_way_it_is_read(
    tmp_path: Path, encoder: Path, corpus: Path, quick: Path, fitted: Path
) -> None:
    options = (*INTENTS, "--encoder", encoder, "--config", quick, "--quiet")
    ok("fit", "-", "--out", tmp_path / "stdin", *options, stdin=corpus.read_bytes())
    packed = tmp_path / "calls.jsonl.gz"
    with gzip.open(packed, "wt", encoding="utf-8") as file:
        for row in cli_corpus.rows():
            file.write(json.dumps({"text": row.text, "intent": row.intent or None}) + "\n")
    ok("fit", packed, "--out", tmp_path / "packed", *options)
    expected = assigned(fitted)
    for run in ("stdin", "packed"):
        found = assigned(tmp_path / run)
        assert found["intent"] == expected["intent"]
        assert found["confidence"] == expected["confidence"]
    facts = json.loads((tmp_path / "stdin" / "run.json").read_text())
    assert facts["source"] == "standard input"


def test_new_utterances_in_a_language_that_the_encoder_does_not_know_are_told(
    fitted: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(fitted, tmp_path / "run")
    new = tmp_path / "new.txt"
    new.write_text("Где моя карта?\nЯ хочу заблокировать счёт\n", encoding="utf-8")
    told = "warning: 100% of the utterances are in a language that the encoder hardly knows"
    assert told in ronid("predict", run, new).stderr
    assert told in ronid("update", run, new, "--device", "cpu").stderr
    texts = [f"--text={row.text}" for row in cli_corpus.rows()[:5]]
    assert ronid("predict", run, *texts).stderr == ""


def test_truth_is_scored_on_unlabelled_rows_only(fitted: Path) -> None:
    found, intents = assigned(fitted), json.loads((fitted / "intents.json").read_text())["intents"]
    known = [intent["name"] for intent in intents if intent["known"]]
    classes = [*known, *sorted(set(cli_corpus.TOPICS) - set(known))]
    free = [i for i, given in enumerate(found["given"]) if given is None]
    truth = [classes.index(str(found["truth"][i])) for i in free]
    predicted = [int(str(found["index"][i])) for i in free]
    expected = asdict(score(truth, predicted, len(known)))
    assert json.loads((fitted / "metrics.json").read_text())["scores"] == pytest.approx(expected)


def test_dev_file_drives_early_stopping(tmp_path: Path, encoder: Path, corpus: Path) -> None:
    dev = cli_corpus.write_csv(
        tmp_path / "dev.csv", [row for row in cli_corpus.rows() if row.intent][:20]
    )
    settings = tmp_path / "settings.toml"
    settings.write_text(
        'preset = "paper"\n[pretrain]\nepochs = 2\n[start]\nrestarts = 1\n[m_step]\nepochs = 1\n'
    )
    run = tmp_path / "run"
    ok(
        "fit", corpus, "--out", run, *INTENTS, "--dev", dev, "--config", settings,
        "--encoder", encoder, "--quiet",
    )  # fmt: skip
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    pretrained = [row for row in history if row["stage"] == "pretrain"]
    assert len(pretrained) == 2
    # 20 rows are held out, so that accuracy moves in steps of 5 percent.
    assert all(row["dev_accuracy"] % 5 == 0 for row in pretrained)
    assert {path.name for path in run.iterdir()} == RESULTS


def test_settings_of_a_run_make_the_same_run(
    tmp_path: Path, encoder: Path, corpus: Path, fitted: Path
) -> None:
    run = tmp_path / "run"
    ok("fit", corpus, "--out", run, *INTENTS, "--config", fitted / "config.toml", "--quiet")
    assert assigned(run)["confidence"] == assigned(fitted)["confidence"]


def test_label_used_once_is_a_warning(
    tmp_path: Path, encoder: Path, corpus: Path, quick: Path
) -> None:
    utterances = cli_corpus.rows()
    utterances[-1] = cli_corpus.Row("battery power today", "batery", "battery")
    path = cli_corpus.write_csv(tmp_path / "calls.csv", utterances)
    done = ronid(
        "fit", path, "--out", tmp_path / "run", *INTENTS, "--encoder", encoder, "--config", quick,
        "--json",
    )  # fmt: skip
    assert done.returncode == 0
    warned = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert len(warned) == 1
    assert "one labelled utterance only (batery); label more, or check the spelling" in warned[0]
    assert "batery" in [intent["name"] for intent in json.loads(done.stdout)["intents"]]


def test_labels_that_differ_in_case_only_are_a_warning(
    tmp_path: Path, encoder: Path, quick: Path
) -> None:
    utterances = cli_corpus.rows()
    for row in (0, 4):
        utterances[row] = cli_corpus.Row(utterances[row].text, "REFUND", "refund")
    path = cli_corpus.write_csv(tmp_path / "calls.csv", utterances)
    done = ronid(
        "fit", path, "--out", tmp_path / "run", "--encoder", encoder, "--config", quick,
        "--intents", "6", "--quiet",
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "warning: labels that differ in case only make intents of their own: 'REFUND' (2) beside "
        "'refund' (14); if they are one, write them alike"
    ]


def test_predict_answers_single_utterances(fitted: Path) -> None:
    asked = ("refund my money", "password reset, please", "zzz")
    arguments = [part for text in asked for part in ("--text", text)]
    done = ronid("predict", fitted, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["text"] for row in rows] == list(asked)
    answers = json.loads(ok("predict", fitted, *arguments, "--json"))
    for row, answer in zip(rows, answers, strict=True):
        assert row["intent"] == answer["intent"]
        assert float(row["confidence"]) == answer["confidence"]
        assert row["known"] == str(answer["known"]).lower()
        assert 1 / cli_corpus.N_INTENTS <= answer["confidence"] <= 1
        assert float(row["belonging"]) == answer["belonging"]
        assert row["accepted"] == str(answer["accepted"]).lower()


def test_predict_says_what_is_of_none_of_the_intents(fitted: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text("text\nzzz qqq xxx\n12345 67890\n")
    done = ronid("predict", fitted, mine, "--json")
    assert "2 of 2 utterances are of none of the intents" in done.stderr
    assert [row["accepted"] for row in json.loads(done.stdout)] == [False, False]
    done = ronid("predict", fitted, mine, "--json", "--threshold", "0")
    assert "none of the intents" not in done.stderr
    assert [row["accepted"] for row in json.loads(done.stdout)] == [True, True]
    done = ronid("predict", fitted, mine, "--threshold", "2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the threshold is 2.0; give a number from 0 (accept all) to 1" in done.stderr


def test_predict_agrees_with_the_run_and_across_formats(
    fitted: Path, corpus: Path, tmp_path: Path
) -> None:
    for ending in ("csv", "jsonl", "parquet"):
        done = ronid("predict", fitted, corpus, "--out", tmp_path / f"answers.{ending}", "--quiet")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with (tmp_path / "answers.csv").open(encoding="utf-8", newline="") as file:
        from_csv = [
            row
            | {name: float(row[name]) for name in ("confidence", "belonging")}
            | {name: row[name] == "true" for name in ("known", "accepted")}
            for row in csv.DictReader(file)
        ]
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == from_csv
    assert pq.read_table(tmp_path / "answers.parquet").to_pylist() == from_csv
    found = assigned(fitted)
    free = [i for i, given in enumerate(found["given"]) if given is None]
    assert [from_csv[i]["intent"] for i in free] == [found["intent"][i] for i in free]


def test_predict_reads_standard_input_and_a_named_column(fitted: Path) -> None:
    said = ok(
        "predict", fitted, "-", "--column", "what", "--format", "csv", "--json", "--quiet",
        stdin=b"what,text\nrefund my money,no\nreset password,no\n",
    )  # fmt: skip
    assert [row["text"] for row in json.loads(said)] == ["refund my money", "reset password"]


def test_predict_says_what_it_guessed(fitted: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text("conv_id,message,category\n7,refund my money,x\n7,reset password,x\n")
    done = ronid("predict", fitted, mine, "--id", "conv_id")
    assert done.stderr.splitlines()[:2] == [
        "column 'message' is read as the text; to use another, pass --column NAME",
        "1 id occurs more than once, such as '7'",
    ]
    assert "category" not in done.stderr  # labels are not asked for
    lines = b"question\nset an alarm\ncancel it\n"
    done = ronid("predict", fitted, "-", stdin=lines)
    assert "the first line, 'question', is read as a header" in done.stderr.splitlines()
    assert len(done.stdout.splitlines()) == 3
    done = ronid("predict", fitted, "-", stdin=b"set an alarm\ncancel it\n")
    assert "'set an alarm', is read as an utterance; if it is a header, pass it as --column" in (
        done.stderr
    )
    assert ronid("predict", fitted, "-", "--quiet", stdin=lines).stderr == ""


def test_predict_reads_quoted_lines_of_standard_input(fitted: Path) -> None:
    done = ronid("predict", fitted, "-", "--json", stdin=b'text\n"refund, please"\n"cancel it"\n')
    assert [row["text"] for row in json.loads(done.stdout)] == ["refund, please", "cancel it"]
    assert "the first line, 'text', is read as a header" in done.stderr


def test_predict_never_overwrites_a_file(fitted: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text("text,note\nrefund my money,keep\n")
    done = ronid("predict", fitted, mine, "--out", mine)
    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert mine.read_text() == "text,note\nrefund my money,keep\n"


def test_predict_carries_identifiers_and_counts_rows_without_text(
    fitted: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text("ticket,text\na1,refund my money\na2,\na3,reset password\n")
    done = ronid("predict", fitted, mine, "--id", "ticket")
    assert done.returncode == 0
    assert "1 of 3 rows have no text and were left out" in done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [(row["id"], row["text"]) for row in rows] == [
        ("a1", "refund my money"),
        ("a3", "reset password"),
    ]


def test_predict_refuses_an_empty_utterance(fitted: Path) -> None:
    done = ronid("predict", fitted, "--text", " ")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--text is empty" in done.stderr


def test_evaluate_without_novel_rows_gives_null_not_nan(fitted: Path, tmp_path: Path) -> None:
    known = next(i["name"] for i in json.loads((fitted / "intents.json").read_text())["intents"])
    mine = tmp_path / "mine.csv"
    mine.write_text(f"text,label\nrefund my money,{known}\nreset password,\n")
    done = ronid("evaluate", fitted, mine, "--json", "--quiet")
    assert done.returncode == 0
    scores = json.loads(done.stdout, parse_constant=pytest.fail)["scores"]
    assert scores["novel_acc"] is None
    assert "1 utterance has no true intent" in ronid("evaluate", fitted, mine).stderr


def test_resume_refuses_other_options(fitted: Path) -> None:
    done = ronid("fit", "--resume", fitted, "--intents", "3")
    assert done.returncode == 2
    assert "--resume takes only the run's folder" in done.stderr


def test_run_moves_and_its_encoder_too(
    fitted: Path, encoder: Path, tmp_path: Path, corpus: Path
) -> None:
    import shutil

    run = shutil.copytree(fitted, tmp_path / "elsewhere")
    settings = (run / "config.toml").read_text()
    (run / "config.toml").write_text(settings.replace(str(encoder), str(tmp_path / "gone")))
    done = ronid("predict", run, "--text", "refund")
    assert done.returncode == 2
    assert "does not exist; check --encoder" in done.stderr
    ask = ("--text", "refund my money now")
    assert ok("predict", run, *ask, "--encoder", encoder) == ok("predict", fitted, *ask)


def test_evaluate_equals_the_metrics_of_predict(fitted: Path, corpus: Path, tmp_path: Path) -> None:
    told = json.loads(ok("evaluate", fitted, corpus, "--label", "truth", "--json", "--quiet"))
    answers = json.loads(ok("predict", fitted, corpus, "--json", "--quiet"))
    intents = json.loads((fitted / "intents.json").read_text())["intents"]
    number = {intent["name"]: intent["index"] for intent in intents}
    known = [intent["name"] for intent in intents if intent["known"]]
    classes = [*known, *sorted(set(cli_corpus.TOPICS) - set(known))]
    truth = np.array([classes.index(row.truth) for row in cli_corpus.rows()])
    predicted = np.array([number[answer["intent"]] for answer in answers])
    assert told["rows"] == len(truth)
    expected = asdict(score(truth, predicted, len(known)))
    assert told["scores"]["strict_acc"] is not None
    told_scores = {name: np.nan if v is None else v for name, v in told["scores"].items()}
    assert told_scores == pytest.approx(expected, nan_ok=True)


def test_evaluate_counts_labelled_rows_only(fitted: Path, corpus: Path) -> None:
    done = ronid("evaluate", fitted, corpus, "--label", "intent")
    assert done.returncode == 0
    assert "45 utterances with a true intent" in done.stderr
    words = [line.split()[:2] for line in done.stdout.splitlines()[:6]]
    assert words[1:] == [
        ["strict", "accuracy"], ["known", "by"], ["novel,", "in"], ["ACC", words[4][1]],
        ["known", words[5][1]],
    ]  # fmt: skip


def test_evaluate_says_what_it_guessed_and_what_was_labelled_in_the_fit(
    fitted: Path, corpus: Path, tmp_path: Path
) -> None:
    guessed = ronid("evaluate", fitted, corpus)
    assert "column 'text'" in guessed.stderr
    assert "column 'intent'" in guessed.stderr
    assert "45 of these utterances were labelled in the fit; " in guessed.stderr
    other = tmp_path / "other.csv"
    other.write_text("text,label\na refund that nobody asked for,refund\n")
    assert "labelled in the fit" not in ronid("evaluate", fitted, other).stderr
    assert ronid("evaluate", fitted, corpus, "--quiet").stderr == ""
    told = ronid("evaluate", fitted, corpus, "--json")
    assert set(json.loads(told.stdout)) == {"run", "input", "rows", "scores"}


def test_report_is_written_anew(fitted: Path, tmp_path: Path) -> None:
    path = tmp_path / "again.html"
    done = ronid("report", fitted, "--out", path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{path}\n", "")
    assert path.read_text() == (fitted / "report.html").read_text()
    assert str(tmp_path.parent) not in path.read_text()
    assert json.loads(ok("report", fitted, "--json")) == {"report": str(fitted / "report.html")}


def test_data_report_through_the_main_command(corpus: Path) -> None:
    found = json.loads(ok("data", "report", corpus, "--json"))
    assert (found["rows_kept"], found["labelled"]) == (360, 45)
    assert "banking" in ok("data", "list")


def test_model_of_the_run_loads_in_python(fitted: Path, corpus: Path) -> None:
    from ronid import RoNID

    model = RoNID.load(fitted, device="cpu")
    answers = json.loads(ok("predict", fitted, corpus, "--json", "--quiet"))
    texts = [answer["text"] for answer in answers]
    assert model.predict(texts).tolist() == [answer["intent"] for answer in answers]


def test_whole_encoder_can_be_trained_and_used_again(
    tmp_path: Path, encoder: Path, corpus: Path
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(
        'preset = "paper"\n[encoder]\ntrainable_layers = -1\n[pretrain]\nepochs = 1\n'
        "trainable_layers = -1\n[start]\nrestarts = 1\n[m_step]\nepochs = 1\nlr = 1e-3\n"
    )
    run = tmp_path / "run"
    ok(
        "fit", corpus, "--out", run, *INTENTS, "--config", settings, "--encoder", encoder,
        "--quiet",
    )  # fmt: skip
    answers = json.loads(ok("predict", run, corpus, "--json", "--quiet"))
    found = assigned(run)
    free = [i for i, given in enumerate(found["given"]) if given is None]
    agreed = np.mean([answers[i]["intent"] == found["intent"][i] for i in free])
    assert agreed == 1
