"""Where the commands write: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NoReturn

import click
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

__all__ = ["after", "bullets", "heading", "line", "progress_bar", "show_json", "show_rows", "waiting", "warnings"]

_ENDLESS = 100_000
"""Wider than any table."""


class _Console(Console):
    """Says that its reader has gone, where Rich would end the process, with the exit code of something else."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def _out() -> Console:
    return _Console(highlight=False, emoji=False, markup=False)


def _err() -> Console:
    return _Console(stderr=True, highlight=False, emoji=False, markup=False)


@contextmanager
def after(done: str) -> Iterator[None]:
    """What is written here tells of something that was done: an output that fails must not hide it."""
    try:
        yield
    except OSError as error:
        error.add_note(done)
        raise


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


def warnings(texts: tuple[str, ...]) -> None:
    """Show warnings under a heading of their own, if there are any."""
    if texts:
        heading("Warnings")
        bullets(tuple(f"{text}." for text in texts), "yellow")


def show_rows(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: tuple[str, ...] = (), spare: tuple[str, ...] = ()
) -> None:
    """A table, with numbers in the columns in `right`; where it is too wide, without the columns in `spare`, and where
    it is too wide still, one `column: value` a line, so that no word is broken."""
    console = _out()
    for left_out in ((), spare) if spare else ((),):
        kept = [i for i, column in enumerate(columns) if column not in left_out]
        made = _table([columns[i] for i in kept], [[row[i] for i in kept] for row in rows], right)
        wide = Measurement.get(console, console.options.update(max_width=_ENDLESS), made).maximum
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console.width = wide  # whole where the output goes to a file
        if wide <= console.width:
            console.print(made)
            return
    for number, row in enumerate(rows):
        if number:
            line()
        for column, value in zip(columns, row, strict=True):
            if value:
                _keyed(console, column, value)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: tuple[str, ...]) -> Table:
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        side: Literal["left", "right"] = "right" if column in right else "left"
        made.add_column(column, justify=side, no_wrap=True)
    for row in rows:
        made.add_row(*map(Text, row))
    return made


def _keyed(console: Console, column: str, value: str) -> None:
    folded = textwrap.TextWrapper(
        max(console.width, 1), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    for part in folded.wrap(f"{column}: {value}"):
        console.print(Text(part), soft_wrap=True)


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
