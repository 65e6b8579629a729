"""Every method through the command line: the same folder, predictions, report and evaluation."""

import json
from pathlib import Path

import pytest

from ronid import IntentDiscovery
from ronid.methods import METHODS
from ronid.toml import to_toml
from tests.helpers.cli_corpus import N_INTENTS, ok
from tests.helpers.method_configs import QUICK

RONID = {"preset": "fast", "contrast": {"epochs": 1}, "m_step": {"epochs": 2}}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ("kmeans", "dec", "ronid") else pytest.mark.slow)
        for name in METHODS
    ],
)
def test_a_run_of_any_method_can_be_used_like_one_of_ours(
    name: str, tmp_path: Path, corpus: Path, encoder: Path
) -> None:
    config, run = tmp_path / "quick.toml", tmp_path / "run"
    config.write_text(to_toml({"format_version": 1, "method": name} | QUICK.get(name, RONID)))
    said = ok(
        "fit", corpus, "--out", run, "--intents", str(N_INTENTS), "--exactly", "--truth", "truth",
        "--encoder", encoder, "--config", config, "--device", "cpu", "--json", "--quiet",
    )  # fmt: skip
    found = json.loads(said)
    assert len(found["intents"]) == N_INTENTS
    assert found["scores"]["acc"] >= 100 / N_INTENTS
    names = {intent["name"] for intent in found["intents"]}
    assert METHODS[name].title in (run / "report.html").read_text(encoding="utf-8")
    text = "where is the nearest station dock map"
    (answer,) = json.loads(ok("predict", run, "--text", text, "--device", "cpu", "--json"))
    assert answer["intent"] in names
    assert json.loads(ok("evaluate", run, "--device", "cpu", "--json"))
    loaded = IntentDiscovery.load(run, device="cpu")
    assert loaded.method == name
    assert loaded.predict([text])[0] == answer["intent"]
