"""The page on exports says what the code does.

Run as a program with the folder of a run, such as that of `ronid demo`, this file renews the table
and the examples of docs/exporting.md:

    python tests/test_exporting_page.py demo-run
"""

import json
import re
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from ronid.export.batch import Options
from ronid.export.catalogue import catalogue_of_run
from ronid.export.formats import FORMATS, load_format
from ronid.export.names import NameRule
from ronid.export.write import export_catalogue
from tests.helpers import ROOT

PAGE = ROOT / "docs" / "exporting.md"
TABLE = re.compile(r"(?<=<!-- targets -->\n).*?(?=<!-- /targets -->)", re.DOTALL)
EXAMPLES = re.compile(r"(?<=<!-- examples -->\n).*?(?=<!-- /examples -->)", re.DOTALL)
LINES, WIDTH = 12, 96


def targets_table() -> str:
    """Return what every target takes, as Markdown."""
    heads = ("`--to`", "for", "names", "utterance", "per intent", "in all", "the same twice")
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for to, about in FORMATS.items():
        target = load_format(to).target(Options())
        limits = target.limits
        at_least = f"{limits.least} at least" if limits.least > 1 else ""
        at_most = f"{limits.most:,} at most" if limits.most else ""
        bounds = (
            (limits.intents, "intents"),
            (limits.utterances, "utterances"),
            (limits.letters, "characters"),
        )
        few = f"{limits.least_in_all} utterances at least" if limits.least_in_all > 1 else ""
        many = [f"{bound:,} {noun}" for bound, noun in bounds if bound]
        cells = (
            f"`{to}`",
            about.title,
            named(target.names),
            f"{limits.longest:,} characters" if limits.longest else "",
            ", ".join(filter(None, (at_least, at_most))),
            ", ".join(filter(None, (few, *many))),
            {"intent": "not in an intent", "export": "no", None: "yes"}[limits.once],
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def named(rule: NameRule | None) -> str:
    """Return a rule of names in words."""
    if rule is None:
        return "as they are"
    symbols = " ".join("space" if symbol == " " else f"`{symbol}`" for symbol in rule.symbols)
    letters = "A-Z, a-z, 0-9" if rule.ascii else "letters, digits"
    taken = [f"`{word}`" for word in sorted(rule.reserved)] + [f"`{p}...`" for p in rule.prefixes]
    but = f"; not {', '.join(taken)}" if taken else ""
    return f"{letters}, {symbols}; {rule.longest} at most{but}"


def examples(run: Path) -> str:
    """Return one section per target: the command, and how its files begin."""
    catalogue, parts = catalogue_of_run(run), []
    with TemporaryDirectory() as folder:
        for to in FORMATS:
            done = export_catalogue(catalogue, to, Path(folder) / f"export-{to}")
            shown = [excerpt(path, path.relative_to(folder)) for path in done.files]
            command = f"```bash\nronid export {run.name} --to {to}\n```\n"
            parts.append("\n".join([f"### {FORMATS[to].title}\n", command, *shown]))
    return "\n".join(parts)


def excerpt(path: Path, name: Path) -> str:
    """Return how a file begins."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            inside = [
                each for each in names if "/Intents/app_" in each or "/trainingPhrases/" in each
            ]
            lines = archive.read(inside[0]).decode("utf-8").splitlines()
        listed = [*names[:6], f"... {len(names)} files", "", f"{inside[0]}:"]
        return fenced(name, "text", [*listed, *lines])
    if path.suffix == ".parquet":
        first = pq.read_table(path).slice(0, 1).to_pylist()[0]
        text = json.dumps(first, indent=1, ensure_ascii=False).splitlines()
        return fenced(name, "json", text, of="first row of ")
    kinds = {".yml": "yaml", ".jsonl": "json", ".json": "json", ".md": "markdown", ".csv": "csv"}
    lines = path.read_text(encoding="utf-8").splitlines()
    count = 3 if path.suffix == ".jsonl" else LINES
    if path.name == "project.json":
        count = lines.index('    "utterances": [') + 8
        skipped = [*lines[:14], "...", *lines[count - 8 : count]]
        return fenced(name, "text", skipped)
    return fenced(name, kinds[path.suffix], lines[:count])


def fenced(name: Path, kind: str, lines: list[str], of: str = "") -> str:
    cut = [line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in lines]
    cut = cut[: LINES + 12]
    return f"{of}`{name.as_posix()}`:\n\n```{kind}\n" + "\n".join(cut) + "\n```\n"


def test_table_of_targets_is_the_one_of_the_code() -> None:
    (table,) = TABLE.findall(PAGE.read_text(encoding="utf-8"))
    assert table == targets_table(), "renew it with: python tests/test_exporting_page.py RUN"


def test_every_target_has_an_example_of_every_file() -> None:
    (shown,) = EXAMPLES.findall(PAGE.read_text(encoding="utf-8"))
    assert re.findall(r"^ronid export demo-run --to (\S+)$", shown, re.MULTILINE) == list(FORMATS)
    for to, about in FORMATS.items():
        assert all(f"`export-{to}/{file}`:\n" in shown for file in about.files)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    for part, made in ((TABLE, targets_table()), (EXAMPLES, examples(Path(sys.argv[1])))):
        text = part.sub(lambda _, new=made: new, text)
    PAGE.write_text(text, encoding="utf-8")
