"""`privet report`: show one run in full, or several side by side."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer
from rich.console import Console
from rich.text import Text

from privet.cli import console
from privet.cli.groups import command_group

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["about", "compare", "report", "show"]

_INTERNAL = "INTERNAL: computed from private rows without noise; do not share"
_UNLIMITED = 100_000
_PLOT = "Write a page with the scores against ε here; it needs no network."


def about() -> None:
    """Look at finished runs: their guarantees, their scores, and what was released under the budget.

    privet report show runs/readmission

    privet report compare runs/first runs/second --plot both.html
    """


def show(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    internal: Annotated[
        bool, typer.Option("--internal", help="Everything, also what was computed from private rows without noise.")
    ] = False,
) -> None:
    """Show a run: its guarantee, its scores, its charges, its plan, and what the guarantee means.

    privet report show runs/readmission
    """
    from privet.report import load
    from privet.report import show as render

    card = load(run, internal=internal)
    mark = [Text(_INTERNAL, style="bold red")] if internal else []
    _print(*mark, render(card), *mark)


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="The folders of runs.")],
    plot: Annotated[Path | None, typer.Option(metavar="FILE.html", help=_PLOT)] = None,
) -> None:
    """Show runs side by side: a line for each score that may be shared, and warnings about comparing them.

    privet report compare runs/first runs/second --plot both.html
    """
    from privet.report import INTERVALS, compare_page, load, name_runs, write_page
    from privet.report import compare as compare_cards

    cards = {name: load(run) for name, run in name_runs(runs).items()}
    comparison = compare_cards(cards)
    if plot is not None:
        write_page(plot, compare_page(cards))
    console.show_rows(
        comparison.head, comparison.rows, right=("ε at most", "δ", "value"), spare=("data", "method", "origin")
    )
    console.line(INTERVALS, "dim")
    if comparison.verdicts:
        console.heading("What the intervals tell")
        console.bullets(tuple(f"{verdict}." for verdict in comparison.verdicts))
    console.warnings(tuple(comparison.cautions))
    console.page_written(plot)


def _print(*parts: RenderableType) -> None:
    """Print as wide as the terminal; where the output goes to a file, no line is broken."""
    output = Console(highlight=False, emoji=False, markup=False)
    if not output.is_terminal and "COLUMNS" not in os.environ:
        output.width = _UNLIMITED
    with output.capture() as text:
        for part in parts:
            output.print(part)
    click.echo("\n".join(line.rstrip() for line in text.get().splitlines()))


report = command_group(about, show, compare)
