"""Tables of docs/comparison.md: every method on the same splits and the same encoder."""

import warnings
from collections.abc import Sequence

from table_rows import DATASETS, Row, harness_rows, line, spread

from ronid.bench.compare import compare
from ronid.bench.published import matching
from ronid.bench.render import to_markdown
from ronid.bench.table import RULES, make_table, seeds_text
from ronid.config import DEFAULT_ENCODER
from ronid.errors import RonidWarning
from ronid.methods import METHODS

OURS = "ronid"
COLUMNS = (*RULES, "published", "behind")


def methods_table() -> str:
    """Accuracy by both rules of inference, beside what was published, and how far behind RoNID.

    The figure by the rule of a method's own paper is bold.
    """
    titles = (f"{title} {part}" for title in DATASETS.values() for part in COLUMNS)
    lines = [
        line("method", "seeds", *titles),
        line("---", "---", *["---:"] * (len(COLUMNS) * len(DATASETS))),
    ]
    rows = compared_rows()
    for name, spec in METHODS.items():
        own = [row for row in rows if row["method"] == name]
        if not own:
            continue
        seeds = seeds_text({row["seed"] for row in own})
        cells = [cell for dataset in DATASETS for cell in _cells(rows, own, dataset, name)]
        title = f"{spec.title} ({spec.note})" if spec.note else spec.title
        lines.append(line(title, seeds, *cells))
    return "\n".join(lines)


def all_measures_table() -> str:
    """NMI, ARI, known and novel accuracy of every method."""
    measures = ("nmi", "ari", "acc", "known_acc", "novel_acc")
    return to_markdown(
        make_table(compared_rows(), by=("method",), measures=measures, beside="none")
    )


def compared_rows() -> list[Row]:
    """Return the rows of all methods on the embedded encoder, RoNID's of preset `default`."""
    rows = harness_rows("methods", "methods-more", "main-minilm")
    return [row for row in rows if row["encoder"] == DEFAULT_ENCODER and row["variant"] == ""]


def minutes() -> str:
    """Say what the rows cost: seconds of each, divided by the processes that shared the GPU."""
    rows = [row for row in compared_rows() if "cpu" not in row["device"]]
    spent = sum((row["wall_s"] - row["shared_s"]) / row["jobs"] for row in rows)
    devices = ", ".join(sorted({row["device"] for row in rows}))
    return f"{len(rows)} rows of these tables took {spent / 60:.0f} minutes of one {devices}."


def _cells(rows: Sequence[Row], own: Sequence[Row], dataset: str, name: str) -> list[str]:
    """Cells of one method and dataset."""
    here = [row for row in own if row["dataset"] == dataset]
    if not here:
        return [""] * len(COLUMNS)
    figures = {rule: spread((r["scores"][rule]["acc"] for r in here), 2) for rule in RULES}
    figures[METHODS[name].inference] = f"**{figures[METHODS[name].inference]}**"
    printed = [e.scores.get(dataset, {}).get("acc") for e in matching(name, "", 0.75, 0.1)]
    published = f"{printed[0]:.2f}" if printed and printed[0] is not None else ""
    ours = [row for row in rows if row["method"] == OURS and row["dataset"] == dataset]
    return [*figures.values(), published, "" if name == OURS else _behind(ours, here)]


def _behind(ours: Sequence[Row], theirs: Sequence[Row]) -> str:
    """How much more RoNID gets on the same splits, with the p of the paired t-test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RonidWarning)  # the column of seeds says how few they are
        (found,) = compare(ours, theirs)
    p = "" if found.t_p is None else f" (p {found.t_p:.3f})".replace("p 0.000", "p < 0.001")
    return f"{found.mean:.2f}{p}"


TABLES = {
    "methods": methods_table,
    "methods-all": all_measures_table,
    "methods-minutes": minutes,
}
