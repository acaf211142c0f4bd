"""Which rows a question is about. Every condition is true or false of a row, by that row alone; none is unknown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, TypeAlias

from privet.core import InvalidInput
from privet.query.tokens import KEYWORDS

__all__ = [
    "All",
    "AnyOf",
    "CellComparison",
    "Condition",
    "IsMissing",
    "Not",
    "OneOf",
    "Op",
    "Value",
    "columns_of",
    "quoted",
]

Value: TypeAlias = str | float
_PLAIN = re.compile(r"-?(0|[1-9]\d*)(\.\d*[1-9])?|[^\W\d][\w.\-]*")


class Op(Enum):
    """How a cell is compared with a value."""

    EQUAL = "="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


def quoted(value: Value) -> str:
    """A value as the language writes it.

    >>> quoted("north"), quoted(40.0), quoted("18-25")
    ('north', '40', "'18-25'")
    """
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in KEYWORDS:
        return value
    if not isinstance(value, str):
        return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
    return f'"{value}"' if "'" in value else f"'{value}'"


@dataclass(frozen=True)
class CellComparison:
    """A cell beside a value. A number is clamped to its bounds first; of a missing one, every comparison is false."""

    column: str
    op: Op
    value: Value

    def __str__(self) -> str:
        return f"{quoted(self.column)} {self.op.value} {quoted(self.value)}"


@dataclass(frozen=True)
class OneOf:
    """Whether a cell is one of some values."""

    column: str
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        if not self.values:
            raise InvalidInput("values", "are none", "list at least one")

    def __str__(self) -> str:
        return f"{quoted(self.column)} in ({', '.join(map(quoted, self.values))})"


@dataclass(frozen=True)
class IsMissing:
    """Whether a cell is missing after the schema's rule: never, where the rule puts a value in its place."""

    column: str

    def __str__(self) -> str:
        return f"{quoted(self.column)} is missing"


@dataclass(frozen=True)
class Not:
    """The rows of which a condition is false, those with missing cells among them."""

    condition: Condition

    def __str__(self) -> str:
        return f"not ({self.condition})"


@dataclass(frozen=True)
class _Several:
    word: ClassVar[str]
    conditions: tuple[Condition, ...]

    def __str__(self) -> str:
        return f" {self.word} ".join(f"({condition})" for condition in self.conditions)


class All(_Several):
    """Rows of which every condition is true."""

    word = "and"


class AnyOf(_Several):
    """Rows of which at least one condition is true."""

    word = "or"


Condition: TypeAlias = CellComparison | OneOf | IsMissing | Not | All | AnyOf
"""Which rows a question is about: a comparison of one cell, or several with `Not`, `All` and `AnyOf`."""


def columns_of(condition: Condition | None) -> tuple[str, ...]:
    """Every column that a condition reads, each once."""
    match condition:
        case None:
            return ()
        case Not():
            return columns_of(condition.condition)
        case All() | AnyOf():
            return tuple(dict.fromkeys(name for part in condition.conditions for name in columns_of(part)))
        case _:
            return (condition.column,)
