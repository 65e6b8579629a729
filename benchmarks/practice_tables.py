"""Tables of the pages on work: names, out of scope, judging, updates, review, the studio."""

from statistics import mean

from table_rows import (
    DATASETS,
    FIRST_DEV_SEED,
    Row,
    by_dataset,
    line,
    over_seeds,
    read_rows,
    with_note,
)


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
    return with_note("\n".join(lines), read_rows("names.jsonl"))


def names_list() -> str:
    """Every name of the stored runs beside the true label, worst first within a dataset."""
    lines = [
        "| dataset | seed | name | true label of most | purity | rank of that label |",
        "| --- | ---: | --- | --- | ---: | ---: |",
    ]
    rows = sorted(read_rows("names.jsonl"), key=lambda r: (r["dataset"], r["seed"]))
    for row in rows:
        for each in sorted(row["names"], key=lambda e: (-e["name_rank"], e["name"])):
            lead = [DATASETS[row["dataset"]], str(row["seed"])]
            names = [f"`{each['name']}`", f"`{each['truth']}`"]
            figures = [f"{each['purity']:.2f}", str(each["name_rank"])]
            lines.append(line(*lead, *names, *figures))
    return with_note("\n".join(lines), rows)


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
    return with_note("\n".join(lines), read_rows("out_of_scope.jsonl"))


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
    return with_note("\n".join(lines), read_rows("out_of_scope.jsonl"))


REAL = ("twins: real / said", "mixtures: real / said")


def judge_table() -> str:
    """Rank correlation of a judgement's figures with the true ACC, one row per figure."""
    rows = [row for row in read_rows("judge.jsonl") if row["seed"] < FIRST_DEV_SEED]
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["seed"]), []).append(row)
    titles = [
        f"{DATASETS[name]}, seed {seed}, {len(own)} runs" for (name, seed), own in groups.items()
    ]
    lines = [line("figure", *titles), line("---", *["---:"] * len(groups))]
    for figure in ("score", *rows[0]["parts"]):
        found = [_rank_correlation(group, figure) for group in groups.values()]
        lines.append(line(figure, *found))
    alike = [_rank_correlation(_of_true_count(group), "score") for group in groups.values()]
    lines.append(line("score, runs of the true K", *alike))
    return with_note("\n".join(lines), rows)


def _of_true_count(rows: list[Row]) -> list[Row]:
    return [row for row in rows if "K x" not in row["variant"]]


def _rank_correlation(rows: list[Row], figure: str) -> str:
    from scipy.stats import spearmanr

    values = [row["score"] if figure == "score" else row["parts"][figure] for row in rows]
    if None in values or len(set(values)) < 2:
        return ""
    return f"{spearmanr(values, [row['acc']['test'] for row in rows]).statistic:.2f}"


def judged_table() -> str:
    """What a judgement said of every run, beside the truth."""
    lines = [
        line("dataset", "seed", "run", "K", "test ACC", "score", *REAL),
        line("---", "---:", "---", *["---:"] * 5),
    ]
    rows = [row for row in read_rows("judge.jsonl") if row["seed"] < FIRST_DEV_SEED]
    order = list(DATASETS)
    for row in sorted(
        rows, key=lambda r: (order.index(r["dataset"]), r["seed"], -r["acc"]["test"])
    ):
        lead = [DATASETS[row["dataset"]], str(row["seed"]), row["variant"], str(row["k"])]
        figures = [f"{row['acc']['test']:.1f}", f"{row['score']:.1f}"]
        said = [f"{row[kind]['right']} / {row[kind]['said']}" for kind in ("twins", "mixtures")]
        lines.append(line(*lead, *figures, *said))
    return with_note("\n".join(lines), rows)


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
            made = f"{mean(row['made'] for row in rows):.1f}".removesuffix(".0")
            pairs = [
                " / ".join(
                    f"{mean(r[way][key] for r in rows):.1f}" for way in ("update", "at_once")
                )
                for key in ("acc", "old", "new", "seconds")
            ]
            lines.append(line(*lead, made, *pairs))
    return with_note("\n".join(lines), read_rows("update.jsonl"))


WAYS = {"review": "reviewed", "random": "random", "random_rows": "random, as many spoken of"}
UNREAD = {"spoken": 0, "read": 0}


def review_table() -> str:
    """Accuracy after so many actions and after as many random labels, mean over seeds."""
    titles = [f"{part} {way}" for part in ("test:", "pile:") for way in WAYS.values()]
    head = ["dataset", "seeds", "actions", *titles, "known", "novel", "spoken of", "read"]
    lines = [line(*head), line("---", *["---:"] * (len(head) - 1))]
    for dataset, own in by_dataset("review.jsonl"):
        rows = [row for row in own if row["seed"] < FIRST_DEV_SEED]
        counts = sorted({row["actions"] for row in rows})
        first = [row for row in rows if row["actions"] == counts[0]]
        before = [row | dict.fromkeys(WAYS, row["start"]) | UNREAD for row in first]
        for actions in (0, *counts):
            part = [row for row in rows if row["actions"] == actions] or before
            figures = [
                over_seeds([row[way] for row in part], key)
                for key in ("acc", "pile")
                for way in WAYS
            ]
            kinds = [f"{mean(r['review'][key] for r in part):.1f}" for key in ("known", "novel")]
            reading = [f"{mean(row[key] for row in part):,.0f}" for key in ("spoken", "read")]
            lines.append(line(dataset, str(len(part)), str(actions), *figures, *kinds, *reading))
    return with_note("\n".join(lines), read_rows("review.jsonl"))


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
    "calibration": calibration_table,
    "judge": judge_table,
    "judged": judged_table,
    "names": names_table,
    "names-list": names_list,
    "review": review_table,
    "scope": scope_table,
    "studio": studio_table,
    "update": update_table,
}
