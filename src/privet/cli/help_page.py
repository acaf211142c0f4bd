"""Render `--help`: examples that can be pasted, and names that no narrow terminal breaks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import click
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

__all__ = ["continued", "help_of", "help_page", "is_example"]

_WIDEST = 100
"""Lines longer than this are hard to read, however wide the terminal is."""
_BESIDE = 76
"""From this width on an option's words stand beside it, and below it otherwise."""
_CONTINUED, _DEEPER = " \\", "    "


def help_page(command: click.Command, ctx: click.Context) -> str:
    """Return the help of a command, formatted for this terminal."""
    console = Console(highlight=False, emoji=False, markup=False)
    console.width = min(console.width, _WIDEST)
    with console.capture() as output:
        console.print(Text(command.get_usage(ctx), style="bold"))
        for paragraph in (command.help or "").split("\n\n"):
            console.print()
            _say(console, paragraph)
        console.print()
        for title, rows in _panels(command, ctx).items():
            body = _beside(rows) if console.width >= _BESIDE else _below(rows)
            console.print(Panel(body, title=title, title_align="left", border_style="dim", box=box.ROUNDED))
    return "\n".join(line.rstrip() for line in output.get().splitlines())


def _say(console: Console, paragraph: str) -> None:
    if not is_example(paragraph):
        console.print(Text(paragraph))
        return
    # Rich would break lines anywhere, and fill them with blanks, which must not follow a backslash.
    for line in continued(paragraph, console.width - 2):
        console.print(Text(f"  {line}", style="cyan"), soft_wrap=True)


_Row = tuple[Text, Text]


def _panels(command: click.Command, ctx: click.Context) -> dict[str, list[_Row]]:
    """Return the (name, description) rows under each title."""
    visible = [parameter for parameter in command.get_params(ctx) if not getattr(parameter, "hidden", False)]
    arguments = [_argument(parameter) for parameter in visible if isinstance(parameter, click.Argument)]
    panels: dict[str, list[_Row]] = {"Arguments": arguments, "Options": []}
    for parameter in visible:
        if isinstance(parameter, click.Option):
            title = getattr(parameter, "rich_help_panel", None) or "Options"
            panels.setdefault(title, []).append(_option(parameter, ctx))
    below = command.commands if isinstance(command, click.Group) else {}
    panels["Commands"] = [
        (Text(name, style="bold cyan"), Text((other.help or "").partition("\n\n")[0])) for name, other in below.items()
    ]
    return {title: rows for title, rows in panels.items() if rows}


def _argument(argument: click.Argument) -> _Row:
    words = Text(getattr(argument, "help", None) or "")
    if argument.required:
        words.append(" [required]", style="red")
    return Text(argument.human_readable_name, style="bold cyan"), words


def _option(option: click.Option, ctx: click.Context) -> _Row:
    # Click keeps the names of --help in a set, which has another order in every process.
    names = sorted(option.opts, key=lambda name: not name.startswith("--"))
    name = Text(", ".join(names), style="bold cyan")
    if not option.is_flag:
        name.append(f" {_metavar(option)}", style="yellow")
    words = Text(option.help or "")
    if isinstance(option.type, click.Choice):
        # As words of a sentence, which is broken between them: a list of choices in one piece would be cut anywhere.
        words.append(f" One of: {', '.join(map(str, option.type.choices))}.")
    if option.show_envvar and isinstance(option.envvar, str):
        words.append(f" [variable: {option.envvar}]", style="dim")
    default = option.get_default(ctx, call=False)
    if option.required:
        words.append(" [required]", style="red")
    elif not option.is_flag and isinstance(default, (str, int, float)):
        words.append(
            f" [default: {default:g}]" if isinstance(default, float) else f" [default: {default}]", style="dim"
        )
    return name, words


def _metavar(option: click.Option) -> str:
    return option.metavar or ("WORD" if isinstance(option.type, click.Choice) else option.type.name.upper())


def _beside(rows: list[_Row]) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, words in rows:
        grid.add_row(name, words)
    return grid


def _below(rows: list[_Row]) -> RenderableType:
    return Group(*(part for name, words in rows for part in (name, Padding(words, (0, 0, 0, 4)))))


def help_of(command: Callable[..., object]) -> str:
    """A function's docstring for `--help`: one line a paragraph; one that begins with `privet ` is an example.

    >>> def greet() -> None:
    ...     '''Say hello,
    ...     in one line.
    ...
    ...     privet greet
    ...     '''
    >>> help_of(greet).split(chr(10))
    ['Say hello, in one line.', '', 'privet greet']
    """
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(command.__doc__ or "").split("\n\n"))


def is_example(paragraph: str) -> bool:
    """Whether a paragraph of help is a command to copy."""
    return paragraph.startswith("privet ")


def continued(example: str, width: int) -> list[str]:
    r"""A command in lines of at most `width`, broken before options, so that it can be pasted as it is shown.

    A backslash must be the last character of its line: with a blank after it, a shell would not continue the command.

    >>> continued("privet greet --name Ada --loud", 24)
    ['privet greet \\', '    --name Ada --loud']
    """
    lines, line = [], ""
    for part in re.split(r" (?=--)", example):
        longer = f"{line} {part}" if line.strip() else line + part
        if line.strip() and len(longer) + len(_CONTINUED) > width:
            lines.append(line + _CONTINUED)
            longer = _DEEPER + part
        line = longer
    return [*lines, line]
