"""Answers of a query as tables: their columns, and cells whose intervals are rounded outward."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from privet.query import Answer, Row

__all__ = ["INTERVAL_COVERAGE", "answer_columns", "answer_rows", "format_rounded", "has_intervals"]

INTERVAL_COVERAGE = (
    "intervals cover the noise alone: they are about these rows, and not about a population they were sampled from"
)
"""What the intervals of answers cover, in words."""
_MOST_DIGITS = 10
"""However small the noise is."""
_LAST = 6
"""Decimals of a count that are more than rounding errors of its agreement with others."""

_WHOLE = 2.0**53
"""From here on all floats are whole numbers."""


def answer_columns(answer: Answer) -> tuple[str, ...]:
    """Return the column names of an answer's table: the groups, the measure and, if there are any, the interval's ends.

    Args:
        answer: The answer of a query.
    """
    ends = (f"{100 * answer.confidence:g} % from", "to") if has_intervals(answer) else ()
    return (*answer.columns, answer.measure, *ends)


def answer_rows(answer: Answer) -> list[tuple[str, ...]]:
    """Return the cells of an answer's table, row by row; both ends of an interval are rounded outward.

    Args:
        answer: The answer of a query.
    """
    return [_cells(row, answer) for row in answer.rows]


def has_intervals(answer: Answer) -> bool:
    """Return whether an answer's table shows intervals.

    Args:
        answer: The answer of a query.
    """
    return any(row.low is not None for row in answer.rows)


def _cells(row: Row, answer: Answer) -> tuple[str, ...]:
    ends = has_intervals(answer)
    if answer.counted and row.low is not None and row.high is not None:  # outward, so that no interval gets narrower
        low, high = math.floor(round(row.low, _LAST)), math.ceil(round(row.high, _LAST))
        return (*row.group, *(f"{each:,}" for each in (round(row.value), low, high)))
    width = (row.high - row.low) / 2 if row.low is not None and row.high is not None else 0.0
    outward = ((row.low, ROUND_FLOOR), (row.high, ROUND_CEILING))
    shown = tuple("" if end is None else format_rounded(end, width, way) for end, way in outward) if ends else ()
    return (*row.group, format_rounded(row.value, width), *shown)


def format_rounded(value: float, width: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """Round a number to two digits of its uncertainty.

    Args:
        value: The number.
        width: Half the width of its interval; 0 if it has none.
        rounding: How to round, as in `decimal`; ends of intervals are rounded outward.

    >>> format_rounded(53.49822, 0.105), format_rounded(200009.93, 42.0)
    ('53.50', '200,010')
    >>> format_rounded(3.0, 0.0), format_rounded(1001.0, 1e-13)
    ('3', '1,001.000000')
    >>> format_rounded(53.49822, 0.105, ROUND_FLOOR), format_rounded(-0.0012, 0.105, ROUND_FLOOR)
    ('53.49', '-0.01')
    """
    if width <= 0 or not math.isfinite(width):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    most = _MOST_DIGITS - len(f"{abs(value):.0f}")
    digits = max(min(1 - math.floor(math.log10(width)), most), 0)
    if abs(value) >= _WHOLE or not math.isfinite(value):
        return f"{value:,.0f}"
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding):,f}"
