"""Groups of commands, such as `privet ledger`: one function each, with the docstring as its help."""

from __future__ import annotations

from collections.abc import Callable

import typer

from privet.cli.taught import TaughtCommand, TaughtGroup
from privet.cli.teach import help_of

__all__ = ["command_group"]


def command_group(about: Callable[[], None], *commands: Callable[..., None]) -> typer.Typer:
    """Return a group of commands.

    Args:
        about: A function without a body, whose docstring is the help of the group.
        commands: The commands, each called by its function's name; an underscore at the end is left out.
    """
    group = typer.Typer(cls=TaughtGroup, no_args_is_help=True)
    group.callback(help=help_of(about))(about)
    for command in commands:
        group.command(command.__name__.rstrip("_"), cls=TaughtCommand, help=help_of(command))(command)
    return group
