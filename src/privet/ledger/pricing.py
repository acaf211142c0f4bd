"""What the ledger asks of the accountants: an event's Rényi curve, its (ε, δ) price, and the price of a whole history.

Everything here is a function of public things (the event, the unit, the orders), so answers may be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from privet.core import BudgetExceeded, Event, Guarantee, NotProven, Unit

__all__ = ["Curve", "block", "curve", "planned", "refuse_nonprivate"]


@dataclass(frozen=True)
class Curve:
    """Upper bounds on the Rényi divergence at a budget's orders, and the probability with which they may fail."""

    values: tuple[float, ...]
    offset: float


def refuse_nonprivate(event: Event) -> None:
    """Raise if any part of the event has no guarantee at all; no budget can admit it."""
    from privet.accounting import canonical

    reason = canonical(event).nonprivate
    if reason is not None:
        raise BudgetExceeded(f"the event is not private ({reason}), so its ε is infinite and no budget admits it")


@lru_cache(maxsize=1024)
def curve(event: Event, unit: Unit, orders: tuple[float, ...]) -> Curve | None:
    """Return the event's Rényi curve for this unit, or None where no theorem gives one."""
    from privet.accounting import canonical, total

    try:
        found = total(canonical(event).parts, unit, orders)
    except NotProven:
        return None
    return Curve(tuple(float(value) for value in found.values), float(found.delta))


@lru_cache(maxsize=1024)
def block(event: Event, unit: Unit, delta: float) -> float:
    """Return the least proven ε of the event at this δ, by privacy-loss distributions if they apply; may be ∞.

    Args:
        event: What is priced.
        unit: Whose data is protected.
        delta: The δ at which ε is stated.

    Raises:
        NotProven: No theorem covers the event for this unit.
    """
    from privet.accounting import upper

    return upper(event, delta, unit=unit)


def planned(event: Event, unit: Unit, delta: float) -> Guarantee:
    """Return the price of an event that is fixed in advance."""
    from privet.accounting import epsilon

    return epsilon(event, delta, unit=unit)
