"""Numbers and records in words, rounded so that no guarantee is overstated."""

from __future__ import annotations

import math
from dataclasses import fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import Enum
from typing import Any, cast

from privet.accounting import CONTINUOUS_NOISE, Accountant, AccountantAnswer, Meaning
from privet.core import Guarantee, Neighbours, Record, Unit, Whose, counted, digits_up, listed

__all__ = [
    "ACCOUNTANTS",
    "SEEDED",
    "attack_limit_rows",
    "counted",
    "down",
    "epoch_count",
    "event_text",
    "guarantee_rows",
    "headline",
    "is_open",
    "listed",
    "percent",
    "protected",
    "proven_by",
    "up",
    "why_not",
]

_MANY = 1000
"""From this number of epochs on, no decimals are shown."""

ACCOUNTANTS: dict[Accountant, str] = {
    Accountant.PLD: "privacy-loss distribution",
    Accountant.RENYI: "Rényi (moments accountant)",
    Accountant.ZCDP: "zero-concentrated DP",
    Accountant.GDP: "Gaussian DP",
    Accountant.ADVANCED: "advanced composition",
    Accountant.BASIC: "basic composition",
}
_CHANGES: dict[Neighbours, str] = {
    Neighbours.ADD_REMOVE: "added or removed",
    Neighbours.ZERO_OUT: "blanked out",
    Neighbours.REPLACE: "replaced by another",
    Neighbours.L1_BALL: "moved within an L1 ball",
    Neighbours.L2_BALL: "moved within an L2 ball",
}
_CONTINUOUS = "The privacy cost is computed for exact real numbers, which floating-point noise only approximates."
SEEDED = "The noise came from a seeded generator, which protects nobody."
"""The warning on a release whose noise can be computed from a seed."""


def up(value: float) -> str:
    """Return a number with three decimals, or four digits if it is small or large, never below the value.

    >>> up(2.3811), up(0.0000123451), up(2.5), up(math.inf)
    ('2.382', '1.235e-05', '2.500', '∞')
    """
    return _rounded(value, ROUND_CEILING)


def down(value: float) -> str:
    """Return a number with three decimals, or four digits if it is small or large, never above the value.

    >>> down(2.3819), down(1303.75), down(1234567.8), down(0.0)
    ('2.381', '1,303.750', '1.234e+06', '0')
    """
    return _rounded(value, ROUND_FLOOR)


def _rounded(value: float, way: str) -> str:
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "∞"
    digits = 3 if 0.01 <= value < 1e5 else 3 - math.floor(math.log10(value))
    # A float that is the nearest to a short decimal stands for that decimal, and is not moved.
    exact = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), rounding=way)
    return f"{exact:,.3f}" if digits == 3 else f"{float(exact):.4g}"


def epoch_count(epochs: float) -> str:
    """Return a number of epochs, which need not be whole, for a table.

    >>> epoch_count(3000.0), epoch_count(25.05)
    ('3,000', '25.05')
    """
    return f"{epochs:,.0f}" if epochs >= _MANY else f"{epochs:.4g}"


def event_text(value: object) -> str:
    """Return an event as one would write it down, without the names of its fields.

    >>> from privet.core.event import Gaussian, Repeated
    >>> event_text(Repeated(Gaussian(1.1), 1000))
    'Repeated(Gaussian(1.1), 1000)'
    """
    if isinstance(value, Record):
        inside = (event_text(getattr(value, field.name)) for field in fields(cast("Any", value)))
        return f"{type(value).__name__}({', '.join(inside)})"
    if isinstance(value, tuple):
        return ", ".join(event_text(item) for item in value)
    if isinstance(value, Enum):
        return str(value.value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def percent(share: float, digits: int = 2) -> str:
    """Return a share in per cent, never below it.

    >>> percent(0.006055), percent(0.2397), percent(1.0)
    ('0.61 %', '24 %', '100 %')
    """
    shown = Context(digits, ROUND_CEILING).create_decimal(repr(100 * share))
    return f"{min(float(shown), 100.0):.6g} %"


def protected(unit: Unit) -> str:
    """Return whose data a guarantee protects, in words.

    >>> protected(Unit())
    'one example, added or removed'
    """
    many = f" with at most {unit.records:,} records" if unit.records > 1 else ""
    comma = "," if unit.neighbours is Neighbours.ADD_REMOVE or many else ""
    trust = "" if unit.trust.value == "central" else f" ({unit.trust.value})"
    # An example has one record; several of them are what one person owns.
    who = "person" if many and unit.whose is Whose.EXAMPLE else unit.whose.value
    return f"one {who}{many}{comma} {_CHANGES[unit.neighbours]}{trust}"


def is_open(guarantee: Guarantee) -> bool:
    """Return whether no finite ε was found although one may exist: group privacy fails if its δ grows too large."""
    none = any(text.startswith("no guarantee") for text in guarantee.assumptions)
    return math.isinf(guarantee.epsilon.upper) and guarantee.delta > 0 and guarantee.unit.records > 1 and not none


def headline(guarantee: Guarantee) -> str:
    """Return the guarantee in one line; ε is the upper end, rounded up."""
    if is_open(guarantee):
        return f"no finite ε was found at δ = {digits_up(guarantee.delta)} for {protected(guarantee.unit)}"
    if math.isinf(guarantee.epsilon.upper):
        return f"ε = ∞ at δ = {digits_up(guarantee.delta)}: no guarantee for {protected(guarantee.unit)}"
    return f"ε ≤ {up(guarantee.epsilon.upper)} at δ = {digits_up(guarantee.delta)} for {protected(guarantee.unit)}"


def proven_by(guarantee: Guarantee) -> str:
    """Return how a guarantee is proven and what that assumes; empty if nothing is proven."""
    if math.isinf(guarantee.epsilon.upper):
        return ""
    names = {accountant.value: name for accountant, name in ACCOUNTANTS.items()}
    assumed = f", assuming {listed(guarantee.assumptions)}" if guarantee.assumptions else ""
    exact = f" {_CONTINUOUS}" if CONTINUOUS_NOISE in guarantee.assumptions else ""
    return f"Proven by {names[guarantee.accountant]}{assumed}.{exact}"


def why_not(rung: AccountantAnswer) -> str:
    """Return why an accountant has no answer; empty if it has one."""
    if rung.refusal is None:
        return ""
    # The table's own words; which other accountants there are is plain from the ladder.
    return "no theorem for " + rung.refusal.partition(" with the ")[0]


def guarantee_rows(guarantee: Guarantee) -> list[tuple[str, str]]:
    """Return ε and δ as rows of a table."""
    return [
        ("ε at most", up(guarantee.epsilon.upper)),
        ("ε at least", down(guarantee.epsilon.lower)),
        ("δ", digits_up(guarantee.delta)),
    ]


def attack_limit_rows(meaning: Meaning) -> list[tuple[str, str]]:
    """Return the limits on membership-inference attacks as rows of a table."""
    return [
        (
            f"TPR of any attack at {100 * limit.false_positive_rate:g} % FPR",
            f"at most {percent(limit.true_positive_rate)}",
        )
        for limit in meaning.attacks
    ]
