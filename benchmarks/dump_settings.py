"""Write the full configuration and split of every stored benchmark row.

    python benchmarks/dump_settings.py

The hash in a row covers the settings that differ from the defaults, not the defaults themselves.
This file therefore holds every value, as the code of `COMMIT` reads it: `configs` and `splits` by
key, and `rows`, which refer to them. A row with `config_agrees` = false was measured with older
settings, so its entry in `configs` is not what it ran with.
"""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from export_source import COMMIT, export_source

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "benchmarks" / "results" / f"settings-{COMMIT}.json.gz"


def main() -> None:
    """Run this script again with the exported source, which writes the file."""
    if "--inner" in sys.argv:
        dump()
        return
    environment = os.environ | {"PYTHONPATH": str(export_source() / "src")}
    command = [sys.executable, str(Path(__file__).resolve()), "--inner"]
    raise SystemExit(subprocess.run(command, env=environment, check=False).returncode)


def dump() -> None:
    """Write configurations, splits, and which row has which."""
    from ronid.bench.cell import split_of
    from ronid.bench.plan import BenchCell, config_hash, read_plan
    from ronid.bench.rows import coordinates, latest, read_rows
    from ronid.config import to_dict

    configs: dict[str, Any] = {}
    splits: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for path in sorted((ROOT / "benchmarks" / "configs").glob("*.toml")):
        stored = ROOT / "benchmarks" / "results" / f"{path.stem}.jsonl"
        if not stored.exists():
            continue
        plan = read_plan(path)
        for row in latest(read_rows(stored)):
            if "scores" not in row:
                continue
            cell = BenchCell(*coordinates(row))
            config, split = plan.config(cell), split_of(cell)
            full = to_dict(config)
            number = next((n for n, one in configs.items() if one == full), f"c{len(configs)}")
            configs[number] = full
            splits[split.hash] = split.content
            rows.append(
                {
                    "file": stored.name,
                    "cell": list(coordinates(row)),
                    "config": number,
                    "config_agrees": config_hash(config) == row["config_hash"],
                    "split": split.hash,
                    "split_agrees": split.hash == row["split_hash"],
                }
            )
    content = {"commit": COMMIT, "configs": configs, "splits": splits, "rows": rows}
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    OUT.write_bytes(gzip.compress(data, 9, mtime=0))
    older = sum(not row["config_agrees"] for row in rows)
    print(f"{OUT.name}: {len(rows)} rows, {len(configs)} configurations, {len(splits)} splits")
    print(f"{older} rows were stored with settings that this commit no longer has")


if __name__ == "__main__":
    main()
