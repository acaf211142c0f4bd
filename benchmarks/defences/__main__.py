"""Defences as they are taught, and DP-SGD, against the same attacks: what each costs and what each hides.

Run: python -m benchmarks.defences [CASE …] [--shadows 16] [--targets 4] [--threads 1] [--seed 0]

Cases: defences, poisoning, extraction; all unless named. README.md here says what is measured and what was found. The
data lie where PRIVET_DATA says, or in ../shared/data.
Writes benchmarks/results/defences.json and docs/images/defences.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch
from torch.nn import functional as F

from benchmarks.defences.canaries import extraction
from benchmarks.defences.drawn import Dot, Panel, svg
from benchmarks.defences.poison import poisoning
from benchmarks.defences.recipes import RECIPES, Recipe, Rows, trained
from privet.attacks import Outcome, Shadows, confidences, lira, loss_threshold, poisoning_bound
from privet.data import Table, named
from privet.ensemble.seeding import generator
from privet.training.models import TableFeatures

COMMAND = "python -m benchmarks.defences"
CASES = ("defences", "poisoning", "extraction")
ROOT = Path(__file__).parents[2]
RESULTS, PICTURE = ROOT / "benchmarks" / "results" / "defences.json", ROOT / "docs" / "images" / "defences.svg"
POOL, APART, BINS, CLASSES, ALARMS, DELTA = 5000, 500, 16, 2, 0.01, 1e-4


def loaded(seed: int) -> tuple[Rows, Rows, Rows]:
    """Rows of the training file that may be members, some apart, and all of the test file."""
    folder = os.environ.get("PRIVET_DATA") or ROOT.parent / "shared" / "data"
    found = named("adult", folder)
    every, test = (_rows(part) for part in (found.train, found.test))
    order = torch.rand(len(every.y), generator=generator(f"defences {seed}", "pool")).argsort()
    return every.take(order[:POOL]), every.take(order[POOL : POOL + APART]), test


def _rows(part: Any) -> Rows:
    assert isinstance(part, Table)
    return Rows(TableFeatures(part.schema, bins=BINS)(torch.from_numpy(part.x)), torch.as_tensor(part.y))


def measure(recipe: Recipe, data: tuple[Rows, Rows, Rows], shadows: int, targets: int, seed: int) -> dict[str, Any]:
    """Train shadow models, each row in half of them, and targets, each row in each by its own coin; attack these."""
    begun = time.process_time()
    pool, apart, test = data
    drawn = generator(f"defences {seed}", "members")
    order = torch.rand(shadows, POOL, generator=drawn).argsort(0)
    # A target's coins must not depend on the shadow models' rows: else an attack gains or loses by the division alone.
    inside = torch.cat([order < shadows // 2, torch.rand(targets, POOL, generator=drawn) < 0.5])
    said, accuracy, fitted = [], [], []
    for model, members in enumerate(inside):
        network = trained(
            recipe,
            pool.take(members.nonzero()[:, 0]),
            apart,
            classes=CLASSES,
            population=POOL // 2,
            delta=DELTA,
            key=f"defences {seed} {model}",
        )
        with torch.no_grad():
            said.append(network(pool.x).double())
            accuracy.append(float((network(test.x).argmax(1) == test.y).float().mean()))
        fitted.append(float((said[-1].argmax(1) == pool.y)[members].float().mean()))
    scores = [confidences(each, pool.y) for each in said]
    known = Shadows(np.stack(scores[:shadows]), inside[:shadows].numpy())
    found: dict[str, Any] = {"accuracy": _mean(accuracy), "accuracy_on_members": _mean(fitted)}
    for attack in ("lira", "loss"):
        outcomes = []
        for model in range(shadows, shadows + targets):
            losses = F.cross_entropy(said[model], pool.y, reduction="none").numpy()
            own = lira(scores[model], known) if attack == "lira" else loss_threshold(losses)
            outcomes.append(Outcome(attack, own[inside[model].numpy()], own[~inside[model].numpy()]))
        found[f"{attack}_hits_at_1_percent"] = _mean([each.hits(ALARMS).value for each in outcomes])
        found[f"{attack}_auc"] = _mean([each.auc().value for each in outcomes])
    limit = poisoning_bound(ALARMS, recipe.event(POOL // 2, DELTA), 1) if recipe.epsilon else None
    return {
        "recipe": recipe.name,
        "epsilon": recipe.epsilon or None,
        **found,
        "limit_of_the_guarantee_at_1_percent": limit and round(limit, 4),
        "processor_seconds": round(time.process_time() - begun, 1),
    }


def _mean(values: list[float]) -> list[float]:
    """The mean over models, and its standard error."""
    return [round(statistics.fmean(values), 4), round(statistics.stdev(values) / sqrt(len(values)), 4)]


def main() -> None:
    """Measure what was asked for, keep the numbers, and draw the defences."""
    parser = argparse.ArgumentParser(prog=COMMAND)
    parser.add_argument("case", nargs="*", help=f"of {', '.join(CASES)}; all unless named")
    parser.add_argument("--shadows", type=int, default=16)
    parser.add_argument("--targets", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    for case in asked.case or CASES:
        load, begun, spent = os.getloadavg()[0], time.perf_counter(), time.process_time()
        if case == "defences":
            found = defences(asked.shadows, asked.targets, asked.seed)
        elif case == "poisoning":
            found = poisoning(loaded(asked.seed), DELTA)
        elif case == "extraction":
            found = extraction(DELTA)
        else:
            parser.error(f"{case} is none of {', '.join(CASES)}")
        options = f"--shadows {asked.shadows} --targets {asked.targets} --threads {asked.threads} --seed {asked.seed}"
        found |= {
            "command": f"{COMMAND} {case} {options}",
            "delta": DELTA,
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
            "cores": os.cpu_count(),
            "load_when_started": round(load, 2),
            "elapsed_seconds": round(time.perf_counter() - begun, 1),
            "processor_seconds": round(time.process_time() - spent, 1),
        }
        stored = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
        stored[case] = found
        RESULTS.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def defences(shadows: int, targets: int, seed: int) -> dict[str, Any]:
    """Every recipe, and the picture of all."""
    data, rows = loaded(seed), []
    for recipe in RECIPES:
        rows.append(measure(recipe, data, shadows, targets, seed))
        print(json.dumps(rows[-1], ensure_ascii=False), flush=True)
    panels = (
        Panel("members found at 1 % of false alarms, in %", _dots(rows, "lira_hits_at_1_percent"), 100 * ALARMS),
        Panel("area under the attack's curve, in %", _dots(rows, "lira_auc"), 50.0),
    )
    PICTURE.write_text(svg(panels, "accuracy on test rows, in %"), encoding="utf-8")
    return {
        "seeds": [seed],
        "data": f"Adult, {POOL:,} training rows, half of them in each model; accuracy on the 16,281 test rows",
        "shadow_models": shadows,
        "targets": targets,
        "each_number": "mean and its standard error: accuracies over all models, attacks over targets",
        "rows": rows,
    }


def _dots(rows: list[dict[str, Any]], measured: str) -> list[Dot]:
    return [
        Dot(
            row["recipe"],
            100 * row["accuracy"][0],
            100 * row[measured][0],
            100 * row[measured][1],
            private=row["epsilon"] is not None,
        )
        for row in rows
    ]


if __name__ == "__main__":
    main()
