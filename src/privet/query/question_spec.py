"""What is counted for one question: groups, and whole numbers that every row adds to the sums of its group."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from privet import mechanisms
from privet.core import InvalidInput, Unit, Whose
from privet.data import Category, Number, Schema
from privet.mechanisms import Reach
from privet.query import questions as measures
from privet.query.column_reader import ColumnReader
from privet.query.questions import Question
from privet.query.schema_check import require_answerable

__all__ = ["GRAIN", "MISSING", "OTHER", "Label", "QuestionSpec", "unit_of"]

OTHER, MISSING = "(other)", "(missing)"
"""The groups of what is not among the schema's values, and of what is missing."""
GRAIN = 30
"""A row adds at most 2^30 to a sum: as a table has less than 2^32 rows, no sum leaves 64 bits."""
_CELLS, _QUANTILE_CELLS = 10, 1024
_MOST_SUMS = 1_000_000
_EXTREME, _LEAST_EXTREME, _MOST_EXTREME = 0.01, 0.001, 0.25
_STRAYS = 0.01
"""How often an extreme may come out beyond all rows."""

Label = tuple[str, ...]


def unit_of(schema: Schema) -> tuple[Unit, int]:
    """Whose data is protected, and how many rows of one unit are used."""
    if schema.user is None:
        return Unit(), 1
    if schema.most_rows_per_user is None:
        problem = "is missing from the schema, so that one user could move an answer without limit"
        raise InvalidInput("most_rows_per_user", problem, "say how many rows of one user are used, such as 5")
    return Unit(whose=Whose.USER), schema.most_rows_per_user


@dataclass(frozen=True)
class QuestionSpec:
    """The public facts of a question: they follow from the schema alone.

    Guarantee: one row adds to the sums of one group, by at most `bound` steps in all, of which no sum gets more than
    `bound`; so a unit of `rows` rows moves everything by at most `rows` times that (L1, L2 and L∞). Rows that are
    missing what is measured add nothing. Which group a row is in, and what it adds, depends on that row alone; no row
    raises, and every public group is there, whether or not it has rows.
    """

    question: Question
    schema: Schema

    def __post_init__(self) -> None:
        require_answerable(self.question, self.schema)
        if self.groups is not None and len(self.groups) * self.sums > _MOST_SUMS:
            problem = f"needs {len(self.groups) * self.sums:,} sums"
            raise InvalidInput("question", problem, f"use fewer groups; {_MOST_SUMS:,} is the most")

    @property
    def unit(self) -> Unit:
        """Whose data is protected."""
        return unit_of(self.schema)[0]

    @property
    def rows(self) -> int:
        """How many rows of one unit are used."""
        return unit_of(self.schema)[1]

    @cached_property
    def axes(self) -> tuple[str, ...]:
        """The columns that make the groups."""
        measure = self.question.measure
        more = (measure.column,) if isinstance(measure, (measures.HistogramMeasure, measures.TopKMeasure)) else ()
        return tuple(dict.fromkeys((*self.question.by, *more)))

    @cached_property
    def private(self) -> bool:
        """Whether the groups are not public: some column has no values in the schema."""
        return any(isinstance(self.schema.find(name), Category) and not self._labels(name) for name in self.axes)

    @cached_property
    def groups(self) -> tuple[Label, ...] | None:
        """Every group in order; None where they are private."""
        return None if self.private else tuple(itertools.product(*map(self._labels, self.axes)))

    def _category(self, name: str) -> Category:
        column = self.schema.find(name)
        return column if isinstance(column, Category) else Category(name, ())

    def _labels(self, name: str) -> tuple[str, ...]:
        column = self.schema.find(name)
        if isinstance(column, Number):
            edges = [self._edge(column, index) for index in range(self._cells + 1)]
            ends = [f"{low:g} to {high:g}" for low, high in itertools.pairwise(edges)]
            return tuple(ends) + ((MISSING,) if math.isnan(column.substitute) else ())
        values = self._category(name).values
        if not values or isinstance(self.question.measure, measures.TopKMeasure):
            return values
        return (*values, OTHER)

    def size(self, name: str) -> int:
        """How many labels an axis has."""
        return len(self._labels(name))

    @property
    def _cells(self) -> int:
        measure = self.question.measure
        return (measure.cells or _CELLS) if isinstance(measure, measures.HistogramMeasure) else _CELLS

    def _edge(self, column: Number, index: int) -> float:
        return column.low + (column.high - column.low) * index / self._cells

    @property
    def number(self) -> Number | None:
        """The number that is measured, the first of two."""
        column = self.schema.find(self.question.measure.columns[0]) if self.question.measure.columns else None
        return column if isinstance(column, Number) else None

    @property
    def sums(self) -> int:
        """How many sums each group has."""
        return _QUANTILE_CELLS if self.ranked else self.question.measure.sums

    @property
    def ranked(self) -> bool:
        """Whether the sums of a group are counts in cells, of which a quantile is chosen."""
        return self.question.measure.is_quantile

    @property
    def whole(self) -> bool:
        """Whether everything is a count of rows."""
        return self.ranked or self.question.measure.is_count

    @property
    def step(self) -> float:
        """What one step of a sum is worth: a power of two."""
        if self.whole:
            return 1.0
        if isinstance(self.question.measure, measures.SumMeasure) and self.number is not None:
            largest = max(abs(self.number.low), abs(self.number.high))
            return float(2.0 ** (math.frexp(largest)[1] - GRAIN))
        return float(2.0**-GRAIN)

    @property
    def bound(self) -> int:
        """How many steps one row adds to all sums together, at most."""
        if self.whole:
            return 1
        if isinstance(self.question.measure, measures.SumMeasure):
            return max(map(abs, self._ends))
        return 1 << GRAIN

    @property
    def _ends(self) -> tuple[int, int]:
        """The bounds of the number in steps."""
        column = self.number
        return (0, 0) if column is None else (round(column.low / self.step), round(column.high / self.step))

    def reach(self, groups: int) -> Reach:
        """How far one unit moves the sums of so many groups, and no fewer than a unit could be in."""
        moved = float(self.rows * self.bound * self.step)
        coordinates = min(self.sums, 4) if not self.ranked else 1
        dimension = max(groups * self.sums, self.rows * coordinates)
        l0 = float(self.rows * coordinates)
        return Reach(self.unit, l0=l0, l1=moved, linf=moved, dimension=dimension, whole=self.whole, monotone=self.whole)

    @property
    def histogram(self) -> mechanisms.Histogram:
        """The cells of one group, for a quantile."""
        column = self.number
        low, high = (0.0, 1.0) if column is None else (column.low, column.high)
        return mechanisms.Histogram(mechanisms.Cells(low, high, _QUANTILE_CELLS), self.unit, self.rows)

    def share(self, epsilon: float) -> float:
        """Which quantile is asked for with this ε: of the extremes, one that some rows lie beyond.

        Nearer to the end than the choice errs, the answer would be noise, anywhere up to the bound. So with a public
        number of rows it is the quantile beyond which r = 2·ln(cells/0.01)/ε rows lie, for each row of a unit: a cell
        beyond all rows is chosen with a weight of e^(-ε·r/2) at most, and all of these together once in 100 answers.
        The rows are taken to be spread evenly over the groups. Without that number it is 1 %.
        """
        measure = self.question.measure
        if isinstance(measure, measures.QuantileMeasure):
            return measure.share
        near = _EXTREME
        if self.schema.rows is not None:
            beyond = 2 * self.rows * math.log(_QUANTILE_CELLS / _STRAYS) / epsilon
            near = beyond * max(len(self.groups or ()), 1) / self.schema.rows
        near = round(min(max(near, _LEAST_EXTREME), _MOST_EXTREME), 3)  # as finely as one is chosen
        return near if isinstance(measure, measures.MinimumMeasure) else 1 - near

    def keys(self, cells: ColumnReader) -> list[pl.Expr]:
        """The group of a row: the place of its label on every axis, and a text where the labels are private."""
        return [self._key(name, cells).alias(f"g{index}") for index, name in enumerate(self.axes)]

    def _key(self, name: str, cells: ColumnReader) -> pl.Expr:
        column = self.schema.find(name)
        if isinstance(column, Number):
            count, width = self._cells, column.high - column.low
            value = cells.number(name)
            cell = ((value - column.low) / width * count).floor().clip(0, count - 1)
            # What rounding put one cell too high or too low is put right, by the edges that are shown.
            cell = cell - ((value < column.low + width * cell / count) & (cell > 0)).cast(pl.Float64)
            up = (value >= column.low + width * (cell + 1) / count) & (cell < count - 1)
            return (cell + up.cast(pl.Float64)).cast(pl.Int64).fill_null(count)
        return cells.code(name) if self._category(name).values else cells.text(name)

    def steps(self, cells: ColumnReader) -> list[pl.Expr]:
        """What a row has to be added up, in whole steps; null where it is missing what is measured."""
        measure = self.question.measure
        match measure:
            case measures.SumMeasure():
                low, high = self._ends
                whole = (cells.number(measure.column) / self.step).round().clip(float(low), float(high))
                return [whole.cast(pl.Int64)]
            case measures.MeanMeasure():
                return [self._unit(measure.column, GRAIN, cells)]
            case measures.VarianceMeasure():
                u = self._unit(measure.column, GRAIN // 2, cells)
                return [u, u * u]
            case measures.CovarianceMeasure():
                u, w = (self._unit(name, GRAIN // 2, cells) for name in measure.columns)
                both = u * w
                return [*(pl.when(both.is_not_null()).then(number) for number in (u, w)), both]
            case _:
                return []

    def sums_of(self, added: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The sums of a group from its rows and added steps; for moments, those of Bernstein's polynomials.

        In whole numbers: with m = 2^bits, Σ(m - u)² = n·m² - 2m·Σu + Σu², and so on.
        """
        m, n, columns = 1 << GRAIN // 2, added[:, 0], added.T
        if isinstance(self.question.measure, measures.SumMeasure):
            return added[:, 1:]
        match self.question.measure:
            case measures.MeanMeasure():
                parts = [(n << GRAIN) - columns[1], columns[1]]
            case measures.VarianceMeasure():
                u, square = columns[1], columns[2]
                parts = [n * m * m - 2 * m * u + square, 2 * (m * u - square), square]
            case measures.CovarianceMeasure():
                u, w, both = columns[1], columns[2], columns[3]
                parts = [n * m * m - m * u - m * w + both, m * w - both, m * u - both, both]
            case _:
                return added
        return np.stack(parts, axis=1)

    def _unit(self, name: str, bits: int, cells: ColumnReader) -> pl.Expr:
        """A number between its bounds as a whole number from 0 to 2^bits."""
        column: Number = cells.column(name)
        share = (cells.number(name) - column.low) / (column.high - column.low)
        return (share * float(1 << bits)).round().clip(0.0, float(1 << bits)).cast(pl.Int64)

    def cell(self, cells: ColumnReader) -> pl.Expr:
        """In which cell of the quantile's histogram a number lies; null where it is missing."""
        column = self.number
        if column is None:
            return pl.lit(None, pl.Int64)
        cell = (cells.number(column.name) - column.low) / (column.high - column.low) * _QUANTILE_CELLS
        return cell.floor().clip(0, _QUANTILE_CELLS - 1).cast(pl.Int64)

    def label(self, key: tuple[str | int | None, ...]) -> Label | None:
        """The label of a group, which is `(missing)` where a private value is; None where `top` counts no such value.

        What is missing is a group like any other, and costs nothing: a row is in one group, whatever it is called.
        """
        labels: list[str] = []
        for name, part in zip(self.axes, key, strict=True):
            if part is None and isinstance(self.question.measure, measures.TopKMeasure):
                return None
            labels.append(MISSING if part is None else part if isinstance(part, str) else self._labels(name)[part])
        return tuple(labels)
