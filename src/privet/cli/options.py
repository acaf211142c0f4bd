"""The options that several commands share, and the shell's words for the library's enums."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli.numbers import WHOLE
from privet.core.errors import InvalidInput
from privet.core.unit import Neighbours, Unit, Whose

if TYPE_CHECKING:
    from privet.accounting import Accountant

__all__ = [
    "AccountantWord",
    "AsJson",
    "BatchSize",
    "DefaultDelta",
    "Delta",
    "Epochs",
    "FindWord",
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
    "WhoseOption",
    "WhoseWord",
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
    """What is left out, in the shell's words."""

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

    @property
    def meant(self) -> Accountant:
        """The accountant itself."""
        from privet.accounting import Accountant

        return Accountant(self.value)


_RUN, _UNIT, _OUTPUT = "The run", "Who is protected", "Output"

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


def unit_of(neighbours: NeighboursWord, whose: WhoseWord | None, records: int) -> Unit:
    """The unit that the words describe; several records belong to a user unless it is said otherwise."""
    usual = WhoseWord.EXAMPLE if records == 1 else WhoseWord.USER
    if whose is WhoseWord.EXAMPLE and records > 1:
        problem = f"is example, and one example is one record, not {records:,}"
        raise InvalidInput("whose", problem, "say whose the records are: user or client; or leave --records out")
    return Unit(Whose((whose or usual).value), Neighbours(neighbours.value), records=records)
