"""Checks of public arguments: each returns the value it was given or raises with the argument's name."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from privet.core.errors import InvalidInput

__all__ = [
    "confidence",
    "count",
    "finite",
    "member",
    "nonnegative",
    "positive",
    "probability",
    "share",
    "text",
    "texts",
]

E = TypeVar("E", bound=Enum)


def finite(argument: str, value: float) -> float:
    """Return `value` as a float if it is a finite real number; raise `InvalidInput` otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(argument, f"is {value!r}, which is not a number", "give a number such as 1.5")
    try:
        number = float(value)
    except OverflowError:
        raise InvalidInput(argument, "is too large for a floating-point number") from None
    if not math.isfinite(number):
        raise InvalidInput(argument, f"is {number}, which is not finite", "give a finite number")
    return number


def nonnegative(argument: str, value: float) -> float:
    """Return `value` if it is finite and at least 0; raise `InvalidInput` otherwise."""
    number = finite(argument, value)
    if number < 0:
        raise InvalidInput(argument, f"is {number}, which is negative", "give 0 or more")
    return number


def positive(argument: str, value: float) -> float:
    """Return `value` if it is finite and above 0; raise `InvalidInput` otherwise."""
    number = finite(argument, value)
    if number <= 0:
        raise InvalidInput(argument, f"is {number}, which is not positive", "give a number above 0")
    return number


def probability(argument: str, value: float) -> float:
    """Return `value`, a sampling rate, if it is in (0, 1]; raise `InvalidInput` otherwise."""
    number = finite(argument, value)
    if not 0 < number <= 1:
        raise InvalidInput(argument, f"is {number}, which is not in (0, 1]", "a rate is batch size over population")
    return number


def share(argument: str, value: float) -> float:
    """Return `value`, a δ, if it is in [0, 1); raise `InvalidInput` otherwise."""
    number = finite(argument, value)
    if not 0 <= number < 1:
        raise InvalidInput(argument, f"is {number}, which is not in [0, 1)", "use a value far below 1/n, such as 1e-5")
    return number


def confidence(argument: str, value: float) -> float:
    """Return `value`, the confidence of an interval, if it is in (0, 1); raise `InvalidInput` otherwise."""
    number = finite(argument, value)
    if not 0 < number < 1:
        raise InvalidInput(argument, f"is {number:g}, which is not between 0 and 1", "use 0.95 for 95 %")
    return number


def count(argument: str, value: int, least: int = 1) -> int:
    """Return `value` if it is an integer of at least `least`; raise `InvalidInput` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(argument, f"is {value!r}, which is not a whole number", "give an integer such as 100")
    if value < least:
        raise InvalidInput(argument, f"is {value}, which is below {least}", f"give {least} or more")
    return value


def member(argument: str, value: object, kind: type[E]) -> E:
    """Return the member of an enum, given itself or its value; raise `InvalidInput` if there is none."""
    try:
        return kind(value)
    except ValueError:
        words = ", ".join(str(each.value) for each in kind)
        raise InvalidInput(argument, f"is {value!r}", f"use one of: {words}") from None


def text(argument: str, value: str) -> str:
    """Return `value` if it is a text and not blank; raise `InvalidInput` otherwise."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(argument, "is empty", "say it in a few words")
    return value


def texts(argument: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return several texts as a tuple; raise `InvalidInput` if one of them is blank, or a single text is given."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidInput(argument, f"is {values!r}, where several texts are wanted", "give a tuple of texts")
    return tuple(text(argument, value) for value in values)
