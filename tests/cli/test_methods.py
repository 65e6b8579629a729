"""Other methods through the command line: the same folder, report and predictions."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ronid import IntentDiscovery, RoNID
from ronid.cli.fit import without_gpu
from ronid.errors import UsageError
from ronid.methods import METHODS, Asked
from ronid.presets import WITHOUT_GPU
from tests.helpers.toy_corpus import TinyEncoder

Command = Callable[..., subprocess.CompletedProcess[str]]
FIT = ("--out", "run", "--intents", "3", "--device", "cpu")


def test_methods_are_listed(ronid: Command) -> None:
    shown = ronid("methods").stdout
    for name, spec in METHODS.items():
        assert name in shown
        assert spec.title in shown
    listed = json.loads(ronid("methods", "--json").stdout)
    assert [row["name"] for row in listed] == list(METHODS)
    takes = {row["name"] for row in listed if row["takes_embeddings"]}
    assert takes == {"kmeans", "agglomerative", "sae_kmeans", "dec", "dcn", "ronid"}
    assert [row["name"] for row in listed if not row["wants_gpu"]] == [
        "kmeans",
        "agglomerative",
        "ronid",
    ]
    assert {row["name"]: row["presets"] for row in listed}["ronid"] == ["paper", "default", "fast"]


def test_fit_report_predict_and_load(
    ronid: Command, calls: Path, tiny: TinyEncoder, tmp_path: Path
) -> None:
    done = ronid("fit", calls, *FIT, "--method", "agglomerative", "--encoder", tiny("bert"))
    assert done.returncode == 0, done.stderr
    assert "no GPU here" not in done.stderr  # that is for those who did not choose
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "AC, preset published" in page
    assert '"prior":false' in page
    card = (tmp_path / "run" / "README.md").read_text()
    assert "IntentDiscovery.load(FOLDER)" in card
    assert "method AC, preset published, seed 0." in card
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (facts["method"], facts["preset"]) == ("agglomerative", "published")
    answer = json.loads(ronid("predict", "run", "--text", "card lost", "--json").stdout)
    assert answer
    loaded = IntentDiscovery.load(tmp_path / "run", device="cpu")
    assert loaded.method == "agglomerative"
    assert loaded.predict(["card lost"])[0] in loaded.classes_
    with pytest.raises(UsageError, match="made by method 'agglomerative'; load it with Intent"):
        RoNID.load(tmp_path / "run", device="cpu")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "kmean"), "no method 'kmean'; did you mean 'kmeans'?"),
        (("--method", "kmeans", "--preset", "fast"), "method 'kmeans' has no preset 'fast'"),
        (("--method", "kmeans", "--config", "a.toml"), "contradicts method 'agglomerative'"),
        (("--config", "b.toml"), "unknown setting 'm_step'"),
        (("--config", "c.toml"), "name the one you mean, they fit dpn, dwgf"),
        (("--config", "d.toml"), "unknown setting 'm_stp'; did you mean 'm_step'?"),
    ],
)
def test_what_does_not_fit_together_is_refused_in_one_line(
    ronid: Command, calls: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "a.toml").write_text('method = "agglomerative"\n')
    (tmp_path / "b.toml").write_text('method = "kmeans"\n[m_step]\nepochs = 3\n')
    (tmp_path / "c.toml").write_text("[discovery]\nepochs = 3\n")
    (tmp_path / "d.toml").write_text("[m_stp]\nepochs = 3\n")
    done = ronid("fit", calls, *FIT, *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_file_of_settings_chooses_the_method(
    ronid: Command, calls: Path, tiny: TinyEncoder, tmp_path: Path
) -> None:
    (tmp_path / "a.toml").write_text('method = "kmeans"\nrestarts = 2\n')
    done = ronid("fit", calls, *FIT, "--config", "a.toml", "--encoder", tiny("bert"), "--quiet")
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "run" / "config.toml").read_text(encoding="utf-8")
    assert 'method = "kmeans"' in written
    assert "restarts = 2" in written


def test_fit_with_a_truth_ends_with_scores(
    ronid: Command, calls: Path, tiny: TinyEncoder, tmp_path: Path
) -> None:
    lines = calls.read_text(encoding="utf-8").splitlines()
    told = [f"{lines[0]},truth", *(f"{line},topic{i % 3}" for i, line in enumerate(lines[1:]))]
    (tmp_path / "told.csv").write_text("\n".join(told), encoding="utf-8")
    how = (*FIT, "--method", "kmeans", "--encoder", tiny("bert"))
    done = ronid("fit", tmp_path / "told.csv", *how, "--truth", "truth")
    assert done.returncode == 0, done.stderr
    assert "H-score" in done.stdout
    assert "agreement with the truth given" in done.stderr
    scores = json.loads((tmp_path / "run" / "metrics.json").read_text())["scores"]
    assert f"{scores['nmi']:.2f}" in done.stdout


def test_who_asks_for_long_training_on_a_cpu_is_told(
    ronid: Command, calls: Path, tiny: TinyEncoder, tmp_path: Path
) -> None:
    (tmp_path / "short.toml").write_text('method = "gcd"\n[contrast]\nepochs = 1\n')
    how = (*FIT, "--encoder", tiny("bert"))
    short = ronid("fit", calls, *how, "--config", "short.toml")
    assert short.returncode == 0, short.stderr
    assert "may take hours" not in short.stderr
    assert without_gpu(Asked("gcd", "auto", {}), "gcd")[0].startswith("without a GPU method 'gcd'")
    assert without_gpu(Asked("kmeans", "auto", {}), "kmeans") == []
    assert without_gpu(Asked("", "fast", {}), "ronid") == []
    assert without_gpu(Asked("", "auto", {}), "ronid") == [WITHOUT_GPU]


def test_what_is_reconstructed_is_called_so(ronid: Command) -> None:
    assert "dsscc: reconstruction" in ronid("methods").stdout.splitlines()
