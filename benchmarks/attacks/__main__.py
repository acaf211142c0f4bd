"""Attacks on an over-fitted and on a private model of MNIST digits, copies, and shadow models at once and in a loop.

Run: python -m benchmarks.attacks [--only membership|copies|speed] [--threads 1]

README.md here says what is compared. The data lie where PRIVET_DATA says, or in ../shared/data. Writes
benchmarks/results/attacks.json; a part that is not run keeps the numbers that are there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch

from benchmarks.attacks.copying import copying_part
from benchmarks.attacks.remembering import membership_part
from benchmarks.attacks.speed import speed_part
from privet.data import Images, named

COMMAND = "python -m benchmarks.attacks"
RESULTS = Path(__file__).parents[1] / "results" / "attacks.json"


def main() -> None:
    """Run both parts, or the one that is asked for, and keep the numbers."""
    parser = argparse.ArgumentParser(prog=COMMAND)
    parser.add_argument("--only", choices=("membership", "copies", "speed"))
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    data_dir = os.environ.get("PRIVET_DATA") or Path(__file__).parents[3] / "shared" / "data"
    mnist = named("mnist", data_dir)
    train, test = mnist.train, mnist.test
    assert isinstance(train, Images)
    assert isinstance(test, Images)
    report: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    around = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "threads": asked.threads,
        "cores": os.cpu_count(),
        "load_when_started": round(os.getloadavg()[0], 2),
    }
    report["command"] = COMMAND
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "membership": lambda: membership_part(train, test),
        "copies": lambda: copying_part(train, test),
        "speed": lambda: speed_part(train),
    }
    for name, part in parts.items():
        if asked.only in (None, name):
            report[name] = around | part()
            print(json.dumps(report[name], indent=1), flush=True)
    RESULTS.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
