"""Every target: what is written can be read back, and has the structure it documents."""

import csv
import json
import re
import uuid
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronid.errors import UsageError
from ronid.export.batch import Batch, Choice, Options, make_batch
from ronid.export.catalogue import Catalogue
from ronid.export.formats import FORMATS, load_format
from tests.helpers.export_strategies import NAMES, TEXTS, called, catalogue, said

KEEPS_ALL = ("csv", "jsonl", "parquet", "hf", "openai-jsonl")
ONE = catalogue([TEXTS, ["one", "two"]], ["plain", "取消 订单"])


def written(to: str, made: Catalogue, folder: Path, options: Options | None = None) -> Batch:
    """Write a catalogue, and return what the target was to get."""
    options = options or Options()
    module = load_format(to)
    batch = make_batch(made, module.target(options), Choice(out_of_scope=True))
    module.write(batch, folder, options)
    return batch


@pytest.mark.parametrize("to", FORMATS)
@given(groups=st.lists(st.lists(said, min_size=2, max_size=6, unique=True), min_size=1, max_size=4),
       names=st.lists(called, min_size=4, max_size=4))  # fmt: skip
def test_round_trip(to: str, groups: list[list[str]], names: list[str]) -> None:
    made = catalogue(groups, names[: len(groups)])
    with TemporaryDirectory() as folder:
        try:
            batch = written(to, made, Path(folder))
        except UsageError:
            return  # nothing within the limits
        found = load_format(to).read(Path(folder))
    exact = to == "rasa"  # what had to be changed is kept beside
    wanted = [(x.row.text if exact else x.text, batch.names[x.intent]) for x in batch.lines]
    assert sorted(found) == sorted(wanted)
    if to in KEEPS_ALL:
        assert found == wanted
        assert not batch.changed


@pytest.mark.parametrize("to", FORMATS)
def test_markup_survives_wherever_the_target_has_room_for_it(to: str, tmp_path: Path) -> None:
    batch = written(to, ONE, tmp_path)
    read = {text for text, _ in load_format(to).read(tmp_path)}
    lost = {text for text in TEXTS if text not in read}
    cannot = {
        "lex": {text for text in TEXTS if "{" in text or "}" in text},
        "watson": {text for text in TEXTS if re.search("[\r\n\t]", text)},
    }
    assert lost == cannot.get(to, set())
    assert not batch.left_out


@pytest.mark.parametrize("to", FORMATS)
def test_files_are_those_that_the_table_names(to: str, tmp_path: Path) -> None:
    written(to, ONE, tmp_path)
    files = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert files == set(FORMATS[to].files)


def as_rasa_reads(folder: Path) -> list[tuple[str, str]]:
    """Read training data by the documented rules of Rasa."""
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load((folder / "nlu.yml").read_text(encoding="utf-8"))
    assert set(content) == {"version", "nlu"}
    assert content["version"] == "3.1"
    pairs = []
    for block in content["nlu"]:
        assert set(block) == {"intent", "examples"}
        examples = block["examples"]
        if isinstance(examples, str):
            assert all(line.startswith("-") for line in examples.splitlines())
            texts = [line[1:] for line in examples.splitlines()]
        else:
            assert all(set(each) <= {"text", "metadata"} for each in examples)
            texts = [each["text"] for each in examples]
        pairs += [(text.strip("\n\r "), block["intent"]) for text in texts]
    return pairs


def test_rasa_sees_no_entities_and_no_retrieval_intents(tmp_path: Path) -> None:
    batch = written("rasa", catalogue([TEXTS, ["a", "b"]], ["yes", "faq/topic"]), tmp_path)
    pairs = as_rasa_reads(tmp_path)
    assert pairs == [(line.text, batch.names[line.intent]) for line in batch.lines]
    assert not any(re.search(r"\[[^]]+\][(\[{]", text) for text, _ in pairs)
    assert {intent for _, intent in pairs} == {"yes", "faq_topic"}
    yaml = pytest.importorskip("yaml")
    domain = yaml.safe_load((tmp_path / "domain.yml").read_text(encoding="utf-8"))
    assert domain == {"version": "3.1", "intents": ["yes", "faq_topic"]}


@given(texts=st.lists(said, min_size=2, max_size=8, unique=True))
def test_rasa_reads_every_utterance_as_it_was_meant(texts: list[str]) -> None:
    with TemporaryDirectory() as folder:
        try:
            batch = written("rasa", catalogue([texts]), Path(folder))
        except UsageError:
            return
        assert as_rasa_reads(Path(folder)) == [(line.text, "intent_0") for line in batch.lines]


def test_rasa_lines_are_plain_where_they_can_be(tmp_path: Path) -> None:
    written("rasa", catalogue([['say "hi"', "it’s #1 – a\\b"]], ["greet"]), tmp_path)
    assert (tmp_path / "nlu.yml").read_text(encoding="utf-8") == (
        'version: "3.1"\n\nnlu:\n- intent: greet\n  examples: |\n'
        '    - say "hi"\n    - it’s #1 – a\\b\n'
    )


def archive(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        assert all(not name.startswith("/") and ".." not in name for name in file.namelist())
        return {name: json.loads(file.read(name)) for name in file.namelist()}


def test_dialogflow_package_is_that_of_an_agent(tmp_path: Path) -> None:
    texts = [[f"{i} one", f"{i} two"] for i in range(len(NAMES))]
    options = Options(language="pt-BR", name="Desk")
    batch = written("dialogflow-cx", catalogue(texts, NAMES), tmp_path, options)
    files = archive(tmp_path / "agent.zip")
    agent = files.pop("agent.json")
    assert (agent["displayName"], agent["defaultLanguageCode"]) == ("Desk", "pt-br")
    assert f"flows/{agent['startFlow']}/{agent['startFlow']}.json" in files
    for intent, name, lines in batch.by_intent():
        about = files[f"intents/{name}/{name}.json"]
        assert uuid.UUID(about["name"])
        assert about["displayName"] == name
        assert about["description"] == "what it is"
        phrases = files[f"intents/{name}/trainingPhrases/pt-br.json"]["trainingPhrases"]
        assert about["numTrainingPhrases"] == len(phrases) == len(lines), intent
        for phrase in phrases:
            assert set(phrase) == {"id", "parts", "repeatCount", "languageCode"}
            assert [set(part) for part in phrase["parts"]] == [{"text", "auto"}]
    ids = [p["id"] for path, c in files.items() if "Phrases/" in path for p in c["trainingPhrases"]]
    assert len(set(ids)) == len(ids)


def test_lex_archive_is_that_of_a_bot(tmp_path: Path) -> None:
    texts = [[f"{i} one {{slot}}", f"{i} two"] for i in range(len(NAMES))]
    options = Options(name="My desk!", language="de")
    batch = written("lex", catalogue(texts, NAMES), tmp_path, options)
    files = archive(tmp_path / "bot.zip")
    assert files["manifest.json"]["metadata"] == {
        "schemaVersion": "1.0", "fileFormat": "LexJson", "resourceType": "Bot",
    }  # fmt: skip
    assert files["My_desk/Bot.json"]["name"] == "My_desk"
    place = "My_desk/BotLocales/de_DE"
    assert files[f"{place}/BotLocale.json"]["identifier"] == "de_DE"
    fallback = files[f"{place}/Intents/FallbackIntent/Intent.json"]
    assert fallback["parentIntentSignature"] == "AMAZON.FallbackIntent"
    for _, name, lines in batch.by_intent():
        about = files[f"{place}/Intents/{name}/Intent.json"]
        assert about["name"] == name
        assert about["sampleUtterances"] == [{"utterance": line.text} for line in lines]
        assert not any(set("{}") & set(line.text) for line in lines)


@pytest.mark.parametrize(
    ("language", "locale"),
    [
        ("en", "en_US"),
        ("en-gb", "en_GB"),
        ("es-419", "es_419"),
        ("ZH", "zh_CN"),
        ("da-DK", "da_DK"),
    ],
)
def test_lex_locale_follows_the_language(language: str, locale: str) -> None:
    from ronid.export.formats.lex import locale_of

    assert locale_of(language) == locale


def test_lex_asks_for_a_region_that_it_cannot_guess(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="wants a region too: --language sw-XX"):
        written("lex", ONE, tmp_path, Options(language="sw"))


def test_watson_file_has_two_fields_and_no_header(tmp_path: Path) -> None:
    written("watson", catalogue([["a\r\nb", 'c\td, "e"']], ["sys-x y"]), tmp_path)
    with (tmp_path / "intents.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [["a b", "intent_sys-x_y"], ['c d, "e"', "intent_sys-x_y"]]


def test_clu_project_has_the_documented_fields(tmp_path: Path) -> None:
    made = catalogue([["one", "x" * 501]], ["None"])
    nothing = Catalogue(made.intents, (*made.rows, type(made.rows[0])("noise", None)))
    batch = written("clu", nothing, tmp_path, Options(language="en-US", name="A b"))
    project = json.loads((tmp_path / "project.json").read_text(encoding="utf-8"))
    assert set(project) == {"projectFileVersion", "stringIndexType", "metadata", "assets"}
    assert project["metadata"]["projectName"] == "A_b"
    assert project["assets"]["intents"] == [{"category": "intent_None"}, {"category": "None"}]
    spoken = [(each["text"], each["intent"]) for each in project["assets"]["utterances"]]
    assert spoken == [("one", "intent_None"), ("noise", "None")]
    fields = {"text", "intent", "language", "dataset", "entities"}
    assert all(set(each) == fields for each in project["assets"]["utterances"])
    assert [each.why for each in batch.left_out] == ["longer than 500 characters"]


def test_hugging_face_loads_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    batch = written("hf", ONE, tmp_path)
    loaded = datasets.load_dataset(str(tmp_path / "dataset"), split="train")
    assert loaded.features["label"].names == ["plain", "取消 订单"]
    assert loaded["text"][:] == [line.text for line in batch.lines]
    assert loaded["by"][0] == "model"


def test_fine_tuning_lines_are_conversations(tmp_path: Path) -> None:
    batch = written("openai-jsonl", ONE, tmp_path, Options(system=""))
    lines = (tmp_path / "training.jsonl").read_text(encoding="utf-8").split("\n")
    talks = [json.loads(line)["messages"] for line in lines if line]
    assert len(talks) == len(batch.lines)
    assert all([each["role"] for each in talk] == ["user", "assistant"] for talk in talks)
    few = make_batch(catalogue([["a"]]), load_format("openai-jsonl").target(Options()), Choice())
    assert few.notes == ("only 1 utterance: 10 are needed",)


@pytest.mark.parametrize("name", ["utterances.csv", "utterances.jsonl", "utterances.parquet"])
def test_tables_can_be_fitted_again(name: str, tmp_path: Path) -> None:
    from ronid import load_corpus

    channels = [f"c{i}" for i in range(4)]
    made = catalogue(
        [["a\nb", 'say "hi"'], ["c", "c"]], ["x", "y"], channel=channels, status=channels
    )
    written(Path(name).suffix[1:], made, tmp_path)
    corpus = load_corpus(tmp_path / name, id="channel")
    assert corpus.texts == ["a\nb", 'say "hi"', "c", "c"]
    assert corpus.labels == ["x", "x", "y", "y"]
    assert corpus.ids == channels
    assert load_corpus(tmp_path / name, id="status_given").ids == channels
