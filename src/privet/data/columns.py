"""The public description of a table's columns: what they hold, and how cells that do not fit are handled."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput, checked
from privet.data.bounds_source import BoundsSource, SourceKind

__all__ = ["Category", "Column", "Identifier", "Missing", "Number", "Outside", "seal_of", "states_bounds"]

_Floats: TypeAlias = npt.NDArray[np.float64]


class Missing(Enum):
    """The value that replaces a missing cell, or one that is not a number."""

    INDICATOR = "indicator"
    """NaN, so that the model sees that the value is missing. In a target, the row is excluded."""
    LOW = "low"
    MIDDLE = "middle"
    HIGH = "high"


class Outside(Enum):
    """How a number outside the bounds is handled."""

    CLAMP = "clamp"
    MISSING = "missing"


@dataclass(frozen=True)
class Number:
    """A number with public bounds.

    >>> Number("age", 17, 90).scaled(np.array([17.0, 53.5, 120.0, np.nan])).tolist()
    [-1.0, 0.0, 1.0, nan]
    """

    name: str
    low: float
    high: float
    missing: Missing | float = Missing.INDICATOR
    """A rule, or the number itself, within the bounds."""
    outside: Outside = Outside.CLAMP
    source: BoundsSource | SourceKind | str | None = None
    """Where the bounds come from; kept as a `BoundsSource`. Without one, no guarantee can rest on them."""

    def __post_init__(self) -> None:
        _checked_name(self.name)
        object.__setattr__(self, "source", BoundsSource.of(self.source))
        low, high = checked.finite("low", self.low), checked.finite("high", self.high)
        if not low < high or not np.isfinite(high - low):
            raise InvalidInput("high", f"is {high:g}, and low is {low:g}", "give the range of the values, lowest first")
        object.__setattr__(self, "outside", checked.member("outside", self.outside, Outside))
        if isinstance(self.missing, (str, Missing)):
            object.__setattr__(self, "missing", checked.member("missing", self.missing, Missing))
        elif not low <= checked.finite("missing", self.missing) <= high:
            raise InvalidInput("missing", f"is {self.missing:g}, outside of the bounds", "use a number within them")

    @property
    def substitute(self) -> float:
        """The value that replaces a missing one; NaN under `Missing.INDICATOR`."""
        if not isinstance(self.missing, Missing):
            return float(self.missing)
        middle = self.low + (self.high - self.low) / 2
        return {Missing.LOW: float(self.low), Missing.HIGH: float(self.high), Missing.MIDDLE: middle}.get(
            self.missing, float("nan")
        )

    def scaled(self, values: _Floats) -> _Floats:
        """Scale values from the bounds to [-1, 1]; each result depends on its own value alone.

        Args:
            values: Values in the units of the column; NaN where missing.

        Returns:
            The scaled values. Missing values are replaced by `substitute`, which is NaN under `Missing.INDICATOR`.
        """
        if self.outside is Outside.MISSING:
            values = np.where((values < self.low) | (values > self.high), np.nan, values)
        filled = np.where(np.isnan(values), self.substitute, values)
        inside: _Floats = np.clip(filled, self.low, self.high)
        # The bounds come first: their difference is finite, whatever the value was.
        return np.clip((inside - self.low) / (self.high - self.low) * 2 - 1, -1.0, 1.0)

    def unscaled(self, values: npt.NDArray[np.floating]) -> _Floats:
        """Scale values back from [-1, 1] to the units of the column.

        Args:
            values: Values on [-1, 1].
        """
        return (np.asarray(values, dtype=np.float64) + 1) / 2 * (self.high - self.low) + self.low


@dataclass(frozen=True)
class Category:
    """One of a public list of values. All others are one more, `other`, with the code `len(values)`."""

    name: str
    values: tuple[str, ...]
    missing: str | None = None
    """Which of the values stands for a missing one; unless stated, a missing one is `other`. In a target, the row
    is left out."""
    source: BoundsSource | SourceKind | str | None = None
    """Where the list of values comes from; kept as a `BoundsSource`. Without one, no guarantee can rest on it."""

    def __post_init__(self) -> None:
        _checked_name(self.name)
        object.__setattr__(self, "source", BoundsSource.of(self.source))
        if isinstance(self.values, str) or not all(isinstance(value, str) for value in self.values):
            raise InvalidInput("values", "are not all texts", 'write them as texts: ["0", "1"]')
        object.__setattr__(self, "values", tuple(self.values))
        if len(set(self.values)) < len(self.values):
            raise InvalidInput("values", "name one value twice", "list every value once")
        if any(not value or value != value.strip() for value in self.values):
            raise InvalidInput("values", "have one that is empty or has blanks around it", "blanks do not count")
        if self.missing is not None and self.missing not in self.values:
            raise InvalidInput("missing", f"is {self.missing!r}, which is not among the values", "list it, or drop it")

    @property
    def other(self) -> int:
        """The code of every value that is not listed."""
        return len(self.values)

    @property
    def substitute(self) -> int:
        """The code of a missing value."""
        return self.other if self.missing is None else self.values.index(self.missing)


@dataclass(frozen=True)
class Identifier:
    """A column that says who a row is about: never given to a model."""

    name: str

    def __post_init__(self) -> None:
        _checked_name(self.name)


Column: TypeAlias = Number | Category | Identifier
"""One column of a schema: a number, a category, or an identifier."""


def states_bounds(column: Column) -> TypeGuard[Number | Category]:
    """Return whether a column states bounds or values, which need a source.

    An empty list of values states nothing about the rows, and neither does an identifier.

    Args:
        column: The column.
    """
    return isinstance(column, Number) or (isinstance(column, Category) and bool(column.values))


def seal_of(column: Number | Category) -> str:
    """Return a short digest of what somebody vouches for in `BoundsSource.seal`.

    It covers everything that decides how a cell is read: bounds or values, and what a missing or out-of-range cell
    counts as. A number that stands for missing cells can be a private mean as much as a bound can be a private maximum.

    Args:
        column: A column with bounds or values.
    """
    stated: list[object]
    if isinstance(column, Number):
        rule = column.missing.value if isinstance(column.missing, Missing) else float(column.missing)
        stated = ["number", float(column.low), float(column.high), rule, column.outside.value]
    else:
        stated = ["category", list(column.values), column.missing]
    text = json.dumps([column.name, *stated])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _checked_name(name: str) -> None:
    if name != checked.text("name", name).strip():
        raise InvalidInput("name", "has blanks around it", "blanks do not count")
