"""A table as Markdown, as CSV for programs, or as one HTML page that needs nothing else."""

import csv
import html
import io
import os
from collections.abc import Iterable
from pathlib import Path

from ronid.bench.published import DATASETS
from ronid.bench.table import MEASURES, Line, Table, seeds_text

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem;
  color: #1b1f24; background: #fff; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap; }
td.skip { text-align: left; white-space: normal; font-style: italic; }
th.text, td.text { text-align: left; }
thead th { border-bottom: 2px solid #57606a; }
tbody tr { border-bottom: 1px solid #d0d7de; }
tbody tr.published { color: #57606a; }
tbody tr.first td { border-top: 2px solid #57606a; }
td.source { white-space: normal; min-width: 18rem; font-size: .9em; }
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117; }
  tbody tr.published { color: #9da7b3; }
}
"""


def to_markdown(table: Table) -> str:
    """Return a Markdown table, with the caption above and warnings below."""
    head = [*_lead_titles(table), "seeds", *_figure_titles(table), *_tail_titles(table)]
    left = len(table.by) + 1
    tail = len(_tail_titles(table))
    bars = ["---" if i < left or i >= len(head) - tail else "---:" for i in range(len(head))]
    lines = [_markdown_line(head), _markdown_line(bars)]
    lines += [_markdown_line(_cells(table, line)) for line in table.lines]
    notes = [f"- {text}" for text in table.warnings]
    parts = [f"{table.caption}.", "\n".join(lines), "\n".join(notes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def to_csv(table: Table) -> str:
    """Return one line per figure: leading columns, dataset, measure, mean, std, n, seeds."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ("dataset", "measure", "mean", "std", "n", "seeds", "skip", "source", "note")
    writer.writerow((*table.by, *names))
    for line in table.lines:
        lead = [line.lead[name] for name in table.by]
        for dataset in table.datasets:
            seeds = seeds_text(line.seeds.get(dataset, ()))
            tail = ("", line.source, line.note)
            for measure in table.measures:
                figure = line.figures.get((dataset, measure))
                if figure is not None:
                    std = "" if figure.std is None else f"{figure.std:.4f}"
                    values = (f"{figure.mean:.4f}", std, figure.n or "", seeds)
                    writer.writerow((*lead, dataset, measure, *values, *tail))
            if dataset in line.skips:
                reason = line.skips[dataset]
                writer.writerow((*lead, dataset, "", "", "", "", "", reason, "", ""))
    return out.getvalue()


def to_html(table: Table, title: str = "Benchmark of new intent discovery") -> str:
    """Return a whole page; measures are grouped by dataset."""
    wide = len(table.measures)
    first = "".join(
        f'<th class="text" rowspan="2" scope="col">{html.escape(name)}</th>'
        for name in (*_lead_titles(table), "seeds")
    ) + "".join(
        f'<th colspan="{wide}" scope="colgroup">{html.escape(_dataset(name))}</th>'
        for name in table.datasets
    )
    first += "".join(
        f'<th class="text" rowspan="2" scope="col">{name}</th>' for name in _tail_titles(table)
    )
    second = "".join(
        f'<th scope="col">{MEASURES[m]}</th>' for _ in table.datasets for m in table.measures
    )
    warned = "".join(f"<li>{html.escape(text)}</li>" for text in table.warnings)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{html.escape(title)}</h1>\n"
        f"<p>{html.escape(table.caption)}. All figures in percent.</p>\n"
        f'<div class="wide">\n<table>\n'
        f"<thead>\n<tr>{first}</tr>\n<tr>{second}</tr>\n</thead>\n<tbody>\n"
        f"{''.join(_html_rows(table))}</tbody>\n</table>\n</div>\n"
        + (f"<h2>Read with care</h2>\n<ul>{warned}</ul>\n" if warned else "")
        + "</body>\n</html>\n"
    )


def write_table(path: Path, text: str) -> None:
    """Write a table whole: the file is never a part of one."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


FORMATS = {"markdown": to_markdown, "csv": to_csv, "html": to_html}


def _html_rows(table: Table) -> Iterable[str]:
    """Yield the body; a reason takes the place of all figures of its dataset."""
    before = ""
    for line in table.lines:
        kinds = [name for name, on in (("published", line.source),) if on]
        if line.source and not before:
            kinds.append("first")
        before = line.source
        cells = [line.lead[name] for name in table.by] + [_seeds(line)]
        text = "".join(f'<td class="text">{html.escape(cell)}</td>' for cell in cells)
        for dataset in table.datasets:
            if dataset in line.skips:
                reason = html.escape(line.skips[dataset])
                text += f'<td class="skip" colspan="{len(table.measures)}">{reason}</td>'
                continue
            text += "".join(
                f"<td>{line.figures.get((dataset, measure), '')}</td>" for measure in table.measures
            )
        if _tail_titles(table):
            text += f'<td class="text source">{html.escape(_origin(line))}</td>'
        yield f'<tr class="{" ".join(kinds)}">{text}</tr>\n'


def _cells(table: Table, line: Line) -> list[str]:
    cells = [line.lead[name] for name in table.by] + [_seeds(line)]
    for dataset in table.datasets:
        for i, measure in enumerate(table.measures):
            if dataset in line.skips:
                cells.append(line.skips[dataset] if i == 0 else "")
            else:
                cells.append(str(line.figures.get((dataset, measure), "")))
    return cells + ([_origin(line)] if _tail_titles(table) else [])


def _markdown_line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _lead_titles(table: Table) -> list[str]:
    short = {"known_ratio": "known", "labelled_ratio": "labelled", "k_rule": "K"}
    return [short.get(name, name.replace("_", " ")) for name in table.by]


def _figure_titles(table: Table) -> list[str]:
    return [f"{_dataset(d)} {MEASURES[m]}" for d in table.datasets for m in table.measures]


def _tail_titles(table: Table) -> list[str]:
    return ["source"] if any(line.source for line in table.lines) else []


def _dataset(name: str) -> str:
    return DATASETS.get(name, name)


def _origin(line: Line) -> str:
    return f"{line.source} ({line.note})" if line.note else line.source


def _seeds(line: Line) -> str:
    """Count and name the seeds, apart for every dataset where they differ."""
    texts = {d: f"{seeds_text(s)} (n={len(s)})" for d, s in line.seeds.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{_dataset(dataset)} {text}" for dataset, text in texts.items())
