"""A whole run in Chinese, with an encoder that knows its characters."""

import csv
import itertools
import json
from pathlib import Path

import pytest

from tests.helpers import cli_corpus
from tests.helpers.cli_corpus import ok, ronid

pytestmark = pytest.mark.slow

TOPICS = {
    "退款": ["退款", "退钱", "多收费", "发票"],
    "解锁": ["解锁", "开锁", "扫码", "车锁"],
    "密码": ["密码", "登录", "重置", "账户"],
    "电池": ["电池", "没电", "充电", "电量"],
}
OPENINGS, ENDINGS = ["请问", "你好", "为什么", "我的", "这个", "哪里"], ["呢", "吗", "啊"]
KNOWN = ("退款", "解锁")


def write_corpus(path: Path) -> Path:
    """Write 288 utterances of four intents, two of them known by some labels."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("text", "intent", "truth"))
        for truth, words in TOPICS.items():
            texts = itertools.product(OPENINGS, words, ENDINGS)
            for i, (opening, word, ending) in enumerate(texts):
                others = "".join(words[(i + step) % len(words)] for step in (1, 2))
                label = truth if truth in KNOWN and i % 4 == 0 else ""
                writer.writerow((f"{opening}{word}{others}{ending}", label, truth))
    return path


def test_intents_are_found_named_and_predicted(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "calls.csv")
    letters = sorted(set(corpus.read_text("utf-8")) - set("\r\n,abcdefghijklmnopqrstuvwxyz"))
    encoder, run = cli_corpus.write_encoder(tmp_path / "bert", letters), tmp_path / "run"
    done = ronid(
        "fit", corpus, "--out", run, "--intents", "4", "--truth", "truth", "--encoder", encoder,
        "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "hardly" not in done.stderr  # no warning that the encoder does not know the script
    found = json.loads(done.stdout)
    assert found["scores"]["acc"] > 90
    names = [intent["name"] for intent in found["intents"]]
    assert {*KNOWN} < {*names}
    assert all(any(c in letters for c in name) for name in names)
    answer = ok("predict", run, "--text", "你好充电电池没电呢")
    assert "充电" in answer
