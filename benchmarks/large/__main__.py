"""One epoch of `privet train` on 10 million rows of 20 columns of CSV: how much memory it takes.

Run: python -m benchmarks.large [--rows 10000000] [--folder FOLDER]

The table is made up and written to FOLDER (1 GB), which is removed afterwards unless it was named. Peak memory is that
of the process that trains, imports included. Writes benchmarks/results/large.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

RESULTS = Path(__file__).parents[1] / "results" / "large.json"
NUMBERS = 18
WARDS = ("north", "south", "east", "west")
SOURCE = 'source = { kind = "codebook", by = "this benchmark", on = 2026-11-18 }\n'
TRAIN = """
import resource, sys
from privet.cli import main
code = main(sys.argv[1:])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
sys.exit(code)
"""


def write(folder: Path, rows: int) -> None:
    """A table in which two of the columns matter, and its schema."""
    drawn = np.random.default_rng(0)
    columns: dict[str, pl.Series] = {}
    for place in range(NUMBERS):
        columns[f"c{place}"] = pl.Series(np.round(drawn.normal(50, 15, rows), 1).astype(np.float32))
    columns["ward"] = pl.Series(np.array(WARDS)[drawn.integers(0, len(WARDS), rows)])
    odds = (columns["c0"].to_numpy() - 50) / 15 + (columns["c1"].to_numpy() - 50) / 20
    columns["y"] = pl.Series(np.where(drawn.random(rows) < 1 / (1 + np.exp(-odds)), "yes", "no"))
    pl.DataFrame(columns).write_csv(folder / "large.csv")
    bounds = f'kind = "number"\nlow = 0\nhigh = 100\n{SOURCE}'
    numbers = "".join(f'[[column]]\nname = "c{n}"\n{bounds}' for n in range(NUMBERS))
    categories = "".join(
        f'[[column]]\nname = "{name}"\nkind = "category"\nvalues = {json.dumps(values)}\n{SOURCE}'
        for name, values in (("ward", list(WARDS)), ("y", ["no", "yes"]))
    )
    (folder / "large.toml").write_text(f'privet = 1\ntarget = "y"\nrows = {rows}\n{numbers}{categories}')


def trained(folder: Path) -> tuple[float, float]:
    """Seconds, and peak memory in GiB."""
    words = f"train {folder / 'large.csv'} --schema {folder / 'large.toml'} --epochs 1 --out {folder / 'run'}"
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", TRAIN, *words.split()], check=True, capture_output=True, text=True)
    return time.perf_counter() - begun, float(done.stdout.rpartition("peak ")[2])


def main() -> None:
    """Write, train, and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as spare:
        folder = asked.folder or Path(spare)
        write(folder, asked.rows)
        seconds, peak = trained(folder)
    found = {
        "command": "python -m benchmarks.large",
        "rows": asked.rows,
        "columns": NUMBERS + 2,
        "peak_gib": round(peak, 2),
        "goal_gib": 4.0,
        "seconds_read_and_train": round(seconds),
    }
    print(found)
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
