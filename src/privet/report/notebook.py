"""Small tables for notebooks: a release, a guarantee, a ledger. Plain HTML, and no scripts."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import TYPE_CHECKING, Any

from privet.core import Guarantee, PrivetError, Release, digits_up
from privet.report.frame import escape, table
from privet.report.words import SEEDED, down, guarantee_rows, headline, protected, up

if TYPE_CHECKING:
    from privet.ledger import Ledger

__all__ = ["RENDERERS", "guarantee_table", "ledger_table", "release_table"]

_MOST = 80
"""How many characters of a released value are shown."""
_RED = "background: #b3261e; color: #fff; padding: 0.1em 0.4em"
"""White on red can be read on a light page and on a dark one."""


def guarantee_table(guarantee: Guarantee) -> str:
    """Return a guarantee as a table.

    >>> from privet.accounting import epsilon
    >>> from privet.core.event import Gaussian
    >>> "<th scope=\\"row\\">ε at most</th><td>0.927</td>" in guarantee_table(epsilon(Gaussian(4.0), 1e-5))
    True
    """
    return table(headline(guarantee), ("what", "value"), _rows(guarantee))


def _rows(guarantee: Guarantee) -> list[tuple[str, str]]:
    return [
        *guarantee_rows(guarantee),
        ("protects", protected(guarantee.unit)),
        ("accountant", guarantee.accountant),
        ("assumes", ", ".join(guarantee.assumptions) or "nothing"),
    ]


def release_table(release: Release[Any]) -> str:
    """Return a release as a table: its value, which may be seen, and its privacy cost. Seeded noise is in red."""
    value = release.value
    text = repr(value) if isinstance(value, (Number, str, bool, tuple)) else type(value).__name__
    rows = [
        ("value", text if len(text) <= _MOST else f"{text[:_MOST]}…"),
        ("source", ", ".join(release.source)),
        ("draws", f"{len(release.draws):,}"),
    ]
    if release.guarantee is None:
        rows += [("protects", protected(release.unit)), ("guarantee", "not priced yet")]
    else:
        rows += _rows(release.guarantee)
    red = f'<p><strong style="{_RED}">{escape(SEEDED)}</strong></p>' if release.tainted else ""
    return table("A release", ("what", "value"), rows) + red


def ledger_table(ledger: Ledger) -> str:
    """Return every budget of a ledger, and what is left of it, as a table.

    If the ledger cannot be read, the reason is left out: a server's message may hold what a shared notebook should not.
    """
    try:
        budgets = ledger.list()
    except PrivetError:
        return f"<p>{escape('The ledger cannot be read now; ledger.list() says why.')}</p>"
    rows = [
        (
            budget.name,
            f"ε {up(budget.epsilon)}, δ {digits_up(budget.delta)}",
            f"ε {down(budget.epsilon_left)}, δ {budget.delta_left:.3g}",
            f"{budget.active:,}",
            protected(budget.unit),
        )
        for budget in budgets
    ]
    return table("Budgets", ("budget", "whole", "left", "entries", "protects"), rows)


RENDERERS: dict[str, Callable[[Any], str]] = {
    "Guarantee": guarantee_table,
    "Ledger": ledger_table,
    "Release": release_table,
}
"""For each class that shows itself the function that draws it. `Bounded` has none, and never will: it is private."""
