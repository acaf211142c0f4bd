"""How many rows there are of each kind, for kinds that are public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from privet.core import Bounded, InvalidInput, Unit, checked
from privet.mechanisms.contribution import Chunk, Clipper, Limiter, blocks, name_of, numbers, times
from privet.mechanisms.reach import Reach, replaces
from privet.mechanisms.sums import checked_bounds

__all__ = ["Bins", "Categories", "Cells", "Histogram", "HistogramTally", "Magnitudes", "cells_of"]


class Bins(Protocol):
    """A public, finite list of kinds, and the kind of each value; -1 for a value of none of them."""

    @property
    def size(self) -> int:
        """How many kinds there are."""
        ...

    def place(self, values: Chunk) -> npt.NDArray[np.int64]:
        """Return the kind of each value; a value's kind depends on that value alone, and none raises."""
        ...


@dataclass(frozen=True)
class Categories:
    """Values that are one of a public list. Others, missing ones too unless None is listed, count nowhere."""

    names: tuple[Any, ...]
    places: dict[Any, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = tuple(self.names)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "places", {name: index for index, name in enumerate(names)})
        if not names or len(self.places) != len(names):
            raise InvalidInput("names", "are none, or the same one twice", "list every category once")

    @property
    def size(self) -> int:
        """One for each category."""
        return len(self.names)

    def place(self, values: Chunk) -> npt.NDArray[np.int64]:
        """Return where each value stands in the list; -1 for a value that is not in it.

        Args:
            values: One value for each row.
        """
        listed: Sequence[Any] = values.tolist() if isinstance(values, np.ndarray) else values
        return np.array([self.places.get(name_of(value), -1) for value in listed], dtype=np.int64)


@dataclass(frozen=True)
class Cells:
    """Numbers in cells of equal width between public bounds; what lies outside counts at the bound.

    >>> Cells(0, 100, 5).place([-3, 19.9, 20, 1000, None]).tolist()
    [0, 0, 1, 4, -1]
    """

    lower: float
    upper: float
    size: int
    missing: float | None = None
    """What stands for a missing value; unless stated, such a row counts nowhere."""

    def __post_init__(self) -> None:
        low, high = checked_bounds(self.lower, self.upper)
        checked.finite("upper", high - low)
        checked.count("size", self.size)

    @property
    def edges(self) -> npt.NDArray[np.float64]:
        """The `size` + 1 bounds of the cells."""
        return np.linspace(self.lower, self.upper, self.size + 1)

    def middle(self, cell: int) -> float:
        """Return the number halfway between the bounds of a cell.

        Args:
            cell: The number of the cell, from 0.
        """
        return float(self.edges[cell] / 2 + self.edges[cell + 1] / 2)

    def place(self, values: Chunk) -> npt.NDArray[np.int64]:
        """Return the cell [edge, next edge) of each value; -1 for a missing value that counts nowhere.

        Args:
            values: One value for each row.
        """
        clamped = numbers(values, math.nan if self.missing is None else self.missing)
        lost = np.isnan(clamped)
        clamped = np.where(lost, self.lower, clamped).clip(self.lower, self.upper)
        places = (
            ((clamped - self.lower) / (self.upper - self.lower) * self.size).astype(np.int64).clip(0, self.size - 1)
        )
        edges = self.edges  # what rounding put one cell too high or too low is put right
        places -= (clamped < edges[places]) & (places > 0)
        places += (clamped >= edges[places + 1]) & (places < self.size - 1)
        places[lost] = -1
        return places


@dataclass(frozen=True)
class Magnitudes:
    """Numbers by sign and size: ... [-4, -2), [-2, -1), 0, (1, 2], (2, 4] ..., from 2^least to 2^most.

    Sizes of at most 2^least count as 0, and those above 2^most at the end.

    >>> Magnitudes(0, 2).place([-100, -2, 0.5, 1.5, 4]).tolist()
    [0, 1, 2, 3, 4]
    """

    least: int = -20
    most: int = 40

    def __post_init__(self) -> None:
        checked.count("least", self.least, -900)
        if checked.count("most", self.most, -900) <= self.least or self.most > 900:
            raise InvalidInput("most", f"is {self.most}, not between least = {self.least} and 900")

    @property
    def half(self) -> int:
        """How many sizes there are on either side of 0."""
        return self.most - self.least

    @property
    def size(self) -> int:
        """Both signs, and 0."""
        return 2 * self.half + 1

    @property
    def edges(self) -> npt.NDArray[np.float64]:
        """The `size` + 1 bounds."""
        powers = 2.0 ** np.arange(self.least, self.most + 1)
        return np.concatenate([-powers[::-1], powers])

    def place(self, values: Chunk) -> npt.NDArray[np.int64]:
        """Return the power of two next above each value's size, with its sign; -1 for a missing value.

        Args:
            values: One value for each row.
        """
        array = numbers(values)
        fraction, exponent = np.frexp(np.abs(np.nan_to_num(array, nan=0.0)))
        above = exponent - (fraction == 0.5)  # of a power of two, the power itself
        size = np.where(array == 0, 0, np.clip(above.astype(np.int64) - self.least, 0, self.half))
        return np.where(np.isnan(array), -1, self.half + np.where(array < 0, -size, size)).astype(np.int64)


@dataclass(frozen=True)
class Histogram(Clipper[npt.NDArray[np.int64]]):
    """Counts by kind, of which one unit makes out at most `rows` in all.

    Guarantee: a row that comes, goes or is blanked moves one count by 1; one that is replaced moves two. So a unit
    moves the counts by `rows` in L1, in L2 and in any one of them, and by twice (in L2, √2 times) that when replaced.
    Rows of no kind count nowhere; nothing raises.

    >>> Histogram(Categories(("a", "b")))(["a", "b", "a", "?"]).l1
    1.0
    """

    bins: Bins
    unit: Unit = Unit()
    rows: int = 1
    """How many rows of one user are used, the first ones."""

    def __post_init__(self) -> None:
        times(self.unit, self.rows)

    @property
    def reach(self) -> Reach:
        """As far as the rows that are kept: out of some counts and, when replaced, into others."""
        most, size = float(times(self.unit, self.rows)), self.bins.size
        if not replaces(self.unit):
            return Reach(self.unit, l0=most, l1=most, linf=most, dimension=size, whole=True, monotone=True)
        l2 = math.nextafter(math.sqrt(2) * most, math.inf)
        return Reach(self.unit, l0=2 * most, l1=2 * most, l2=l2, linf=most, dimension=size, whole=True)

    def start(self) -> HistogramTally:
        """Start counts to which chunks of rows are added."""
        return HistogramTally(self, Limiter(self.unit, self.rows), np.zeros(self.bins.size, dtype=np.int64))


def cells_of(histogram: object) -> Cells:
    """Return the cells of a histogram of numbers; anything else is refused, as a mechanism's `of`."""
    if not isinstance(histogram, Histogram) or not isinstance(histogram.bins, Cells):
        raise InvalidInput("of", "is not a histogram of cells", "use Histogram(Cells(lower, upper, size))")
    return histogram.bins


@dataclass
class HistogramTally:
    """Counts so far."""

    clip: Histogram
    limiter: Limiter
    counts: npt.NDArray[np.int64] = field(repr=False)

    def add(self, values: Chunk, users: Chunk | None = None) -> None:
        """Add rows."""
        for some, theirs in blocks(values, users):
            places = self.clip.bins.place(some)
            places = places[self.limiter.keep(theirs, len(places))]
            self.counts += np.bincount(places[places >= 0], minlength=len(self.counts))

    def bounded(self) -> Bounded[npt.NDArray[np.int64]]:
        """Return the counts, for a mechanism."""
        return self.clip.reach.of(self.counts.copy())
