"""Whether a schema can answer a question: known before any row is read, so that a refusal costs nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from privet.core import InvalidInput
from privet.data import Category, Column, Identifier, Number, Schema
from privet.query.conditions import All, AnyOf, CellComparison, Condition, IsMissing, Not, OneOf, Op, quoted
from privet.query.questions import HistogramMeasure, Question, TopKMeasure
from privet.query.tokens import suggestion

__all__ = ["MOST_GROUPS", "SchemaMismatch", "name_of_value", "require_answerable", "value_as_number"]

MOST_GROUPS = 100_000
_NARROWEST = 1e-270


class SchemaMismatch(InvalidInput):
    """What the schema cannot answer, and the word that it is about."""

    def __init__(self, word: str, problem: str, advice: str, *, last: bool = False) -> None:
        self.word, self.last = word, last
        """`last`: the word may stand in its part of the question more than once, and the last one is meant."""
        self.part: object = None
        """The part of the question: its measure, its `by`, or one comparison."""
        super().__init__("question", problem, advice)


@contextmanager
def _part(part: object) -> Iterator[None]:
    """What misfits inside is about this part of the question."""
    try:
        yield
    except SchemaMismatch as error:
        error.part = part
        raise


def require_answerable(question: Question, schema: Schema) -> None:
    """Raise unless every column is in the schema and of the kind that is wanted."""
    with _part(question.measure):
        _require_measure(question, schema)
    with _part(question.by):
        if isinstance(question.measure, TopKMeasure) and question.by:
            raise SchemaMismatch(question.by[0], "top has no groups", "use histogram, or where for one group")
    _require_condition(question.where, schema)
    with _part(question.by):
        _require_groups(question, schema)


def _require_measure(question: Question, schema: Schema) -> None:
    for name in question.measure.columns:
        column = _found(name, schema)
        _require_measurable(column)
        if isinstance(question.measure, TopKMeasure):
            _require_category(column, "top counts values")
            listed = column.values if isinstance(column, Category) else ()
            if 0 < len(listed) < question.measure.k:
                problem = f"the schema has only {len(listed)} values of {name!r}"
                raise SchemaMismatch(str(question.measure.k), problem, "ask for fewer", last=True)
        elif isinstance(question.measure, HistogramMeasure):
            if isinstance(column, Category) and question.measure.cells is not None:
                raise SchemaMismatch(name, f"{name!r} is a category, and only numbers have cells", "leave them out")
        elif not isinstance(column, Number):
            advice = 'use histogram, or call it kind = "number" with low and high in the schema'
            raise SchemaMismatch(name, f"{name!r} is a category and has no bounds", advice)


def _require_groups(question: Question, schema: Schema) -> None:
    groups = 1
    for name in question.by:
        column = _found(name, schema)
        _require_category(column, "groups are values")
        groups *= len(column.values) + 1 if isinstance(column, Category) else 1
        if question.by.count(name) > 1:
            raise SchemaMismatch(name, f"{name!r} is there twice", "group by each column once", last=True)
    if groups > MOST_GROUPS:
        raise SchemaMismatch(question.by[0], f"these are {groups:,} groups", f"ask for {MOST_GROUPS:,} at most")


def value_as_number(value: str | float) -> float:
    """A value as a finite number, or NaN."""
    try:
        number = float(value)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _found(name: str, schema: Schema) -> Column:
    column = schema.find(name)
    if column is None:
        raise SchemaMismatch(
            name, f"the schema has no column {name!r}", suggestion(name, [known.name for known in schema.columns])
        )
    if isinstance(column, Identifier):
        problem = f"{name!r} is an identifier, and no question may read it"
        raise SchemaMismatch(
            name, problem, 'if it names no person, call it kind = "category" with values = [] in the schema'
        )
    return column


def _require_measurable(column: Column) -> None:
    """Between bounds that are nearly nothing apart, or nearly everything, float64 has no numbers to count with."""
    if isinstance(column, Number):
        width, largest = column.high - column.low, max(abs(column.low), abs(column.high))
        if not (width >= _NARROWEST and largest <= 1 / _NARROWEST):
            problem = f"the schema has {column.name!r} from {column.low:g} to {column.high:g}, out of float64's reach"
            raise SchemaMismatch(column.name, problem, "use another unit of measure, between 1e-270 and 1e270")


def _require_category(column: Column, why: str) -> None:
    if not isinstance(column, Category):
        problem = f"{column.name!r} is a number, and {why}"
        raise SchemaMismatch(column.name, problem, f"use histogram({column.name}, 10)")


def _require_condition(condition: Condition | None, schema: Schema) -> None:
    match condition:
        case None:
            return
        case Not():
            _require_condition(condition.condition, schema)
        case All() | AnyOf():
            for part in condition.conditions:
                _require_condition(part, schema)
        case _:
            with _part(condition):
                _require_leaf(condition, schema)


def _require_leaf(condition: IsMissing | CellComparison | OneOf, schema: Schema) -> None:
    column = _found(condition.column, schema)
    match condition:
        case IsMissing():
            return
        case CellComparison():
            if isinstance(column, Category) and condition.op not in (Op.EQUAL, Op.UNEQUAL):
                problem = f"{column.name!r} is a category, which is neither more nor less than a value"
                raise SchemaMismatch(column.name, problem, "use = or != or in")
            _require_value(condition.value, column)
            _require_possible(condition.op, condition.value, column)
        case OneOf():
            for value in condition.values:
                _require_value(value, column)
                _require_possible(Op.EQUAL, value, column)


def _require_value(value: str | float, column: Column) -> None:
    if isinstance(column, Number):
        if math.isnan(value_as_number(value)):
            problem = f"{column.name!r} is a number, and {value!r} is none"
            raise SchemaMismatch(str(value), problem, "compare it with a number", last=True)
    elif isinstance(column, Category) and column.values and name_of_value(value) not in column.values:
        problem = f"{name_of_value(value)!r} is not among the schema's values of {column.name!r}"
        raise SchemaMismatch(str(value), problem, suggestion(name_of_value(value), column.values), last=True)


def _require_possible(op: Op, value: str | float, column: Column) -> None:
    """A comparison that no number within the public bounds passes has an answer already, which need not be paid for."""
    if not isinstance(column, Number):
        return
    number = value_as_number(value)
    possible = {
        Op.EQUAL: column.low <= number <= column.high,
        Op.LESS: number > column.low,
        Op.AT_MOST: number >= column.low,
        Op.MORE: number < column.high,
        Op.AT_LEAST: number <= column.high,
    }
    if not possible.get(op, True):
        problem = (
            f"the schema has {column.name!r} from {column.low:g} to {column.high:g}, so that this is true of no row"
        )
        advice = "compare it with a number between these, or correct the schema's bounds"
        raise SchemaMismatch(str(value), problem, advice, last=True)


def name_of_value(value: str | float) -> str:
    """A value as the name of a category."""
    return value if isinstance(value, str) else quoted(value)
