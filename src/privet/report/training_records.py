"""What a training card is made of: choices, bills, scores, curves and trials. None of them says whether it is private:
that is said by what it is wrapped in (`Public`, `Release` or `Internal`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from privet.core import Event, Guarantee, InvalidInput, Record, checked, number_or_none

__all__ = [
    "PATE",
    "BillLine",
    "Charged",
    "Choice",
    "Consensus",
    "Finding",
    "Growth",
    "Measure",
    "Series",
]

PATE = "PATE"
"""The title of a method whose cards have rules of their own."""


class Measure(Enum):
    """What is followed from epoch to epoch."""

    ACCURACY = "accuracy"
    LOSS = "loss"
    CLIPPED = "clipped fraction"


@dataclass(frozen=True)
class Choice(Record):
    """One setting, and why it is what it is."""

    name: str
    value: str
    why: str

    def __post_init__(self) -> None:
        for name in ("name", "value", "why"):
            checked.text(name, getattr(self, name))


@dataclass(frozen=True)
class BillLine(Record):
    """One thing that was paid for, and what it costs by itself."""

    what: str
    event: Event
    guarantee: Guarantee

    def __post_init__(self) -> None:
        checked.text("what", self.what)


@dataclass(frozen=True)
class Growth(Record):
    """ε after each of several epochs, or questions, for several δ; every ε is a certified upper bound."""

    epochs: tuple[float, ...]
    deltas: tuple[float, ...]
    by_delta: tuple[tuple[float, ...], ...]
    by: str = "epochs"
    """What is counted, in the plural."""

    def __post_init__(self) -> None:
        checked.text("by", self.by)
        if len(self.by_delta) != len(self.deltas) or any(len(row) != len(self.epochs) for row in self.by_delta):
            raise InvalidInput("by_delta", "does not have one ε for each δ and epoch")


@dataclass(frozen=True)
class Series(Record):
    """One measure from epoch to epoch."""

    measure: Measure
    on: str
    """Which rows it was computed on."""
    epochs: tuple[float, ...]
    values: tuple[float | None, ...]
    """None where there is no such number."""
    margin: float | None = None
    """Of a share on rows that are a sample: each value is within ± this of the share on all possible rows, with 95 %
    confidence for each. None where it is not known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "margin", number_or_none(self.margin))
        object.__setattr__(self, "measure", checked.member("measure", self.measure, Measure))
        checked.text("on", self.on)
        object.__setattr__(self, "values", tuple(map(number_or_none, self.values)))
        object.__setattr__(self, "epochs", tuple(checked.nonnegative("epochs", each) for each in self.epochs))
        if len(self.epochs) != len(self.values):
            raise InvalidInput("values", f"are {len(self.values)}, for {len(self.epochs)} epochs")


@dataclass(frozen=True)
class Charged(Record):
    """Where the run stands in a ledger."""

    budget: str
    entries: tuple[str, ...]
    """The ids of its entries."""
    head: str
    """The end of the budget's chain when the run was committed: `ledger.verify(name, head=…)` finds a cut tail."""

    def __post_init__(self) -> None:
        checked.text("budget", self.budget)
        object.__setattr__(self, "entries", checked.texts("entries", self.entries))
        checked.text("head", self.head)


@dataclass(frozen=True)
class Consensus(Record):
    """How far teachers agreed, question by question, and what a question cost these data by how far they did."""

    shares: tuple[float, ...]
    """Edges, from 0 to 1: the part of the teachers behind the commonest label."""
    questions: tuple[int, ...]
    """How many questions fall between two edges."""
    costs: tuple[float | None, ...]
    """Of one of them, on average: a Rényi divergence of `order`. None where there is no question."""
    order: float
    whatever: float
    """The same, whatever the votes are."""

    def __post_init__(self) -> None:
        if not len(self.questions) == len(self.costs) == len(self.shares) - 1:
            raise InvalidInput("questions", "do not have one number between each two of the edges")
        object.__setattr__(self, "costs", tuple(map(number_or_none, self.costs)))


@dataclass(frozen=True)
class Finding(Record):
    """An ε that holds for these data alone, and so is no guarantee."""

    what: str
    epsilon: float
    delta: float
    failure: float | None = None
    """The chance that it is too small, where it was released with noise."""

    def __post_init__(self) -> None:
        checked.text("what", self.what)
        checked.share("delta", self.delta)
