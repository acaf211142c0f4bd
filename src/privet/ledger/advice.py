"""What a refusal says: what was asked, what is left, and the least noise or the most steps that would still fit."""

from __future__ import annotations

import math
from collections.abc import Callable

from privet.core import BudgetExceeded, Event, InvalidInput, NotProven, Repeated, digits_up
from privet.ledger import entry_forms, pricing
from privet.ledger.budget_state import BudgetState
from privet.ledger.filter import largest_block
from privet.ledger.scaling import noisier, parameter_of

__all__ = ["Refused", "refusal"]

_LARGEST = 2.0**20
"""No noise beyond this many times the asked one is suggested."""
_PRECISION = 1.002
"""How close to the least noise the suggestion comes."""


class Refused(BudgetExceeded):
    """A budget refused a charge; nothing was drawn and nothing was spent. Says what would have fitted."""

    def __init__(
        self,
        message: str,
        *,
        asked: float,
        delta: float,
        left: tuple[float, float],
        least_noise: Event | None,
        most_steps: int | None,
    ) -> None:
        super().__init__(message)
        self.asked = asked
        """The ε of the event at `delta`, which is the budget's."""
        self.delta = delta
        self.left = left
        """The (ε, δ) of the largest block that would still fit."""
        self.least_noise = least_noise
        """The same event with the least noise that would fit; None if no noise helps, or none is known to."""
        self.most_steps = most_steps
        """How many repetitions of a repeated event would fit; None if it is not one."""


def refusal(book: BudgetState, event: Event, purpose: str, as_block: bool | None) -> Refused:
    """Return the error for an event that does not fit, with what would fit instead. Takes nothing but public things."""
    rules, unit = book.rules, book.terms.unit

    def fits(other: Event | None) -> bool:
        try:
            return other is not None and entry_forms.choose(rules, unit, book.sums, other, as_block) is not None
        except NotProven:
            return False

    def fits_as_curve(other: Event | None) -> bool:
        # Where a search begins: curves are priced in a millisecond, and blocks may take much longer.
        if other is None or pricing.curve(other, unit, rules.orders) is None:
            return False
        return as_block is not True and entry_forms.choose(rules, unit, book.sums, other, False) is not None

    left = largest_block(rules, book.sums)
    try:
        asked = pricing.block(event, unit, rules.delta)
    except NotProven:
        asked = math.inf
    factor = _least_factor(event, fits_as_curve, fits)
    least = noisier(event, factor) if factor is not None else None
    steps = _most_steps(event, fits_as_curve, fits) if isinstance(event, Repeated) else None
    total = f"(ε = {digits_up(rules.epsilon)}, δ = {digits_up(rules.delta)})"
    price = "no finite ε" if asked == math.inf else f"ε = {_up(asked)} at δ = {digits_up(rules.delta)}"
    rest = f"a block of ε ≤ {_down(left[0])}, δ ≤ {_down(left[1])} is left" if left[0] > 0 else "nothing is left"
    text = f"the budget {total} of {book.terms.name!r} refuses {purpose or 'this event'!r}: it asks {price}, and {rest}"
    ways = _ways(event, factor, least, steps)
    return Refused(
        f"{text}; {ways}",
        asked=asked,
        delta=rules.delta,
        left=left,
        least_noise=least,
        most_steps=steps,
    )


def _least_factor(event: Event, quick: Callable[[Event], bool], fits: Callable[[Event], bool]) -> float | None:
    """The least factor on the noise, up to `_PRECISION`, with which the event fits."""

    def tried(factor: float, test: Callable[[Event], bool]) -> bool:
        try:
            other = noisier(event, factor)
        except InvalidInput:
            return False  # beyond what the event can be
        return other is not None and test(other)

    if tried(_LARGEST, quick):
        low, high = _narrowed(1.0, _LARGEST, lambda factor: tried(factor, quick))
        # Blocks can only do better than curves: go on below what the curves allow.
        low = 1.0 if tried(low / _PRECISION, fits) else low
    elif tried(_LARGEST, fits):
        low, high = 1.0, _LARGEST
    else:
        return None
    return _narrowed(low, high, lambda factor: tried(factor, fits))[1]


def _narrowed(low: float, high: float, fits: Callable[[float], bool]) -> tuple[float, float]:
    while high > low * _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return low, high


def _most_steps(event: Repeated, quick: Callable[[Event], bool], fits: Callable[[Event], bool]) -> int:
    """The largest count with which the event fits; one more does not."""
    low, high = 0, event.count
    for test in (quick, fits):
        low = max(low, 0)
        if test is fits and not fits(Repeated(event.event, low + 1)):
            return low
        high = event.count
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if test(Repeated(event.event, middle)) else (low, middle)
    return low


def _ways(event: Event, factor: float | None, least: Event | None, steps: int | None) -> str:
    ways = []
    if factor is not None and least is not None:
        have, want = parameter_of(event), parameter_of(least)
        if have is not None and want is not None:
            shown = _up(want[1]) if want[1] >= have[1] else _down(want[1])
            ways.append(f"with {have[0]} = {shown} instead of {have[1]:g}")
        else:
            ways.append(f"with all noise {_up(factor)} times larger")
    if steps:
        ways.append(f"with {steps:,} repetitions")
    return "it would fit " + ", or ".join(ways) if ways else "no change that is known here would make it fit"


def _up(value: float) -> str:
    """Four digits, never less than the value."""
    return _digits(value, math.ceil)


def _down(value: float) -> str:
    """Four digits, never more than the value."""
    return _digits(value, math.floor)


def _digits(value: float, rounded: Callable[[float], int]) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    scale = 10.0 ** (3 - math.floor(math.log10(value)))
    return f"{rounded(value * scale) / scale:.4g}"
