"""Every example of the README and of the first pages runs, and links and tables are right.

Run as a program, this file renews the table of settings in docs/method.md and what
docs/methods.md says of every method.
"""

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from ronid.config import EncoderConfig, OptimiserConfig, RoNIDConfig
from ronid.methods import METHODS, method, recipe
from ronid.presets import PRESETS
from tests.helpers import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
FITTING, RUN_FOLDER = (
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("fitting.md", "run_folder.md")
)
METHOD = ROOT / "docs" / "method.md"
METHODS_PAGE = ROOT / "docs" / "methods.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
TABLE = re.compile(r"(?<=<!-- config -->\n).*?(?=<!-- /config -->)", re.DOTALL)
LIST = re.compile(r"(?<=<!-- methods -->\n).*?(?=<!-- /methods -->)", re.DOTALL)


def blocks(language: str, text: str = README) -> list[str]:
    """Return the fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(text: str = README) -> list[list[str]]:
    """Return every command of the bash blocks, cut into words."""
    lines = "".join(blocks("bash", text)).splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def setting_table() -> str:
    """Return all settings as Markdown: name, both presets' values, and what the docstring says."""
    heads = " | ".join(f"`{name}`" for name in PRESETS)
    lines = [f"| setting | {heads} | what |", "| --- |" + " --- |" * (len(PRESETS) + 1)]
    for section in fields(RoNIDConfig):
        chosen = [getattr(preset, section.name) for preset in PRESETS.values()]
        if not is_dataclass(chosen[0]):
            continue
        about = described(type(chosen[0]))  # type: ignore[arg-type]
        for item in fields(chosen[0]):
            values = [f"`{getattr(preset, item.name)}`" for preset in chosen]
            cells = (f"`{section.name}.{item.name}`", *values, about.get(item.name, ""))
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def methods_list() -> str:
    """Return every method but RoNID as Markdown: its docstring, its settings, their values."""
    heads = ("`--method`", "name", "labels", "embeddings", "GPU", "published by")
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for name, spec in METHODS.items():
        needed = "needed" if spec.needs_labels else "used"
        labels = "not used" if spec.kind == "unsupervised" else needed
        takes, wants = ("yes" if one else "" for one in (spec.takes_embeddings, spec.wants_gpu))
        cells = (f"`{name}`", spec.full_title, labels, takes, wants, spec.paper)
        lines.append(f"| {' | '.join(cells)} |")
    for name, spec in METHODS.items():
        if name != "ronid":
            lines += ["", f"## {spec.title}", "", (method(name).__doc__ or "").strip(), ""]
            lines += own_settings(name)
    return "\n".join(lines) + "\n"


def own_settings(name: str) -> list[str]:
    """Return the lines of the table of a method's settings, with those of the benchmarks."""
    config, per_dataset = recipe(name), getattr(method(name), "PUBLISHED", {})
    lines = ["| setting | value | what |", "| --- | --- | --- |"]
    values: list[tuple[str, Any, str]] = []
    for item in fields(config):  # type: ignore[arg-type]
        value = getattr(config, item.name)
        if isinstance(value, EncoderConfig | OptimiserConfig):  # only what differs from the usual
            usual = type(value)()
            about = described(type(value))
            for part in fields(value):
                if getattr(value, part.name) != getattr(usual, part.name):
                    key = f"{item.name}.{part.name}"
                    values.append((key, getattr(value, part.name), about.get(part.name, "")))
        elif is_dataclass(value):
            about = described(type(value))  # type: ignore[arg-type]
            values += [
                (f"{item.name}.{part.name}", getattr(value, part.name), about.get(part.name, ""))
                for part in fields(value)
            ]
        elif item.name not in ("method", "preset"):
            values.append((item.name, value, described(type(config)).get(item.name, "")))
    for key, value, about in values:
        special = [
            f"{dataset} `{found}`"
            for dataset, changes in per_dataset.items()
            if (found := _at(changes, key)) is not None
        ]
        shown = ", ".join([f"`{value}`", *special])
        lines.append(f"| `{key}` | {shown} | {about} |")
    return lines


def _at(changes: Any, key: str) -> Any:
    """Return the value of a dotted key of nested changes, or None."""
    for part in key.split("."):
        changes = changes.get(part) if isinstance(changes, dict) else None
    return changes


def described(config: type[Any]) -> dict[str, str]:
    """Return what a dataclass's docstring, or that of one it extends, says about its fields."""
    found: dict[str, str] = {}
    kinds = reversed(config.__mro__)
    arguments = "".join((kind.__doc__ or "").partition("Args:\n")[2] + "\n" for kind in kinds)
    for line in arguments.splitlines():
        start = re.match(r" {8}(\w+): (.*)", line)
        if start:
            name, found[start[1]] = start[1], start[2]
        elif line.strip():
            found[name] += f" {line.strip()}"
    return {name: text.replace("|", "\\|") for name, text in found.items()}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples read, such as the demo corpus."""
    import csv

    from ronid.config import updated
    from ronid.data.corpus import corpus_from
    from ronid.data.demo import demo_corpus
    from ronid.presets import preset
    from ronid.run import Job, RunFolder

    folder = tmp_path_factory.mktemp("desk")
    corpus = demo_corpus()
    rows = list(zip(corpus.texts, corpus.labels, corpus.truth or (), strict=True))
    tables: dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]] = {
        "calls.csv": (("text", "intent"), [(text, label) for text, label, _ in rows]),
        "new.csv": (("text",), [(text,) for text, _, _ in rows[:50]]),
        "checked.csv": (("text", "truth"), [(text, truth) for text, _, truth in rows[:200]]),
    }
    for name, (header, content) in tables.items():
        with (folder / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([header, *content])
    (block,) = blocks("toml", FITTING)
    (folder / "settings.toml").write_text(block, encoding="utf-8")
    small = corpus_from(corpus.texts[:60], corpus.labels[:60])
    quick = updated(preset("fast"), {"contrast": {"epochs": 1}, "m_step": {"epochs": 1}})
    RunFolder.create(folder / "stopped-run", Job(small, None, 24, quick, 0, "cpu"), "calls.csv")
    return folder


def environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HF_HUB_OFFLINE": "1"}


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("ronid", path=environment()["PATH"]) is None, reason="ronid is not installed"
)
def test_every_example_runs(desk: Path) -> None:
    pages = (README, FITTING, RUN_FOLDER)
    every = [tuple(words) for page in pages for words in commands(page) if words[0] == "ronid"]
    ran = list(dict.fromkeys(every))
    for words in ran:
        done = subprocess.run(
            words, cwd=desk, env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{shlex.join(words)}: {done.stderr}"
    assert {words[1] for words in ran} == {
        "data",
        "fit",
        "methods",
        "predict",
        "evaluate",
        "export",
        "name",
        "report",
        "update",
        "history",
        "undo",
    }
    assert len((desk / "answers.csv").read_text(encoding="utf-8").splitlines()) > 50
    assert (desk / "stopped-run" / "report.html").is_file()
    named = re.findall(r"^\| `([\w.]+)/?`(?:, `([\w.]+)`)? \|", RUN_FOLDER, re.MULTILINE)
    folders = {"encoder", "cache", "versions"}
    files = {name for row in named for name in row if "." in name or name in folders}
    assert files == {path.name for path in (desk / "run").iterdir()}
    (block,) = blocks("python")
    names, answer = output_of(block, desk).splitlines()
    assert 3 <= len(ast.literal_eval(names)) <= 15  # 8 new intents in truth
    assert re.fullmatch(r"\['\w+'\]", answer)
    for block in blocks("python", RUN_FOLDER):
        assert re.fullmatch(r"\['\w+'\]\n", output_of(block, desk))


def output_of(code: str, folder: Path) -> str:
    """Run Python code in a folder and return what it prints."""
    words = [sys.executable, "-c", code]
    done = subprocess.run(
        words, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= 150
    assert len([line for line in blocks("python")[0].splitlines() if line]) == 5


def test_only_known_programs_stand_in_shell_examples() -> None:
    for document in DOCUMENTS:
        programs = {words[0] for words in commands(document.read_text(encoding="utf-8"))}
        assert programs <= {"ronid", "make", "pip"}, document.name


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for document in DOCUMENTS:
        for program, *targets in commands(document.read_text(encoding="utf-8")):
            if program == "make":
                assert all(re.search(f"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_install_examples_name_what_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra in re.findall(r"\.\[(\w+)\]", README + FITTING):
        assert extra in project["optional-dependencies"]
    for constraint in re.findall(r"--constraint (\S+)", README):
        assert (ROOT / constraint).is_file()


def test_example_file_is_read_as_the_readme_says(tmp_path: Path) -> None:
    from ronid import load_corpus

    (block,) = blocks("csv")
    (tmp_path / "calls.csv").write_text(block, encoding="utf-8")
    assert load_corpus(tmp_path / "calls.csv").labels == ["change_plan", "unlock_failed", None]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_resolve(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if not target.startswith("https://"):
            assert (document.parent / target).exists(), target


def test_functions_of_the_method_page_are_where_it_says() -> None:
    rows = re.findall(
        r"^\| [^|]+ \| [^|]+ \| `(\w+)` \| \[([\w/.]+)\]\((\S+)\) \|", METHOD.read_text(), re.M
    )
    assert len(rows) >= 11
    for function, shown, path in rows:
        assert path == f"../src/ronid/{shown}"
        assert f"def {function}(" in (METHOD.parent / path).read_text(encoding="utf-8")


def test_settings_of_the_method_page_exist() -> None:
    sections = {item.name: getattr(PRESETS["paper"], item.name) for item in fields(RoNIDConfig)}
    named = re.findall(r"`([a-z]\w*)\.(\w+)(?:`| = )", METHOD.read_text(encoding="utf-8"))
    assert len(named) > 30
    for section, setting in named:
        assert hasattr(sections[section], setting), f"{section}.{setting}"


def test_table_of_settings_is_the_one_of_the_code() -> None:
    (table,) = TABLE.findall(METHOD.read_text(encoding="utf-8"))
    assert table == setting_table(), "renew it with: python tests/test_readme.py"


def test_every_setting_of_every_method_is_described() -> None:
    for name in METHODS:
        if name != "ronid":
            blank = [line for line in own_settings(name) if line.endswith("|  |")]
            assert not blank, name


def test_list_of_methods_is_the_one_of_the_code() -> None:
    (found,) = LIST.findall(METHODS_PAGE.read_text(encoding="utf-8"))
    assert found == methods_list(), "renew it with: python tests/test_readme.py"


def test_citation_is_that_of_the_readme() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    from ronid.version import __version__

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == __version__
    assert citation["authors"] == [{"name": "The RoNID developers"}]
    paper = citation["preferred-citation"]
    authors = [f"{one['given-names']} {one['family-names']}" for one in paper["authors"]]
    quoted = " ".join(line.removeprefix("> ") for line in README.splitlines() if line[:2] == "> ")
    expected = f"{', '.join(authors)}. {paper['title']}. {paper['collection-title']}."
    assert quoted == expected


def test_changelog_has_this_version() -> None:
    from ronid.version import __version__

    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_no_tracked_text_file_holds_a_machine_path() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    # safe.directory: a checkout may belong to another user than the one who tests.
    listing = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-co", "--exclude-standard", "-z"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    # Written in parts, so that this file does not hold what it looks for.
    folders = ("home/", "root/", "Users/", "work/", "tmp/", "mnt/")
    machine = re.compile(rf"(?<![\w.}}<])/(?:{'|'.join(folders)})\w")
    for name in filter(None, names.split("\0")):
        path = ROOT / name
        content = path.read_bytes() if path.is_file() else b""
        if b"\0" not in content[:8192]:
            found = machine.search(content.decode("utf-8", "replace"))
            assert found is None, f"{name}: {found}"


def test_picture_of_the_report_is_small() -> None:
    content = (ROOT / "docs" / "images" / "report.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert len(content) < 400_000


if __name__ == "__main__":
    for page, part, made in (
        (METHOD, TABLE, setting_table()),
        (METHODS_PAGE, LIST, methods_list()),
    ):
        text = page.read_text(encoding="utf-8")
        page.write_text(part.sub(lambda _, new=made: new, text), encoding="utf-8")
