"""Cells as the schema reads them, as Polars expressions: what a cell becomes depends on that cell alone.

The rules are those of `privet.data.read`, written so that Polars can evaluate them where the rows are: on a stream, on
all cores, and without a copy of the table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any

import polars as pl

from privet.core import InvalidInput
from privet.data import Category, Number, Outside, Schema, spelling
from privet.query.conditions import All, AnyOf, CellComparison, Condition, IsMissing, Not, OneOf, Op
from privet.query.schema_check import name_of_value, value_as_number

if TYPE_CHECKING:
    from polars.datatypes import DataType

__all__ = ["ColumnReader"]

_TEXTS = (pl.String, pl.Categorical, pl.Enum)


@dataclass(frozen=True)
class ColumnReader:
    """How the columns of one table are read."""

    schema: Schema
    types: Mapping[str, DataType]
    """The type of each column as it is stored, which is public."""

    def column(self, name: str) -> Any:
        """The schema's column."""
        column = self.schema.find(name)
        if column is None:
            raise InvalidInput("question", f"has the column {name!r}, which the schema lacks", "check the spelling")
        return column

    def number(self, name: str) -> pl.Expr:
        """A number within its bounds; null where it is missing."""
        column: Number = self.column(name)
        kind, cell = self.types[name], pl.col(name)
        if kind in _TEXTS:
            cell = cell.cast(pl.String).str.strip_chars()
        value = cell.cast(pl.Float64, strict=False)
        if not kind.is_integer():
            value = value.fill_nan(None)
        words = [word for word in map(value_as_number, self.schema.missing) if not math.isnan(word)]
        if words:
            value = pl.when(value.is_in(words)).then(None).otherwise(value)
        if column.outside is Outside.MISSING:
            value = pl.when(value.is_between(column.low, column.high)).then(value).otherwise(None)
        value = value.clip(float(column.low), float(column.high))
        return value if math.isnan(column.substitute) else value.fill_null(column.substitute)

    def text(self, name: str) -> pl.Expr:
        """A text without blanks around it; null where it is missing."""
        value = self._stripped(name)
        return pl.when(value.is_in(list(self.schema.missing))).then(None).otherwise(value)

    def _stripped(self, name: str) -> pl.Expr:
        return spelling(pl.col(name), self.types[name]).str.strip_chars()

    def code(self, name: str) -> pl.Expr:
        """The place of a category among its values; `other` is the place after them."""
        column: Category = self.column(name)
        if self.types[name].is_integer():
            whole = {value: index for index, value in enumerate(column.values) if _is_whole(value)}
            absent = [int(word) for word in self.schema.missing if _is_whole(word)]
            coded, cell = pl.lit(column.other, pl.Int64), pl.col(name)
            for name_, code in whole.items():
                coded = pl.when(cell == int(name_)).then(pl.lit(code, pl.Int64)).otherwise(coded)
            return (
                pl.when(cell.is_null() | cell.is_in(absent)).then(pl.lit(column.substitute, pl.Int64)).otherwise(coded)
            )
        # No word for missing is a value, so that without a rule for it what is missing is `other` by itself.
        index = self._stripped(name).cast(pl.Enum(column.values), strict=False).to_physical().cast(pl.Int64)
        if column.missing is not None:
            index = pl.when(self.text(name).is_null()).then(pl.lit(column.substitute, pl.Int64)).otherwise(index)
        return index.fill_null(column.other)

    def meets(self, condition: Condition) -> pl.Expr:
        """Whether a row meets a condition: true, or something else, false and null alike.

        A filter drops both, and an expression that is a comparison and nothing more is what Polars evaluates fastest.
        """
        match condition:
            case Not():
                return ~self.meets(condition.condition).fill_null(False)
            case All():
                return reduce(and_, map(self.meets, condition.conditions))
            case AnyOf():
                return reduce(or_, map(self.meets, condition.conditions))
            case IsMissing():
                return self._missing(condition.column)
            case OneOf():
                same = [CellComparison(condition.column, Op.EQUAL, value) for value in condition.values]
                return reduce(or_, map(self.meets, same))
            case CellComparison():
                if isinstance(self.column(condition.column), Number):
                    return self._compared(condition)
                is_value = self._is(condition.column, name_of_value(condition.value))
                return is_value if condition.op is Op.EQUAL else ~is_value.fill_null(False)

    def _missing(self, name: str) -> pl.Expr:
        column = self.column(name)
        if isinstance(column, Number):
            return self.number(name).is_null()
        return pl.lit(False) if column.missing is not None else self.text(name).is_null()

    def _compared(self, condition: CellComparison) -> pl.Expr:
        column: Number = self.column(condition.column)
        value, kind = value_as_number(condition.value), self.types[condition.column]
        cell = self.number(condition.column)
        # Strictly within the bounds, clamping cannot change the answer: the cell is compared as it is stored.
        stored = column.outside is Outside.CLAMP and math.isnan(column.substitute) and kind.is_numeric()
        if (
            stored
            and column.low < value < column.high
            and all(map(math.isnan, map(value_as_number, self.schema.missing)))
        ):
            cell = pl.col(condition.column)
        compared = {
            Op.EQUAL: cell == value,
            Op.UNEQUAL: cell != value,
            Op.LESS: cell < value,
            Op.AT_MOST: cell <= value,
            Op.MORE: cell > value,
            Op.AT_LEAST: cell >= value,
        }[condition.op]
        # To Polars, NaN is more than every number; here it is missing.
        above = kind.is_float() and condition.op in (Op.MORE, Op.AT_LEAST, Op.UNEQUAL)
        return compared & cell.is_not_nan() if above else compared

    def _is(self, name: str, value: str) -> pl.Expr:
        column: Category = self.column(name)
        if column.missing == value:  # what is missing counts as this value
            return self.code(name) == column.values.index(value)
        if value in self.schema.missing:
            return pl.lit(False)
        if self.types[name].is_integer():
            return pl.col(name) == int(value) if _is_whole(value) else pl.lit(False)
        # A value that is no word for missing is none of those words after blanks are cut off, either.
        return self._stripped(name) == value


def _is_whole(text: str) -> bool:
    """Whether a text is how a whole number of 64 bits is written."""
    try:
        return str(int(text)) == text and abs(int(text)) < 2**63
    except ValueError:
        return False
