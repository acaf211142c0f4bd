"""Where the commands write: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NoReturn

import click
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

__all__ = [
    "after",
    "bullets",
    "heading",
    "line",
    "page_written",
    "progress_bar",
    "show_json",
    "show_rows",
    "waiting",
    "warnings",
]

_UNLIMITED = 100_000
"""Wider than any table."""


class _Console(Console):
    """Raise `BrokenPipeError` when the reader has gone, where Rich would end the process with another exit code."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def _out() -> Console:
    return _Console(highlight=False, emoji=False, markup=False)


def _err() -> Console:
    return _Console(stderr=True, highlight=False, emoji=False, markup=False)


@contextmanager
def after(done: str) -> Iterator[None]:
    """Add what was already done to an error of the output, so that a full disk or a closed pipe does not hide it."""
    try:
        yield
    except OSError as error:
        error.add_note(done)
        raise


def line(text: str = "", style: str = "") -> None:
    """Show a line or paragraph; a terminal wraps it, and in a file it is one line."""
    console = _out()
    console.print(Text(text, style=style), soft_wrap=not console.is_terminal)


def heading(text: str) -> None:
    """Show a heading, after a blank line."""
    line()
    line(text, "bold")


def bullets(items: tuple[str, ...], style: str = "") -> None:
    """Show a list; wrapped lines are indented."""
    console = _out()
    for item in items:
        if console.is_terminal:
            grid = Table.grid(padding=(0, 1))
            grid.add_row("·", Text(item, style=style))
            console.print(grid)
        else:
            line(f"· {item}", style)


def warnings(texts: tuple[str, ...]) -> None:
    """Show warnings under a heading of their own, if there are any."""
    if texts:
        heading("Warnings")
        bullets(tuple(f"{text}." for text in texts), "yellow")


def page_written(path: Path | None, content: str = "figures") -> None:
    """Say where a page is, if one was written."""
    if path is not None:
        line(f"The page with the {content} is {path}; open it in a browser.", "bold")


def show_rows(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: tuple[str, ...] = (), spare: tuple[str, ...] = ()
) -> None:
    """Show a table, as narrow as the terminal needs it, so that no word is broken.

    Args:
        columns: The names of the columns.
        rows: The cells.
        right: Columns that are aligned to the right.
        spare: Columns that are left out if the table is too wide. If it still is, cells are shown as `column: value`.
    """
    console = _out()
    for omitted in ((), spare) if spare else ((),):
        places = [place for place, column in enumerate(columns) if column not in omitted]
        table = _table([columns[place] for place in places], [[row[place] for place in places] for row in rows], right)
        width = Measurement.get(console, console.options.update(max_width=_UNLIMITED), table).maximum
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console.width = width  # whole where the output goes to a file
        if width <= console.width:
            console.print(table)
            return
    for number, row in enumerate(rows):
        if number:
            line()
        for column, value in zip(columns, row, strict=True):
            if value:
                _keyed(console, column, value)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: tuple[str, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        side: Literal["left", "right"] = "right" if column in right else "left"
        table.add_column(column, justify=side, no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _keyed(console: Console, column: str, value: str) -> None:
    folded = textwrap.TextWrapper(
        max(console.width, 1), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    for part in folded.wrap(f"{column}: {value}"):
        console.print(Text(part), soft_wrap=True)


def show_json(data: dict[str, Any]) -> None:
    """Print one JSON object, and nothing else, on stdout."""
    is_ascii = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    click.echo(json.dumps(data, indent=2, ensure_ascii=is_ascii, allow_nan=False))


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a spinner on a terminal's stderr while something of unknown length runs."""
    console = _err()
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


@contextmanager
def progress_bar(text: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal's stderr; yields `progress(done, total)`."""
    console = _err()
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(text, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
