"""Who may see a value: anyone (`Public`, or a `Release`), or only those who may see the rows (`Internal`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from privet.core.errors import InvalidInput
from privet.core.release import Release, Unpublishable

__all__ = ["Internal", "Public", "Shareable", "Typed"]

T = TypeVar("T")


@dataclass(frozen=True)
class Internal(Generic[T]):
    """A value for those who may see the rows themselves: an accuracy on private rows, a loss, a draft of a schema.

    No shareable page or file takes one, and it does not show its value in a log.

    >>> Internal(0.91)
    Internal(<private float>)
    """

    value: T = field(repr=False)

    def __repr__(self) -> str:
        return f"Internal(<private {type(self.value).__name__}>)"


@dataclass(frozen=True)
class Public(Generic[T]):
    """A value that is known without the data: a plan, a price, a bound.

    >>> Public(14063).value
    14063
    """

    value: T

    def __post_init__(self) -> None:
        if isinstance(self.value, Unpublishable):
            problem = f"is a {type(self.value).__name__}, which depends on the data: it is not public"
            raise InvalidInput("value", problem, "leave it out, or wrap it in Internal")


Shareable: TypeAlias = Public[T] | Release[T]
"""What may be shown to anyone: known without the data, or paid for."""
Typed: TypeAlias = Public[T] | Release[T] | Internal[T]
"""What a field of a card is: every value says where it comes from."""
