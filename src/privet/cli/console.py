"""Where the commands write: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

__all__ = ["bullets", "heading", "line", "progress_bar", "show_json", "show_table", "table", "waiting"]


def _out() -> Console:
    return Console(highlight=False, emoji=False, markup=False)


def _err() -> Console:
    return Console(stderr=True, highlight=False, emoji=False, markup=False)


def line(text: str = "", style: str = "") -> None:
    """One line, or a paragraph that a terminal may wrap; whole where the output goes to a file."""
    console = _out()
    console.print(Text(text, style=style), soft_wrap=not console.is_terminal)


def heading(text: str) -> None:
    """A heading with a blank line before it."""
    line()
    line(text, "bold")


def bullets(items: tuple[str, ...], style: str = "") -> None:
    """A list, with wrapped lines under their own beginning."""
    console = _out()
    for item in items:
        if console.is_terminal:
            grid = Table.grid(padding=(0, 1))
            grid.add_row("·", Text(item, style=style))
            console.print(grid)
        else:
            line(f"· {item}", style)


def table(*columns: str, right: tuple[str, ...] = (), whole: tuple[str, ...] = ()) -> Table:
    """An empty table in the house's style; the columns in `right` hold numbers, those in `whole` what is copied."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        side: Literal["left", "right"] = "right" if column in right else "left"
        made.add_column(column, justify=side, overflow="fold", no_wrap=column in whole)
    return made


def show_table(made: Table) -> None:
    """Print a table."""
    _out().print(made)


def show_json(data: dict[str, Any]) -> None:
    """One JSON object and nothing else on stdout."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    click.echo(json.dumps(data, indent=2, ensure_ascii=plain, allow_nan=False))


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """A sign of life on a terminal's stderr while something of unknown length is done."""
    console = _err()
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


@contextmanager
def progress_bar(text: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal's stderr, gone when the work is done; gives `progress(done, total)`."""
    console = _err()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
