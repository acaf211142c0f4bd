"""The records that cross boundaries, the errors, and randomness. Imports nothing else of Privet's."""

from __future__ import annotations

from privet.core.bounded import Bounded
from privet.core.errors import BudgetExceeded, InvalidInput, LedgerError, MissingExtra, NotProven, PrivetError
from privet.core.event import Event
from privet.core.guarantee import Evidence, Guarantee, Interval
from privet.core.lazy_attributes import lazy_attributes as lazy_attributes
from privet.core.randomness import Randomness
from privet.core.release import Draw, Release
from privet.core.rendering import register_renderers as register_renderers
from privet.core.unit import Neighbours, Trust, Unit, Whose

__all__ = [
    "Bounded",
    "BudgetExceeded",
    "Draw",
    "Event",
    "Evidence",
    "Guarantee",
    "Interval",
    "InvalidInput",
    "LedgerError",
    "MissingExtra",
    "Neighbours",
    "NotProven",
    "PrivetError",
    "Randomness",
    "Release",
    "Trust",
    "Unit",
    "Whose",
]
