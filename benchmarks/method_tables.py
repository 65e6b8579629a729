"""Tables of docs/comparison.md: every method on the same splits and encoder."""

import warnings
from collections.abc import Sequence
from functools import cache
from statistics import mean

from table_rows import DATASETS, Row, harness_rows, line, setting_table, spread, with_note

from ronid.bench.compare import compare
from ronid.bench.published import matching
from ronid.bench.table import RULES, seeds_text
from ronid.config import DEFAULT_ENCODER, TFIDF
from ronid.errors import RonidWarning
from ronid.methods import METHODS

OURS = "ronid"
OUR_PRESETS = {"paper": "constants of the paper", "default": "preset `default`"}
"""The lines that RoNID has beside the other methods."""
BEST = (OURS, "default")
"""Method and preset that the others are compared with."""
SHORT = ("codes", "words", "deep-aligned", "dsscc", "dpn", "clnn", "latent-em", "usnid", "dwgf")
"""Methods whose shortfall was looked at, in the order of the paper's table."""

FAMILIES = {
    "no labels": ("kmeans", "agglomerative", "sae_kmeans", "dec", "dcn", "dac", "deepcluster"),
    "labels by classes or pairs": ("kcl", "cdac_plus", "deep_aligned", "dpn"),
    "labels and contrast": ("gcd", "dsscc", "clnn", "latent_em", "usnid", "dwgf"),
    "RoNID": (OURS,),
}
"""Methods by what teaches the encoder, from the weakest family to the strongest."""

COURSES = {
    "accuracy": ("accuracy of the pseudo-labels, first to last epoch", 1),
    "silhouette": ("their silhouette", 2),
    "live_units": ("units of the code in use", 0),
}
"""Figures of the history, their titles and digits."""

COLUMNS = (*RULES, "published", "behind")

OTHERWISE = {
    "dec": "trained by AdamW at a guessed rate in place of SGD",
    "dpn": "moments of Adam corrected",
    "clnn": "a neighbour has positives of its own",
    "usnid": "moments of Adam corrected",
    "dwgf": "targets of self-training without gradient",
}
"""What differs from published code and may well matter; docs/methods.md has all that differs."""
MARK = "\N{DAGGER}"


def methods_table() -> str:
    """Every method on the embedded encoder."""
    return _compared([*paper_rows(DEFAULT_ENCODER), *compared_rows()])


def larger_table() -> str:
    """The strongest three on a larger encoder."""
    rows = larger_rows()
    return _compared([*paper_rows(rows[0]["encoder"]), *rows])


def larger_rows() -> list[Row]:
    """Return the rows of the strongest three on a larger encoder, RoNID's of preset `default`."""
    return [row for row in harness_rows("methods-mpnet", "main-mpnet") if "scores" in row]


def otherwise() -> str:
    """Say what the mark in the tables means."""
    told = "; ".join(f"{METHODS[name].title}, {what}" for name, what in OTHERWISE.items())
    return f"{MARK} otherwise than in the published code in what may well matter: {told}."


def _compared(rows: Sequence[Row]) -> str:
    """Accuracy by both rules of inference, beside what was published, and how far behind RoNID.

    The figure by the rule of a method's own paper is bold.
    """
    titles = (f"{title} {part}" for title in DATASETS.values() for part in COLUMNS)
    lines = [
        line("method", "seeds", *titles),
        line("---", "---", *["---:"] * (len(COLUMNS) * len(DATASETS))),
    ]
    for title, own in _by_title(rows).items():
        cells = [cell for dataset in DATASETS for cell in _cells(rows, own, dataset)]
        lines.append(line(title, _seeds(own), *cells))
    return with_note("\n".join(lines), rows)


def families_table() -> str:
    """Mean accuracy of a family's methods by their own rules, and its weakest and strongest."""
    lines = [
        line("family", "methods", *DATASETS.values()),
        line("---", "---", *["---:"] * len(DATASETS)),
    ]
    for family, names in FAMILIES.items():
        titles = ", ".join(METHODS[name].title for name in names)
        lines.append(line(family, titles, *(_of_family(names, dataset) for dataset in DATASETS)))
    return with_note("\n".join(lines), compared_rows())


def _of_family(names: Sequence[str], dataset: str) -> str:
    means = [accuracy(name, dataset) for name in names]
    reach = f" ({min(means):.1f} to {max(means):.1f})" if len(means) > 1 else ""
    return f"{mean(means):.1f}{reach}"


def accuracy(name: str, dataset: str) -> float:
    """Mean accuracy of a method over seeds, by the rule of its own paper."""
    own = [r for r in compared_rows() if (r["method"], r["dataset"]) == (name, dataset)]
    return mean(row["scores"][METHODS[name].inference]["acc"] for row in own)


def words_table() -> str:
    """Methods on the code of an auto-encoder, over counts of words and over the encoder."""
    parts = ("words", "encoder", "published")
    titles = (f"{title} {part}" for title in DATASETS.values() for part in parts)
    lines = [line("method", "seeds", *titles), line("---", "---", *["---:"] * 3 * len(DATASETS))]
    words, vectors = harness_rows("methods-tfidf", "methods-idec"), compared_rows()
    for name, variant in (("sae_kmeans", ""), ("dec", ""), ("dcn", ""), ("dcn", "-IDEC")):
        own = [r for r in words if "scores" in r and (r["method"], r["variant"]) == (name, variant)]
        cells = []
        for dataset in DATASETS:
            here = [row for row in own if row["dataset"] == dataset]
            there = [r for r in vectors if (r["method"], r["dataset"]) == (name, dataset)]
            cells += [_figures(here)["argmax"], "" if variant else _figures(there)["argmax"]]
            # What is printed as DCN is IDEC.
            cells.append("" if (name, variant) == ("dcn", "") else _published(name, dataset))
        title = METHODS[name].title + (" with the loss of IDEC" if variant else "")
        lines.append(line(title, _seeds(own), *cells))
    return "\n".join(lines)


def all_measures_table() -> str:
    """NMI, ARI, known and novel accuracy of every method."""
    measures = ("nmi", "ari", "acc", "known_acc", "novel_acc")
    return setting_table(compared_rows(), by=("method",), measures=measures, beside="none")


def shortfall_table() -> str:
    """What was tried on development files where a method falls short of its paper."""
    rows = [
        row for row in harness_rows(*(f"shortfall-{name}" for name in SHORT)) if "scores" in row
    ]
    rows.sort(key=_place)
    courses = {
        title: [_course(row, key, digits) for row in rows]
        for key, (title, digits) in COURSES.items()
    }
    courses = {title: cells for title, cells in courses.items() if any(cells)}
    lines = [
        line("method", "changed", "dataset", *RULES, *courses),
        line("---", "---", "---", *["---:"] * (len(RULES) + len(courses))),
    ]
    for row, *cells in zip(rows, *courses.values(), strict=True):
        changed = f"`{row['variant']}`" if row["variant"] else ""
        figures = _figures([row]).values()
        title = METHODS[row["method"]].title + (" over words" if row["encoder"] == TFIDF else "")
        lines.append(line(title, changed, DATASETS[row["dataset"]], *figures, *cells))
    return "\n".join(lines)


def _place(row: Row) -> tuple[object, ...]:
    """Where a row stands: methods as in the paper, as published first, then what was changed."""
    method, dataset = list(METHODS).index(row["method"]), list(DATASETS).index(row["dataset"])
    return method, row["encoder"] == TFIDF, dataset, len(row["variant"]), row["variant"]


def _course(row: Row, key: str, digits: int) -> str:
    """First and last value of a figure of the history, nothing where it has none."""
    values = [epoch[key] for epoch in row.get("history", ()) if key in epoch]
    ends = dict.fromkeys(f"{value:.{digits}f}" for value in (*values[:1], *values[-1:]))
    return " to ".join(ends)


@cache
def compared_rows() -> list[Row]:
    """Return the rows of all methods on the embedded encoder, RoNID's of preset `default`."""
    rows = harness_rows("methods", "methods-more", "main-minilm")
    return [row for row in rows if row["encoder"] == DEFAULT_ENCODER and row["variant"] == ""]


def paper_rows(encoder: str) -> list[Row]:
    """Return the rows of RoNID with the constants of its paper, as others have theirs."""
    return [row for row in harness_rows("paper") if row["encoder"] == encoder]


def minutes() -> str:
    """Say what the rows cost."""
    rows = gpu_rows()
    others = [row for row in compared_rows() if row not in rows]
    devices = ", ".join(sorted({row["device"] for row in rows}))
    titles = " and ".join(_by_title(others))
    larger = larger_rows()
    paper = [*paper_rows(DEFAULT_ENCODER), *paper_rows(larger[0]["encoder"])]
    return (
        f"{len(rows)} rows of this table took {spent_minutes(rows):.0f} minutes of one {devices}, "
        f"the {len(others)} of {titles} {spent_minutes(others):.0f} minutes of a CPU; "
        f"{len(larger)} rows on the larger encoder (below) took {spent_minutes(larger):.0f} more, "
        f"and the {len(paper)} of RoNID with the constants of its paper, on both, "
        f"{spent_minutes(paper):.0f}."
    )


def gpu_rows() -> list[Row]:
    """Return those of the compared rows that were made on a GPU."""
    return [row for row in compared_rows() if "cpu" not in row["device"]]


def spent_minutes(rows: Sequence[Row]) -> float:
    """Return what rows cost: seconds of each, divided by the processes that shared the GPU."""
    return sum((row["wall_s"] - row["shared_s"]) / row["jobs"] for row in rows) / 60


def _cells(rows: Sequence[Row], own: Sequence[Row], dataset: str) -> list[str]:
    """Cells of one line and dataset."""
    name, preset = own[0]["method"], own[0]["preset"]
    here = [row for row in own if row["dataset"] == dataset]
    if not here:
        return [""] * len(COLUMNS)
    figures = _figures(here)
    figures[METHODS[name].inference] = f"**{figures[METHODS[name].inference]}**"
    ours = [r for r in rows if (r["method"], r["preset"]) == BEST and r["dataset"] == dataset]
    behind = "" if (name, preset) == BEST else _behind(ours, here)
    return [*figures.values(), _published(name, dataset), behind]


def _by_title(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of every method that has any, in the order of the paper's table, ours by preset."""
    found: dict[str, list[Row]] = {}
    for name, spec in METHODS.items():
        own = [row for row in rows if row["method"] == name]
        if name != OURS:
            found[spec.table_title + (f" {MARK}" if name in OTHERWISE else "")] = own
            continue
        for preset, said in OUR_PRESETS.items():
            found[f"{spec.title}, {said}"] = [row for row in own if row["preset"] == preset]
    return {title: own for title, own in found.items() if own}


def _seeds(rows: Sequence[Row]) -> str:
    """Seeds of rows; where they are not the same on every dataset, those of each."""
    found: dict[str, set[int]] = {}
    for row in rows:
        found.setdefault(row["dataset"], set()).add(row["seed"])
    texts = {dataset: seeds_text(found[dataset]) for dataset in DATASETS if dataset in found}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{DATASETS[dataset]} {text}" for dataset, text in texts.items())


def _figures(rows: Sequence[Row]) -> dict[str, str]:
    """Mean and deviation of the accuracy by each rule."""
    return {rule: spread((r["scores"][rule]["acc"] for r in rows), 2) for rule in RULES}


def _published(name: str, dataset: str) -> str:
    """Accuracy that the paper of RoNID prints for a method."""
    printed = [e.scores.get(dataset, {}).get("acc") for e in matching(name, "", 0.75, 0.1)]
    return f"{printed[0]:.2f}" if printed and printed[0] is not None else ""


def _behind(ours: Sequence[Row], theirs: Sequence[Row]) -> str:
    """How much more RoNID gets on the same splits, with the p of the paired t-test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RonidWarning)  # the column of seeds says how few they are
        (found,) = compare(ours, theirs)
    p = "" if found.t_p is None else f" (p {found.t_p:.3f})".replace("p 0.000", "p < 0.001")
    return f"{found.mean:.2f}{p}"


TABLES = {
    "methods": methods_table,
    "methods-families": families_table,
    "methods-larger": larger_table,
    "methods-words": words_table,
    "methods-all": all_measures_table,
    "methods-minutes": minutes,
    "methods-otherwise": otherwise,
    "shortfall": shortfall_table,
}
