"""From the price of one step to that of several: group privacy on the total, and replacements in two steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import group_privacy
from privet.accounting.pure import sum_up
from privet.core import Neighbours, Poisson, Unit

__all__ = ["group_delta", "group_epsilon", "halfway", "portion"]


def portion(epsilon: float, k: int) -> float:
    """ε/k, rounded so that k of them are at most ε."""
    near = epsilon / k
    return near if k * Fraction(near) <= Fraction(epsilon) else math.nextafter(near, 0.0)


def group_epsilon(alone: Callable[[float], float], delta: float, k: int) -> float:
    """k·ε(δ₁) for the largest δ₁ found whose group δ is at most `delta` (Vadhan 2017, Lemma 2.2)."""
    if delta == 0:
        return sum_up(((k, alone(0.0)),))
    best, high, low = math.inf, math.log(delta), -650.0
    for _ in range(40):
        middle = (low + high) / 2
        single = alone(math.exp(middle))
        if math.isinf(single):  # δ₁ is below what is revealed outright
            low = middle
        elif group_privacy(single, math.exp(middle), k)[1] <= delta:
            best, low = min(best, sum_up(((k, single),))), middle
        else:
            high = middle
        if high - low < 0.01:
            break
    return best


def group_delta(alone: Callable[[float], float], epsilon: float, k: int) -> float:
    """The δ of k steps at ε, from that of one step at ε/k (Vadhan 2017, Lemma 2.2)."""
    step_epsilon = portion(epsilon, k)
    step_delta = alone(step_epsilon)
    return min(1.0, group_privacy(step_epsilon, step_delta, k)[1]) if step_delta < 1 else 1.0


def halfway(parts: Sequence[CountedEvent], unit: Unit) -> tuple[Unit, int] | None:
    """The unit of one step and the number of steps, where a replacement is a removal and an addition; else None.

    Only where rows come by Poisson sampling: elsewhere the replacement itself has the better price.
    """
    sampled = any(isinstance(part.sampling, Poisson) for part in parts)
    if unit.neighbours is not Neighbours.REPLACE or not sampled:
        return None
    return replace(unit, neighbours=Neighbours.ADD_REMOVE, records=1), 2 * unit.records
