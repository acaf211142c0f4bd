"""Private answers over 10 million rows beside the same questions in plain Polars.

Run: python -m benchmarks.query [ROWS]

Writes a Parquet file to a temporary directory, then takes turns, in one process and with the same threads: plain Polars
(scan, query, collect), and a plan's `answer` (header, one pass, noise), both of the same file and on the streaming
engine. A plan is made once, as it does not depend on rows. What is compared is the median of many turns, the more the
shorter they are, so that what else the machine does falls on both. The peak memory of a group-by is measured in a
process of its own. Writes benchmarks/results/query.json.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from privet.core.random import default_rng
from privet.data import Category, Number, Schema
from privet.query import plan

COMMAND = "python -m benchmarks.query"
RESULTS = Path(__file__).parents[1] / "results" / "query.json"
ROWS, GOAL = 10_000_000, 1.2
LEAST, MOST, SECONDS = 15, 400, 2.0
"""Turns: as many as fit into so many seconds, within bounds."""
SCHEMA = Schema(
    (
        Category("diabetes", ("0", "1"), source="codebook"),
        Number("age", 0, 100, source="domain limit"),
        Number("bmi", 10, 60, source="domain limit"),
        Category("ward", ("north", "south", "east", "west"), source="codebook"),
    )
)


def _stripped(name: str) -> pl.Expr:
    """Blanks around a cell do not count: the same question in plain Polars has to cut them off, too."""
    return pl.col(name).str.strip_chars()


CASES: dict[str, tuple[Callable[[pl.LazyFrame], pl.LazyFrame], bool]] = {
    "count": (lambda t: t.select(pl.len()), True),
    "count where diabetes = 1": (lambda t: t.filter(pl.col("diabetes") == 1).select(pl.len()), True),
    "count where age > 40": (lambda t: t.filter(pl.col("age") > 40).select(pl.len()), True),
    "count where bmi > 30": (lambda t: t.filter(pl.col("bmi") > 30).select(pl.len()), True),
    "count where ward = north": (lambda t: t.filter(_stripped("ward") == "north").select(pl.len()), True),
    "count by ward": (lambda t: t.group_by(_stripped("ward")).agg(pl.len()), False),
    "mean(age) by ward": (lambda t: t.group_by(_stripped("ward")).agg(pl.col("age").mean()), False),
}
"""Each with the plain query, and whether the goal is meant for it: for every count without groups."""


def write(path: Path, rows: int) -> None:
    """A table of people who never were."""
    rng = np.random.default_rng(1)
    pl.DataFrame(
        {
            "diabetes": rng.integers(0, 2, rows),
            "age": rng.integers(18, 90, rows),
            "bmi": rng.normal(25, 4, rows),
            "ward": pl.Series(rng.integers(0, 4, rows)).replace_strict(list(range(4)), list(SCHEMA.columns[3].values)),  # type: ignore[union-attr]
        }
    ).write_parquet(path)


def timed(work: Callable[[], Any]) -> float:
    """Seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(text: str, path: Path) -> dict[str, Any]:
    """Both in turns, so that what else the machine does falls on both."""
    plain, has_goal = CASES[text]
    made, rng = plan(text, SCHEMA, epsilon=1.0), default_rng()

    def by_polars() -> None:
        plain(pl.scan_parquet(path)).collect(engine="streaming")

    def by_privet() -> None:
        made.answer(path, rng=rng)

    by_polars()
    turns = min(max(int(SECONDS / timed(by_privet)), LEAST), MOST)
    pairs = [(timed(by_polars), timed(by_privet)) for _ in range(turns)]
    usual, private = (statistics.median(each) for each in zip(*pairs, strict=True))
    found = {
        "polars_ms": round(1e3 * usual, 2),
        "privet_ms": round(1e3 * private, 2),
        "ratio": round(private / usual, 2),
        "turns": turns,
    }
    print(f"  {text}: {found['polars_ms']} ms, {found['privet_ms']} ms, {found['ratio']}×", flush=True)
    return {"question": text} | found | ({"goal": GOAL, "meets_goal": private / usual <= GOAL} if has_goal else {})


def peak(path: Path) -> dict[str, float]:
    """The memory of a process that does nothing but a group-by, above what its imports take."""
    code = f"from benchmarks.query.__main__ import measure_peak; measure_peak({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure_peak(path: str) -> None:
    """Print, as JSON, the peak in MB before and after a group-by, and the size of the table."""
    before = _most_memory()
    plan("mean(age) by ward", SCHEMA, epsilon=1.0).answer(Path(path), rng=default_rng())
    print(json.dumps({"peak_mb_above_import": round(_most_memory() - before, 1)}))


def _most_memory() -> float:
    """The peak of this process alone, in MB; what `resource` says was inherited from the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    """Measure everything and write the results."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "people.parquet"
        write(path, rows)
        found = [measure(text, path) for text in CASES]
        memory = peak(path) | {
            "file_mb": round(path.stat().st_size / 2**20, 1),
            "table_mb": round(rows * 30 / 2**20, 1),
        }
    print(f"  group-by: {memory}")
    report = {
        "command": COMMAND,
        "python": platform.python_version(),
        "polars": pl.__version__,
        "cores": os.cpu_count(),
        "rows": rows,
        "cases": found,
        "group_by": memory,
    }
    if rows == ROWS:
        RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        print(f"wrote {RESULTS.name}")


if __name__ == "__main__":
    main()
