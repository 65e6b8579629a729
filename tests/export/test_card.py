from pathlib import Path

import numpy as np
import pytest

from ronid.data.corpus import corpus_from
from ronid.export.card import write_card
from ronid.files import write_json
from ronid.intents_file import write_intents
from ronid.presets import preset
from ronid.run import Job, RunFolder
from ronid.types import Intent


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run with one known and two new intents, the names of which try to leave their cells."""
    corpus = corpus_from(["a", "b", "c"], ["known_one", None, None])
    job = Job(corpus, None, 3, preset("fast"), 5, "cpu")
    made = RunFolder.create(tmp_path / "run", job, "calls <b>.csv")
    rows = [
        Intent(0, "known_one", True, 10, 0.5, 0.5, 0.9),
        Intent(1, "small|new", False, 2, 0.1, 0.1, 0.7, ("a|b", "<i>c</i>")),
        Intent(2, "large_new", False, 8, 0.4, 0.4, 0.8, tuple("uvwxyz")),
    ]
    write_intents(made.path, rows)
    return made


def card(run: RunFolder) -> list[str]:
    write_card(run)
    return (run.path / "README.md").read_text(encoding="utf-8").splitlines()


def test_card_says_what_was_found_and_how(run: RunFolder) -> None:
    lines = card(run)
    assert lines[0] == "# Intents found in calls &lt;b>.csv"
    assert lines[2].startswith("3 utterances, 1 known and 2 new intents. Made by ronid ")
    assert lines[2].endswith(": method RoNID, preset fast, seed 5.")
    assert any("personal data" in line for line in lines)


def test_card_lists_new_intents_largest_first_in_whole_cells(run: RunFolder) -> None:
    lines = card(run)
    start = lines.index("## New intents")
    assert lines[start + 4] == "| large_new | 8 | u, v, w, x, y |"
    assert lines[start + 5] == "| small\\|new | 2 | a\\|b, &lt;i>c&lt;/i> |"
    assert "known_one" not in "\n".join(lines[start:])


def test_card_gives_scores_only_where_there_was_a_truth(run: RunFolder) -> None:
    assert "ACC" not in "\n".join(card(run))
    names = ("nmi", "ari", "acc", "known_acc", "novel_acc", "h_score")
    values = dict(zip(names, np.arange(6) + 50.25, strict=True))
    write_json(run.path / "metrics.json", {"format_version": 1, "scores": values})
    text = "\n".join(card(run))
    assert "Against the truth given: ACC 52.2 (known 53.2, novel 54.2)" in text
    assert "strict" not in text  # an older run has no such score
    values |= {"strict_acc": 61.25, "known_by_name": 71.5, "strict_novel_acc": None}
    write_json(run.path / "metrics.json", {"format_version": 1, "scores": values})
    told = "strict accuracy 61.2 (known by name 71.5, novel in a new intent -), ACC 52.2 (known"
    assert told in "\n".join(card(run))


def test_every_file_the_card_names_is_written_by_a_run(run: RunFolder) -> None:
    named = [line.split("|")[1].strip() for line in card(run) if line.startswith("| ")]
    files = named[named.index("file") + 2 :]
    module = Path(ronid_run_file()).read_text(encoding="utf-8")
    for name in ", ".join(files).split(", "):
        assert name in module


def ronid_run_file() -> str:
    """The module whose docstring lists the files of a run folder."""
    import ronid.run

    assert ronid.run.__file__ is not None
    return ronid.run.__file__
