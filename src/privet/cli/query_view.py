"""How answers look on a terminal."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from privet.cli import console
from privet.query import Answer, Reply, Row
from privet.report.words import headline

__all__ = ["COVERS", "columns_of", "has_ends", "number", "rows_of", "show"]

COVERS = "intervals cover the noise alone: they are about these rows, and not about a population they were sampled from"
_MOST_DIGITS = 10
"""However small the noise is."""
_LAST = 6
"""Decimals of a count that are more than rounding errors of its agreement with others."""

_WHOLE = 2.0**53
"""From here on all floats are whole numbers."""


def show(reply: Reply, ledger: str | None) -> None:
    """Every answer with its groups and notes, and who paid."""
    for answer, free in zip(reply.release.value, reply.free, strict=True):
        console.heading(answer.question + (", as answered before: free" if free else ""))
        columns = columns_of(answer)
        if answer.rows:
            console.show_rows(columns, rows_of(answer), right=tuple(columns[len(answer.columns) :]))
            if has_ends(answer):
                console.line(f"{COVERS}.".capitalize(), "dim")
        else:
            console.line("no group has enough in it to be shown", "dim")
        for note in answer.notes:
            console.line(f"{note}.", "dim")
    console.line()
    if reply.charged is None:
        console.line("Everything was answered before; nothing was charged.", "bold green")
        return
    console.line(headline(reply.charged), "bold green")
    for text in reply.charged.assumptions:
        console.line(f"It assumes: {text}.", "dim")
    if ledger is None:
        console.line(
            "No ledger was charged: nothing adds this up with what else is asked; give --ledger NAME.", "yellow"
        )
    else:
        console.line(f"charged to {ledger}; head {reply.head}", "dim")


def columns_of(answer: Answer) -> tuple[str, ...]:
    """The head of an answer's table."""
    ends = (f"{100 * answer.confidence:g} % from", "to") if has_ends(answer) else ()
    return (*answer.columns, answer.measure, *ends)


def rows_of(answer: Answer) -> list[tuple[str, ...]]:
    """The cells of an answer's table."""
    return [_cells(row, answer) for row in answer.rows]


def has_ends(answer: Answer) -> bool:
    """Return whether an answer's table shows intervals."""
    return any(row.low is not None for row in answer.rows)


def _cells(row: Row, answer: Answer) -> tuple[str, ...]:
    ends = has_ends(answer)
    if answer.counted and row.low is not None and row.high is not None:  # outwards, so that no interval gets narrower
        low, high = math.floor(round(row.low, _LAST)), math.ceil(round(row.high, _LAST))
        return (*row.group, *(f"{each:,}" for each in (round(row.value), low, high)))
    width = (row.high - row.low) / 2 if row.low is not None and row.high is not None else 0.0
    outward = ((row.low, ROUND_FLOOR), (row.high, ROUND_CEILING))
    shown = tuple("" if end is None else number(end, width, way) for end, way in outward) if ends else ()
    return (*row.group, number(row.value, width), *shown)


def number(value: float, width: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number to two digits of its uncertainty; ends of intervals are rounded outward (`rounding`).

    >>> number(53.49822, 0.105), number(200009.93, 42.0), number(3.0, 0.0), number(1001.0, 1e-13)
    ('53.50', '200,010', '3', '1,001.000000')
    >>> number(53.49822, 0.105, ROUND_FLOOR), number(-0.0012, 0.105, ROUND_FLOOR)
    ('53.49', '-0.01')
    """
    if width <= 0 or not math.isfinite(width):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    most = _MOST_DIGITS - len(f"{abs(value):.0f}")
    digits = max(min(1 - math.floor(math.log10(width)), most), 0)
    if abs(value) >= _WHOLE or not math.isfinite(value):
        return f"{value:,.0f}"
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding):,f}"
