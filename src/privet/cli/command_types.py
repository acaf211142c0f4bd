"""Commands with the help of `help_page`, and one line that names everything that is missing."""

from __future__ import annotations

import click
from click.core import ParameterSource
from typer.core import TyperCommand, TyperGroup

from privet.cli.help_page import help_page, is_example
from privet.cli.missing import NEEDS, MissingOptions

__all__ = ["HelpfulCommand", "HelpfulGroup"]

_TYPED = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


class HelpfulCommand(TyperCommand):
    """A command with the house's help, which says at once all that it lacks."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(help_page(self, ctx))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            rest = super().parse_args(ctx, args)
        except click.MissingParameter:
            # What was typed is read first, so that by now it is all known.
            self._require_all(ctx)
            raise
        if not ctx.resilient_parsing:
            self._require_all(ctx)
        return rest

    def _require_all(self, ctx: click.Context) -> None:
        typed = {name: value for name, value in ctx.params.items() if ctx.get_parameter_source(name) in _TYPED}
        lacking = [
            _called(parameter) for parameter in self.params if parameter.required and parameter.name not in typed
        ]
        example = next(filter(is_example, (self.help or "").split("\n\n")), "")
        if self.name in NEEDS:
            more, example = NEEDS[self.name](typed)
            lacking += more
        if lacking:
            raise MissingOptions(tuple(lacking), example, ctx)


def _called(parameter: click.Parameter) -> str:
    return parameter.human_readable_name if isinstance(parameter, click.Argument) else parameter.opts[0]


class HelpfulGroup(TyperGroup):
    """A group with the house's help, which is also what it says when nothing is typed."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(help_page(self, ctx))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            # Versions of click differ in how they do this, and in the exit code.
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()
        return super().parse_args(ctx, args)
