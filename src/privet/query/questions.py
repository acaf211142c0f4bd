"""What can be asked of a table: typed records, and how the language writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from privet.core import InvalidInput, checked
from privet.query.conditions import Condition, columns_of, quoted

__all__ = [
    "CountMeasure",
    "CovarianceMeasure",
    "HistogramMeasure",
    "MaximumMeasure",
    "MeanMeasure",
    "Measure",
    "MinimumMeasure",
    "QuantileMeasure",
    "Question",
    "SumMeasure",
    "TopKMeasure",
    "VarianceMeasure",
]

_MOST_CELLS = 10_000


class _Measure:
    sums: ClassVar[int] = 1
    """How many sums each group has, except for quantiles."""
    is_quantile: ClassVar[bool] = False
    """Whether one of many cells is chosen by rank."""
    is_count: ClassVar[bool] = False
    """Whether rows are counted."""


@dataclass(frozen=True)
class CountMeasure(_Measure):
    """How many rows there are."""

    is_count = True

    @property
    def columns(self) -> tuple[str, ...]:
        """None is read."""
        return ()

    def __str__(self) -> str:
        return "count"


@dataclass(frozen=True)
class _OfOne(_Measure):
    word: ClassVar[str]
    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The column that is read."""
        return (self.column,)

    def __str__(self) -> str:
        return f"{self.word}({quoted(self.column)})"


class SumMeasure(_OfOne):
    """The sum of a number; what is missing adds nothing."""

    word = "sum"


class MeanMeasure(_OfOne):
    """The mean of a number, over the rows that have it."""

    word, sums = "mean", 2


class VarianceMeasure(_OfOne):
    """The variance of a number (divided by the number of rows that have it)."""

    word, sums = "variance", 3


class MinimumMeasure(_OfOne):
    """A small quantile: the smallest value itself is one person's."""

    word, is_quantile = "min", True


class MaximumMeasure(_OfOne):
    """A large quantile: the largest value itself is one person's."""

    word, is_quantile = "max", True


@dataclass(frozen=True)
class HistogramMeasure(_OfOne):
    """How many rows there are of each value of a category, or in each of `cells` cells of a number."""

    is_count = True
    cells: int | None = None
    """For a number: how many cells of equal width between its bounds; 10 unless stated."""

    def __post_init__(self) -> None:
        if self.cells is not None and checked.count("cells", self.cells) > _MOST_CELLS:
            raise InvalidInput("cells", f"is {self.cells}, above {_MOST_CELLS}", "ask for fewer")

    def __str__(self) -> str:
        return f"histogram({quoted(self.column)}{'' if self.cells is None else f', {self.cells}'})"


@dataclass(frozen=True)
class QuantileMeasure(_OfOne):
    """The value below which a share of the rows lies."""

    is_quantile = True
    share: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < checked.finite("share", self.share) < 1:
            raise InvalidInput("share", f"is {self.share:g}", "give a share between 0 and 1, such as 0.5")

    def __str__(self) -> str:
        column = quoted(self.column)
        return f"median({column})" if self.share == 0.5 else f"quantile({column}, {self.share!r})"


@dataclass(frozen=True)
class TopKMeasure(_OfOne):
    """The k most frequent values of a category, the most frequent first."""

    is_count = True
    k: int = 3

    def __post_init__(self) -> None:
        checked.count("k", self.k)

    def __str__(self) -> str:
        return f"top({quoted(self.column)}, {self.k})"


@dataclass(frozen=True)
class CovarianceMeasure(_Measure):
    """The covariance of two numbers, over the rows that have both."""

    sums = 4

    first: str
    second: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Both columns."""
        return (self.first, self.second)

    def __str__(self) -> str:
        return f"covariance({quoted(self.first)}, {quoted(self.second)})"


Measure: TypeAlias = (
    CountMeasure
    | SumMeasure
    | MeanMeasure
    | VarianceMeasure
    | HistogramMeasure
    | QuantileMeasure
    | MinimumMeasure
    | MaximumMeasure
    | TopKMeasure
    | CovarianceMeasure
)


@dataclass(frozen=True)
class Question:
    """A measure of some rows, once or for each group, and its weight in the budget.

    >>> from privet.query.conditions import CellComparison, Op
    >>> print(Question(MeanMeasure("age"), where=CellComparison("diabetes", Op.EQUAL, 1), by=("ward",)))
    mean(age) where diabetes = 1 by ward
    """

    measure: Measure
    where: Condition | None = None
    by: tuple[str, ...] = ()
    weight: float = 1.0
    """Its part of the budget is its weight over the sum of all weights."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", (self.by,) if isinstance(self.by, str) else tuple(self.by))
        object.__setattr__(self, "weight", checked.positive("weight", self.weight))

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read, each once."""
        return tuple(dict.fromkeys((*self.measure.columns, *columns_of(self.where), *self.by)))

    def __str__(self) -> str:
        where = "" if self.where is None else f" where {self.where}"
        by = f" by {', '.join(map(quoted, self.by))}" if self.by else ""
        return f"{self.measure}{where}{by}"
