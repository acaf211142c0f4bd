"""What the rows are asked when a schema is learned: counts in which one unit's part is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from privet.core import Bounded, Unit, Whose
from privet.data.read import user_keys_of
from privet.data.source import Source, numbers_of, texts_of
from privet.mechanisms import Chunk, Count, Histogram, Keys, Limiter, Magnitudes

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LONGEST", "SIZES", "TEXT", "ColumnKind", "Questions"]

SIZES = Magnitudes()
"""The sizes of numbers, in powers of two."""
TEXT = SIZES.size
"""The place of cells that are no numbers, after those of all sizes."""
LONGEST = 100
"""Letters in a value; longer cells are no values."""


class ColumnKind(Enum):
    """What a column is said to hold."""

    NUMBER = "number"
    CATEGORY = "category"
    IDENTIFIER = "identifier"
    UNKNOWN = "unknown"
    """Nobody said: the rows vote."""


@dataclass(frozen=True)
class _Placed:
    """Bins of which each value is already the place."""

    size: int

    def place(self, values: Chunk) -> npt.NDArray[np.int64]:
        """The values themselves."""
        return np.asarray(values, dtype=np.int64)


@dataclass(frozen=True)
class Questions:
    """The counts that are asked for: rows; sizes for columns that may be numbers; values for those that may not.

    Guarantee: under `unit`, and `rows` rows of one user (1 where examples are protected), every answer moves by no more
    than its clipper's reach: a row counts once in the rows, once in each column's sizes, and once in each column's
    values. What a row counts as depends on that row alone. Nothing raises.
    """

    kinds: tuple[tuple[str, ColumnKind], ...]
    unit: Unit
    rows: int
    user: str | None
    missing: tuple[str, ...]

    @property
    def count(self) -> Count:
        """Of all rows."""
        return Count(self.unit, self.rows)

    @property
    def sizes(self) -> Histogram:
        """Of one column: numbers by size, and cells that are none."""
        return Histogram(_Placed(TEXT + 1), self.unit, self.rows)

    @property
    def values(self) -> Keys:
        """Of one column: how many units have each value."""
        return Keys(self.unit, self.rows)

    @property
    def sized(self) -> tuple[str, ...]:
        """Columns that are asked for sizes."""
        return tuple(name for name, kind in self.kinds if kind in (ColumnKind.NUMBER, ColumnKind.UNKNOWN))

    @property
    def valued(self) -> tuple[str, ...]:
        """Columns that are asked for values."""
        return tuple(name for name, kind in self.kinds if kind in (ColumnKind.CATEGORY, ColumnKind.UNKNOWN))

    def asked(self, source: Source) -> list[Bounded[Any]]:
        """Return the private answers: the rows, the sizes of each column, the values of each column."""
        count, sizes = self.count.start(), {name: self.sizes.start() for name in self.sized}
        values = {name: _Values(self.values) for name in self.valued}
        limiter = Limiter(self.unit, self.rows)
        names = [name for name, kind in self.kinds if kind is not ColumnKind.IDENTIFIER]
        for batch in source.batches([*names, *([] if self.user is None else [self.user])]):
            users: npt.NDArray[np.uint64] | None = None
            if self.user is not None:
                users, known = user_keys_of(batch[self.user], self.missing)
                users, batch = users[known], batch.filter(known)
                kept = np.arange(len(users))[limiter.keep(users, len(users))]
                users, batch = users[kept], batch[kept]
            count.add(np.ones(len(batch), dtype=np.bool_), users)
            for name in names:
                texts = texts_of(batch[name], self.missing)
                if name in sizes:
                    sizes[name].add(_places(batch[name], texts, self.missing), users)
                if name in values:
                    values[name].add(texts, users)
        by_size = [tally.bounded() for tally in sizes.values()]
        return [count.bounded(), *by_size, *(tally.bounded() for tally in values.values())]


def _places(cells: pl.Series, texts: pl.Series, missing: Sequence[str]) -> npt.NDArray[np.int64]:
    """The size of each number, `TEXT` for what is none, and -1 for what is missing."""
    numbers = numbers_of(cells, missing)
    places = SIZES.place(numbers)
    return np.where(np.isnan(numbers) & texts.is_not_null().to_numpy(), TEXT, places)


@dataclass
class _Values:
    """How many units have each value, so far."""

    clip: Keys
    counts: dict[str, int] = field(default_factory=dict, repr=False)
    seen: set[tuple[int, str]] = field(default_factory=set, repr=False)

    def add(self, texts: pl.Series, users: npt.NDArray[np.uint64] | None) -> None:
        """Some more rows, of which no user has more than `clip.keys` in all: so many values at most."""
        if self.clip.unit.whose is Whose.EXAMPLE or users is None:
            found = texts.value_counts(sort=False, name="rows")
            for value, rows in zip(found[texts.name], found["rows"], strict=True):
                if _is_value(value):
                    self.counts[value] = self.counts.get(value, 0) + rows
            return
        for value, user in zip(texts, users.tolist(), strict=True):
            if _is_value(value) and (user, value) not in self.seen:
                self.seen.add((user, value))
                self.counts[value] = self.counts.get(value, 0) + 1

    def bounded(self) -> Bounded[Any]:
        """The counts, for a mechanism."""
        return self.clip.reach.of(dict(self.counts))


def _is_value(text: str | None) -> bool:
    """Whether a cell can be a category: decided by the cell alone, so that a schema of it never raises."""
    return text is not None and 0 < len(text) <= LONGEST and text == text.strip()
