"""What counts of successes prove of a mechanism: the ε that two rates leave no way around."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from privet.attacks import Reals, checked_successes, lower_limits
from privet.core import checked

__all__ = ["epsilon_of", "epsilons", "mu_of", "mus"]


def epsilon_of(hits: int, present: int, alarms: int, absent: int, *, delta: float, error: float) -> float:
    """The least ε with which an attack's successes can be explained, unless something of probability `error` happened.

    The attack says "present" in `hits` of `present` worlds in which it is right, and in `alarms` of `absent` worlds in
    which it is wrong. Under (ε, δ), P[hit] ≤ e^ε·P[alarm] + δ and P[no alarm] ≤ e^ε·P[no hit] + δ (Kairouz, Oh &
    Viswanath 2015, Thm 2.1; Jagielski, Ullman & Oprea 2020). Half of the error goes to each probability; both
    inequalities use the same two events, so that the larger ε is as certain as either.

    >>> round(epsilon_of(500, 500, 0, 500, delta=0.0, error=0.05), 3)
    4.906
    """
    checked.share("delta", delta)
    counts = checked_successes(hits, present, error), checked_successes(alarms, absent, error)
    return float(epsilons(counts[0], present, counts[1], absent, delta, error))


def epsilons(hits: Any, present: int, alarms: Any, absent: int, delta: float, error: float) -> Reals:
    """The same for many attacks at once; it is certain of each by itself, and not of the largest."""
    hit, alarm = _rates(hits, present, alarms, absent, error)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(hit - delta > 0, np.log(np.maximum(hit - delta, 0) / alarm), 0.0)
        second = np.where(1 - alarm - delta > 0, np.log(np.maximum(1 - alarm - delta, 0) / (1 - hit)), 0.0)
    return np.asarray(np.maximum(np.maximum(first, second), 0.0))


def mu_of(hits: int, present: int, alarms: int, absent: int, *, error: float) -> float:
    """The least μ of Gaussian DP with which an attack's successes can be explained (Dong, Roth & Su 2022, Def. 2.6).

    μ-GDP allows no test with a miss probability below Φ(Φ⁻¹(1 − alarm) − μ). The same limits as in `epsilon_of`.

    >>> round(mu_of(841, 1000, 159, 1000, error=0.05), 2)
    1.81
    """
    counts = checked_successes(hits, present, error), checked_successes(alarms, absent, error)
    return float(mus(counts[0], present, counts[1], absent, error))


def mus(hits: Any, present: int, alarms: Any, absent: int, error: float) -> Reals:
    """The same for many attacks at once; it is certain of each by itself, and not of the largest."""
    hit, alarm = _rates(hits, present, alarms, absent, error)
    known = (hit > 0) & (alarm < 1)
    with np.errstate(invalid="ignore"):
        found: Reals = np.where(known, np.maximum(norm.ppf(hit) - norm.ppf(alarm), 0.0), 0.0)
    return found


def _rates(hits: Any, present: int, alarms: Any, absent: int, error: float) -> tuple[Reals, Reals]:
    half = error / 2
    return lower_limits(np.asarray(hits), present, half), 1 - lower_limits(absent - np.asarray(alarms), absent, half)
