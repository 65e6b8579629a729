"""Tables of piles unlike the published protocol: few or no labels, long tails, chatter."""

from collections.abc import Iterable
from statistics import mean
from typing import Any

from table_rows import DATASETS, Row, harness_rows, line, read_rows, spread, with_note

PRIORS = {
    "-Prior": "uniform",
    "-Shrunk": "moving (paper)",
    "-Marginals": "uniform, relaxed marginals",
    "": "shrunk (ours)",
}
MEASURES = ("acc", "known_acc", "novel_acc")
NONE_RUNS = {
    ("published", "given"): "k-means",
    ("fast", "given"): "`fast`",
    ("fast", "auto"): "`fast`",
    ("default", "given"): "`default`",
}


def of(rows: Iterable[Row], measure: str) -> list[float | None]:
    return [row["scores"]["argmax"][measure] for row in rows]


def seeds_of(rows: Iterable[Row]) -> str:
    return ", ".join(str(seed) for seed in sorted({row["seed"] for row in rows}))


def grouped(rows: Iterable[Row], *keys: str) -> list[tuple[Any, ...]]:
    """Return (dataset, *values, rows) for every group, datasets in order."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        group = (list(DATASETS).index(row["dataset"]), *(row[key] for key in keys))
        groups.setdefault(group, []).append(row)
    titles = list(DATASETS.values())
    return [(titles[key[0]], *key[1:], groups[key]) for key in sorted(groups)]


def none_table() -> str:
    """Accuracy without any label, beside k-means on the same encoder."""
    lines = [
        "| dataset | run | seeds | ACC | above k-means | NMI |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    stored = harness_rows("pile-none", "pile-none-auto", "pile-none-default")
    for title, rows in grouped(stored):
        plain = mean(of((row for row in rows if row["method"] == "kmeans"), "acc"))  # type: ignore[type-var]
        for (preset, rule), name in NONE_RUNS.items():
            found = [row for row in rows if (row["preset"], row["k_rule"]) == (preset, rule)]
            if not found:
                continue
            found_k = f", {mean(row['k'] for row in found):.0f} intents found"
            gain = mean(of(found, "acc")) - plain  # type: ignore[type-var,operator]
            figures = (
                spread(of(found, "acc")),
                f"{gain:+.1f}" if gain else "",
                spread(of(found, "nmi")),
            )
            run = name + found_k * (rule == "auto")
            lines.append(line(title, run, seeds_of(found), *figures))
    return with_note("\n".join(lines), stored)


def labels_table() -> str:
    """Accuracy with few, wrong and idle labels; the published setting is below for comparison."""
    lines = [
        "| dataset | labels | seeds | ACC | known | novel |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    files = ("pile-none", "pile-shots", "pile-shots-auto", "pile-noise", "pile-absent", "fast")
    rows = [row for row in harness_rows(*files) if row["method"] == "ronid" and row["seed"] < 3]
    named = [row | {"labels": labels_title(row)} for row in rows]
    for title, (_, name), own in grouped(named, "labels"):
        figures = [spread(of(own, measure)) for measure in MEASURES]
        lines.append(line(title, name, seeds_of(own), *figures))
    return with_note("\n".join(lines), rows)


def labels_title(row: Row) -> tuple[int, str]:
    """Return where a row comes in the table, and what its labels are."""
    if row.get("label_noise"):
        return 7, f"10% of each intent, {row['label_noise']:.0%} of these wrong"
    if row.get("absent_ratio"):
        return 8, f"10% of each intent, {row['absent_ratio']:.0%} of the intents not in the pile"
    if row.get("shots"):
        found = ", number of intents found" if row["k_rule"] == "auto" else ""
        return row["shots"], f"{row['shots']} of each known intent{found}"
    return (6, "10% of each known intent") if row["labelled_ratio"] else (0, "none")


def tail_table() -> str:
    """Accuracy on piles with a long tail, by what the transport believes of sizes."""
    lines = [
        "| dataset | ratio | sizes | seeds | macro ACC | small intents |",
        "| --- | ---: | --- | --- | ---: | ---: |",
    ]
    files = ("pile-tail", "pile-kmeans", "pile-tail-default")
    rows = [row | {"sizes": sizes_title(row)} for row in harness_rows(*files)]
    for title, ratio, (_, name), own in grouped(rows, "tail", "sizes"):
        figures = [spread(of(own, measure)) for measure in ("macro_acc", "tail_acc")]
        lines.append(line(title, f"{ratio:g}", name, seeds_of(own), *figures))
    return with_note("\n".join(lines), rows)


def sizes_title(row: Row) -> tuple[int, str]:
    if row["method"] == "kmeans":
        return 0, "k-means"
    if row["preset"] == "default":
        return 1 + len(PRIORS), "shrunk (ours), `default`"
    return 1 + list(PRIORS).index(row["variant"]), PRIORS[row["variant"]]


def chatter_table() -> str:
    """What a fifth of chatter costs, and what of it is rejected later."""
    lines = [
        "| dataset | chatter in the pile | intents | seeds | ACC | known | novel | "
        "clusters of chatter | real rejected | chatter rejected | AUROC |",
        "| --- | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    measures = (*MEASURES, "chatter_clusters", "rejected_inside", "rejected_outside", "auroc")
    stored = read_rows("pile-rejected.jsonl")
    rows = [row | {"found": row.get("k_rule") == "auto"} for row in stored]
    for title, ratio, found, own in grouped(rows, "chatter_ratio", "found"):
        told = f"{mean(row['k'] for row in own):.0f} found" if found else "given"
        figures = [spread(row[measure] for row in own) for measure in measures]
        lines.append(line(title, f"{ratio:.0%}", told, seeds_of(own), *figures))
    return with_note("\n".join(lines), rows)


TABLES = {
    "pile-none": none_table,
    "pile-labels": labels_table,
    "pile-tail": tail_table,
    "pile-chatter": chatter_table,
}
