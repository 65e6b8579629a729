"""The earlier code answers today's problems, in a process of its own."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from ronid.bench.plan import read_plan
from ronid.bench.rows import read_rows
from tests.helpers import ROOT, toy_benchmark
from tests.helpers.benchmark_script import load_benchmark

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the earlier source: an export that is there, or a new one."""
    export = load_benchmark("export_source")
    there = ROOT / "carry" / export.COMMIT
    if (there / "src").is_dir():
        return there
    try:
        return Path(export.export_source(folder=tmp_path_factory.mktemp("earlier")))
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the earlier source is neither in carry/ nor in the history of git")


@pytest.fixture
def before() -> ModuleType:
    return load_benchmark("before")


@pytest.fixture
def run(
    before: ModuleType, source: Path, toy: Path, encoder: str, tmp_path: Path
) -> Callable[..., Path]:
    """Run the script on a config, and return its file of rows."""

    def call(config: str, device: str = "cpu") -> Path:
        path, out = tmp_path / "toy.toml", tmp_path / "rows.jsonl"
        path.write_text(config)
        paths = ("--out", str(out), "--source", str(source), "--encoder", f"tiny={encoder}")
        before.main([str(path), *paths, "--device", device])
        return out

    return call


CONFIG = f"""
datasets = ["toy"]
presets = ["fast"]
encoders = ["tiny"]
k_rules = ["given", "auto"]
seeds = [0]
keep = ["history"]
small_talk_ratios = [0.1]
{toy_benchmark.QUICK}
"""


def test_earlier_code_is_measured_with_the_measures_of_today(
    run: Callable[..., Path], capsys: pytest.CaptureFixture[str], tmp_path: Path, encoder: str
) -> None:
    out = run(CONFIG)
    assert [line[:5] for line in capsys.readouterr().out.splitlines()] == ["[1/2]", "[2/2]"]
    rows = read_rows(out)
    assert [row["k_rule"] for row in rows] == ["given", "auto"]
    for row in rows:
        assert (row["version"], row["method"], row["small_talk"]) == ("before", "ronid", 0.1)
        scores = row["scores"]["argmax"]
        assert 0 <= scores["strict_acc"] <= scores["acc"] <= 100
        assert scores["known_by_name"] is not None
        assert row["device"].startswith("cpu, ")
        assert set(row["versions"]) >= {"ronid", "torch"}
        assert row["wall_s"] > 0
        assert row["history"]
        assert len(row["split_hash"]) == 64
    assert rows[0]["k"] == 6
    assert rows[0]["scores"]["argmax"]["acc"] > 40  # chance is 17
    assert str(encoder) not in out.read_text()

    stored = out.read_bytes()
    run(CONFIG)
    assert out.read_bytes() == stored
    assert all(line.endswith(": stored") for line in capsys.readouterr().out.splitlines())


def test_changed_settings_are_measured_again(run: Callable[..., Path], tmp_path: Path) -> None:
    config = CONFIG.replace(', "auto"', "")
    run(config)
    out = run(config.replace("epochs = 2", "epochs = 1"))
    assert len({row["config_hash"] for row in read_rows(out)}) == 2
    assert read_plan(tmp_path / "toy.toml").cells[0].version == ""  # a config has current jobs only


def test_failed_job_is_reported_and_the_others_run(
    run: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    config = CONFIG.replace('["tiny"]', '["gone", "tiny"]').replace(', "auto"', "")
    with pytest.raises(SystemExit, match="1 of 2 jobs failed"):
        run(config)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("failed: CannotRunError: weights not available here")
    assert "ACC" in lines[1]


def test_other_methods_are_left_out(
    run: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    config = 'datasets = ["toy"]\nmethods = ["kmeans"]\npresets = ["published"]\nseeds = [0]\n'
    out = run(config + 'encoders = ["tiny"]\n')
    assert "Jobs of other methods that are left out: 1" in capsys.readouterr().out
    assert not out.exists()


def test_source_that_is_not_there_is_one_line(before: ModuleType, tmp_path: Path) -> None:
    config = tmp_path / "toy.toml"
    config.write_text('datasets = ["clinc"]\npresets = ["fast"]\nseeds = [0]\n')
    with pytest.raises(SystemExit, match="does not contain ronid; run: python benchmarks/export"):
        before.main([str(config), "--source", str(tmp_path)])
