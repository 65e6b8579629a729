"""Write the tables of README.md and docs from the stored rows; nothing in them is typed.

python benchmarks/tables.py            # rewrite
python benchmarks/tables.py --check    # exit 1 where a table is not what the rows say
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import benchmark_tables
import method_tables
import pile_tables
import practice_tables
from table_rows import ROOT

TABLES = (
    benchmark_tables.TABLES | method_tables.TABLES | practice_tables.TABLES | pile_tables.TABLES
)


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
