"""White-box audits at ε = 4: of one Gaussian step, and of DP-SGD on MNIST with canaries that have axes of their own.

Run: python -m benchmarks.audit [CASE …]; cases: step, mnist, ladder, power. MNIST lies where PRIVET_DATA says, or in
../shared/data. Writes benchmarks/results/audit.json, case by case, with seconds of the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.audit.power import power
from privet.accounting import epsilon as price
from privet.accounting.analytic_gaussian import analytic_gaussian_sigma
from privet.audit import CanaryModel, CanaryObservations, audit_ladder, many_runs
from privet.core.event import Gaussian as GaussianEvent
from privet.core.guarantee import Evidence
from privet.core.random import SeededRng
from privet.data import named
from privet.mechanisms import BoundedSum, GaussianMechanism
from privet.training import DPSGD

COMMAND = "python -m benchmarks.audit"
RESULTS = Path(__file__).parents[1] / "results" / "audit.json"
EPSILON, DELTA, WANTED = 4.0, 1e-5, 2.5


def shown(evidence: Evidence, seconds: float) -> dict[str, Any]:
    return {
        "epsilon_at_least": round(evidence.epsilon, 3),
        "confidence": evidence.confidence,
        "trials": evidence.trials,
        "assumes": list(evidence.assumptions),
        "seconds": round(seconds, 1),
    }


def timed(audit: Callable[[], Evidence], before: float = 0.0) -> dict[str, Any]:
    started = time.perf_counter()
    found = audit()
    return shown(found, before + time.perf_counter() - started)


def watched(
    model: nn.Module, data: tuple[Tensor, Tensor], plan: DPSGD, canaries: int, rate: float, seed: int
) -> tuple[CanaryObservations, float]:
    planted = CanaryModel(model, canaries=canaries, rng=SeededRng(seed, "coins"))
    optimizer = torch.optim.SGD(planted.parameters(), lr=rate, momentum=0.9)
    started = time.perf_counter()
    run = plan.attach(planted, optimizer, planted.dataset(data), rng=SeededRng(seed, "run"))
    watch = planted.watch(run)
    for (inputs, labels), marks in run.batches():
        watch.step(F.cross_entropy(model(inputs), labels, reduction="none"), marks)
    run.release()
    return watch.observed(), time.perf_counter() - started


def step() -> dict[str, Any]:
    """One step over all rows, with the noise that costs ε = 4."""
    noise = analytic_gaussian_sigma(EPSILON, DELTA)
    plan = DPSGD(noise_multiplier=noise, delta=DELTA, batch_size=64, sample_rate=1.0, steps=1)
    data = torch.zeros(64, 4), torch.zeros(64, dtype=torch.long)
    found, seconds = watched(nn.Linear(4, 2), data, plan, 30_000, 0.1, seed=0)
    total = BoundedSum(0.0, 1.0)
    mechanism = GaussianMechanism(noise, total)
    rng = SeededRng(1)

    def many() -> Evidence:
        asked = total([1.0]), total([])
        draws = [[mechanism.release(each, rng=rng).value for _ in range(300_000)] for each in asked]
        return many_runs(*draws, delta=DELTA, unit=total.unit)  # a number is its own best score

    return {
        "claimed": round(price(GaussianEvent(noise), DELTA).epsilon.upper, 3),
        "noise_multiplier": noise,
        "one step of training, 30,000 canaries, axis by axis": timed(lambda: found.by_steps(delta=DELTA), seconds),
        "one step of training, 30,000 canaries, one run": timed(lambda: found.by_coins(delta=DELTA), seconds),
        "the Gaussian mechanism, 300,000 outputs of each": timed(many),
    }


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.Tanh(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.Tanh(),
        nn.Linear(32, 10),
    )


def mnist() -> dict[str, Any]:
    """60,000 pictures, the network of Papernot et al. 2021, 8 epochs of batches of 1,024, and 5,000 canaries."""
    loaded = named("mnist", data_dir=Path(os.environ.get("PRIVET_DATA", "../shared/data")))
    data, held = [
        (torch.as_tensor(part.x).float().view(-1, 1, 28, 28) / 255, torch.as_tensor(part.y).long())
        for part in (loaded.train, loaded.test)
    ]
    plan = DPSGD(epsilon=EPSILON, delta=DELTA, clip=0.1, batch_size=1024, epochs=8, population=60_000)
    right, found, seconds = {}, None, 0.0
    for canaries in (1, 5000):
        torch.random.manual_seed(0)
        model = network()
        found, seconds = watched(model, data, plan, canaries, 4.0, seed=0)
        with torch.no_grad():
            right[canaries] = float((model(held[0]).argmax(1) == held[1]).float().mean())
    assert found is not None
    return {
        "claimed": EPSILON,
        "noise_multiplier": plan.calibrated().noise_multiplier,
        "steps": found.steps,
        "accuracy_with_1_canary": round(right[1], 4),
        "accuracy_with_5000_canaries": round(right[5000], 4),
        "step by step": timed(lambda: found.by_steps(delta=DELTA), seconds),
        "one run": timed(lambda: found.by_coins(delta=DELTA), seconds),
        "one run, the sum of all steps alone": timed(lambda: found.by_coins(delta=DELTA, scores=found.sums), seconds),
    }


def ladder() -> dict[str, Any]:
    """The adversaries of `privet.audit.ladder` on scikit-learn's digits."""
    plan = DPSGD(epsilon=EPSILON, delta=DELTA, clip=0.5, batch_size=128, epochs=30, population=1437)
    started = time.perf_counter()
    found = audit_ladder(plan, rng=SeededRng(0))
    seconds = time.perf_counter() - started
    return {"claimed": EPSILON} | {rung.name: shown(rung.evidence, seconds) for rung in found.rungs}


CASES = {"step": step, "mnist": mnist, "ladder": ladder, "power": power}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), choices=[*CASES, []])
    asked = parser.parse_args().cases
    document = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {"cases": {}}
    for name in asked:
        found = CASES[name]()
        document["cases"][name] = found
        print(name, json.dumps(found, indent=1), flush=True)
        document |= {
            "command": COMMAND,
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "load_when_ended": os.getloadavg()[0],
            "versions": {
                "python": platform.python_version(),
                "torch": torch.__version__,
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
            "delta": DELTA,
            "wanted": WANTED,
        }
        RESULTS.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


main()
