"""What a ledger shows: frozen records without fingerprints, tokens or keys, so that they may be shared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from privet.core import Event, Guarantee, Record, Unit, checked

if TYPE_CHECKING:
    from privet.ledger.ledger import Ledger

__all__ = ["NOT_A_GUARANTEE", "Budget", "Entry", "Form", "State", "Statement", "Verification"]

NOT_A_GUARANTEE = "had it been planned in advance; not a guarantee"
"""The note that is always shown beside the price of a history that was chosen step by step."""
_CLOSE = 0.02
"""How far the sum of the spent and the remaining fraction may differ from 1 without a remark."""


class State(Enum):
    """The state of an entry. Only `RESERVED` can be undone."""

    RESERVED = "reserved"
    DRAWING = "drawing"
    COMMITTED = "committed"
    ABORTED = "aborted"


class Form(Enum):
    """The form of an entry, which is fixed at its reservation."""

    CURVE = "Rényi curve"
    BLOCK = "(ε, δ) block"
    WHOLE = "whole budget"


@dataclass(frozen=True)
class Budget(Record):
    """One data set's budget and how full it is. Its guarantee is (epsilon, delta), whatever has been drawn so far."""

    name: str
    unit: Unit
    epsilon: float
    delta: float
    orders: tuple[float, ...]
    """The Rényi orders of the filter, ∞ among them."""
    used: tuple[float, ...]
    """How full each order is: at 1 it admits no more, and more than 1 means closed."""
    basic: bool
    """Whether the finite orders are closed because a fixed plan took the budget as one block."""
    epsilon_left: float
    """The ε of the largest block that would still fit."""
    delta_left: float
    """The δ that blocks may still take."""
    entries: int
    """How many entries were ever reserved."""
    active: int
    """How many of them count: all but the aborted."""
    version: int
    """Which version of the data set is bound; 0 if it has no fingerprint."""
    keyed: bool
    """Whether its chain is sealed with a key outside the database."""
    head: str

    @property
    def location(self) -> str | None:
        """The file or URL of its ledger, if `Ledger.budget` gave it. It is no part of the record."""
        location = self.__dict__.get("_location")
        return location if isinstance(location, str) else None

    @property
    def ledger(self) -> Ledger | None:
        """The open ledger that `Ledger.budget` read it from, or None. It is no part of the record."""
        ledger: Ledger | None = self.__dict__.get("_ledger")
        return ledger

    def __getstate__(self) -> dict[str, object]:
        """Return what is pickled: everything but the open ledger, whose connections belong to one process."""
        return {name: value for name, value in self.__dict__.items() if name != "_ledger"}

    @property
    def spent(self) -> float:
        """The spent fraction, at the order with the most room: the next entry needs only one order that has some.

        Once a plan took the whole budget, only the last order, ∞, is open.
        """
        return min(*(self.used[-1:] if self.basic else self.used), 1.0)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on what looks odd: spent and left that do not add up, and a δ of which half is left."""
        if not self.active or self.epsilon_left <= 0:
            return ()
        remarks = []
        if not self.basic and abs(self.spent + self.epsilon_left / self.epsilon - 1) > _CLOSE:
            remarks.append(
                "Spent is counted at the Rényi order with the most room, which is where many small entries fit; a "
                "single block of (ε, δ) needs more room there, so that spent and left do not add up to 100 %."
            )
        if self.delta > 0 and self.basic:
            remarks.append(
                "A plan took the whole budget with all of its δ: what is left of ε is for entries that need no δ."
            )
        elif self.delta > 0 and len(self.orders) > 1:
            remarks.append(
                "Blocks may take half of δ; the other half is kept for entries that are charged by their Rényi curve."
            )
        return tuple(remarks)


@dataclass(frozen=True)
class Entry(Record):
    """One charge."""

    id: str
    budget: str
    state: State
    event: Event
    purpose: str
    form: Form
    epsilon: float | None
    """The ε of the block, if it is one."""
    delta: float
    """The δ that it takes: the block's δ, or the offset of its curve."""
    version: int
    """The version of the data set that it was reserved for."""
    resumable: bool
    reserved: str
    """When it was reserved, in UTC."""
    changed: str
    """When its state last changed."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", checked.member("state", self.state, State))
        object.__setattr__(self, "form", checked.member("form", self.form, Form))


@dataclass(frozen=True)
class Statement(Record):
    """A budget, its last entries, and what its history would have cost as one fixed plan."""

    budget: Budget
    entries: tuple[Entry, ...]
    """The last ones, newest first."""
    planned: Guarantee | None
    """The price of everything reserved, drawing or committed, at the budget's δ; None if it cannot be computed."""
    note: str = NOT_A_GUARANTEE
    """What `planned` means, or why there is none."""


@dataclass(frozen=True)
class Verification(Record):
    """What `verify` found. It is true only if nothing is wrong.

    >>> bool(Verification(("clinic",), 12, ("row 7 of clinic was changed",)))
    False
    """

    budgets: tuple[str, ...]
    rows: int
    """How many rows of the chains were checked."""
    problems: tuple[str, ...] = ()
    sealed: bool = False
    """Whether every row was also checked against a key outside the database."""
    broken: tuple[str, ...] = ()
    """The budgets that have problems, in the order in which they were checked."""
    unproven: tuple[str, ...] = ()
    """The budgets that the given key does not prove, because they have no seals of it; see `problems`."""

    def __bool__(self) -> bool:
        return not self.problems
