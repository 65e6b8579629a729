"""Benchmark configs, each with the file that its rows go to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ronid.bench.plan import Plan, read_plan
from ronid.errors import ConfigError, UsageError

RESULTS = Path("benchmarks") / "results"
"""Folder of rows where nothing else is said."""


@dataclass(frozen=True)
class Sheet:
    """A plan and where its results are written.

    Args:
        plan: The benchmark config.
        out: File of rows.
    """

    plan: Plan
    out: Path

    @property
    def name(self) -> str:
        """What tells it from the others of one run."""
        return self.out.stem

    @property
    def log(self) -> Path:
        """File next to the rows that tracebacks go to."""
        return self.out.with_suffix(".log")


def read_sheets(
    configs: Sequence[Path],
    out: Path | None = None,
    rows: Path | None = None,
    encoders: Mapping[str, str] | None = None,
) -> tuple[Sheet, ...]:
    """Read benchmark configs.

    Args:
        configs: TOML files.
        out: File of rows of the only config.
        rows: Folder of a file of rows by name of the config; `RESULTS` by default.
        encoders: Folders by title of encoder, for the configs that have the title.

    Raises:
        UsageError: Two configs have one file of rows.
        ConfigError: A config is wrong, or no config has a title.
    """
    if out is not None and len(configs) > 1:
        raise UsageError("--out is one file, for one CONFIG; for several give --rows FOLDER")
    if out is not None and rows is not None:
        raise UsageError("--out and --rows both say where rows go; give one of them")
    outs = [out or (rows or RESULTS) / f"{config.stem}.jsonl" for config in configs]
    for path in outs:
        if outs.count(path) > 1:
            raise UsageError(
                f"rows would go to '{path.name}' twice; give each CONFIG once, by a name of its own"
            )
    plans = _read_plans(configs, encoders or {})
    return tuple(Sheet(plan, path) for plan, path in zip(plans, outs, strict=True))


def _read_plans(configs: Sequence[Path], encoders: Mapping[str, str]) -> list[Plan]:
    """Read configs and hand each the folders of its own encoders."""
    if len(configs) == 1:
        return [read_plan(configs[0], encoders)]
    plans = [read_plan(config) for config in configs]
    titles = [{cell.encoder for cell in plan.cells} for plan in plans]
    known = set[str]().union(*titles)
    for title in encoders:
        if title not in known:
            raise ConfigError(
                f"--encoder names '{title}', which none of the configs has; they have: "
                + ", ".join(sorted(known))
            )
    return [
        replace(plan, encoder_paths={**plan.encoder_paths, **_only(encoders, own)})
        for plan, own in zip(plans, titles, strict=True)
    ]


def _only(encoders: Mapping[str, str], titles: set[str]) -> dict[str, str]:
    return {title: folder for title, folder in encoders.items() if title in titles}
