"""Write the tables of README.md and docs from the stored rows; nothing in them is typed.

python benchmarks/tables.py            # rewrite
python benchmarks/tables.py --check    # exit 1 where a table is not what the rows say
"""

import argparse
import json
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pile_tables

from ronid.bench.render import to_markdown
from ronid.bench.rows import read_all
from ronid.bench.table import make_table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
DATASETS = {"clinc": "CLINC", "banking": "BANKING", "stackoverflow": "StackOverflow"}
HARNESS = ("main-mpnet", "main-minilm", "fast", "paper", "bert")
FIRST_DEV_SEED = 100
"""Seeds from here on chose settings; figures come from those below."""
MEASURES = ("nmi", "ari", "acc", "known_acc", "novel_acc")


def read_rows(name: str) -> list[dict[str, Any]]:
    path = RESULTS / name
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def stored_rows(*names: str) -> list[dict[str, Any]]:
    """Return the rows, of whatever form, of those files that exist."""
    files = [f"{name}.jsonl" for name in names if (RESULTS / f"{name}.jsonl").exists()]
    return [row for file in files for row in read_rows(file)]


def line(*cells: str) -> str:
    """Return one line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def short_table() -> str:
    """Accuracy alone, for a first look: k-means, RoNID's presets, and the paper's own row."""
    methods = [row for row in harness_rows("methods") if row["method"] == "kmeans"]
    rows = [*harness_rows("main-mpnet", "main-minilm", "fast"), *methods]
    by = ("method", "preset", "encoder")
    return to_markdown(make_table(rows, by=by, measures=("acc",), beside="own"))


def timing_table() -> str:
    """Seconds of runs that had their machine to themselves, from the file to the scores."""
    stages = ("encode", "pretrain", "contrast", "em")
    lines = [
        line("dataset", "encoder", "preset", "seed", "device", "seconds", *stages),
        line(*["---"] * 3, "---:", "---", *["---:"] * 5),
    ]
    for row in [*read_rows("timing.jsonl"), *first_seeds(read_rows("fast.jsonl"))]:
        place = "two CPU cores" if "cpu" in row["device"] else row["device"]
        lead = [DATASETS[row["dataset"]], row["encoder"], f"`{row['preset']}`", str(row["seed"])]
        parts = [f"{row['seconds'].get(stage, 0):.1f}" for stage in stages]
        lines.append(line(*lead, place, f"{row['wall_s']:.1f}", *parts))
    return "\n".join(lines)


def first_seeds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
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


def main_table() -> str:
    """Mean and deviation over seeds of every stored run of the harness, published figures below."""
    rows = harness_rows(*HARNESS)
    return to_markdown(make_table(rows, by=("preset", "encoder"), measures=MEASURES, beside="own"))


def ablation_table() -> str:
    """What each part of RoNID brings, under both presets."""
    rows = harness_rows("ablation-paper", "ablation-default", "ablation-size")
    measures = ("acc", "known_acc", "novel_acc")
    return to_markdown(make_table(rows, by=("preset", "variant"), measures=measures, beside="none"))


def known_ratio_table() -> str:
    """Accuracy with fewer known intents, and what was published for them."""
    rows = harness_rows("known-ratio", "main-minilm")
    measures = ("acc", "known_acc", "novel_acc")
    return to_markdown(make_table(rows, by=("known_ratio",), measures=measures, beside="all"))


def harness_rows(*names: str) -> list[dict[str, Any]]:
    """Return the rows of those files that exist."""
    files = [RESULTS / f"{name}.jsonl" for name in names]
    return read_all([file for file in files if file.exists()])


COUNT_RULES = {
    "auto": "ours, from nothing",
    "guess": "ours, told {start}",
    "deep_aligned": "DeepAligned's, from {start}",
    "dpn": "DPN's, from {start}",
    "usnid": "USNID's, from {start}",
}


def count_table() -> str:
    """How many intents were found, and what that costs against being told the number."""
    lines = [
        "| dataset | intents | rule | seeds | found | error | ACC | ACC if told | difference |",
        "| --- | ---: | --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    given = {(row["dataset"], row["seed"]): row for row in read_rows("fast.jsonl")}
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in harness_rows("count"):
        groups.setdefault((list(DATASETS).index(row["dataset"]), row["k_rule"]), []).append(row)
    for (place, rule), rows in sorted(groups.items()):
        lines.append(line(list(DATASETS.values())[place], *_count_cells(rule, rows, given)))
    return "\n".join(lines)


def _count_cells(
    rule: str, rows: list[dict[str, Any]], given: dict[tuple[str, int], dict[str, Any]]
) -> list[str]:
    """Cells of the rows of one dataset and rule."""
    told = [given[row["dataset"], row["seed"]] for row in rows]
    true, found = told[0]["k"], [row["k"] for row in rows]
    name, _, factor = rule.partition("@")
    title = COUNT_RULES[name].format(start=f"{factor} times as many")
    error = 100 * mean(abs(k - true) for k in found) / true
    ours, theirs = ([row["scores"]["argmax"]["acc"] for row in own] for own in (rows, told))
    accuracies = [f"{mean(values):.1f}" for values in (ours, theirs)]
    return [
        str(true),
        title,
        f"{min(row['seed'] for row in rows)}-{max(row['seed'] for row in rows)} (n={len(rows)})",
        f"{mean(found):.0f} ({min(found)} to {max(found)})",
        f"{error:.1f}%",
        *accuracies,
        f"{mean(ours) - mean(theirs):+.1f}",
    ]


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


def names_table() -> str:
    """Mean over seeds of how often a name leads back to its true label."""
    lines = [
        "| dataset | seeds | named by | top 1 | top 3 | pure: top 1 | pure: top 3 |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for dataset, ours in by_dataset("names.jsonl"):
        seeds = ", ".join(str(seed) for seed in sorted(row["seed"] for row in ours))
        for kind, title in (("keyphrase", "strongest keyphrase"), ("name", "`ronid name`")):
            means = [
                sum(row["scores"][kind][part][top] for row in ours) / len(ours)
                for part in ("all", "pure")
                for top in ("top1", "top3")
            ]
            figures = [f"{mean:.1f}" for mean in means]
            lines.append(line(dataset, seeds, title, *figures))
    return "\n".join(lines)


def names_list() -> str:
    """Every name of the stored runs beside the true label, worst first within a dataset."""
    lines = [
        "| dataset | seed | name | true label of most | purity | rank of that label |",
        "| --- | ---: | --- | --- | ---: | ---: |",
    ]
    for row in sorted(read_rows("names.jsonl"), key=lambda r: (r["dataset"], r["seed"])):
        for each in sorted(row["names"], key=lambda e: (-e["name_rank"], e["name"])):
            lead = [DATASETS[row["dataset"]], str(row["seed"])]
            names = [f"`{each['name']}`", f"`{each['truth']}`"]
            figures = [f"{each['purity']:.2f}", str(each["name_rank"])]
            lines.append(line(*lead, *names, *figures))
    return "\n".join(lines)


def scope_table() -> str:
    """How well each score tells what is out of scope, mean and deviation over seeds."""
    lines = [
        "| dataset | score | AUROC | FPR95 | F1 at 0.1 | in scope kept | ACC of these |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for dataset, rows in by_dataset("out_of_scope.jsonl"):
        for name in rows[0]["scores"]:
            judged = [row["scores"][name] for row in rows]
            figures = [over_seeds(judged, m) for m in ("auroc", "fpr95", "f1", "kept", "acc_kept")]
            lines.append(line(dataset, name, *figures))
    return "\n".join(lines)


def calibration_table() -> str:
    """Expected calibration error before and after, mean and deviation over seeds."""
    lines = [
        "| dataset | seeds | ACC in scope | ECE before | ECE after | temperature |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for dataset, rows in by_dataset("out_of_scope.jsonl"):
        figures = [over_seeds(rows, m) for m in ("acc", "ece_before", "ece_after")]
        temperature = over_seeds(rows, "temperature", digits=3)
        lines.append(line(dataset, str(len(rows)), *figures, temperature))
    return "\n".join(lines)


def by_dataset(name: str) -> list[tuple[str, list[dict[str, Any]]]]:
    titles = DATASETS | {"clinc_oos": "CLINC, its own queries"}
    rows = read_rows(name)
    found = [(title, [r for r in rows if r["dataset"] == key]) for key, title in titles.items()]
    return [(title, own) for title, own in found if own]


def over_seeds(rows: list[dict[str, Any]], key: str, digits: int = 1) -> str:
    values = [row[key] for row in rows]
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{spread}"


def judge_table() -> str:
    """Rank correlation of a judgement's figures with the true ACC, one row per figure."""
    rows = [row for row in read_rows("judge.jsonl") if row["seed"] < FIRST_DEV_SEED]
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["seed"]), []).append(row)
    titles = [f"{DATASETS[name]}, {len(group)} runs" for (name, _), group in groups.items()]
    lines = [line("figure", *titles), line("---", *["---:"] * len(groups))]
    for figure in ("score", *rows[0]["parts"]):
        found = [_rank_correlation(group, figure) for group in groups.values()]
        lines.append(line(figure, *found))
    return "\n".join(lines)


def _rank_correlation(rows: list[dict[str, Any]], figure: str) -> str:
    from scipy.stats import spearmanr

    values = [row["score"] if figure == "score" else row["parts"][figure] for row in rows]
    if None in values or len(set(values)) < 2:
        return ""
    return f"{spearmanr(values, [row['acc']['test'] for row in rows]).statistic:.2f}"


def judged_table() -> str:
    """What a judgement said of every run, beside the truth."""
    lines = [
        "| dataset | run | K | test ACC | score | twins: real / said | mixtures: real / said |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = [row for row in read_rows("judge.jsonl") if row["seed"] < FIRST_DEV_SEED]
    for row in sorted(rows, key=lambda r: (r["dataset"], r["seed"], -r["acc"]["test"])):
        lead = [DATASETS[row["dataset"]], row["variant"], str(row["k"])]
        figures = [f"{row['acc']['test']:.1f}", f"{row['score']:.1f}"]
        said = [f"{row[kind]['right']} / {row[kind]['said']}" for kind in ("twins", "mixtures")]
        lines.append(line(*lead, *figures, *said))
    return "\n".join(lines)


def update_table() -> str:
    """Accuracy after each round, updated and fitted at once, mean over seeds, and the times."""
    lines = [
        "| dataset | round | intents | made | ACC: updated / at once | old | new | seconds |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for dataset, own in by_dataset("update.jsonl"):
        for turn in sorted({row["round"] for row in own}):
            rows = [row for row in own if row["round"] == turn and row["seed"] < FIRST_DEV_SEED]
            lead = [dataset, str(turn), str(rows[0]["intents"])]
            made = f"{mean(row['made'] for row in rows):g}"
            pairs = [
                " / ".join(
                    f"{mean(r[way][key] for r in rows):.1f}" for way in ("update", "at_once")
                )
                for key in ("acc", "old", "new", "seconds")
            ]
            lines.append(line(*lead, made, *pairs))
    return "\n".join(lines)


def review_table() -> str:
    """Accuracy after so many actions and after as many random labels, mean over seeds."""
    lines = [
        "| dataset | seeds | actions | ACC: reviewed | random, as many | "
        "random, as many spoken of | known | novel | spoken of | read |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for dataset, own in by_dataset("review.jsonl"):
        rows = [row for row in own if row["seed"] < FIRST_DEV_SEED]
        counts = sorted({row["actions"] for row in rows})
        first = [row["start"] for row in rows if row["actions"] == counts[0]]
        none = [f"{mean(start[key] for start in first):.1f}" for key in ("acc", "known", "novel")]
        lines.append(
            line(dataset, str(len(first)), "0", none[0], none[0], none[0], *none[1:], "0", "0")
        )
        for actions in counts:
            part = [row for row in rows if row["actions"] == actions]
            ways = [
                over_seeds([row[way] for row in part], "acc")
                for way in ("review", "random", "random_rows")
            ]
            kinds = [f"{mean(r['review'][key] for r in part):.1f}" for key in ("known", "novel")]
            reading = [f"{mean(row[key] for row in part):,.0f}" for key in ("spoken", "read")]
            lines.append(line(dataset, str(len(part)), str(actions), *ways, *kinds, *reading))
    return "\n".join(lines)


STUDIO = {
    "first_view_s": "first view",
    "view_again_s": "view again",
    "action_p50_s": "an action, median (from the key to the page that shows it)",
    "action_p95_s": "an action, 95th percentile",
    "search_s": "search over all utterances",
    "intent_page_s": "page of an intent",
    "split_s": "a proposed split",
    "map_s": "the map",
    "map_redraw_p50_s": "the map drawn anew after zooming, median",
    "others_see_s": "until another person sees an action",
}


def studio_table() -> str:
    """What the studio takes in a browser, for a large run."""
    lines = ["| what | seconds |", "| --- | ---: |"]
    for row in read_rows("studio.jsonl"):
        lines += [line(title, f"{row[key]:.2f}") for key, title in STUDIO.items()]
        lines.append(line("memory of the server", f"{row['server_mib']:,} MiB"))
    return "\n".join(lines)


TABLES = {
    "ablation": ablation_table,
    "count": count_table,
    "estep": estep_table,
    "judge": judge_table,
    "judged": judged_table,
    "known-ratio": known_ratio_table,
    "main": main_table,
    "short": short_table,
    "speed": speed_table,
    "studio": studio_table,
    "timing": timing_table,
    "names": names_table,
    "review": review_table,
    "names-list": names_list,
    "scope": scope_table,
    "calibration": calibration_table,
    "update": update_table,
    **{name: partial(table, stored_rows, DATASETS) for name, table in pile_tables.TABLES.items()},
}


def filled(text: str) -> str:
    """Return a Markdown file with every marked table made anew."""
    for name, table in TABLES.items():
        start, stop = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
        if start in text:
            before, rest = text.split(start, 1)
            text = f"{before}{start}\n{table()}\n{stop}{rest.split(stop, 1)[1]}"
    return text


def pages() -> Iterable[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    stale = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = filled(text)
        if new != text:
            stale.append(page.name)
            if not options.check:
                page.write_text(new, encoding="utf-8")
    print("\n".join(stale) or "all tables are up to date")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
