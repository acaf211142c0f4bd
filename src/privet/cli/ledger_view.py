"""How budgets, their entries and their verification look on a terminal."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Any, cast

from privet.cli import console
from privet.core.codec import Record
from privet.core.guarantee import digits_up
from privet.ledger import Budget, Entry, Form, Statement, Verification
from privet.report.words import counted, down, protected, up

__all__ = ["brief", "show_budgets", "show_statement", "show_verification", "total"]

_LONGEST = 300
"""Letters of an event in a table."""

_NEARLY = 0.02
"""How far two shares may miss the whole before one would wonder."""


def total(budget: Budget) -> str:
    """The whole budget in words."""
    return f"ε = {digits_up(budget.epsilon)}, δ = {digits_up(budget.delta)} for {protected(budget.unit)}"


def show_budgets(budgets: tuple[Budget, ...]) -> None:
    """All budgets, one a row."""
    if not budgets:
        console.line("There are no budgets yet; make one with: privet ledger create NAME --epsilon 3 --delta 1e-6")
        return
    rows = [
        (
            budget.name,
            digits_up(budget.epsilon),
            digits_up(budget.delta),
            _spent(budget),
            _left(budget),
            f"{budget.active:,}",
            protected(budget.unit),
        )
        for budget in budgets
    ]
    columns = ("data set", "ε", "δ", "spent", "left as one block", "entries", "protects")
    console.show_rows(columns, rows, right=("ε", "δ", "spent", "entries"))


def show_statement(statement: Statement) -> None:
    """One budget with its entries."""
    budget = statement.budget
    console.line(f"{budget.name}: {total(budget)}", "bold green")
    console.line(f"spent {_spent(budget)}; left, as one block: {_left(budget)}")
    version = f"version {budget.version} of the data is bound" if budget.version else "no fingerprint is bound"
    console.line(f"{budget.active:,} of {budget.entries:,} entries count; {version}", "dim")
    if statement.entries:
        console.heading("Entries, the newest first")
        rows = [
            (
                entry.id,
                entry.state.value,
                entry.purpose,
                _short(brief(entry.event)),
                _charged(entry),
                entry.reserved[:16].replace("T", " ") + " UTC",
            )
            for entry in statement.entries
        ]
        console.show_rows(("id", "state", "purpose", "what", "charged as", "reserved"), rows)
    console.line()
    if explained := [text for text in (_apart(budget), _kept(budget)) if text]:
        for text in explained:
            console.line(text)
        console.line()
    if statement.planned is not None:
        console.line(
            f"ε ≤ {up(statement.planned.epsilon.upper)} at δ = {digits_up(statement.planned.delta)}: {statement.note}"
        )
    else:
        console.line(statement.note)
    console.line(f"head {budget.head}", "dim")


def show_verification(found: Verification) -> None:
    """What `verify` found."""
    for problem in found.problems:
        console.line(problem, "bold red")
    rows = counted(found.rows, "row")
    if found:
        names = ", ".join(found.budgets) or "no budgets"
        seals = "every seal was checked with the key" if found.sealed else "without a key a rewritten chain is not seen"
        console.line(f"intact: {names} ({rows}; {seals})", "bold green")
        return
    if found.unproven:
        console.line(f"not proven by the key: {', '.join(found.unproven)}", "bold red")
    if found.broken or not found.unproven:
        broken = ", ".join(found.broken) or "the ledger"
        console.line(f"broken: {broken} ({rows}); trust none of it, and restore a backup", "bold red")
    sound = [name for name in found.budgets if name not in (*found.broken, *found.unproven)]
    if sound and found.unproven:
        console.line(f"intact: {', '.join(sound)} (every seal was checked with the key)", "green")


def _spent(budget: Budget) -> str:
    """How full the order with the most room is: the next entry needs only one that has some.

    Once a plan took the budget whole, only the last order, ∞, is open.
    """
    return f"{100 * min(*(budget.used[-1:] if budget.basic else budget.used), 1.0):.1f} %"


def _left(budget: Budget) -> str:
    if budget.epsilon_left <= 0:
        return "nothing"
    return f"ε {down(budget.epsilon_left)}, δ {budget.delta_left:.3g}"


def _short(text: str) -> str:
    """An event of many parts by its beginning; --json has it whole."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _apart(budget: Budget) -> str:
    """Why what is spent and what is left do not add up to the whole; empty where they do, or nearly."""
    if not budget.active or budget.basic or budget.epsilon_left <= 0:
        return ""
    spent = min(*budget.used, 1.0)
    if abs(spent + budget.epsilon_left / budget.epsilon - 1) <= _NEARLY:
        return ""
    return (
        "Spent is counted at the Rényi order with the most room, which is where many small entries fit; a single block "
        "of (ε, δ) needs more room there, so that spent and left do not add up to 100 %."
    )


def _kept(budget: Budget) -> str:
    """Why what is left of δ is less than one would think; empty where there is nothing to explain."""
    if not budget.active or budget.delta == 0 or budget.epsilon_left <= 0:
        return ""
    if budget.basic:
        return "A plan took the whole budget with all of its δ: what is left of ε is for entries that need no δ."
    if len(budget.orders) == 1:
        return ""
    return "Blocks may take half of δ; the other half is kept for entries that are charged by their Rényi curve."


def _charged(entry: Entry) -> str:
    if entry.form is Form.BLOCK and entry.epsilon is not None:
        return f"ε {up(entry.epsilon)}, δ {up(entry.delta)}"
    return entry.form.value


def brief(value: object) -> str:
    """An event as one would write it down, without the names of its fields.

    >>> from privet.core.event import Gaussian, Repeated
    >>> brief(Repeated(Gaussian(1.1), 1000))
    'Repeated(Gaussian(1.1), 1000)'
    """
    if isinstance(value, Record):
        inside = (brief(getattr(value, field.name)) for field in fields(cast("Any", value)))
        return f"{type(value).__name__}({', '.join(inside)})"
    if isinstance(value, tuple):
        return ", ".join(brief(item) for item in value)
    if isinstance(value, Enum):
        return str(value.value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)
