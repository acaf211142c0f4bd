"""Pictures out of gradients and models: MNIST and faces, with and without defences.

Run: python -m benchmarks.pictures [CASE …] [--out FOLDER] [--threads 1]

README.md here says what is measured and what was found. Pictures of digits go to docs/images; those of faces, which are
people, to `--out`, never into the repository. The data lie where PRIVET_DATA says, or in ../shared/data. Writes
benchmarks/results/pictures.json, case by case.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch

from benchmarks.pictures.inverted import classes, faces
from benchmarks.pictures.matched import measured

COMMAND = "python -m benchmarks.pictures"
RESULTS = Path(__file__).parents[1] / "results" / "pictures.json"
CASES: dict[str, Callable[[Path], dict[str, Any]]] = {"gradients": measured, "faces": faces, "classes": classes}


def main() -> None:
    """Measure what was asked for, and keep the numbers."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("case", nargs="*", help="of " + ", ".join(CASES) + "; all unless named")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "privet-pictures")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    for case in asked.case or CASES:
        if case not in CASES:
            parser.error(f"{case} is none of {', '.join(CASES)}")
        begun = time.process_time()
        found = CASES[case](asked.out) | {
            "command": f"{COMMAND} {case} --threads {asked.threads}",
            "cpu_seconds": round(time.process_time() - begun, 1),
            "load": round(os.getloadavg()[0], 2),
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
        }
        stored = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        stored[case] = found
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
