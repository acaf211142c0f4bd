"""How budgets, their entries and their verification look on a terminal."""

from __future__ import annotations

from privet.cli import console
from privet.core import digits_up
from privet.ledger import Budget, Entry, Form, Statement, Verification
from privet.report import counted, down, event_text, protected, up

__all__ = ["show_budgets", "show_statement", "show_verification", "total"]

_LONGEST = 300
"""Letters of an event in a table."""


def total(budget: Budget) -> str:
    """Return the (ε, δ) and the unit of a budget, in words."""
    return f"ε = {digits_up(budget.epsilon)}, δ = {digits_up(budget.delta)} for {protected(budget.unit)}"


def show_budgets(budgets: tuple[Budget, ...]) -> None:
    """Show all budgets, one a row."""
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
    """Show one budget with its entries."""
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
                _event(entry),
                _charged(entry),
                entry.reserved[:16].replace("T", " ") + " UTC",
            )
            for entry in statement.entries
        ]
        console.show_rows(("id", "state", "purpose", "what", "charged as", "reserved"), rows)
    console.line()
    for remark in budget.remarks:
        console.line(remark)
    if budget.remarks:
        console.line()
    if statement.planned is not None:
        console.line(
            f"ε ≤ {up(statement.planned.epsilon.upper)} at δ = {digits_up(statement.planned.delta)}: {statement.note}"
        )
    else:
        console.line(statement.note)
    console.line(f"head {budget.head}", "dim")


def show_verification(verification: Verification) -> None:
    """Show the result of `verify`."""
    for problem in verification.problems:
        console.line(problem, "bold red")
    rows = counted(verification.rows, "row")
    if verification:
        names = ", ".join(verification.budgets) or "no budgets"
        seals = (
            "every seal was checked with the key"
            if verification.sealed
            else "without a key a rewritten chain is not seen"
        )
        console.line(f"intact: {names} ({rows}; {seals})", "bold green")
        return
    if verification.unproven:
        console.line(f"not proven by the key: {', '.join(verification.unproven)}", "bold red")
    if verification.broken or not verification.unproven:
        broken = ", ".join(verification.broken) or "the ledger"
        console.line(f"broken: {broken} ({rows}); trust none of it, and restore a backup", "bold red")
    sound = [name for name in verification.budgets if name not in (*verification.broken, *verification.unproven)]
    if sound and verification.unproven:
        console.line(f"intact: {', '.join(sound)} (every seal was checked with the key)", "green")


def _spent(budget: Budget) -> str:
    return f"{100 * budget.spent:.1f} %"


def _left(budget: Budget) -> str:
    if budget.epsilon_left <= 0:
        return "nothing"
    return f"ε {down(budget.epsilon_left)}, δ {budget.delta_left:.3g}"


def _event(entry: Entry) -> str:
    """Return an entry's event, or the beginning of a long one; --json has it whole."""
    text = event_text(entry.event)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _charged(entry: Entry) -> str:
    if entry.form is Form.BLOCK and entry.epsilon is not None:
        return f"ε {up(entry.epsilon)}, δ {up(entry.delta)}"
    return entry.form.value
