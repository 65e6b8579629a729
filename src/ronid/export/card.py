"""The card of a run: README.md in its folder, for whoever finds the folder later."""

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
        lines += [
            f"Against the truth given: ACC {scores['acc']:.1f} (known {scores['known_acc']:.1f}, "
            f"novel {scores['novel_acc']:.1f}), NMI {scores['nmi']:.1f}, ARI {scores['ari']:.1f}.",
            "",
        ]
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


def _cell(text: str) -> str:
    """Return text that stays inside one cell of a Markdown table and is not read as HTML."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
