"""Whose data is protected, which data sets count as neighbors, and whom one must trust."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from privet.core import checked
from privet.core.codec import Record
from privet.core.errors import InvalidInput

__all__ = ["Neighbours", "Trust", "Unit", "Whose"]


class Whose(Enum):
    """Whose contribution a guarantee protects."""

    EXAMPLE = "example"
    USER = "user"
    CLIENT = "client"


class Neighbours(Enum):
    """The neighboring relation: which two data sets must be hard to tell apart.

    `ADD_REMOVE`: one contribution is present or absent, and the size is private. `ZERO_OUT`: one contribution is
    blanked, so that it adds nothing, and the size is public. `REPLACE`: one contribution becomes any other one.
    `L1_BALL` and `L2_BALL`: one contribution moves by at most `Unit.radius`, measured in bounds (clips).
    """

    ADD_REMOVE = "add/remove"
    ZERO_OUT = "zero-out"
    REPLACE = "replace"
    L1_BALL = "l1-ball"
    L2_BALL = "l2-ball"


class Trust(Enum):
    """Who sees data before it is protected."""

    CENTRAL = "central"
    LOCAL = "local"
    SHUFFLED = "shuffled"
    DISTRIBUTED = "distributed"


@dataclass(frozen=True)
class Unit(Record):
    """What one guarantee is about.

    >>> Unit().neighbours.value
    'add/remove'
    >>> Unit.from_json(Unit(whose=Whose.USER, records=3).to_json()).records
    3
    """

    whose: Whose = Whose.EXAMPLE
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    trust: Trust = Trust.CENTRAL
    records: int = 1
    """How many records one unit may own at most; more than one is priced by group privacy."""
    radius: float = 0.0
    """For the ball neighbors only: how far one contribution may move, in multiples of its bound."""

    def __post_init__(self) -> None:
        for name, kind in (("whose", Whose), ("neighbours", Neighbours), ("trust", Trust)):
            object.__setattr__(self, name, checked.member(name, getattr(self, name), kind))
        checked.count("records", self.records)
        ball = self.neighbours in (Neighbours.L1_BALL, Neighbours.L2_BALL)
        if ball:
            checked.positive("radius", self.radius)
        elif checked.nonnegative("radius", self.radius) != 0:
            raise InvalidInput("radius", f"is {self.radius}, and {self.neighbours.value} has none", "leave it out")

    def __str__(self) -> str:
        many = f" of at most {self.records} records" if self.records > 1 else ""
        return f"one {self.whose.value}{many}, {self.neighbours.value}, {self.trust.value}"
