"""The privacy filter: whole-number sums per order, and the one rule that says whether an entry fits.

An entry fits if, for at least one order, the running sum with it stays at or under that order's limit, and the sum of
the offsets stays within their allowance. `docs/explanation` has the proof that all draws are then (ε, δ)-DP, although
each entry may be chosen after seeing what the earlier ones released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from privet.core import InvalidInput, LedgerError, checked
from privet.ledger import grid, orders

__all__ = ["Amount", "Rules", "Sums", "amount_of", "block_values", "largest_block", "rules_for"]


@dataclass(frozen=True)
class Rules:
    """What is fixed when a budget is made."""

    epsilon: float
    delta: float
    orders: tuple[float, ...]
    """Rising, with ∞ at the end."""
    shares: tuple[int, ...]
    """Each order's part of δ, in steps of 2^-delta_bits; that of ∞ is the allowance for offsets."""
    limits: tuple[int, ...]
    """The most that each order's sum may reach, in steps of 2^-epsilon_bits."""
    epsilon_bits: int
    delta_bits: int

    @property
    def whole(self) -> int:
        """All of δ, in steps."""
        return grid.down(self.delta, self.delta_bits)


@dataclass(frozen=True)
class Amount:
    """A charge in steps: one number per order, and the offset. It never changes after its reservation."""

    orders: tuple[int, ...]
    offset: int
    whole: bool = False
    """Whether this charge asks for the entire budget under basic composition, which only an empty history allows."""


@dataclass(frozen=True)
class Sums:
    """The running sums over all entries that are reserved, drawing or committed."""

    orders: tuple[int, ...]
    offset: int = 0
    active: int = 0
    """How many entries the sums hold; an aborted entry has left them."""
    basic: bool = False
    """Whether all of δ has become the allowance of order ∞, and the finite orders are closed."""

    @classmethod
    def empty(cls, rules: Rules) -> Sums:
        """Return the sums of an empty history."""
        return cls((0,) * len(rules.orders))

    def allowance(self, rules: Rules) -> int:
        """Return the most that the offsets may sum to."""
        return rules.whole if self.basic else rules.shares[-1]

    def after(self, amount: Amount) -> Sums:
        """Return the sums with one more entry, whether or not it fits."""
        added = tuple(have + more for have, more in zip(self.orders, amount.orders, strict=True))
        return Sums(added, self.offset + amount.offset, self.active + 1, self.basic or amount.whole)

    def order_for(self, amount: Amount, rules: Rules) -> float | None:
        """Return the order under which this entry fits, the one with the most room left; None if there is none."""
        if amount.whole and self.active:
            return None  # the switch must be made before any output exists
        next_ = self.after(amount)
        if next_.offset > next_.allowance(rules):
            return None
        pairs = list(zip(rules.orders, next_.orders, rules.limits, strict=True))
        fitting = [
            (total / most, order) for order, total, most in (pairs[-1:] if next_.basic else pairs) if total <= most
        ]
        return min(fitting)[1] if fitting else None

    def without(self, amount: Amount, rules: Rules) -> Sums:
        """Return the sums after an undrawn entry is aborted; they are exact, so the order of aborts is irrelevant.

        An empty history takes its first shape again: nothing was drawn, so nothing can depend on the data.
        """
        rest = tuple(have - less for have, less in zip(self.orders, amount.orders, strict=True))
        left = replace(self, orders=rest, offset=self.offset - amount.offset, active=self.active - 1)
        if min(*left.orders, left.offset, left.active) < 0 or (not left.active and any((*left.orders, left.offset))):
            raise LedgerError("the budget's sums are smaller than an entry in them; run: privet ledger verify")
        return left if left.active else Sums.empty(rules)

    def harm(self, amount: Amount, rules: Rules) -> float:
        """Return how full the budget is afterwards, in [0, 1]: the fuller of its offsets and of its emptiest order."""
        next_ = self.after(amount)
        allowed = next_.allowance(rules)
        pairs = list(zip(next_.orders, rules.limits, strict=True))[-1 if next_.basic else 0 :]
        return max(next_.offset / allowed if allowed else 0.0, min(total / most for total, most in pairs))


def rules_for(epsilon: float, delta: float, wanted: tuple[float, ...] | None = None) -> Rules:
    """Return the rules of a new budget.

    >>> rules = rules_for(1.0, 1e-6)
    >>> sum(rules.shares) <= rules.whole and min(rules.limits) > 0
    True
    """
    epsilon, delta = checked.positive("epsilon", epsilon), checked.share("delta", delta)
    if wanted is None:
        chosen = orders.default_orders(epsilon, delta)
    else:
        chosen = orders.usual_orders(tuple(wanted), epsilon, delta)
    epsilon_bits, delta_bits = grid.bits_for(epsilon), grid.bits_for(delta)
    parts = orders.shares(delta, len(chosen) - 1)
    limits = tuple(
        orders.limit(order, epsilon, share, delta_bits, epsilon_bits)
        for order, share in zip(chosen, parts, strict=True)
    )
    return Rules(epsilon, delta, chosen, parts, limits, epsilon_bits, delta_bits)


def amount_of(rules: Rules, values: tuple[float, ...], offset: float, *, whole: bool = False) -> Amount:
    """Return upper bounds per order and an offset, as a charge; every number is rounded up.

    A value above an order's limit is kept as the limit and one step: that closes the order for as long as the entry
    stands, and keeps sums finite for curves that are infinite somewhere.
    """
    if len(values) != len(rules.orders):
        raise InvalidInput("values", f"has {len(values)} numbers for {len(rules.orders)} orders")
    for bound in (*values, offset):
        if math.isnan(bound) or bound < 0:
            raise InvalidInput("values", f"holds {bound}, which is not a bound on a divergence")
    steps = tuple(
        most + 1 if bound == math.inf else min(grid.up(bound, rules.epsilon_bits), most + 1)
        for bound, most in zip(values, rules.limits, strict=True)
    )
    if rules.delta == 0:
        return Amount(steps, int(offset > 0), whole)
    return Amount(steps, min(grid.up(offset, rules.delta_bits), rules.whole + 1), whole)


@lru_cache(maxsize=4096)
def block_values(epsilon: float, orders_: tuple[float, ...]) -> tuple[float, ...]:
    """Return what an (ε, δ) block adds at each order, besides its δ: randomized response's divergence, and ε at ∞."""
    if epsilon == math.inf:
        return (math.inf,) * len(orders_)
    return tuple(epsilon if order == math.inf else _float_up(epsilon, order) for order in orders_)


def _float_up(epsilon: float, order: float) -> float:
    exact = grid.response_divergence(epsilon, order)
    near = float(exact)
    return near if near >= exact else math.nextafter(near, math.inf)


def largest_block(rules: Rules, sums: Sums) -> tuple[float, float]:
    """Return the (ε, δ) of the largest block that would still fit, for people to read: never more than what fits."""
    if sums.active == 0:
        return rules.epsilon, rules.delta
    delta = grid.value(max(0, sums.allowance(rules) - sums.offset), rules.delta_bits)

    def fits(epsilon: float) -> bool:
        amount = amount_of(rules, block_values(epsilon, rules.orders), 0.0)
        return sums.order_for(amount, rules) is not None

    rooms = [
        (order, grid.value(most - total, rules.epsilon_bits))
        for order, total, most in zip(rules.orders, sums.orders, rules.limits, strict=True)
        if total <= most and (order == math.inf or not sums.basic)
    ]
    guess, less = max((_roughly(order, room) for order, room in rooms), default=0.0), 0.0
    while guess > 0 and not fits(guess * (1 - less)):
        less = min(1.0, max(2 * less, 1e-12))
    return guess * (1 - less), delta


def _roughly(order: float, room: float) -> float:
    """About the ε at which randomized response has this divergence; the caller checks it exactly."""
    if order == math.inf:
        return room

    def divergence(epsilon: float) -> float:
        return (_log_cosh((order - 0.5) * epsilon) - _log_cosh(epsilon / 2)) / (order - 1)

    low, high = 0.0, max(room, 1e-300)
    while divergence(high) <= room:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(middle) <= room else (low, middle)
    return low


def _log_cosh(x: float) -> float:
    return math.log1p(2 * math.sinh(x / 2) ** 2) if x < 1 else x + math.log1p(math.exp(-2 * x)) - math.log(2)
