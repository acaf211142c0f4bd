"""What a training card is made of: choices, bills, scores, curves and trials. None of them says whether it is private:
that is said by what it is wrapped in (`Public`, `Release` or `Internal`)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from privet.core import checked
from privet.core.codec import Record
from privet.core.errors import InvalidInput
from privet.core.event import Event
from privet.core.guarantee import Guarantee

__all__ = [
    "BillLine",
    "Charged",
    "Choice",
    "Consensus",
    "Finding",
    "Growth",
    "Measure",
    "Method",
    "Score",
    "Series",
    "Trial",
]

_SHA256 = re.compile("[0-9a-f]{64}")


class Method(Enum):
    """How a model was made private."""

    DPSGD = "DP-SGD"
    OUTPUT = "output perturbation"
    OBJECTIVE = "objective perturbation"
    INPUT = "input perturbation"
    PATE = "PATE"
    NONE = "none"


class Measure(Enum):
    """What is followed from epoch to epoch."""

    ACCURACY = "accuracy"
    LOSS = "loss"
    CLIPPED = "clipped fraction"


def _number(value: float | None) -> float | None:
    """A number, or None where there is none: what rows do to a sum must not raise, so NaN is taken as None."""
    if value is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        if value is None:
            return None
        raise InvalidInput("value", f"is a {type(value).__name__}, which is not a number")
    return None if math.isnan(value) else float(value)


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

    @classmethod
    def kinds(cls) -> Mapping[str, type[Record]]:
        """A line holds an event and a guarantee."""
        return {"BillLine": BillLine} | dict(Event.kinds()) | dict(Guarantee.kinds())


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
class Score(Record):
    """How good a model is, by one measure.

    >>> Score("accuracy", float("nan"), "the test file").value is None
    True
    """

    name: str
    value: float | None
    """None where there is no such number: an AUC of one class, say."""
    on: str
    """Which rows it was computed on."""
    share: bool = True
    """Whether it is a share of one, shown in per cent."""
    lower: float | None = None
    upper: float | None = None
    confidence: float | None = None
    covers: str = ""
    """What the interval covers: the noise, the sampling of the rows, or both; see `privet.report.score_intervals`."""
    rows: str = ""
    """The SHA-256 of the public test rows as they were read; empty for private rows, and where it is not recorded."""

    def __post_init__(self) -> None:
        checked.text("name", self.name)
        checked.text("on", self.on)
        if not isinstance(self.rows, str) or (self.rows and not _SHA256.fullmatch(self.rows)):
            raise InvalidInput("rows", "is not a SHA-256 in 64 hexadecimal digits", "leave it empty for private rows")
        for name in ("value", "lower", "upper", "confidence"):
            object.__setattr__(self, name, _number(getattr(self, name)))

    @property
    def has_interval(self) -> bool:
        """Whether both ends and their confidence are known; cards of earlier versions have scores without."""
        return self.lower is not None and self.upper is not None and self.confidence is not None


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
        object.__setattr__(self, "margin", _number(self.margin))
        object.__setattr__(self, "measure", checked.member("measure", self.measure, Measure))
        checked.text("on", self.on)
        object.__setattr__(self, "values", tuple(map(_number, self.values)))
        object.__setattr__(self, "epochs", tuple(checked.nonnegative("epochs", each) for each in self.epochs))
        if len(self.epochs) != len(self.values):
            raise InvalidInput("values", f"are {len(self.values)}, for {len(self.epochs)} epochs")


@dataclass(frozen=True)
class Trial(Record):
    """One method at one (ε, δ), and how well it did."""

    run: str
    """A name for it, such as the run's folder."""
    method: Method
    epsilon: float
    delta: float
    score: Score
    teachers: int | None = None
    """How many voted, where teachers did."""

    def __post_init__(self) -> None:
        checked.text("run", self.run)
        if self.teachers is not None:
            checked.count("teachers", self.teachers)
        object.__setattr__(self, "method", checked.member("method", self.method, Method))
        if self.epsilon != math.inf:
            checked.nonnegative("epsilon", self.epsilon)
        checked.share("delta", self.delta)
        if not isinstance(self.score, Score):
            raise InvalidInput("score", f"is a {type(self.score).__name__}, where a Score is wanted")

    @classmethod
    def kinds(cls) -> Mapping[str, type[Record]]:
        """A trial holds a score."""
        return {"Trial": Trial, "Score": Score}


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
        object.__setattr__(self, "costs", tuple(map(_number, self.costs)))


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
