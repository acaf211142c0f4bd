"""How many rows there are, or how many of them are so."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privet.core import Bounded, Unit
from privet.mechanisms.contribution import Chunk, Clipper, Limiter, blocks, booleans, times
from privet.mechanisms.reach import Reach, replaces

__all__ = ["Count", "CountTally"]


@dataclass(frozen=True)
class Count(Clipper[int]):
    """A count, of which one unit makes out at most `rows`.

    Guarantee: a row that comes, goes, is blanked or is replaced moves the count by at most 1, so that a unit moves it
    by `rows` (times the records that it may own). What is missing or no number counts as false; nothing raises.

    >>> Count()([True, False, True])
    Bounded(<private int>, l0=1.0, l1=1.0, l2=1.0, linf=1.0, unit=one example, add/remove, central)
    """

    unit: Unit = Unit()
    rows: int = 1
    """How many rows of one user are used, the first ones; for units without ids it is 1."""

    def __post_init__(self) -> None:
        times(self.unit, self.rows)

    @property
    def reach(self) -> Reach:
        """As far as the rows that are kept, whether they come, go or change."""
        most = float(times(self.unit, self.rows))
        return Reach(self.unit, linf=most, whole=True, monotone=not replaces(self.unit))

    def start(self) -> CountTally:
        """Start a count to which chunks of rows are added."""
        return CountTally(self, Limiter(self.unit, self.rows))


@dataclass
class CountTally:
    """A count so far."""

    clip: Count
    limiter: Limiter
    total: int = field(default=0, repr=False)

    def add(self, rows: Chunk, users: Chunk | None = None) -> None:
        """Add the rows whose value is true. A user's rows that are false use up none of the user's share."""
        for some, theirs in blocks(rows, users):
            is_true = booleans(some)
            if theirs is None:
                self.limiter.keep(None, len(is_true))
                self.total += int(np.count_nonzero(is_true))
            else:
                hits = np.flatnonzero(is_true)
                mine = [theirs[index] for index in hits.tolist()]
                self.total += hits[self.limiter.keep(mine, len(mine))].size

    def bounded(self) -> Bounded[int]:
        """Return the count, for a mechanism."""
        return self.clip.reach.of(self.total)
