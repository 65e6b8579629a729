"""Mark stored rows of presets `default` and `fast` as results of the earlier answer.

    python benchmarks/mark_before.py [FILE ...]

Sets `version` to "before" in the rows of RoNID with one of these presets that have no `version`
field. The code up to commit 8ba84b5 wrote no such field; later code writes it in all these rows, so
a second run changes nothing. The script does not touch other rows. Run it in the commit that
changes the answer: from then on, the jobs are pending again, and the marked rows appear only where
there are no current ones, see `latest` in `ronid.bench.rows`.
"""

import argparse
import json
from pathlib import Path

from export_source import VERSION

from ronid.files import whole

RESULTS = Path(__file__).resolve().parent / "results"
PRESETS = ("default", "fast")
OF_FAST = ("judge.jsonl", "review.jsonl", "update.jsonl")
"""Files whose rows are all of preset `fast` and did not say so."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="*", type=Path, help="result files; all by default")
    for path in parser.parse_args().file or sorted(RESULTS.glob("*.jsonl")):
        count = mark(path)
        if count:
            print(f"{path.name}: {count} rows marked")


def mark(path: Path) -> int:
    """Mark the rows of a file, and return how many changed."""
    lines = path.read_text(encoding="utf-8").split("\n")
    marked = [_marked(line, "fast" if path.name in OF_FAST else "") for line in lines]
    count = sum(old != new for old, new in zip(lines, marked, strict=True))
    if count:
        with whole(path) as partial:
            partial.write_text("\n".join(marked), encoding="utf-8")
    return count


def _marked(line: str, preset: str) -> str:
    """Return a line as it is, or with the version; rows that name no preset have `preset`."""
    if not line.strip():
        return line
    row = ({"preset": preset} if preset else {}) | json.loads(line)
    # Scripts beside the harness, such as chatter.py, run RoNID and do not name the method.
    ours = row.get("method", "ronid") == "ronid" and row.get("preset") in PRESETS
    if not ours or "version" in row:
        return line
    return json.dumps({**row, "version": VERSION}, ensure_ascii=False)


if __name__ == "__main__":
    main()
