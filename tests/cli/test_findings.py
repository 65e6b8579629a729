"""What `ronid evaluate RUN` says of single intents can be read on any screen and in a pipe."""

import pytest

from ronid.cli.tables import judgement_table
from ronid.judge import Finding, Judgement
from ronid.judge.judgement import Parts

TWINS = ("report_a_card_that_was_lost_or_stolen_abroad", "card_[lost]_or_stolen_while_travelling")
JUDGEMENT = Judgement(50.0, Parts(*[0.5] * 9), (), (), (), (), 20, 20)


def finding(kind: str, *intents: str, shows: tuple[str, ...] = ()) -> Finding:
    return Finding(kind, intents, 0.9, shows, "look like one intent", "merge them")  # type: ignore[arg-type]


def printed(capsys: pytest.CaptureFixture[str], *findings: Finding) -> list[str]:
    judgement_table(JUDGEMENT, findings)
    lines = capsys.readouterr().out.splitlines()
    return lines[lines.index("") + 1 :]


@pytest.mark.parametrize("columns", ["40", "80", "120"])
def test_kind_names_and_advice_are_whole_at_every_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = printed(capsys, finding("twins", *TWINS, shows=("one | other",)))
    assert lines[0] == f"twins: {TWINS[0]}, {TWINS[1]}"
    assert " ".join(" ".join(lines[1:]).split()) == "look like one intent -> merge them one | other"
    assert all(line.startswith("    ") for line in lines[1:])


def test_a_long_utterance_does_not_hide_the_one_beside_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = "so it was that " * 50
    shows = (f"{long} | my card is gone", "second", "third")
    text = "\n".join(printed(capsys, finding("twins", *TWINS, shows=shows)))
    assert "my card is gone" in " ".join(text.split())
    assert max(map(len, text.splitlines()[1:])) <= 80
    assert len(text) < 600
    assert "second" in text
    assert "third" not in text


def test_findings_beyond_the_first_of_a_kind_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    many = [finding("twins", f"a{i}", f"b{i}") for i in range(10)]
    lines = printed(capsys, *many, finding("empty", "nobody"))
    assert "twins: a7, b7" in lines
    assert "twins: a8, b8" not in lines
    assert "empty: nobody" in lines
    assert lines[-1] == "and more: 2 twins; --json lists all"


def test_nothing_wrong_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys) == ["no intent looks wrong"]
