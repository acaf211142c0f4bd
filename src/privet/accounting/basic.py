"""Basic composition (Dwork et al. 2006): the ε add up, the δ add up.

What needs no δ (pure leaves) gets none. An (ε, δ) block brings its own. The rest of δ is split equally among the
parts that can use it, and within a part equally among its steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from privet.accounting.accountant import Accountant
from privet.accounting.canonical import CountedEvent
from privet.accounting.per_step import StepBounds, least_delta, steps_of
from privet.accounting.pure import sum_up
from privet.core import checked
from privet.core.unit import Unit

__all__ = ["compose", "delta", "epsilon"]


def epsilon(parts: Sequence[CountedEvent], delta: float, unit: Unit) -> float:
    """A certified ε at δ; infinite if the blocks' own δ already exceed it."""
    checked.share("delta", delta)
    return compose(steps_of(parts, unit, Accountant.BASIC), delta)


def delta(parts: Sequence[CountedEvent], epsilon: float, unit: Unit) -> float:
    """The least δ at which the ε of this accountant has come down to `epsilon`."""
    checked.nonnegative("epsilon", epsilon)
    steps = steps_of(parts, unit, Accountant.BASIC)
    return least_delta(lambda d: compose(steps, d), epsilon)


def compose(steps: Sequence[StepBounds], delta: float) -> float:
    """Σ count·ε with the split of δ that is described above."""
    exact = Fraction(delta) - sum((one.count * Fraction(one.own_delta) for one in steps), Fraction(0))
    if exact < 0:
        return math.inf
    rest = math.nextafter(float(exact), 0.0)
    spending = sum(one.spends for one in steps)
    share = rest / spending if spending else 0.0
    # each ε is rounded up already, or exact
    return sum_up((one.count, one.exact or one.epsilon_at(share / one.count if one.spends else 0.0)) for one in steps)
