"""Cards: everything that a page may show, typed by where it comes from."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Generic, TypeVar

from privet.accounting import Rung
from privet.accounting.meaning import Meaning
from privet.core.errors import InvalidInput
from privet.core.event import Event
from privet.core.guarantee import Guarantee
from privet.core.release import Release

__all__ = ["Public", "RunCard", "require_shareable"]

T = TypeVar("T")


@dataclass(frozen=True)
class Public(Generic[T]):
    """A value that is known without the data: a plan, a price, a bound.

    >>> Public(14063).value
    14063
    """

    value: T


@dataclass(frozen=True)
class RunCard:
    """A described run and its price. Nothing here has seen any data."""

    event: Public[Event]
    guarantee: Public[Guarantee]
    ladder: Public[tuple[Rung, ...]]
    """Every accountant, the tightest first and those without a theorem last."""
    meaning: Public[Meaning]
    described: Public[tuple[tuple[str, str], ...]]
    """What the run was said to be: names and values, for a table."""
    conditions: Public[tuple[str, ...]]
    """What must be true of the code that runs it."""
    notes: Public[tuple[str, ...]]
    """How numbers that were not given were worked out."""
    warnings: Public[tuple[str, ...]]


def require_shareable(card: RunCard) -> None:
    """Raise unless every field is public or paid for: what else touches private rows must not reach a page."""
    for field in fields(card):
        if not isinstance(getattr(card, field.name), (Public, Release)):
            problem = "is neither Public nor a Release, so it may not be shown"
            raise InvalidInput(field.name, problem, "release it through a mechanism, or leave it out")
