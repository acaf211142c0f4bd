"""Cards: everything that a page may show, typed by where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from privet.accounting import AccountantAnswer, Meaning
from privet.core import Event, Guarantee, Internal, InvalidInput, Public, Release

__all__ = ["RunCard", "leaves", "require_shareable"]


@dataclass(frozen=True)
class RunCard:
    """A described run and its privacy cost. Everything here is known without the data."""

    event: Public[Event]
    guarantee: Public[Guarantee]
    ladder: Public[tuple[AccountantAnswer, ...]]
    """The answer of every accountant, the tightest first and those without a theorem last."""
    meaning: Public[Meaning]
    described: Public[tuple[tuple[str, str], ...]]
    """Names and values of the run's settings, for a table."""
    conditions: Public[tuple[str, ...]]
    """What must be true of the code that runs it."""
    notes: Public[tuple[str, ...]]
    """How numbers that were not given were computed."""
    warnings: Public[tuple[str, ...]]


def leaves(card: Any) -> Iterator[tuple[str, object]]:
    """Yield every value of a card with the name of its field; tuples and nested cards are flattened.

    Args:
        card: The card, a dataclass.
    """
    for field in fields(card):
        yield from _flatten(field.name, getattr(card, field.name))


def _flatten(name: str, value: Any) -> Iterator[tuple[str, object]]:
    if value is None:
        return
    if isinstance(value, tuple):
        for item in value:
            yield from _flatten(name, item)
    elif is_dataclass(value) and not isinstance(value, (Public, Release, Internal)):
        for inner, leaf in leaves(value):
            yield f"{name}.{inner}", leaf
    else:
        yield name, value


def require_shareable(card: Any) -> None:
    """Require that every value is public or a release: internal values must not reach a shared page.

    Args:
        card: The card, a dataclass.

    Raises:
        InvalidInput: A value is neither public nor a release, or contains an internal one.
    """
    for name, leaf in leaves(card):
        if not isinstance(leaf, (Public, Release)):
            problem = "is neither Public nor a Release, so it may not be shown"
            raise InvalidInput(name, problem, "release it through a mechanism, or leave it out")
        if _holds_internal(leaf.value):
            raise InvalidInput(name, "has something Internal inside, so it may not be shown", "make the whole Internal")


def _holds_internal(value: Any) -> bool:
    if isinstance(value, Internal):
        return True
    if isinstance(value, (tuple, list, set, frozenset)):
        return any(map(_holds_internal, value))
    if isinstance(value, dict):
        return any(map(_holds_internal, (*value.keys(), *value.values())))
    if is_dataclass(value) and not isinstance(value, type):
        return any(_holds_internal(getattr(value, field.name)) for field in fields(value))
    return False
