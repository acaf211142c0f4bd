"""Whole numbers for ε and δ, rounded outward: charges up, limits down, and sums exact.

Each budget has its own grid. Its step is a power of two that divides the budget's ε (or δ) into 2⁶³ to 2⁶⁴ steps, so
that the budget itself is a whole number of steps: a charge of exactly the budget's ε fits, and the smallest positive
charge is one step, never none.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

__all__ = ["EXACT", "bits_for", "down", "response_divergence", "rising", "up", "value"]

EXACT = Context(prec=60, Emin=-(10**9), Emax=10**9)
"""Decimal arithmetic with correctly rounded ln and exp; its error is far below `_SLACK`."""
_SLACK = Decimal("1e-45")


def bits_for(total: float) -> int:
    """Return the k for which one step is 2⁻ᵏ: `total` is then a whole number of steps, below 2⁶⁴ unless it is huge.

    >>> up(0.1, bits_for(0.1)) == down(0.1, bits_for(0.1))
    True
    """
    _, exponent = math.frexp(total)
    return max(0, 64 - exponent) if total > 0 else 0


def up(amount: float | Fraction | Decimal, bits: int) -> int:
    """Return the least number of steps that is not below `amount`; a positive amount is at least one step.

    >>> up(1e-300, 64)
    1
    """
    numerator, denominator = amount.as_integer_ratio()
    return -((-numerator << bits) // denominator)


def down(amount: float | Fraction | Decimal, bits: int) -> int:
    """Return the greatest number of steps that is not above `amount`."""
    numerator, denominator = amount.as_integer_ratio()
    return (numerator << bits) // denominator


def value(steps: int, bits: int) -> float:
    """Return steps as an ordinary number, for people to read; nothing is decided by it."""
    return float(Fraction(steps, 1 << bits))


def rising(amount: Decimal) -> Decimal:
    """Return a little more than `amount`, by more than the error of the few operations that made it."""
    return EXACT.add(amount, EXACT.multiply(_SLACK, max(abs(amount), Decimal(1))))


def response_divergence(epsilon: float, order: float) -> Fraction:
    """Return the Rényi divergence of binary randomized response at a finite order > 1, from above.

    It is [ln cosh((a − ½)ε) − ln cosh(ε/2)] / (a − 1), and no ε-DP mechanism has more (Kairouz, Oh & Viswanath 2015:
    each of them is post-processing of randomized response).
    """
    if epsilon == 0:
        return Fraction(0)
    e, a = Decimal(epsilon), Decimal(order)
    far = _log_cosh(EXACT.multiply(EXACT.subtract(a, Decimal("0.5")), e))
    near = _log_cosh(EXACT.divide(e, Decimal(2)))
    # The divergence is also at most ε; the minimum keeps the slack from mattering where both are close.
    bound = EXACT.divide(EXACT.add(EXACT.subtract(far, near), _SLACK), EXACT.subtract(a, Decimal(1)))
    return min(Fraction(rising(bound)), Fraction(epsilon))


def _log_cosh(x: Decimal) -> Decimal:
    """ln cosh x = x + ln(1 + e^(−2x)) − ln 2 for x ≥ 0, which cannot overflow."""
    tail = EXACT.exp(EXACT.multiply(Decimal(-2), x))
    both = EXACT.subtract(EXACT.ln(EXACT.add(Decimal(1), tail)), EXACT.ln(Decimal(2)))
    return EXACT.add(x, both)
