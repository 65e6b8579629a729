"""`ronid name` by a language model, then `ronid update` and `ronid learn`: its words stay."""

import json
import shutil
from pathlib import Path
from typing import Any

from ronid.review import open_desk
from ronid.review.events import Accept
from tests.helpers import cli_corpus
from tests.helpers.chat_server import names, serve
from tests.helpers.cli_corpus import ok


def intents(folder: Path) -> list[dict[str, Any]]:
    return list(json.loads((folder / "intents.json").read_text(encoding="utf-8"))["intents"])


def test_update_and_learn_keep_names_and_descriptions_of_a_model(
    fitted: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(fitted, tmp_path / "run"))
    with serve(lambda n, _: names(f"named_{n}", f"People want {n}.")) as chat:
        ok("name", run, "--namer", chat.url, "--namer-model", "small", "--quiet")
    before = [each for each in intents(run) if each["named_by"] == "model:small"]
    assert before
    new = cli_corpus.write_csv(tmp_path / "new.csv", cli_corpus.rows()[::30])
    ok("update", run, new, "--device", "cpu", "--quiet")
    after = {each["index"]: each for each in intents(run / "versions" / "1")}
    for each in before:
        for field in ("name", "description", "named_by"):
            assert after[each["index"]][field] == each[field]
    assert {path.name for path in run.iterdir()} >= {"sent.jsonl", "versions"}
    desk = open_desk(run)
    desk.act(Accept("i0"), "Ann", desk.version)
    desk.close()
    ok("learn", run, "--device", "cpu", "--quiet")
    trained = {each["index"]: each for each in intents(run / "versions" / "2")}
    for each in before:
        assert trained[each["index"]]["name"] == each["name"]
        assert trained[each["index"]]["description"] == each["description"]
