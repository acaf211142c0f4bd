"""The tree of commands."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import click
import typer

from privet.cli.account import account
from privet.cli.attack import attack
from privet.cli.audit import audit
from privet.cli.calibrate import calibrate
from privet.cli.card import card
from privet.cli.command_types import HelpfulCommand, HelpfulGroup
from privet.cli.help_page import help_of
from privet.cli.ledger import ledger
from privet.cli.link import link
from privet.cli.mix import mix
from privet.cli.pate import pate
from privet.cli.predict import predict
from privet.cli.query import query
from privet.cli.report import report
from privet.cli.schema import schema
from privet.cli.survey import survey
from privet.cli.train import train

__all__ = ["app", "privet"]

app = typer.Typer(
    name="privet",
    cls=HelpfulGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: tuple[Callable[..., None], ...] = (train, predict, attack, audit, link, account, calibrate, query)
for _command in _COMMANDS:
    app.command(cls=HelpfulCommand, help=help_of(_command))(_command)
_GROUPS = {
    "ledger": ledger,
    "survey": survey,
    "mix": mix,
    "pate": pate,
    "schema": schema,
    "report": report,
    "card": card,
}
for _name, _group in _GROUPS.items():
    app.add_typer(_group, name=_name)


def _show_version(is_given: bool) -> None:
    if is_given:
        try:
            click.echo(f"privet {version('privet')}")
        except PackageNotFoundError:
            click.echo("privet, not installed as a package")
        raise typer.Exit


def privet(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    """Learn from data about people, with a proven bound on what the result reveals about any one of them.

    A guarantee is a pair (ε, δ): whatever an attacker sees, the odds that someone's data was used move by a factor of
    at most e^ε, but for a chance of about δ. Smaller is safer: ε = 1 is strong, and ε above 10 is weak.

    The privacy cost of a run, and what an attacker can learn:

    privet account --noise-multiplier 1.1 --sample-rate 0.01 --steps 1000 --delta 1e-5

    The noise that ε = 3 needs:

    privet calibrate --epsilon 3 --delta 1e-5 --sample-rate 0.01 --steps 1000

    A budget for everything that is released about a data set:

    privet ledger create clinic --epsilon 3 --delta 1e-6
    """


app.callback(help=help_of(privet))(privet)
