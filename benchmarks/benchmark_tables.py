"""Tables of docs/benchmarks.md and README.md: accuracy, seconds, the number of intents."""

from statistics import mean

from export_source import VERSION
from table_rows import (
    DATASETS,
    Row,
    harness_rows,
    line,
    read_rows,
    setting_table,
    spread,
    with_note,
)

from ronid.bench.published import matching
from ronid.bench.rows import version_of
from ronid.bench.table import seeds_text
from ronid.bench.variants import VARIANTS
from ronid.config import DEFAULT_ENCODER
from ronid.methods import METHODS

HARNESS = ("main-mpnet", "main-minilm", "fast", "paper", "bert")
MEASURES = ("nmi", "ari", "acc", "known_acc", "novel_acc")
COMPARED = ("kmeans", "usnid")
"""Other methods in the short table: the simplest, and the strongest with published constants."""
PAPERS_ABLATIONS = ("-OT", "-Intra", "-Inter")


def main_table() -> str:
    """Mean and deviation over seeds of every stored run of the harness, published figures below."""
    rows = harness_rows(*HARNESS)
    return setting_table(rows, by=("preset", "encoder"), measures=MEASURES, beside="own")


def short_table() -> str:
    """Accuracy alone, for a first look: two other methods, RoNID's presets, the paper's figures."""
    others = [row for row in harness_rows("methods", "methods-more") if row["method"] in COMPARED]
    rows = [*others, *harness_rows("fast", "main-minilm", "main-mpnet")]
    lines = [
        line("method", "text encoder", "seeds", *DATASETS.values()),
        line(*["---"] * 3, *["---:"] * len(DATASETS)),
    ]
    for method, preset, encoder in dict.fromkeys(group_of(row) for row in rows):
        own = [row for row in rows if group_of(row) == (method, preset, encoder)]
        title = METHODS[method].title + (f", preset `{preset}`" if method == "ronid" else "")
        means = [spread(acc(row) for row in own if row["dataset"] == name) for name in DATASETS]
        lines.append(line(title, encoder, seeds_text({row["seed"] for row in own}), *means))
    (paper,) = matching("ronid", "", known=0.75, labelled=0.1)
    printed = [f"{paper.scores[name]['acc']:.1f}" for name in DATASETS]
    lines.append(line(f"{paper.source}, published", paper.encoder, "", *printed))
    return with_note("\n".join(lines), rows)


def group_of(row: Row) -> tuple[str, str, str]:
    return row["method"], row["preset"], row["encoder"]


def ablation_table() -> str:
    """The ablations of the paper, under its preset and under ours."""
    rows = harness_rows("ablation-paper", "ablation-default")
    measures = ("acc", "known_acc", "novel_acc")
    return setting_table(rows, by=("preset", "variant"), measures=measures, beside="none")


def additions_table() -> str:
    """What is lost without each addition of `default`, on the seeds that have both rows."""
    return _lost_table("additions-test", "ablation-size", "main-mpnet")


def additions_dev_table() -> str:
    """The same on development files, where it is decided what stays."""
    return _lost_table("additions-dev")


def additions_quarter_table() -> str:
    """The same with a quarter of the intents known."""
    return _lost_table("additions-quarter")


def _lost_table(*names: str) -> str:
    """Accuracy of each variant and what it lost against the whole, on the seeds of both."""
    lines = [
        line("without", *(f"{title} ACC | n | lost" for title in DATASETS.values())),
        line("---", *["---: | ---: | ---:"] * len(DATASETS)),
    ]
    rows = harness_rows(*names)
    full = {cell(row): row for row in of_both_versions(*names) if row["variant"] == ""}
    shown: list[Row] = []
    for variant in (name for name in VARIANTS if name not in PAPERS_ABLATIONS):
        own = [row for row in rows if row["variant"] == variant]
        cells = []
        for dataset in DATASETS:
            here = [row for row in own if row["dataset"] == dataset and cell(row) in full]
            pairs = [(acc(row), acc(full[cell(row)])) for row in here]
            lost = [whole - part for part, whole in pairs]
            cells += [
                spread((part for part, _ in pairs), 2),
                str(len(pairs) or ""),
                spread(lost, 2),
            ]
        if own:
            shown += own
            where = f" ({own[0]['encoder']})" if own[0]["encoder"] != DEFAULT_ENCODER else ""
            lines.append(line(f"`{variant}`{where}", *cells))
    return with_note("\n".join(lines), shown)


def of_both_versions(*names: str) -> list[Row]:
    """Return rows to subtract others of the same version from."""
    return [row for version in ("", VERSION) for row in harness_rows(*names, version=version)]


def cell(row: Row) -> tuple[str, str, str, int, str]:
    return row["dataset"], row["encoder"], row["preset"], row["seed"], version_of(row)


def acc(row: Row) -> float:
    return float(row["scores"]["argmax"]["acc"])


def known_ratio_table() -> str:
    """Accuracy with fewer known intents, and what was published for them."""
    rows = harness_rows("known-ratio")
    measures = ("acc", "known_acc", "novel_acc")
    return setting_table(rows, by=("known_ratio", "method"), measures=measures)


def timing_table() -> str:
    """Seconds of runs that had their machine to themselves, from the file to the scores."""
    stages = ("encode", "pretrain", "contrast", "em")
    lines = [
        line("dataset", "encoder", "preset", "seed", "device", "seconds", *stages),
        line(*["---"] * 3, "---:", "---", *["---:"] * 5),
    ]
    rows = [*harness_rows("timing"), *first_seeds(harness_rows("fast"))]
    for row in rows:
        place = "two CPU cores" if "cpu" in row["device"] else row["device"]
        lead = [DATASETS[row["dataset"]], row["encoder"], f"`{row['preset']}`", str(row["seed"])]
        parts = [f"{row['seconds'].get(stage, 0):.1f}" for stage in stages]
        lines.append(line(*lead, place, f"{row['wall_s']:.1f}", *parts))
    return with_note("\n".join(lines), rows)


def first_seeds(rows: list[Row]) -> list[Row]:
    """Return one row per dataset: later cells of a process find their embeddings ready."""
    return [row for row in rows if not row["cache_hits"]]


def estep_table() -> str:
    """Time and memory of the E-step, one row per size, temperature and solver."""
    lines = [
        "| rows x intents | T | solver | device | passes | seconds | memory beyond inputs |",
        "| --- | ---: | --- | --- | ---: | ---: | ---: |",
    ]
    for row in read_rows("estep.jsonl"):
        size = f"{row['rows']:,} x {row['classes']}"
        lead = [size, f"{row['temperature']:g}", row["solver"], row["device"]]
        if row.get("skip"):
            figures = ["", row["skip"], ""]
        else:
            memory = f"{row['memory_beyond_input_bytes'] / 2**20:,.0f} MiB"
            figures = [f"{row['iterations']:,}", f"{row['seconds']:.2f}", memory]
        lines.append(line(*lead, *figures))
    return "\n".join(lines)


def speed_table() -> str:
    """Seconds of an EM epoch, ours and that of published repositories, one row per measurement."""
    lines = [
        "| dataset | rows | encoder | device | published loop | ours | ratio | matrix products |",
        "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for row in read_rows("training_speed.jsonl"):
        lead = [DATASETS[row["dataset"]], f"{row['rows']:,}", row["encoder"], row["device"]]
        epochs = [f"{row[loop]['epoch_s']:.2f} s" for loop in ("published", "ours")]
        shares = [f"{row['ratio']:.1f}", f"{100 * row['matmul_share']:.0f}%"]
        lines.append(line(*lead, *epochs, *shares))
    return "\n".join(lines)


COUNT_RULES = {
    "auto": "RoNID, estimated",
    "guess": "RoNID, {start} requested",
    "deep_aligned": "DeepAligned's, from {start}",
    "dpn": "DPN's, from {start}",
    "usnid": "USNID's, from {start}",
}


def count_table() -> str:
    """Estimated number of intents, and its cost in accuracy against the true number."""
    lines = [
        "| dataset | preset | intents | rule | seeds | found | error | "
        "ACC | ACC with true number | difference |",
        "| --- | --- | ---: | --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    given = {cell(row): row for row in of_both_versions("fast", "main-minilm")}
    counted = harness_rows("count", "count-near", "count-default")
    counted = [row for row in counted if cell(row) in given]
    for dataset, title in DATASETS.items():
        own = [row for row in counted if row["dataset"] == dataset]
        ways = {(row["preset"] != "fast", row["preset"], row["k_rule"]) for row in own}
        for _, preset, rule in sorted(ways):
            rows = [row for row in own if (row["preset"], row["k_rule"]) == (preset, rule)]
            told = [given[cell(row)] for row in rows]
            ours, theirs = [acc(row) for row in rows], [acc(row) for row in told]
            found = {row["seed"]: row["k"] for row in rows}
            cost = [f"{mean(ours):.1f}", f"{mean(theirs):.1f}", f"{mean(ours) - mean(theirs):+.1f}"]
            cells = _count_cells(rule, told[0]["k"], found)
            lines.append(line(title, f"`{preset}`", *cells, *cost))
    return with_note("\n".join(lines), counted)


def filters_table() -> str:
    """What the filters of published methods count on the features that ours sees."""
    lines = [
        "| dataset | intents | rule | seeds | found | error |",
        "| --- | ---: | --- | --- | --- | ---: |",
    ]
    rows = read_rows("count-filters.jsonl")
    for dataset, title in DATASETS.items():
        own = [row for row in rows if row["dataset"] == dataset]
        for rule in sorted({row["rule"] for row in own}):
            found = {row["seed"]: row["found"] for row in own if row["rule"] == rule}
            lines.append(line(title, *_count_cells(rule, own[0]["intents"], found)))
    return "\n".join(lines)


def bounds_table() -> str:
    """How often the bounds contain the true number of intents, and their width."""
    lines = [
        "| dataset | intents | labels | seeds | found | error | bounds, mean | "
        "contain the true number |",
        "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    labels = {"count": "10% of 75% of the intents", "pile-none-auto": "none"}
    rows = {name: [r for r in harness_rows(name) if r["k_rule"] == "auto"] for name in labels}
    true = {row["dataset"]: row["k"] for row in harness_rows("fast")}
    for dataset, title in DATASETS.items():
        for name, said in labels.items():
            found = [_counted(row) for row in rows[name] if row["dataset"] == dataset]
            lines.append(line(title, *_bounds_cells(found, true[dataset], said)))
    return with_note("\n".join(lines), sum(rows.values(), []))


def _counted(row: Row) -> Row:
    """Return what a row of the harness says of the number of intents."""
    count = next(epoch for epoch in row["history"] if epoch["stage"] == "count")
    return {"seed": row["seed"], "found": count["k"], "low": count["low"], "high": count["high"]}


def _bounds_cells(rows: list[Row], true: int, labels: str) -> list[str]:
    """Cells of one dataset: truth, labels, seeds, what was found and between which bounds."""
    found, low, high = (mean(row[key] for row in rows) for key in ("found", "low", "high"))
    error = 100 * mean(abs(row["found"] - true) for row in rows) / true
    holds = sum(row["low"] <= true <= row["high"] for row in rows)
    return [
        str(true),
        labels,
        seeds_text(sorted(row["seed"] for row in rows)),
        f"{found:.0f}",
        f"{error:.1f}%",
        f"{low:.0f} to {high:.0f}",
        f"{holds} of {len(rows)}",
    ]


def _count_cells(rule: str, true: int, found: dict[int, int]) -> list[str]:
    """Cells of one dataset and rule: truth, rule, seeds, what was found, mean error."""
    name, _, factor = rule.partition("@")
    numbers = list(found.values())
    error = 100 * mean(abs(k - true) for k in numbers) / true
    return [
        str(true),
        COUNT_RULES[name].format(start=f"{factor} times the true number"),
        f"{seeds_text(found)} (n={len(found)})",
        f"{mean(numbers):.0f} ({min(numbers)} to {max(numbers)})",
        f"{error:.1f}%",
    ]


TABLES = {
    "ablation": ablation_table,
    "bounds": bounds_table,
    "additions": additions_table,
    "additions-dev": additions_dev_table,
    "additions-quarter": additions_quarter_table,
    "count": count_table,
    "estep": estep_table,
    "filters": filters_table,
    "known-ratio": known_ratio_table,
    "main": main_table,
    "short": short_table,
    "speed": speed_table,
    "timing": timing_table,
}
