"""Options that several commands share, and the words of the shell for the library's enums."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import click
import typer
from click.core import ParameterSource

from privet.cli.numbers import WHOLE
from privet.core import InvalidInput, Neighbours, Unit, Whose

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
    "option",
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


DEFAULT_LEDGER = "privet-ledger.db"
"""Where the ledger is unless `--ledger` or PRIVET_LEDGER says otherwise."""
_FILE_NAMES = (".db", ".sqlite")
_RUN, _UNIT, _OUTPUT, _PAYMENT = "The run", "Who is protected", "Output", "Privacy budget"


def option(
    panel: str | None, text: str, *names: str, whole: bool = False, metavar: str | None = None, env: str | None = None
) -> Any:
    """Return an option of a command.

    Args:
        panel: The title under which the help lists it.
        text: Its help.
        names: Where they differ from the argument's.
        whole: Whether it takes a whole number, as people write them.
        metavar: What the help calls its value.
        env: The variable of the environment that gives a default.
    """
    kind = WHOLE if whole else None
    return typer.Option(*names, help=text, rich_help_panel=panel, click_type=kind, metavar=metavar, envvar=env)


_BUDGET = "The budget to charge, by its name in the ledger; it is charged before any row is read."
_LEDGER = "The ledger: a file, or a URL such as postgresql://user@host/database."
_KEY = "A key, stored away from the database, that seals every entry."
_NOISE = "Standard deviation of the noise over the clip, such as 1.1."
_RATE = "The probability of each row to be in a batch; or give the next two."
_POPULATION = "How many rows there are; must be public to be used here."
_SAMPLING = "How batches are really drawn; shuffling is not poisson."
_DEFAULT_DELTA = "The δ; by default 1/(10 n), rounded down to one digit, for n reports."
_RECORDS = "Records that one person may own, at most (group privacy)."

Budget = Annotated[str | None, option(_PAYMENT, _BUDGET, "--budget", metavar="NAME")]
LedgerLocation = Annotated[str, option(_PAYMENT, _LEDGER, "--ledger", metavar="FILE|URL", env="PRIVET_LEDGER")]
KeyFile = Annotated[Path | None, option(_PAYMENT, _KEY, metavar="FILE", env="PRIVET_LEDGER_KEY_FILE")]
Wait = Annotated[float, option(_PAYMENT, "How long to wait for other processes.", metavar="SECONDS")]
NoiseMultiplier = Annotated[float | None, option(_RUN, _NOISE)]
SampleRate = Annotated[float | None, option(_RUN, _RATE)]
BatchSize = Annotated[int | None, option(_RUN, "Rows in a batch (on average, for poisson).", whole=True)]
Population = Annotated[int | None, option(_RUN, _POPULATION, whole=True)]
Epochs = Annotated[float | None, option(_RUN, "Passes over the data; a partial step is counted whole.")]
Steps = Annotated[int | None, option(_RUN, "Noisy updates, in place of --epochs.", whole=True)]
SamplingOption = Annotated[SamplingWord, option(_RUN, _SAMPLING, "--sampling")]
DefaultDelta = Annotated[float | None, option(None, _DEFAULT_DELTA)]
Delta = Annotated[float, option(None, "The δ of the guarantee: far below 1/n, such as 1e-5.")]
NeighboursOption = Annotated[NeighboursWord, option(_UNIT, "What may change for one person.", "--neighbours")]
WhoseOption = Annotated[Whose | None, option(_UNIT, "Whose data; example, or user with --records.", "--whose")]
Records = Annotated[int, option(_UNIT, _RECORDS, whole=True)]
AsJson = Annotated[bool, option(_OUTPUT, "Print one JSON object and nothing else.", "--json")]


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


def unit_of(neighbours: NeighboursWord, whose: Whose | None, records: int) -> Unit:
    """Return the unit that the options describe; several records belong to a user unless `--whose` says otherwise."""
    usual = Whose.EXAMPLE if records == 1 else Whose.USER
    if whose is Whose.EXAMPLE and records > 1:
        problem = f"is example, and one example is one record, not {records:,}"
        raise InvalidInput("whose", problem, "say whose the records are: user or client; or leave --records out")
    return Unit(whose or usual, Neighbours(neighbours.value), records=records)
