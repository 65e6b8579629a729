import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ronid.bench.figures import draw_all
from ronid.bench.rows import append_row
from ronid.cli.app import app
from ronid.errors import MissingExtraError
from tests.helpers.benchmark_rows import made_row


def history(length: int, level: float) -> list[dict[str, Any]]:
    return [{"stage": "contrast", "epoch": 1, "loss": 1.0}] + [
        {"stage": "em", "epoch": i + 1, "accuracy": level + i} for i in range(length)
    ]


def flat_map(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 40)).round(4).tolist()
    return {"x": x, "y": y, "truth": [i % 20 for i in range(40)], "predicted": [0] * 40}


def rows() -> list[dict[str, Any]]:
    found = [
        made_row(80 + seed, seed, dataset=dataset, variant=variant, history=history(3 + seed, 70))
        for dataset in ("clinc", "stackoverflow")
        for variant in ("", "-OT")
        for seed in range(2)
    ]
    found += [
        made_row(60 + 40 * known, seed, known_ratio=known)
        for known in (0.25, 0.5)
        for seed in range(3)
    ]
    found += [
        made_row(85, 0, dataset="stackoverflow", variant=variant, map=flat_map(i), preset="paper")
        for i, variant in enumerate(("", "-Intra", "-Inter"))
    ]
    return found


def texts(path: Path) -> str:
    return " ".join(ET.fromstring(path.read_text(encoding="utf-8")).itertext())


def test_rows_that_lack_what_a_picture_shows_hide_none_that_have_it(tmp_path: Path) -> None:
    bare = [{k: v for k, v in row.items() if k not in ("history", "map")} for row in rows()]
    drawn = draw_all([*rows(), *bare], tmp_path / "more")
    alone = draw_all(rows(), tmp_path / "alone")
    assert [path.name for path in drawn.files] == [path.name for path in alone.files]
    for more, one in zip(drawn.files, alone.files, strict=True):
        assert more.read_bytes() == one.read_bytes()


def test_pictures_are_drawn_and_the_same_every_time(tmp_path: Path) -> None:
    first, again = draw_all(rows(), tmp_path / "a"), draw_all(rows(), tmp_path / "b")
    names = [path.name for path in first.files]
    assert names == [
        "pseudo-labels-ronid-fast-all-MiniLM-L6-v2.svg",
        "map-ronid-paper-all-MiniLM-L6-v2-stackoverflow.svg",
        "known-ratio-ronid-fast-all-MiniLM-L6-v2.svg",
    ]
    assert first.missing == ()
    for one, other in zip(first.files, again.files, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted(names)


def test_pictures_use_earlier_rows_where_there_are_no_current_ones(tmp_path: Path) -> None:
    earlier = [row | {"version": "before"} for row in rows()]
    changed = [row | {"history": history(3, 10)} for row in earlier]
    for number, stored in enumerate((earlier, [*changed, *rows()])):
        drawn, alone = draw_all(stored, tmp_path / f"{number}"), draw_all(rows(), tmp_path / "now")
        for one, other in zip(drawn.files, alone.files, strict=True):
            assert one.read_bytes() == other.read_bytes()


def test_pictures_say_what_they_show(tmp_path: Path) -> None:
    curves, maps, ratios = (texts(path) for path in draw_all(rows(), tmp_path).files)
    assert "used for this picture only" in curves
    assert "optimal transport, n=2" in curves
    assert "CLINC" in curves
    assert "without the intra-cluster loss" in maps
    assert "20 intents" in maps
    for name in ("ours", "USNID", "MTP-CLNN", "DeepAligned"):
        assert name in ratios


def test_picture_changes_with_the_rows(tmp_path: Path) -> None:
    changed = rows()
    changed[0]["history"][-1]["accuracy"] += 5
    before = draw_all(rows(), tmp_path / "a").files[0]
    assert before.read_bytes() != draw_all(changed, tmp_path / "b").files[0].read_bytes()


def test_missing_rows_are_named_with_the_command_that_makes_them(tmp_path: Path) -> None:
    append_row(tmp_path / "rows.jsonl", made_row(90))
    drawn = draw_all([made_row(90)], tmp_path / "out")
    assert drawn.files == ()
    assert [text.split(":")[0] for text in drawn.missing] == ["pseudo-labels", "map", "known-ratio"]
    assert all("ronid bench run benchmarks/configs/" in text for text in drawn.missing)
    command = ["bench", "figures", str(tmp_path / "rows.jsonl"), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert "not drawn: map: needs rows" in done.output


def test_without_matplotlib_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r'pip install "ronid\[bench\]"'):
        draw_all(rows(), tmp_path)
