"""PATE on MNIST, Adult and a set of glyphs, and sweeps over teachers, noise and questions.

Run: python -m benchmarks.pate [CASE …] [--seeds 5] [--simulate] [--threads 1] [--cache FOLDER]

Settings are constants (settings.py); README.md here says how they were chosen, and what each number is. `--simulate`
lets training rows stand for the test file, prints, and writes nothing. The data lie where PRIVET_DATA says, or in
../shared/data. Writes benchmarks/results/pate.json, case by case.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch

from benchmarks.pate.glyphs import glyphs
from benchmarks.pate.protocol import Set, loaded, run
from benchmarks.pate.settings import DELTA, FAILURE, SETTINGS, Settings
from benchmarks.pate.sweeps import sweeps

COMMAND = "python -m benchmarks.pate"
RESULTS = Path(__file__).parents[1] / "results" / "pate.json"
OTHERS: dict[str, Callable[[Path], dict[str, Any]]] = {"sweeps": sweeps, "glyphs": lambda _: glyphs()}


def summary(settings: Settings, seeds: int, cache: Path, *, simulate: bool) -> dict[str, Any]:
    """Means over seeds, each with shards, a split, questions and noise of its own."""
    found, data = [], None
    for seed in range(seeds):
        if simulate or data is None:
            data = loaded(settings.data, settings.bins, cache, simulate=seed if simulate else None)
        assert isinstance(data, Set)
        found.append(run(data, settings, seed))
        print(settings.name, seed, {key: round(value, 3) for key, value in asdict(found[-1]).items()}, flush=True)
    assert data is not None
    rows = [asdict(each) for each in found]
    accuracies = [each.accuracy for each in found]
    return {
        "settings": {key: str(value) for key, value in asdict(settings).items() if key != "student"}
        | {"student": repr(settings.student)},
        "delta": DELTA,
        "failure_of_the_sanitised": FAILURE,
        "private_rows": len(data.labels),
        "pool": int(0.9 * len(data.truth)),
        "test": len(data.truth) - int(0.9 * len(data.truth)),
        "mean": {key: round(statistics.fmean(row[key] for row in rows), 3) for key in rows[0]},
        "standard_error_of_accuracy": round(statistics.stdev(accuracies) / sqrt(seeds), 3) if seeds > 1 else None,
        "largest": {
            key: round(max(row[key] for row in rows), 4)
            for key in ("data_dependent", "sanitised", "data_independent", "sanitiser", "seconds")
        },
        "seeds": list(range(seeds)),
        "runs": [{key: round(value, 4) for key, value in row.items()} for row in rows],
    }


def main() -> None:
    """Measure what was asked for, and keep the numbers."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("case", nargs="*", help="of " + ", ".join((*SETTINGS, *OTHERS)) + "; all unless named")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "privet-features")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    for case in asked.case or (*SETTINGS, *OTHERS):
        begun = time.perf_counter()
        if case in SETTINGS:
            found = summary(SETTINGS[case], asked.seeds, asked.cache, simulate=asked.simulate)
        elif case in OTHERS:
            found = OTHERS[case](asked.cache)
        else:
            parser.error(f"{case} is none of {', '.join((*SETTINGS, *OTHERS))}")
        found |= {
            "command": f"{COMMAND} {case} --seeds {asked.seeds} --threads {asked.threads}",
            "elapsed_seconds": round(time.perf_counter() - begun, 1),
            "load": round(os.getloadavg()[0], 2),
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
        }
        if asked.simulate:
            print(json.dumps(found, indent=1))
            continue
        stored = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        stored[case] = found
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
