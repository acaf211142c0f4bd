"""One small instance of every mechanism of the table, for each kind of unit: what the contract tests walk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from privet.core.bounded import Bounded
from privet.core.unit import Neighbours, Unit, Whose
from privet.mechanisms import MECHANISMS

ADD = Unit()
ZERO = Unit(neighbours=Neighbours.ZERO_OUT)
REPLACE = Unit(neighbours=Neighbours.REPLACE)
USER = Unit(whose=Whose.USER)
USER_REPLACE = Unit(whose=Whose.USER, neighbours=Neighbours.REPLACE)
GROUP = Unit(whose=Whose.USER, records=3)
UNITS = (ADD, ZERO, REPLACE, USER, USER_REPLACE, GROUP)
EPSILON, DELTA = 1.0, 1e-5
CASES = [(name, unit) for name, entry in MECHANISMS.items() for unit in UNITS if entry.protects(unit)]


def rows_of(unit: Unit) -> int:
    """Two rows a user where ids say whose they are."""
    return 2 if unit.whose is Whose.USER and unit.records == 1 else 1


def clipper_of(name: str, unit: Unit) -> Any:
    """The clipper of a mechanism's row."""
    return MECHANISMS[name].clipper(unit, rows_of(unit))


def build(name: str, clipper: Any) -> Any:
    return MECHANISMS[name].build(EPSILON, DELTA, clipper)


def query_of(name: str, clipper: Any, rows: Sequence[Any] | None = None) -> Bounded[Any]:
    """The answer of these rows, or of the row of the table; each user has three of them, of which two count."""
    given = list(MECHANISMS[name].rows if rows is None else rows)
    query: Bounded[Any] = clipper(given, [i // 3 for i in range(len(given))] if rows_of(clipper.unit) == 2 else None)
    return query


@cache
def made(name: str, unit: Unit) -> tuple[Any, Any, Bounded[Any]]:
    """The mechanism, its clipper and a query; made once, as calibrating takes a while."""
    clipper = clipper_of(name, unit)
    return build(name, clipper), clipper, query_of(name, clipper)


def delta_of(name: str) -> float:
    """The δ at which a mechanism of the table is priced."""
    return DELTA if MECHANISMS[name].needs_delta else 0.0
