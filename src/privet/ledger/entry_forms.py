"""How an event may enter a budget: as its curve, as a block, or, while the history is empty, as the whole budget."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from privet.core import Event, NotProven, Unit
from privet.ledger import grid, pricing
from privet.ledger.filter import Amount, Rules, Sums, amount_of, block_values
from privet.ledger.records import Form

__all__ = ["PricedForm", "choose"]

_FRACTIONS = (1, 2, 3, 4, 6, 8, 12)
"""A block is priced at δ·2⁻ʲ for these j: exact in floating point, and few enough to be priced quickly."""


@dataclass(frozen=True)
class PricedForm:
    """One form that an entry could take; it is fixed at the reservation and never changes."""

    form: Form
    amount: Amount
    block: tuple[float, float] | None = None
    """(ε, δ), if the form has them."""


def choose(rules: Rules, unit: Unit, sums: Sums, event: Event, as_block: bool | None) -> PricedForm | None:
    """Return the first form that fits, or None: the curve, the block that leaves most room, or the whole budget.

    It looks at public things only: the event, the unit, and sums that are functions of what was released before.
    """
    bare = as_block is True
    if not bare:
        curve = pricing.curve(event, unit, rules.orders)
        bare = curve is None
        if curve is None and as_block is False:
            raise NotProven("no Rényi curve is proven for this event and unit; let it enter as a block (as_block=None)")
        if curve is not None:
            offer = PricedForm(Form.CURVE, amount_of(rules, curve.values, curve.offset))
            if sums.order_for(offer.amount, rules) is not None:
                return offer
    if as_block is False:
        return None
    try:
        blocks = [
            offer
            for offer in _blocks(rules, unit, sums, event, bare)
            if sums.order_for(offer.amount, rules) is not None
        ]
        if blocks:
            return min(blocks, key=lambda offer: sums.harm(offer.amount, rules))
        return _whole(rules, unit, event) if sums.active == 0 else None
    except NotProven:
        if bare:
            raise
        return None


def _blocks(rules: Rules, unit: Unit, sums: Sums, event: Event, pure_too: bool) -> Iterator[PricedForm]:
    """The event as an (ε, δ) block, at each δ that the offsets still allow."""
    room = sums.allowance(rules) - sums.offset
    deltas = [math.ldexp(rules.delta, -j) for j in (0, *_FRACTIONS)] if rules.delta else []
    for delta in (*deltas, *((0.0,) if pure_too else ())):
        if grid.up(delta, rules.delta_bits) <= room:
            epsilon = pricing.block(event, unit, delta)
            yield PricedForm(Form.BLOCK, amount_of(rules, block_values(epsilon, rules.orders), delta), (epsilon, delta))


def _whole(rules: Rules, unit: Unit, event: Event) -> PricedForm | None:
    """The event at its price under all of δ: the one form that a fixed plan of exactly (ε, δ) needs."""
    epsilon = pricing.block(event, unit, rules.delta)
    amount = amount_of(rules, block_values(epsilon, rules.orders), rules.delta, whole=True)
    fits = Sums.empty(rules).order_for(amount, rules) is not None
    return PricedForm(Form.WHOLE, amount, (epsilon, rules.delta)) if fits else None
