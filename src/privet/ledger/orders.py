"""The orders of a budget, each order's share of δ, and each order's limit: all fixed when the budget is made."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from privet.core import InvalidInput, checked
from privet.ledger import grid

__all__ = ["default_orders", "limit", "shares", "usual_orders"]

_HALF_OCTAVES = range(-3, 7)
"""Where the usual orders lie, around the one that is best for Gaussian noise."""


def usual_orders(orders: tuple[float, ...], epsilon: float, delta: float) -> tuple[float, ...]:
    """Return the caller's orders, ascending and with ∞ at the end; raise an error that names a useless one."""
    for order in orders:
        if isinstance(order, bool) or not isinstance(order, (int, float)) or math.isnan(order) or order <= 1:
            raise InvalidInput("orders", f"holds {order!r}, which is not above 1", "Rényi orders lie in (1, ∞]")
    finite = tuple(sorted({float(order) for order in orders if order != math.inf}))
    if finite and delta == 0:
        raise InvalidInput("orders", "has finite orders, which need a δ above 0", "leave it out")
    given = (*finite, math.inf)
    bits = grid.bits_for(delta)
    for order, share in zip(given, shares(delta, len(finite)), strict=True):
        if limit(order, epsilon, share, bits, grid.bits_for(epsilon)) <= 0:
            advice = "its share of δ alone costs more than ε; use larger orders, or fewer"
            raise InvalidInput("orders", f"holds {order:g}, under which nothing can ever fit", advice)
    return given


def default_orders(epsilon: float, delta: float) -> tuple[float, ...]:
    """Return about ten orders around the one that admits most Gaussian noise under (ε, δ), and ∞.

    They depend on ε and δ alone, which are public. More orders would cost more δ each, and every order a loses only
    ln(number of orders) / (a − 1) to the others. Whole numbers, because some curves are proven for those only.
    """
    checked.positive("epsilon", epsilon)
    if checked.share("delta", delta) == 0:
        return (math.inf,)
    bits, step = grid.bits_for(delta), grid.bits_for(epsilon)
    share = shares(delta, len(_HALF_OCTAVES))[0]
    log_share = math.log(share) - bits * math.log(2)

    def worth(order: float) -> float:  # about limit / order, which is the ρ of zCDP that this order would admit
        return (epsilon + math.log(order / (order - 1)) + (log_share + math.log(order)) / (order - 1)) / order

    best = max((1 + 2 ** (k / 4) for k in range(-8, 97)), key=worth) - 1
    wanted = sorted({_tidy(1 + best * 2 ** (k / 2)) for k in _HALF_OCTAVES})
    return (*(order for order in wanted if limit(order, epsilon, share, bits, step) > 0), math.inf)


def _tidy(order: float) -> float:
    return float(round(order)) if order >= 2 else 1 + max(1, round((order - 1) * 16)) / 16


def shares(delta: float, finite: int) -> tuple[int, ...]:
    """Return each order's share of δ in steps of δ's grid: half for ∞, the rest in equal parts; at most δ in all.

    The share of ∞ is the allowance for offsets: the δ of blocks, and of curves that hold only with probability 1 − δ.
    """
    whole = grid.down(delta, grid.bits_for(delta))
    if finite == 0:
        return (whole,)
    return (*((whole - whole // 2) // finite for _ in range(finite)), whole // 2)


def limit(order: float, epsilon: float, share: int, delta_bits: int, epsilon_bits: int) -> int:
    """Return the most Rényi divergence at this order that still gives (ε, share)-DP, in steps of ε's grid, from below.

    It is the largest r with r + ln((a−1)/a) − (ln share + ln a)/(a−1) ≤ ε (Canonne, Kamath & Steinke 2020, Prop. 12).
    At order ∞ it is ε itself. A negative number means that even an empty history is not proven at this order.
    """
    if order == math.inf:
        return grid.down(epsilon, epsilon_bits)
    if share <= 0:
        return -1
    exact = grid.EXACT
    a, less = Decimal(order), exact.subtract(Decimal(order), Decimal(1))
    log_share = exact.subtract(exact.ln(Decimal(share)), exact.multiply(Decimal(delta_bits), exact.ln(Decimal(2))))
    saved = exact.ln(exact.divide(a, less))
    paid = exact.divide(exact.add(log_share, exact.ln(a)), less)
    total = exact.add(exact.add(Decimal(epsilon), saved), paid)
    # The terms may nearly cancel, so the slack is that of the largest of them.
    room = sum((grid.rising(abs(term)) - abs(term) for term in (Decimal(epsilon), saved, paid)), Decimal(0))
    return grid.down(Fraction(total) - Fraction(room), epsilon_bits)
