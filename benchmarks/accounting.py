"""How fast a run is priced and calibrated, beside dp-accounting and opacus in the same process.

Run: python -m benchmarks.accounting

The run is 256 of 60,000 a step, noise multiplier 1.1, 14,063 steps, δ = 1e-5. Writes
benchmarks/results/accounting.json.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dp_accounting
from dp_accounting.pld import PLDAccountant
from opacus.accountants.utils import get_noise_multiplier

from privet import accounting
from privet.core.event import Gaussian, Poisson, Repeated, Sampled

COMMAND = "python -m benchmarks.accounting"
RESULTS = Path(__file__).parent / "results" / "accounting.json"
RATE, SIGMA, STEPS, DELTA, TARGET = 256 / 60000, 1.1, 14063, 1e-5, 2.0


def ours(sigma: float) -> tuple[float, float]:
    """The certified interval."""
    run = Repeated(Sampled(Gaussian(sigma), by=Poisson(RATE)), STEPS)
    found = accounting.epsilon(run, DELTA).epsilon
    return found.lower, found.upper


def theirs(sigma: float) -> float:
    """dp-accounting's loss distributions at their default grid of 1e-4."""
    accountant = PLDAccountant()
    accountant.compose(_event(sigma))
    return float(accountant.get_epsilon(DELTA))


def _event(sigma: float) -> Any:
    step = dp_accounting.PoissonSampledDpEvent(RATE, dp_accounting.GaussianDpEvent(sigma))
    return dp_accounting.SelfComposedDpEvent(step, STEPS)


def our_noise() -> float:
    """The least noise for the target."""
    return accounting.noise_multiplier(epsilon=TARGET, delta=DELTA, sample_rate=RATE, steps=STEPS)


def dp_accounting_noise() -> float:
    """dp-accounting's own search."""
    return float(dp_accounting.calibrate_dp_mechanism(PLDAccountant, _event, TARGET, DELTA))


def opacus_noise(accountant: str) -> float:
    """opacus's own search; its Rényi accountant is quick and asks for about 6 % more noise."""
    return float(
        get_noise_multiplier(
            target_epsilon=TARGET, target_delta=DELTA, sample_rate=RATE, steps=STEPS, accountant=accountant
        )
    )


def timed(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, dict[str, Any]]:
    """Median seconds of calls that take turns; the first round warms up and is not kept."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    answers: dict[str, Any] = {}
    for _ in range(repeats + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            answers[name] = call()
            times[name].append(time.perf_counter() - start)
    return {name: {"seconds": statistics.median(times[name][1:]), "answer": answers[name]} for name in calls}


def main() -> None:
    """Measure, show and write down."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    pricing = timed({"privet": lambda: ours(SIGMA), "dp-accounting": lambda: theirs(SIGMA)}, 7)
    peers: dict[str, Callable[[], Any]] = {
        "privet": our_noise,
        "dp-accounting": dp_accounting_noise,
        "opacus prv": lambda: opacus_noise("prv"),
        "opacus rdp": lambda: opacus_noise("rdp"),
    }
    search = timed(peers, 3)
    ratios = {
        "price": pricing["privet"]["seconds"] / pricing["dp-accounting"]["seconds"],
        "calibrate": search["privet"]["seconds"]
        / min(search["dp-accounting"]["seconds"], search["opacus prv"]["seconds"]),
    }
    for title, table in (("price", pricing), ("calibrate to ε = 2", search)):
        print(title)
        for name, row in table.items():
            print(f"  {name:14} {row['seconds']:8.3f} s   {row['answer']}")
    print(f"price: {ratios['price']:.3f} of dp-accounting (goal 0.5)")
    print(f"calibrate: {ratios['calibrate']:.3f} of the faster of dp-accounting and opacus with PRV (goal 0.25)")
    record = {
        "command": COMMAND,
        "cores": os.cpu_count(),
        "load_when_started": busy,
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("numpy", "scipy", "dp-accounting", "opacus")},
        "pricing": pricing,
        "calibration": search,
        "ratios": ratios,
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
