"""`privet report`: runs that were made, one in full or several side by side."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer
from rich.console import Console
from rich.text import Text

from privet.cli import console
from privet.cli.taught import TaughtCommand, TaughtGroup
from privet.cli.teach import help_of
from privet.core.errors import InvalidInput

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["about", "compare", "report", "show"]

report = typer.Typer(cls=TaughtGroup, no_args_is_help=True)

_INTERNAL = "INTERNAL: computed from private rows and not paid for; do not share"
_ENDLESS = 100_000
_PLOT = "Write a page with the scores against ε here; it needs no network."


def about() -> None:
    """Look at runs that were made: their guarantees, their scores, and what was paid for.

    privet report show runs/readmission

    privet report compare runs/first runs/second --plot both.html
    """


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    internal: Annotated[
        bool, typer.Option("--internal", help="Everything, also what touches private rows and was not paid for.")
    ] = False,
) -> None:
    """Show a run: its guarantee, its scores, what was paid for, its plan, and what the guarantee means.

    privet report show runs/readmission
    """
    from privet.report import load
    from privet.report import show as shown

    card = load(run, internal=internal)
    marked = [Text(_INTERNAL, style="bold red")] if internal else []
    _print(*marked, shown(card), *marked)


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="The folders of runs.")],
    plot: Annotated[Path | None, typer.Option(metavar="FILE.html", help=_PLOT)] = None,
) -> None:
    """Show runs side by side: a line for each score that may be shared, and what to beware of in comparing them.

    privet report compare runs/first runs/second --plot both.html
    """
    from privet.report import compare as compared
    from privet.report import compare_page, load, write_page
    from privet.report.origin import INTERVALS

    cards = {name: load(run) for name, run in _named(runs).items()}
    found = compared(cards)
    if plot is not None:
        write_page(plot, compare_page(cards))
    console.show_rows(found.head, found.rows, right=("ε at most", "δ", "value"), spare=("data", "method", "origin"))
    console.line(INTERVALS, "dim")
    if found.verdicts:
        console.heading("What the intervals tell")
        console.bullets(tuple(f"{verdict}." for verdict in found.verdicts))
    if found.cautions:
        console.heading("Beware")
        console.bullets(tuple(f"{caution}." for caution in found.cautions), "yellow")
    if plot is not None:
        console.line(f"The page with the figures is {plot}; open it in a browser.", "bold")


def _named(runs: list[Path]) -> dict[str, Path]:
    """Each run by the end of its path, as much of it as tells it from the others: a page need not show where all of
    them lie."""
    places = [run.resolve() for run in runs]
    if len(set(places)) < len(places):
        raise InvalidInput("runs", "name one folder twice", "name each once")
    for parts in range(1, max(len(place.parts) for place in places) + 1):
        names = ["/".join(place.parts[-parts:]) for place in places]
        if len(set(names)) == len(names):
            break
    return dict(zip(names, runs, strict=True))


def _print(*shown: RenderableType) -> None:
    """As wide as the terminal; where the output goes to a file, no line is broken."""
    made = Console(highlight=False, emoji=False, markup=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _ENDLESS
    with made.capture() as text:
        for each in shown:
            made.print(each)
    click.echo("\n".join(line.rstrip() for line in text.get().splitlines()))


report.callback(help=help_of(about))(about)
for _command in (show, compare):
    report.command(_command.__name__, cls=TaughtCommand, help=help_of(_command))(_command)
