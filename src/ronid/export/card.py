"""The card of a run: README.md in its folder, for whoever finds the folder later."""

import math
from collections.abc import Mapping

from ronid.export.updates import title_of
from ronid.methods import METHODS, from_toml
from ronid.run import RunFolder

_FILES = {
    "report.html": "the report; open it in a browser",
    "assignments.parquet": "one row per utterance: intent, confidence, place on the map",
    "intents.json": "the intents: name, description, size, keyphrases, examples, neighbours",
    "config.toml": "every setting; `ronid fit --config` takes it",
    "encoder/": "the trained weights and prototypes (safetensors)",
    "history.jsonl": "one row per epoch",
    "metrics.json": "agreement with the truth, where one was given",
    "model.json, run.json": "what made this folder",
}


def write_card(run: RunFolder) -> None:
    """Write the card of a finished run."""
    facts, intents, scores = run.facts(), run.intents(), run.scores()
    config = from_toml(run.path / "config.toml")
    method = METHODS[config.method].full_title
    new = [intent for intent in intents if not intent.known]
    waiting = run.n_collected()
    collected = f"; {waiting:,} of the utterances fit none so far" if waiting else ""
    lines = [
        f"# {_cell(title_of(facts))}",
        "",
        f"{facts['data_report']['rows_kept']:,} utterances, {len(intents) - len(new)} known and "
        f"{len(new)} new intents{collected}. Made by ronid {facts['ronid_version']} on "
        f"{facts['created']}: method {method}, preset {config.preset}, seed {facts['seed']}.",
        "",
        "Contains the utterances themselves: treat the folder as personal data.",
        "",
    ]
    if scores:
        lines += [f"Against the truth given: {_scores_text(scores)}.", ""]
    lines += ["## New intents", "", "| name | utterances | keyphrases |", "| --- | ---: | --- |"]
    lines += [
        f"| {_cell(i.name)} | {i.size} | {_cell(', '.join(i.keyphrases[:5]))} |"
        for i in sorted(new, key=lambda intent: -intent.size)
    ]
    lines += ["", "## Files", "", "| file | what |", "| --- | --- |"]
    lines += [f"| {name} | {what} |" for name, what in _FILES.items()]
    loader = "RoNID" if config.method == "ronid" else "IntentDiscovery"
    use = f'Use it: `ronid predict FOLDER --text "..."`, or `{loader}.load(FOLDER)`.'
    lines += ["", use, ""]
    (run.path / "README.md").write_text("\n".join(lines), encoding="utf-8")


def _scores_text(scores: Mapping[str, float]) -> str:
    """Write scores in percent, strict accuracy first; older runs do not have it."""
    shown = {name: f"{v:.1f}" if math.isfinite(v) else "-" for name, v in scores.items()}
    strict = ""
    if math.isfinite(scores.get("strict_acc", math.nan)):
        strict = (
            f"strict accuracy {shown['strict_acc']} (known by name {shown['known_by_name']}, novel "
            f"in a new intent {shown['strict_novel_acc']}), "
        )
    return (
        f"{strict}ACC {shown['acc']} (known {shown['known_acc']}, novel {shown['novel_acc']}), "
        f"NMI {shown['nmi']}, ARI {shown['ari']}"
    )


def _cell(text: str) -> str:
    """Return text that stays inside one cell of a Markdown table and is not read as HTML."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
