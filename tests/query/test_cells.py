"""Expressions in Polars read cells exactly as `privet.data` does."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from privet.data import Category, Missing, Number, Outside, Schema
from privet.data.source import codes_of, numbers_of
from privet.query import CellComparison, Op, parse
from privet.query.column_reader import ColumnReader
from tests.data.sources import sourced

CELLS: dict[str, pl.Series] = {
    "texts": pl.Series(["1", " 2 ", "", "?", "-99", "nan", "inf", "-inf", "x", "1e400", "0x10", "2.0", None, "100"]),
    "floats": pl.Series([1.0, 2.5, math.nan, math.inf, -math.inf, None, -99.0, 1e300, -0.0, 100.0]),
    "int8": pl.Series([1, 2, None, -99, 100, 127, -128, 0], dtype=pl.Int8),
    "uint64": pl.Series([1, 2, None, 2**64 - 1, 2**63, 0], dtype=pl.UInt64),
    "flags": pl.Series([True, False, None]),
    "categories": pl.Series(["1", "2", None, " 1", "zz"], dtype=pl.Categorical),
    "nothing": pl.Series([None, None], dtype=pl.Null),
}
NUMBERS = (
    Number("x", 0, 50),
    Number("x", -100, 50, missing=Missing.MIDDLE),
    Number("x", 0, 50, missing=7, outside=Outside.MISSING),
)
CATEGORIES = (
    Category("x", ("1", "2", "true", "1.0", "300")),
    Category("x", ("2", "x"), missing="2"),
)
WORDS = (("", "?", "NA"), ("", "?", "-99"))


@pytest.mark.parametrize("words", WORDS, ids=str)
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("column", NUMBERS, ids=str)
def test_numbers_are_read_alike(column: Number, kind: str, words: tuple[str, ...]) -> None:
    """Fails when a missing, infinite or outlying cell becomes something else than in a table that a model sees."""
    cells = CELLS[kind].alias("x")
    schema = sourced(Schema((column, Category("y", ("a",))), missing=words))
    found = (
        cells.to_frame()
        .select(ColumnReader(schema, {"x": cells.dtype}).number("x").alias("found"))["found"]
        .cast(pl.Float64)
    )
    wanted = column.unscaled(column.scaled(numbers_of(cells, words)))
    np.testing.assert_allclose(found.fill_null(math.nan).to_numpy(), wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("words", WORDS, ids=str)
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("column", CATEGORIES, ids=str)
def test_categories_are_read_alike(column: Category, kind: str, words: tuple[str, ...]) -> None:
    """Fails when a value, a blank, a missing cell or `other` gets another code than in a table of `privet.data`."""
    cells = CELLS[kind].alias("x")
    schema = sourced(Schema((column, Category("y", ("a",))), missing=words))
    reading = ColumnReader(schema, {"x": cells.dtype})
    found = cells.to_frame().select(reading.code("x").alias("found"))["found"]
    wanted = codes_of(cells, column, words)
    assert found.to_list() == wanted.tolist()
    for place, value in enumerate(column.values):
        met, unmet = (
            cells.to_frame().filter(reading.meets(CellComparison("x", op, value))) for op in (Op.EQUAL, Op.UNEQUAL)
        )
        assert len(met) == int((wanted == place).sum())
        assert len(met) + len(unmet) == len(cells)


COMPARED: dict[str, Callable[[float], bool]] = {
    "x > 2": lambda v: v > 2,
    "x >= 2": lambda v: v >= 2,
    "x < 2": lambda v: v < 2,
    "x <= 2": lambda v: v <= 2,
    "x = 2": lambda v: v == 2,
    "x != 2": lambda v: not math.isnan(v) and v != 2,
    "x >= 50": lambda v: v >= 50,
    "x < 50": lambda v: v < 50,
    "x is missing": math.isnan,
    "not x > 2": lambda v: not v > 2,
    "x in (1, 2)": lambda v: v in (1, 2),
    "x > 0 and x < 2 or x is missing": lambda v: 0 < v < 2 or math.isnan(v),
    "not (x > 0 and not x = 1)": lambda v: not (v > 0 and v != 1),
}


@pytest.mark.parametrize("words", WORDS, ids=str)
@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("text", COMPARED)
def test_conditions_are_true_or_false(text: str, kind: str, words: tuple[str, ...]) -> None:
    """Fails when a comparison with a missing number is true, NaN is more than 2, or a short cut changes a row."""
    cells = CELLS[kind].alias("x")
    for column in NUMBERS[0], NUMBERS[2]:
        schema = sourced(Schema((column, Category("y", ("a",))), missing=words))
        where = parse(f"count where {text}", schema).where
        assert where is not None
        met = (
            cells.to_frame()
            .with_row_index()
            .filter(ColumnReader(schema, {"x": cells.dtype}).meets(where))["index"]
            .to_list()
        )
        values = column.unscaled(column.scaled(numbers_of(cells, words))).tolist()
        assert met == [place for place, value in enumerate(values) if COMPARED[text](round(value, 9))]
