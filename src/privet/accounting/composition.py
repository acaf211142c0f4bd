"""Basic and advanced composition of steps that are (ε, δ)-DP each.

Basic (Dwork et al. 2006): the ε add up, and the δ add up. Steps that need no δ (pure leaves) get none, and an (ε, δ)
block brings its own. The rest of δ is split equally among the parts that can use it, and within a part equally among
its steps.

Advanced (Kairouz, Oh & Viswanath 2015, Thm 3.5): ε grows like the square root of the number of steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from privet.accounting.accountant import Accountant
from privet.accounting.canonical import CountedEvent
from privet.accounting.per_step import StepBounds, least_delta, steps_of
from privet.accounting.pure import sum_up
from privet.core import Unit, checked

__all__ = ["ADVANCED", "BASIC", "StepComposition"]

_SHARES = (0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99)
"""Shares of δ that are tried for advanced composition itself; the steps split the rest as in basic composition."""
_UP = 1 + 1e-13
_TINY = 5e-324


@dataclass(frozen=True)
class StepComposition:
    """An accountant that composes the (ε, δ) of single steps."""

    accountant: Accountant
    compose: Callable[[Sequence[StepBounds], float], float]
    """From the steps and δ to a certified ε; infinite if the blocks' own δ already exceed δ."""

    def epsilon(self, parts: Sequence[CountedEvent], delta: float, unit: Unit) -> float:
        """Return a certified ε at δ."""
        checked.share("delta", delta)
        return self.compose(steps_of(parts, unit, self.accountant), delta)

    def delta(self, parts: Sequence[CountedEvent], epsilon: float, unit: Unit) -> float:
        """Return the least δ at which the ε of this accountant has come down to `epsilon`."""
        checked.nonnegative("epsilon", epsilon)
        steps = steps_of(parts, unit, self.accountant)
        return least_delta(lambda delta: self.compose(steps, delta), epsilon)


def _basic(steps: Sequence[StepBounds], delta: float) -> float:
    """Σ count·ε with the split of δ that is described above."""
    exact = Fraction(delta) - sum((one.count * Fraction(one.own_delta) for one in steps), Fraction(0))
    if exact < 0:
        return math.inf
    rest = math.nextafter(float(exact), 0.0)
    spending = sum(one.spends for one in steps)
    share = rest / spending if spending else 0.0
    # each ε is rounded up already, or exact
    return sum_up((one.count, one.exact or one.epsilon_at(share / one.count if one.spends else 0.0)) for one in steps)


def _advanced(steps: Sequence[StepBounds], delta: float) -> float:
    """1 − δ = (1 − δ̃)·Π(1 − δᵢ): in logarithms, a budget to be split between δ̃ and the steps; never above basic."""
    least = _basic(steps, delta)
    own = math.fsum(-one.count * math.log1p(-one.own_delta) if one.own_delta < 1 else math.inf for one in steps)
    rest = -math.log1p(-delta) * (1 - 2e-16) - own * _UP
    if rest <= 0 or not steps:
        return least
    spending = sum(one.spends for one in steps)
    for share in _SHARES if spending else (1.0,):
        part = rest * (1 - share) / spending if spending else 0.0
        costs = [(s.count, s.epsilon_at(-math.expm1(-part / s.count) if s.spends else 0.0)) for s in steps]
        least = min(least, _closed_form(costs, -math.expm1(-rest * share)))
    return least


def _closed_form(steps: Sequence[tuple[int, float]], slack: float) -> float:
    """Kairouz, Oh & Viswanath 2015, Thm 3.5, for `count` steps of ε each and δ̃ = slack."""
    drift = sum_up((count, epsilon * math.tanh(epsilon / 2)) for count, epsilon in steps)
    # the root of the sum of squares, where no square can underflow to nothing
    root = math.hypot(*(math.sqrt(count) * epsilon for count, epsilon in steps))
    if slack <= 0 or not math.isfinite(drift) or not math.isfinite(root):
        return math.inf
    spread = min(math.log(math.e + root / slack), -math.log(slack))
    least = _TINY if root > 0 else 0.0  # the drift may have underflowed
    return max((drift + root * math.sqrt(2 * spread)) * _UP, least)


BASIC = StepComposition(Accountant.BASIC, _basic)
ADVANCED = StepComposition(Accountant.ADVANCED, _advanced)
