"""`Internal`: a value that touches private rows and was not paid for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

__all__ = ["Internal"]

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
