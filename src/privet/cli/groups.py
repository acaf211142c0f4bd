"""Groups of commands, such as `privet ledger`: one function each, with the docstring as its help."""

from __future__ import annotations

from collections.abc import Callable

import typer

from privet.cli.command_types import HelpfulCommand, HelpfulGroup
from privet.cli.help_page import help_of

__all__ = ["command_group"]


def command_group(
    about: Callable[[], None], *commands: Callable[..., None], kind: type[HelpfulGroup] = HelpfulGroup
) -> typer.Typer:
    """Return a group of commands.

    Args:
        about: A function without a body, whose docstring is the help of the group.
        commands: The commands, each called by its function's name; an underscore at the end is left out.
        kind: How the group reads its arguments.
    """
    group = typer.Typer(cls=kind, no_args_is_help=True)
    group.callback(help=help_of(about))(about)
    for command in commands:
        group.command(command.__name__.rstrip("_"), cls=HelpfulCommand, help=help_of(command))(command)
    return group
