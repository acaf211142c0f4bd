"""How many rows of one unit are used, over a stream of chunks. The rows of others never decide which."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from privet.core import Bounded, InvalidInput, Unit, Whose, checked
from privet.mechanisms.reach import replaces

__all__ = ["Chunk", "Clipper", "Limiter", "RowTally", "blocks", "booleans", "name_of", "numbers", "times"]

_BLOCK = 1 << 16

Chunk: TypeAlias = Sequence[Any] | npt.NDArray[Any]
"""Some values, one a row."""
T = TypeVar("T")


class RowTally(Protocol[T]):
    """An answer that grows with the rows."""

    def add(self, rows: Chunk, users: Chunk | None = None, /) -> None:
        """Add some more rows."""
        ...

    def bounded(self) -> Bounded[T]:
        """Return the answer, for a mechanism."""
        ...


class Clipper(ABC, Generic[T]):
    """Turns rows into an answer that one unit can move by no more than a known distance."""

    @abstractmethod
    def start(self) -> RowTally[T]:
        """Return an empty answer, to which chunks of rows are added."""

    def __call__(self, rows: Chunk, users: Chunk | None = None) -> Bounded[T]:
        """Return the answer of these rows; `users` says whose each is, where the unit is a user."""
        tally = self.start()
        tally.add(rows, users)
        return tally.bounded()


def times(unit: Unit, rows: int) -> int:
    """Return how many rows of one unit can count: the rows that are kept, or the records of the unit."""
    replaces(unit)
    checked.count("rows", rows)
    if rows > 1 and not _named(unit):
        problem = f"is {rows}, and {unit} has rows that nobody's name is on"
        raise InvalidInput("rows", problem, "leave it at 1, or protect users and give their ids")
    return rows * unit.records


def _named(unit: Unit) -> bool:
    """Whether ids say whose a row is. A unit of several records is a promise about the data, and needs none."""
    return unit.whose is not Whose.EXAMPLE and unit.records == 1


@dataclass
class Limiter:
    """Lets the first `rows` rows of each unit pass.

    Which rows these are depends on the unit's own rows alone, so that someone who comes or goes moves nobody else's.
    """

    unit: Unit
    rows: int
    seen: dict[Any, int] = field(default_factory=dict)

    def keep(self, users: Chunk | None, size: int) -> npt.NDArray[np.bool_] | slice:
        """Return which of the next `size` rows count, as an index of them."""
        if not _named(self.unit):
            if users is not None:
                raise InvalidInput("users", f"are given, and the unit is {self.unit}", "leave them out")
            return slice(None)
        if users is None:
            raise InvalidInput("users", f"are missing, and the unit is {self.unit}", "say whose each row is")
        names = [name_of(user) for user in (users.tolist() if isinstance(users, np.ndarray) else users)]
        seen, most = self.seen, self.rows
        passes = np.zeros(size, dtype=np.bool_)
        for index, name in enumerate(names):
            before = seen.get(name, 0)
            if before < most:
                seen[name] = before + 1
                passes[index] = True
        return passes


def blocks(values: Chunk, users: Chunk | None) -> Iterator[tuple[Chunk, Chunk | None]]:
    """Yield a chunk in pieces that fit in the processor's cache; there must be as many users as values."""
    if users is not None and len(users) != len(values):
        raise InvalidInput("users", f"has {len(users)} entries for {len(values)} rows", "give one for each row")
    for start in range(0, max(len(values), 1), _BLOCK):
        yield values[start : start + _BLOCK], None if users is None else users[start : start + _BLOCK]


def name_of(value: Any) -> Any:
    """Return a value that can be a key: None if it is missing, and its text if it cannot be hashed."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def numbers(values: Chunk, missing: float = np.nan) -> npt.NDArray[np.float64]:
    """Return a chunk as float64; what is not a number is `missing`, and no row raises."""
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InvalidInput("values", f"have {values.ndim} dimensions", "give one value for each row")
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty((0, 0))
    if array.ndim != 1:  # some row, or every row, is no number
        array = np.array([_number(value) for value in values], dtype=np.float64)
    array[np.isnan(array)] = missing
    return array


def booleans(values: Chunk) -> npt.NDArray[np.bool_]:
    """Return a chunk as booleans; what is missing or no number is false."""
    if isinstance(values, np.ndarray) and values.dtype == np.bool_ and values.ndim == 1:
        return values
    return np.asarray(numbers(values, 0.0) != 0.0)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
