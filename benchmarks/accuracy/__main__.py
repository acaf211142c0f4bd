"""Accuracy of private models on named sets, beside what others have published.

Run: python -m benchmarks.accuracy [--case NAME] [--seeds 5] [--threads 2] [--cache FOLDER]

Every run draws real Poisson batches and is priced by the tight accountant. Choices were made on splits of the training
files (README.md here), and that tuning is not in ε. A floor is met if the mean and two standard errors reach it. The
data lie where PRIVET_DATA says, or in ../shared/data. Writes benchmarks/results/accuracy.json, case by case.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
from math import sqrt
from pathlib import Path
from typing import Any

import torch

from benchmarks.accuracy.cases import CASES, Case, Outcome, Trainer
from privet.core.errors import InvalidInput

COMMAND = "python -m benchmarks.accuracy"
RESULTS = Path(__file__).parents[1] / "results" / "accuracy.json"


def summary(case: Case, outcomes: list[Outcome]) -> dict[str, Any]:
    """Means, with the standard error of the accuracy."""
    accuracies = [each.accuracy for each in outcomes]
    error = statistics.stdev(accuracies) / sqrt(len(accuracies)) if len(accuracies) > 1 else float("nan")
    mean = statistics.fmean(accuracies)
    areas = [each.auc for each in outcomes if each.auc is not None]
    return {
        "data": case.name,
        "epsilon": case.epsilon,
        "delta": case.delta,
        "spent": max(each.epsilon for each in outcomes),
        "accuracy": round(mean, 3),
        "standard_error": round(error, 3),
        "seeds": len(outcomes),
        "auc": round(statistics.fmean(areas), 4) if areas else None,
        "floor": case.floor,
        "met": bool(mean + 2 * (error if error == error else 0.0) >= case.floor),
        "reference": case.reference,
        "seconds": round(statistics.median(each.seconds for each in outcomes), 1),
    }


def main() -> None:
    """Train every case, print a line for each, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", help="one of " + ", ".join(case.title for case in CASES) + ", or the name of a set")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "privet-features")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    chosen = [case for case in CASES if asked.case in (None, case.name, case.title)]
    stored: dict[str, Any] = {"command": COMMAND, "cases": {}}
    if RESULTS.exists():
        stored = json.loads(RESULTS.read_text())
    stored["machine"] = {"processor": platform.machine(), "torch": torch.__version__, "threads": asked.threads}
    trainers: dict[str, Trainer] = {}
    for case in chosen:
        try:
            trainer = trainers.setdefault(case.name, trainers.get(case.name) or Trainer(case.name, asked.cache))
        except InvalidInput as absent:
            print(f"{case.title}: skipped: {absent}")
            continue
        found = summary(case, [trainer.outcome(case, seed) for seed in range(asked.seeds)])
        area = f"  AUC {found['auc']:.4f}" if found["auc"] else ""
        print(
            f"{case.title:10} {found['accuracy']:.2f} ± {found['standard_error']:.2f} %{area}  "
            f"(at least {case.floor}: {'met' if found['met'] else 'NOT met'}; {found['seconds']} s; "
            f"others: {case.reference})",
            flush=True,
        )
        stored["cases"][case.title] = found
        RESULTS.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
