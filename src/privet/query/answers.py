"""Answers: numbers with intervals, in groups, and what must be said beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privet.core import Record

__all__ = ["RANK", "ROWS", "Answer", "Row"]

RANK, ROWS = "rank", "rows"
"""What numbers are called that are places in a list, or counts."""


@dataclass(frozen=True)
class Row(Record):
    """One number. The interval is of the noise: what clamping did to the values is not in it."""

    group: tuple[str, ...]
    value: float
    low: float | None = None
    """None where noise has no interval in these units, as for a quantile."""
    high: float | None = None


@dataclass(frozen=True)
class Answer(Record):
    """What was asked, and what came of it; everything here may leave."""

    question: str
    columns: tuple[str, ...]
    """What the groups are of."""
    measure: str
    """What the numbers are."""
    rows: tuple[Row, ...]
    confidence: float
    """Of each interval on its own."""
    notes: tuple[str, ...] = ()
    """The bias of clamping, the kind of noise, and whatever else one must know to read the numbers."""

    @property
    def value(self) -> float:
        """The number, where there is only one."""
        if len(self.rows) != 1:
            raise ValueError(f"{self.question!r} has {len(self.rows)} numbers; look at its rows")
        return self.rows[0].value

    @property
    def ranked(self) -> bool:
        """Whether this is a list in its order, and the numbers are the places in it."""
        return self.measure == RANK

    @property
    def counted(self) -> bool:
        """Whether the numbers are of rows."""
        return self.measure == ROWS

    @classmethod
    def kinds(cls) -> Mapping[str, type[Record]]:
        """An answer holds rows."""
        return {"Answer": Answer, "Row": Row}
