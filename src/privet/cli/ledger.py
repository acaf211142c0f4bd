"""`privet ledger`: budgets, their entries, and whether anybody changed them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privet.cli import console
from privet.cli.exit_codes import FAILED
from privet.cli.groups import command_group
from privet.cli.numbers import WHOLE
from privet.cli.options import (
    DEFAULT_LEDGER,
    AsJson,
    KeyFile,
    LedgerLocation,
    NeighboursOption,
    NeighboursWord,
    Records,
    Wait,
    WhoseOption,
    unit_of,
)
from privet.core import VERSION, encode
from privet.ledger import opened

if TYPE_CHECKING:
    from privet.core import Record

__all__ = ["about", "bind", "create", "ledger", "list_", "release", "show", "verify"]

_FINGERPRINT = "The data set's file: its keyed fingerprint is stored, and other data is refused."
_Name = Annotated[str, typer.Argument(help="The data set that the budget is for.")]
_ENTRY = "An entry's id, or its first 6 characters or more; see: privet ledger show NAME --open"
_MOST_ENTRIES = 2**31
"""More than a ledger can hold, and no more than a database can count to."""


def about() -> None:
    """Manage privacy budgets: releases are charged before noise is drawn, and refused once the budget is spent.

    A budget for a year of questions about one data set, and how much of it is left:

    privet ledger create clinic --epsilon 3 --delta 1e-6

    privet ledger show clinic
    """


def _document(command: str, name: str, value: Record | tuple[Record, ...]) -> dict[str, Any]:
    return {"privet": VERSION, "command": f"ledger {command}", name: encode(value)}


def create(
    name: _Name,
    epsilon: Annotated[float, typer.Option(help="The ε of everything that is ever released, together.")],
    delta: Annotated[float, typer.Option(help="The δ of everything together: far below 1/n.")],
    neighbours: NeighboursOption = NeighboursWord.ADD_REMOVE,
    whose: WhoseOption = None,
    records: Records = 1,
    fingerprint_of: Annotated[Path | None, typer.Option(metavar="FILE", help=_FINGERPRINT)] = None,
    ledger: LedgerLocation = DEFAULT_LEDGER,
    key_file: KeyFile = None,
    wait: Wait = 60.0,
) -> None:
    """Create a budget for a data set. It cannot be changed, or created a second time.

    privet ledger create clinic --epsilon 3 --delta 1e-6 --fingerprint-of patients.csv
    """
    from privet.cli.ledger_view import total
    from privet.ledger import fingerprint_of as read
    from privet.report import weaknesses

    unit = unit_of(neighbours, whose, records)
    fingerprint = read(fingerprint_of) if fingerprint_of is not None else None
    with opened(ledger, key_file, wait) as book:
        budget = book.create(name, epsilon=epsilon, delta=delta, unit=unit, fingerprint=fingerprint)
    weak = weaknesses(budget.epsilon, budget.delta, budget.unit)
    with console.after(f"the budget for {budget.name!r} was made"):
        console.line(f"{budget.name}: {total(budget)}", "bold yellow" if weak else "bold green")
        console.line(
            f"privet train and privet query charge it with --budget {shlex.quote(budget.name)}; "
            f"Python, with privet.Ledger(...).reserve({budget.name!r}, event)."
        )
        console.line(f"head {budget.head}", "dim")
        unchanged = "a budget cannot be changed: if this is not what was meant, use another one, and never this one"
        console.warnings((*weak, unchanged) if weak else ())


def list_(
    ledger: LedgerLocation = DEFAULT_LEDGER, key_file: KeyFile = None, wait: Wait = 60.0, as_json: AsJson = False
) -> None:
    """List all budgets and how full they are.

    privet ledger list --ledger clinic.db
    """
    from privet.cli.ledger_view import show_budgets

    with opened(ledger, key_file, wait) as book:
        budgets = book.list()
    if as_json:
        console.show_json(_document("list", "budgets", budgets))
    else:
        show_budgets(budgets)


def show(
    name: _Name,
    last: Annotated[int, typer.Option(click_type=WHOLE, help="How many entries to show, the newest first.")] = 20,
    open_only: Annotated[bool, typer.Option("--open", help="Only entries that are reserved or drawing.")] = False,
    ledger: LedgerLocation = DEFAULT_LEDGER,
    key_file: KeyFile = None,
    wait: Wait = 60.0,
    as_json: AsJson = False,
) -> None:
    """Show one budget: what is spent and left, its entries, and the head of its hash chain.

    Also shows the privacy cost of the whole history had it been planned in advance. That is not a guarantee: the
    guarantee is the budget's own (ε, δ).

    privet ledger show clinic --open
    """
    from privet.cli.ledger_view import show_statement

    with opened(ledger, key_file, wait) as book, console.waiting("Reading the history …"):
        statement = book.show(name, last=min(last, _MOST_ENTRIES), open_only=open_only)
    if as_json:
        console.show_json(_document("show", "statement", statement))
    else:
        show_statement(statement)


def verify(
    name: Annotated[str | None, typer.Argument(help="One data set; all of them, if left out.")] = None,
    head: Annotated[str | None, typer.Option(help="A head from a card: finds a tail that was cut off.")] = None,
    ledger: LedgerLocation = DEFAULT_LEDGER,
    key_file: KeyFile = None,
    wait: Wait = 60.0,
    as_json: AsJson = False,
) -> None:
    """Recompute every hash chain, and find entries that were edited, dropped or reordered. Exit code 1 if any.

    privet ledger verify clinic --head 12:9f…e1
    """
    from privet.cli.ledger_view import show_verification

    with opened(ledger, key_file, wait) as book, console.waiting("Recomputing the chain …"):
        verification = book.verify(name, head=head)
    if as_json:
        console.show_json(_document("verify", "verification", verification) | {"intact": bool(verification)})
    else:
        show_verification(verification)
    if not verification:
        raise typer.Exit(FAILED)


def release(
    id_: Annotated[str, typer.Argument(metavar="ID", help=_ENTRY)],
    ledger: LedgerLocation = DEFAULT_LEDGER,
    key_file: KeyFile = None,
    wait: Wait = 60.0,
) -> None:
    """Give back a reservation that nobody will use. Refused once noise may have been drawn.

    privet ledger release 3f2a9c
    """
    with opened(ledger, key_file, wait) as book:
        entry = book.release(id_)
    with console.after(f"the entry {entry.id} was given back"):
        console.line(f"{entry.id} of {entry.budget} is {entry.state.value}; nothing of it counts now", "bold green")


def bind(
    name: _Name,
    fingerprint_of: Annotated[Path, typer.Option(metavar="FILE", help="The new version of the data set.")],
    note: Annotated[str, typer.Option(help="Why this is the same data set, in a few words; it is stored.")],
    ledger: LedgerLocation = DEFAULT_LEDGER,
    key_file: KeyFile = None,
    wait: Wait = 60.0,
) -> None:
    """State that a file is a new version of a budget's data set. The budget stays the same; nothing is refunded.

    privet ledger bind clinic --fingerprint-of patients-2.csv --note "June's corrections"
    """
    from privet.ledger import fingerprint_of as read

    with opened(ledger, key_file, wait) as book:
        budget = book.bind(name, read(fingerprint_of), note=note)
    with console.after(f"version {budget.version} of {budget.name!r} was bound"):
        console.line(f"{budget.name}: version {budget.version} is bound to the same budget", "bold green")
        console.line(f"head {budget.head}", "dim")


ledger = command_group(about, create, list_, show, verify, release, bind)
