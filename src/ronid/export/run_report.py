"""The report of a run folder: reads what the run wrote and hands it to the page."""

from pathlib import Path
from typing import Any

import numpy as np

from ronid.config import MethodConfig
from ronid.export.report import ReportData, write_report
from ronid.export.updates import added_by, title_of, update_lines
from ronid.methods import METHODS, from_toml
from ronid.review.base import found_first
from ronid.run import RunFolder
from ronid.types import UNLABELLED, Scores


def report_of_run(run: RunFolder, path: Path | None = None) -> Path:
    """Write the HTML report of a finished run.

    Args:
        run: The run.
        path: Where to; `report.html` in the run's folder when None.

    Returns:
        The file written.
    """
    table, facts = run.assignments(), run.facts()
    updates = facts.get("updates", ())
    config, scores = from_toml(run.path / "config.toml"), run.scores()
    data = ReportData(
        title=title_of(facts),
        texts=table["text"].to_pylist(),
        labels=table["index"].to_numpy(),
        intents=run.intents(),
        coordinates=np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1),
        confidence=table["confidence"].to_numpy(),
        given=np.where(run.labelled(), 0, UNLABELLED).astype(np.int64),
        history=run.history(),
        summary=_summary(run, config, facts),
        scores=Scores(**scores) if scores else None,
        data_report=run.data_report(),
        prior=METHODS[config.method].estimates_prior,
        updates=[update_lines(each) for each in reversed(updates)],
        version=len(updates),
        collected=run.n_collected() if updates else None,
        added=added_by(facts, found_first(run, table)[2]),
    )
    return write_report(path or run.path / "report.html", data)


def _summary(run: RunFolder, config: MethodConfig, facts: dict[str, Any]) -> dict[str, str]:
    """Return the settings worth reading; config.toml has them all."""
    return {
        "Method": f"{METHODS[config.method].full_title}, preset {config.preset}",
        "Encoder": _shown(config.encoder.name),
        "Intents asked for": _asked(run, facts),
        "Seed": str(facts["seed"]),
        "Made by": f"ronid {facts['ronid_version']}",
    }


def _asked(run: RunFolder, facts: dict[str, Any]) -> str:
    """Return how many intents were asked for, and what the data said where they were asked."""
    return _asked_of_fit(run, facts) + (", for version 0" if facts.get("updates") else "")


def _asked_of_fit(run: RunFolder, facts: dict[str, Any]) -> str:
    asked, found = facts["n_intents"], run.count()
    if found is None:
        return "as many as the data show" if asked is None else f"{asked}, exactly"
    estimate = found.get("estimate", found["k"])
    said = f"{estimate} estimated"
    if "low" in found:
        said += f", {found['low']} to {found['high']} possible"
    if asked is None:
        return f"as many as the data show: {said}"
    return f"{asked} ({said})" if found["k"] == asked else f"{asked}, not believed ({said})"


def _shown(encoder: str) -> str:
    """Return an encoder's name; where its folder lies on this machine is nobody's business."""
    return Path(encoder).name if Path(encoder).is_absolute() else encoder
