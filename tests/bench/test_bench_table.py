import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ronid.bench.published import published
from ronid.bench.render import to_csv, to_html, to_markdown
from ronid.bench.rows import append_row
from ronid.bench.table import figure, make_table, seeds_text
from ronid.cli.app import app
from ronid.errors import UsageError
from ronid.methods import METHODS
from tests.helpers.benchmark_rows import made_row, skipped_row

THREE = [made_row(90.0, 0), made_row(92.0, 1), made_row(97.0, 2)]


def test_mean_and_sample_deviation_over_seeds() -> None:
    # mean 93; squares of 3, 1 and 4 sum to 26, over n - 1 = 2 gives 13
    (line,) = make_table(THREE, beside="none").lines
    assert str(line.figures["clinc", "acc"]) == "93.00 ± 3.61"
    assert line.figures["clinc", "acc"].std == pytest.approx(13**0.5)
    assert str(line.figures["clinc", "nmi"]) == "94.00 ± 3.61"
    assert line.seeds == {"clinc": (0, 1, 2)}


def test_one_seed_has_no_deviation() -> None:
    assert str(figure([90.0])) == "90.00"


def test_markdown_by_hand() -> None:
    text = to_markdown(make_table([*THREE, made_row(80.0, 0, preset="paper")], beside="none"))
    lines = text.splitlines()
    assert lines[2] == (
        "| method | variant | encoder | preset | known | seeds "
        "| CLINC NMI | CLINC ARI | CLINC ACC |"
    )
    assert lines[4] == (
        "| RoNID |  | all-MiniLM-L6-v2 | fast | 75% | 0-2 (n=3) "
        "| 94.00 ± 3.61 | 92.00 ± 3.61 | 93.00 ± 3.61 |"
    )
    assert lines[5].endswith("| paper | 75% | 0 (n=1) | 81.00 | 79.00 | 80.00 |")
    assert "scored on: test" in lines[0]
    assert "- lines of clinc have different seeds: 0; 0-2" in text


@pytest.mark.parametrize(
    "change",
    [
        {"encoder": "big"}, {"known_ratio": 0.25}, {"scored_on": "dev"}, {"preset": "paper"},
        {"labelled_ratio": 0.5}, {"k_rule": "filter"}, {"variant": "-OT"},
    ],
)  # fmt: skip
def test_what_differs_never_shares_a_line_whatever_is_shown(change: dict[str, object]) -> None:
    table = make_table([made_row(90), made_row(80, **change)], by=["method"], beside="none")
    assert len(table.lines) == 2
    assert table.by == ("method", *change)


def test_variants_stand_together_in_their_usual_order() -> None:
    names = ["-Own", "-Certainty", "-Inter", "-MLM", "-Contrast", "", "-Alone", "-OT"]
    rows = [
        made_row(90, seed, variant=name, encoder=encoder)
        for seed, name in enumerate(names)
        for encoder in ("big", "all-MiniLM-L6-v2")
    ]
    lines = make_table(rows, beside="none").lines
    assert [line.lead["encoder"] for line in lines] == ["big"] * 8 + ["all-MiniLM-L6-v2"] * 8
    expected = ["", "-OT", "-Inter", "-Contrast", "-MLM", "-Certainty", "-Own", "-Alone"]
    assert [line.lead["variant"] for line in lines] == expected * 2


def test_last_row_of_a_cell_counts_and_settings_that_differ_are_told() -> None:
    rows = [made_row(10, 0), made_row(90, 1, config_hash="c1"), made_row(92, 0)]
    table = make_table(rows, beside="none")
    assert str(table.lines[0].figures["clinc", "acc"]) == "91.00 ± 1.41"
    assert "rows come from different settings" in table.warnings[0]
    mixed = [made_row(90), made_row(90, dataset="banking", config_hash="c1")]
    assert "rows come from different settings" in make_table(mixed, beside="none").warnings[0]
    own = [row | {"preset": "published"} for row in mixed]  # constants by dataset
    assert not make_table(own, beside="none").warnings
    assert (
        "different settings"
        in make_table([*own, own[0] | {"seed": 5, "config_hash": "c2"}], beside="none").warnings[0]
    )


def test_reason_of_a_skip_stands_in_the_place_of_figures() -> None:
    rows = [made_row(90), skipped_row("out of GPU memory", dataset="banking")]
    table = make_table(rows, beside="none")
    assert "| out of GPU memory |  |  |" in to_markdown(table)
    assert '<td class="skip" colspan="3">out of GPU memory</td>' in to_html(table)
    assert ",banking,,,,,,out of GPU memory,," in to_csv(table)


def test_seeds_that_could_not_run_are_told() -> None:
    table = make_table([*THREE, skipped_row("no | luck", 3)], beside="none")
    assert table.lines[0].seeds == {"clinc": (0, 1, 2)}
    assert table.warnings == (
        "ronid fast all-MiniLM-L6-v2, clinc: 1 of 4 seeds left out: no | luck",
    )


def test_both_rules_are_lines_of_their_own() -> None:
    table = make_table(THREE, rule="both", beside="none")
    found = {line.lead["rule"]: line.figures["clinc", "acc"].mean for line in table.lines}
    assert found == {"argmax": pytest.approx(93), "refit": pytest.approx(91)}


def test_score_that_is_not_there_is_left_empty() -> None:
    table = make_table(THREE, measures=["acc", "novel_acc"], beside="none")
    assert ("clinc", "novel_acc") not in table.lines[0].figures


def test_published_lines_are_those_of_the_same_protocol() -> None:
    lines = make_table(THREE).lines[1:]
    assert all(line.source for line in lines)
    ronid = [line for line in lines if line.lead["method"] == "RoNID"]
    assert [str(line.figures["clinc", "acc"]) for line in ronid] == ["95.20"]
    own = make_table([*THREE, made_row(80, variant="-OT")], beside="own").lines[2:]
    assert {line.lead["variant"] for line in own} == {"", "-OT"}
    low = make_table([made_row(80, known_ratio=0.25)]).lines[1:]
    assert {line.lead["method"] for line in low} == {"USNID", "MTP-CLNN", "DeepAligned"}


def test_published_figures_are_complete_and_make_sense() -> None:
    table2 = [entry for entry in published() if entry.source.endswith("Table 2")]
    assert len(table2) == 18
    for entry in table2:
        assert set(entry.scores) == {"clinc", "banking", "stackoverflow"}
        assert all(set(s) == {"nmi", "ari", "acc"} for s in entry.scores.values())
    ablation = [entry for entry in published() if entry.variant]
    assert {entry.variant for entry in ablation} == {"-OT", "-Intra", "-Inter"}
    values = [v for e in published() for s in e.scores.values() for v in s.values()]
    assert all(0 < value < 100 for value in values)
    assert all(entry.source for entry in published())


def test_csv_has_one_line_per_figure() -> None:
    table = make_table([*THREE, made_row(70.5, dataset="banking")], beside="none")
    lines = list(csv.DictReader(io.StringIO(to_csv(table))))
    acc = {line["dataset"]: line for line in lines if line["measure"] == "acc"}
    assert (acc["clinc"]["mean"], acc["clinc"]["std"], acc["clinc"]["n"]) == (
        "93.0000", "3.6056", "3",
    )  # fmt: skip
    assert (acc["banking"]["std"], acc["banking"]["seeds"]) == ("", "0")


class Balanced(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.widths: list[int] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta",):
            self.open.append(tag)
        if tag == "tr":
            self.widths.append(0)
        if tag == "td":
            self.widths[-1] += int(dict(attrs).get("colspan") or 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_html_is_one_page_that_needs_nothing_else() -> None:
    rows = [*THREE, skipped_row("a < b & c", dataset="banking")]
    page = to_html(make_table(rows))
    assert page.startswith("<!doctype html>")
    assert not re.search(r"(src|href)=|@import|url\(", page)
    assert "a &lt; b &amp; c" in page
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    assert len({width for width in parser.widths if width}) == 1


def test_seeds_are_named_briefly() -> None:
    assert seeds_text([3, 0, 1, 2, 7]) == "0-3, 7"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "best"}, "no rule 'best'; choose from: argmax, refit, both"),
        ({"by": ["seed"]}, "no coordinate 'seed'"),
        ({"measures": ["f1"]}, "no measure 'f1'"),
        ({"beside": "some"}, "no choice of published lines 'some'"),
    ],
)
def test_wrong_wishes_are_one_line(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_table(THREE, **options)  # type: ignore[arg-type]


def test_no_rows_say_what_to_run() -> None:
    with pytest.raises(UsageError, match="ronid bench run CONFIG"):
        make_table([])


def test_command_reads_several_files_and_writes_one(tmp_path: Path) -> None:
    for row in THREE:
        append_row(tmp_path / f"{row['seed']}.jsonl", row)
    files = [str(tmp_path / f"{seed}.jsonl") for seed in range(3)]
    out = tmp_path / "table.html"
    done = CliRunner().invoke(
        app, ["bench", "table", *files, "--format", "html", "--out", str(out)]
    )
    assert done.exit_code == 0
    assert "93.00 ± 3.61" in out.read_text(encoding="utf-8")
    assert list(tmp_path.glob(".*")) == []


def test_what_must_be_said_of_a_method_stands_beside_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noted = replace(METHODS["kmeans"], note="reconstruction")
    monkeypatch.setitem(METHODS, "kmeans", noted)
    rows = [made_row(90, method="kmeans", preset="published"), made_row(90)]
    table = make_table(rows, beside="own")
    ours = [line.lead["method"] for line in table.lines if not line.source]
    assert ours == ["K-means (reconstruction)", "RoNID"]
    assert any(line.lead["method"] == "K-means" for line in table.lines if line.source)
