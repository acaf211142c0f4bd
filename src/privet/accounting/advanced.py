"""Advanced composition (Kairouz, Oh & Viswanath 2015, Thm 3.5): ε grows like the square root of the number of steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privet.accounting import basic
from privet.accounting.accountant import Accountant
from privet.accounting.canonical import CountedEvent
from privet.accounting.per_step import StepBounds, least_delta, steps_of
from privet.accounting.pure import sum_up
from privet.core import checked
from privet.core.unit import Unit

__all__ = ["delta", "epsilon"]

_SHARES = (0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99)
"""Shares of δ tried for composition itself; what is left goes to the steps, split as in basic composition."""
_UP = 1 + 1e-13
_TINY = 5e-324


def epsilon(parts: Sequence[CountedEvent], delta: float, unit: Unit) -> float:
    """A certified ε at δ, never above that of basic composition."""
    checked.share("delta", delta)
    return _compose(steps_of(parts, unit, Accountant.ADVANCED), delta)


def delta(parts: Sequence[CountedEvent], epsilon: float, unit: Unit) -> float:
    """The least δ at which the ε of this accountant has come down to `epsilon`."""
    checked.nonnegative("epsilon", epsilon)
    steps = steps_of(parts, unit, Accountant.ADVANCED)
    return least_delta(lambda d: _compose(steps, d), epsilon)


def _compose(steps: Sequence[StepBounds], delta: float) -> float:
    """1 − δ = (1 − δ̃)·Π(1 − δᵢ): in logarithms, a budget to be split between δ̃ and the steps."""
    least = basic.compose(steps, delta)
    own = math.fsum(-one.count * math.log1p(-one.own_delta) if one.own_delta < 1 else math.inf for one in steps)
    rest = -math.log1p(-delta) * (1 - 2e-16) - own * _UP
    if rest <= 0 or not steps:
        return least
    spending = sum(one.spends for one in steps)
    for share in _SHARES if spending else (1.0,):
        each = rest * (1 - share) / spending if spending else 0.0
        found = [(s.count, s.epsilon_at(-math.expm1(-each / s.count) if s.spends else 0.0)) for s in steps]
        least = min(least, _closed_form(found, -math.expm1(-rest * share)))
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
