"""How often each mistake of tests/audit is found: the same audits, sizes and criteria as there, by other seeds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from privet.accounting import epsilon as price
from privet.attacks.counting import at_least
from privet.audit import audit_draws, many_runs
from privet.core.event import Repeated
from privet.core.random import SeededRng
from privet.core.unit import Unit
from privet.local import GeneralizedRandomizedResponse
from privet.mechanisms import BoundedSum, Count, DiscreteGaussianMechanism, DiscreteLaplaceMechanism, LaplaceMechanism
from privet.pate import Confident, Plan, Votes
from privet.training import DPSGD
from tests.audit.test_canaries import DELTA, PLAN, broken, watched
from tests.audit.test_truth import DRAWS, REPLACE, released

__all__ = ["power"]

TRIALS = 40
FIRST = 1000
"""The first seed; those of the tests are smaller."""
Found = Callable[[int], bool]


def _halved(right: Any, wrong: Any, delta: float) -> Found:
    count, claimed = Count(Unit()), price(right.event, delta)

    def found(seed: int) -> bool:
        outputs = [released(wrong, count, [True] * rows, 2 * seed + rows % 2, DRAWS) for rows in (10, 9)]
        return audit_draws(*outputs, delta=delta, unit=count.unit).refutes(claimed)

    return found


def _neighbours(seed: int) -> bool:
    total = BoundedSum(-1.0, 1.0, Unit())
    mechanism = LaplaceMechanism.for_epsilon(1.0, total)
    rows = ([1.0, 0.5], [-1.0, 0.5])
    outputs = [released(mechanism, total, each, 2 * seed + side, 3 * DRAWS // 2) for side, each in enumerate(rows)]
    return audit_draws(*outputs, unit=REPLACE).refutes(replace(price(mechanism.event, 0.0), unit=REPLACE))


def _half_of_epsilon(seed: int) -> bool:
    meant, used = GeneralizedRandomizedResponse(2, 0.5), GeneralizedRandomizedResponse(2, 1.0)
    draws = [np.asarray(used.randomize(np.full(DRAWS, bit), rng=SeededRng(2 * seed + bit))) for bit in (1, 0)]
    return audit_draws(*draws, unit=used.unit).refutes(price(meant.event, 0.0, unit=meant.unit))


def _same_seed(seed: int) -> bool:
    count = Count(Unit())
    mechanism = DiscreteLaplaceMechanism.for_epsilon(1.0, count)

    def drawn(rows: int) -> float:
        return float(mechanism.release(count([True] * rows), rng=SeededRng(seed)).value)

    fixed = drawn(9)
    outputs = [[drawn(rows) - fixed for _ in range(200)] for rows in (10, 9)]
    return many_runs(*outputs, unit=Unit()).refutes(price(mechanism.event, 0.0))


def _rejected(seed: int) -> bool:
    plan = Plan(Confident(10, 3.0, 400.0), questions=20, teachers=12, labels=2)
    unpaid = price(Repeated(plan.aggregator.vote(plan.unit, 2), plan.most), 1e-5)
    outputs = []
    for side, most in enumerate((10, 9)):
        votes, rng = Votes([[most, 12 - most]] * 20, teachers=12), SeededRng(2 * seed + side)
        outputs.append([plan.release(votes, rng=rng).value.count(None) for _ in range(DRAWS // 5)])
    return audit_draws(*outputs, delta=1e-5, unit=plan.unit).refutes(unpaid)


def _steps(name: str) -> Found:
    def found(seed: int) -> bool:
        with broken(name):
            seen, claimed = watched(PLAN, seed=seed)
        return seen.by_steps(delta=DELTA).epsilon > claimed.epsilon.upper

    return found


def _coins(seed: int) -> bool:
    plan = DPSGD(epsilon=1.0, delta=DELTA, batch_size=60, steps=20, population=200)
    with broken("clip ignored for one layer"):
        seen, claimed = watched(plan, 1000, seed=seed)
    return seen.by_coins(delta=DELTA).refutes(claimed)


def _cancelled(seed: int) -> bool:
    with broken("a seed used again"):
        seen, claimed = watched(PLAN, seed=seed)
    scores = np.abs(seen.seen[1:] - seen.seen[:-1]).max(0)
    return seen.by_coins(delta=DELTA, guesses=300, scores=scores).refutes(claimed)


_COUNT = Count(Unit())
MISTAKES: dict[str, Found] = {
    "noise halved (training), by_steps": _steps("noise halved"),
    "noise of one worker of two missing, by_steps": _steps("noise of one worker of two missing"),
    "clip ignored for one layer, by_steps": _steps("clip ignored for one layer"),
    "clip ignored for one layer, by_coins": _coins,
    "a seed used again in every step, by_coins": _cancelled,
    "noise halved (a count, discrete Laplace), audit_draws": _halved(
        DiscreteLaplaceMechanism.for_epsilon(1.0, _COUNT), DiscreteLaplaceMechanism.for_epsilon(2.0, _COUNT), 1e-5
    ),
    "noise halved (a count, discrete Gaussian), audit_draws": _halved(
        DiscreteGaussianMechanism(1.5, of=_COUNT), DiscreteGaussianMechanism(0.75, of=_COUNT), 1e-2
    ),
    "a seed used again (a count), many_runs": _same_seed,
    "randomised response with ε/2 confused, audit_draws": _half_of_epsilon,
    "Laplace for the wrong neighbours, audit_draws": _neighbours,
    "rejected questions of PATE not charged, audit_draws": _rejected,
}


def power() -> dict[str, Any]:
    """For each mistake, in how many of the trials it was found, and how often at least (95 %, Clopper & Pearson)."""
    answer: dict[str, Any] = {"trials": TRIALS}
    for name, found in MISTAKES.items():
        started = time.perf_counter()
        count = sum(found(FIRST + trial) for trial in range(TRIALS))
        answer[name] = {
            "found": count,
            "at_least": round(at_least(count, TRIALS, 0.05), 3),
            "seconds": round(time.perf_counter() - started, 1),
        }
        print(f"  {name}: {count} of {TRIALS}", flush=True)
    return answer
