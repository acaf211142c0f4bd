"""Options that several commands share, and the words of the shell for the library's enums."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import click
import typer
from click.core import ParameterSource

from privet.cli.numbers import WHOLE
from privet.core.errors import InvalidInput
from privet.core.unit import Neighbours, Unit, Whose

__all__ = [
    "DEFAULT_LEDGER",
    "AccountantWord",
    "AsJson",
    "BatchSize",
    "Budget",
    "DefaultDelta",
    "Delta",
    "Epochs",
    "FindWord",
    "KeyFile",
    "LedgerLocation",
    "MechanismWord",
    "NeighboursOption",
    "NeighboursWord",
    "NoiseMultiplier",
    "Population",
    "Records",
    "SampleRate",
    "SamplingOption",
    "SamplingWord",
    "Steps",
    "Wait",
    "WhoseOption",
    "WhoseWord",
    "require_budget",
    "unit_of",
]


class SamplingWord(StrEnum):
    """How the rows of a step are chosen, in the shell's words."""

    POISSON = "poisson"
    WITHOUT_REPLACEMENT = "without-replacement"
    WITH_REPLACEMENT = "with-replacement"
    SHUFFLED = "shuffled"
    INDEPENDENT_BATCHES = "independent-batches"
    NONE = "none"


class NeighboursWord(StrEnum):
    """Which data sets count as neighbours, in the shell's words."""

    ADD_REMOVE = "add/remove"
    ZERO_OUT = "zero-out"
    REPLACE = "replace"


class WhoseWord(StrEnum):
    """Whose data is protected, in the shell's words."""

    EXAMPLE = "example"
    USER = "user"
    CLIENT = "client"


class FindWord(StrEnum):
    """What to solve for, in the shell's words."""

    NOISE = "noise"
    RATE = "rate"
    STEPS = "steps"


class MechanismWord(StrEnum):
    """What adds the noise to some answers, in the shell's words."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    RANDOMIZED_RESPONSE = "randomized-response"


class AccountantWord(StrEnum):
    """The accountants, in the shell's words."""

    PLD = "pld"
    RENYI = "renyi"
    ZCDP = "zcdp"
    GDP = "gdp"
    ADVANCED = "advanced"
    BASIC = "basic"


_RUN, _UNIT, _OUTPUT, _PAYMENT = "The run", "Who is protected", "Output", "Privacy budget"

DEFAULT_LEDGER = "privet-ledger.db"
"""Where the ledger is unless `--ledger` or PRIVET_LEDGER says otherwise."""
_FILE_NAMES = (".db", ".sqlite")

Budget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="NAME",
        help="The budget to charge, by its name in the ledger; it is charged before any row is read.",
        rich_help_panel=_PAYMENT,
    ),
]
LedgerLocation = Annotated[
    str,
    typer.Option(
        "--ledger",
        envvar="PRIVET_LEDGER",
        metavar="FILE|URL",
        help="The ledger: a file, or a URL such as postgresql://user@host/database.",
        rich_help_panel=_PAYMENT,
    ),
]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        envvar="PRIVET_LEDGER_KEY_FILE",
        metavar="FILE",
        help="A key, kept away from the database, that seals every entry.",
        rich_help_panel=_PAYMENT,
    ),
]
Wait = Annotated[
    float,
    typer.Option(metavar="SECONDS", help="How long to wait for other processes.", rich_help_panel=_PAYMENT),
]

NoiseMultiplier = Annotated[
    float | None,
    typer.Option(help="Standard deviation of the noise over the clip, such as 1.1.", rich_help_panel=_RUN),
]
SampleRate = Annotated[
    float | None,
    typer.Option(help="The chance of each row to be in a batch; or give the next two.", rich_help_panel=_RUN),
]
BatchSize = Annotated[
    int | None,
    typer.Option(click_type=WHOLE, help="Rows in a batch (on average, for poisson).", rich_help_panel=_RUN),
]
Population = Annotated[
    int | None,
    typer.Option(
        click_type=WHOLE, help="How many rows there are; must be public to be used here.", rich_help_panel=_RUN
    ),
]
Epochs = Annotated[
    float | None, typer.Option(help="Passes over the data; a broken step is counted whole.", rich_help_panel=_RUN)
]
Steps = Annotated[
    int | None, typer.Option(click_type=WHOLE, help="Noisy updates, in place of --epochs.", rich_help_panel=_RUN)
]
SamplingOption = Annotated[
    SamplingWord,
    typer.Option("--sampling", help="How batches are really drawn; shuffling is not poisson.", rich_help_panel=_RUN),
]
DefaultDelta = Annotated[
    float | None, typer.Option(help="The δ; by default 1/(10 n), rounded down to one digit, for n reports.")
]
Delta = Annotated[float, typer.Option(help="The δ of the guarantee: far below 1/n, such as 1e-5.")]
NeighboursOption = Annotated[
    NeighboursWord,
    typer.Option("--neighbours", help="What may change for one person.", rich_help_panel=_UNIT),
]
WhoseOption = Annotated[
    WhoseWord | None,
    typer.Option("--whose", help="Whose data; example, or user with --records.", rich_help_panel=_UNIT),
]
Records = Annotated[
    int,
    typer.Option(
        click_type=WHOLE, help="Records that one person may own, at most (group privacy).", rich_help_panel=_UNIT
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.", rich_help_panel=_OUTPUT)
]


def require_budget(budget: str | None, ledger: str) -> None:
    """Check that `--budget` is a budget's name, and that `--ledger` is not given one, which it once took.

    Args:
        budget: The value of `--budget`.
        ledger: The value of `--ledger`. A default or a variable of the environment is not checked.

    Raises:
        InvalidInput: One of them holds what belongs to the other, or `--ledger` is given alone.
    """
    if budget is not None:
        if _is_location(budget):
            problem = f"is {budget!r}, a database, and the name of a budget is wanted"
            raise InvalidInput("budget", problem, f"write: --ledger {budget} --budget NAME")
        return
    context = click.get_current_context(silent=True)
    if context is None or context.get_parameter_source("ledger") is not ParameterSource.COMMANDLINE:
        return
    if _is_location(ledger):
        raise InvalidInput("ledger", "is given without a budget, and nothing would be charged", "add: --budget NAME")
    problem = f"is {ledger!r}, and now names the ledger's file or URL"
    raise InvalidInput("ledger", problem, f"to charge that budget, write: --budget {ledger}")


def _is_location(text: str) -> bool:
    return "://" in text or text.endswith(_FILE_NAMES) or Path(text).is_file()


def unit_of(neighbours: NeighboursWord, whose: WhoseWord | None, records: int) -> Unit:
    """Return the unit that the options describe; several records belong to a user unless `--whose` says otherwise."""
    usual = WhoseWord.EXAMPLE if records == 1 else WhoseWord.USER
    if whose is WhoseWord.EXAMPLE and records > 1:
        problem = f"is example, and one example is one record, not {records:,}"
        raise InvalidInput("whose", problem, "say whose the records are: user or client; or leave --records out")
    return Unit(Whose((whose or usual).value), Neighbours(neighbours.value), records=records)
