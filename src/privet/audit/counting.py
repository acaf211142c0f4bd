"""Lower bounds on ε and μ from an attack's true-positive and false-positive counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import norm

from privet.attacks import Reals, checked_successes, lower_limits
from privet.core import checked

__all__ = ["epsilon_of", "epsilons", "mu_of", "mus"]


def epsilon_of(hits: int, present: int, alarms: int, absent: int, *, delta: float, error: float) -> float:
    """Return the least ε that explains an attack's successes, unless an event of probability `error` happened.

    Under (ε, δ), P[hit] ≤ e^ε·P[alarm] + δ and P[no alarm] ≤ e^ε·P[no hit] + δ (Kairouz, Oh & Viswanath 2015, Thm 2.1;
    Jagielski, Ullman & Oprea 2020). Half of the error goes to each probability; both inequalities use the same two
    events, so that the larger ε is as certain as either.

    Args:
        hits: The number of true positives: trials with the record in which the attack says "present".
        present: The number of trials with the record.
        alarms: The number of false positives: trials without the record in which the attack says "present".
        absent: The number of trials without the record.
        delta: The δ at which ε is stated.
        error: The probability that the bound is wrong, such as 0.05.

    Raises:
        InvalidInput: If there are more successes than trials, or `delta` or `error` is out of range.

    >>> round(epsilon_of(500, 500, 0, 500, delta=0.0, error=0.05), 3)
    4.906
    """
    checked.share("delta", delta)
    counts = checked_successes(hits, present, error), checked_successes(alarms, absent, error)
    return float(epsilons(counts[0], present, counts[1], absent, delta, error))


def epsilons(hits: Any, present: int, alarms: Any, absent: int, delta: float, error: float) -> Reals:
    """Return the bound of `epsilon_of` for many attacks at once.

    Each bound holds with the stated error by itself; the largest of them does not.

    Args:
        hits: The number of true positives of each attack.
        present: The number of trials with the record.
        alarms: The number of false positives of each attack.
        absent: The number of trials without the record.
        delta: The δ at which ε is stated.
        error: The probability that one bound is wrong.
    """
    hit, alarm = _rates(hits, present, alarms, absent, error)
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(hit - delta > 0, np.log(np.maximum(hit - delta, 0) / alarm), 0.0)
        second = np.where(1 - alarm - delta > 0, np.log(np.maximum(1 - alarm - delta, 0) / (1 - hit)), 0.0)
    return np.asarray(np.maximum(np.maximum(first, second), 0.0))


def mu_of(hits: int, present: int, alarms: int, absent: int, *, error: float) -> float:
    """Return the least μ of Gaussian DP that explains an attack's successes (Dong, Roth & Su 2022, Def. 2.6).

    μ-GDP allows no test with a miss probability below Φ(Φ⁻¹(1 − alarm) − μ). The confidence limits are those of
    `epsilon_of`.

    Args:
        hits: The number of true positives: trials with the record in which the attack says "present".
        present: The number of trials with the record.
        alarms: The number of false positives: trials without the record in which the attack says "present".
        absent: The number of trials without the record.
        error: The probability that the bound is wrong, such as 0.05.

    Raises:
        InvalidInput: If there are more successes than trials, or `error` is out of range.

    >>> round(mu_of(841, 1000, 159, 1000, error=0.05), 2)
    1.81
    """
    counts = checked_successes(hits, present, error), checked_successes(alarms, absent, error)
    return float(mus(counts[0], present, counts[1], absent, error))


def mus(hits: Any, present: int, alarms: Any, absent: int, error: float) -> Reals:
    """Return the bound of `mu_of` for many attacks at once.

    Each bound holds with the stated error by itself; the largest of them does not.

    Args:
        hits: The number of true positives of each attack.
        present: The number of trials with the record.
        alarms: The number of false positives of each attack.
        absent: The number of trials without the record.
        error: The probability that one bound is wrong.
    """
    hit, alarm = _rates(hits, present, alarms, absent, error)
    known = (hit > 0) & (alarm < 1)
    with np.errstate(invalid="ignore"):
        found: Reals = np.where(known, np.maximum(norm.ppf(hit) - norm.ppf(alarm), 0.0), 0.0)
    return found


def _rates(hits: Any, present: int, alarms: Any, absent: int, error: float) -> tuple[Reals, Reals]:
    half = error / 2
    return lower_limits(np.asarray(hits), present, half), 1 - lower_limits(absent - np.asarray(alarms), absent, half)
