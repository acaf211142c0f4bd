"""What one row holds moves no other row: its cells, its class, its fold or its score, whatever the rows came in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from privet.core.errors import InvalidInput
from privet.sklearn import HashedFolds, PrivateClassifier, PrivateRegressor, private_scorer
from privet.sklearn.cells import column_of, columns_of, key, keys, numbers, words
from privet.sklearn.rows import Columns, column

ROWS = 60
ODD: dict[str, Any] = {
    "text": "x",
    "number in letters": "1",
    "bytes": b"x",
    "none": None,
    "nan": float("nan"),
    "fraction": 0.5,
    "minus zero": -0.0,
    "true": True,
    "beyond int64": 2**63 + 5,
    "beyond floats": 10**400,
    "complex": 1j,
    "date": dt.date(2020, 1, 1),
}
"""What the one row may hold that is added to the others."""

Rows = list[list[Any]]


def objects(rows: Any) -> npt.NDArray[Any]:
    found = np.empty(np.shape(rows) if np.ndim(rows) == 2 else len(rows), dtype=object)
    for place, row in enumerate(rows):
        found[place] = row
    return found


def frame(rows: Rows) -> pl.DataFrame:
    """By columns, of a type that all cells of a column have: Polars turns numbers into texts where it must."""
    wide = [[None if isinstance(cell, complex) else cell for cell in column] for column in zip(*rows, strict=True)]
    huge = [[float(c) if isinstance(c, int) and 2**63 < c < 2**70 else c for c in column] for column in wide]
    told = [[str(c) if isinstance(c, int) and c > 2**70 else c for c in column] for column in huge]
    return pl.DataFrame({f"c{place}": pl.Series(column, strict=False) for place, column in enumerate(told)})


CONTAINERS: dict[str, tuple[Callable[[Rows], Any], Callable[[list[Any]], Any]]] = {
    "lists": (lambda rows: rows, lambda labels: labels),
    "rows that are arrays": (lambda rows: [objects(row) for row in rows], tuple),
    "object arrays": (objects, objects),
    "arrays of NumPy's choice": (np.array, np.array),
    "frames": (frame, lambda labels: frame([[label] for label in labels]).to_series(0)),
}


def some_rows() -> tuple[Rows, list[Any]]:
    """A fraction, a whole number that is a category, and what is missing; and two classes."""
    drawn = np.random.default_rng(0)
    labels = [int(each) for each in drawn.integers(0, 2, ROWS)]
    rows = [[float(a), int(b), float("nan")] for a, b in zip(drawn.normal(size=ROWS), labels, strict=True)]
    return rows, labels


def seen(container: str, rows: Rows, labels: list[Any]) -> dict[str, npt.NDArray[Any]]:
    """What becomes of each row, in everything that reads rows."""
    given, targets = (make(part) for make, part in zip(CONTAINERS[container], (rows, labels), strict=True))
    columns = Columns.of((-3, 3), {1: [0, 1]}, None, 3)
    known = Columns.of(None, {0: [0, 1]}, None, 1)
    y = column(targets, len(rows))
    return {
        "cells": columns.table(columns_of(given)[1]),
        "classes": known.table([y]),
        "targets": numbers(y),
        "folds": HashedFolds(50)._fold(given),
    }


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("container", CONTAINERS)
def test_what_one_row_holds_moves_no_other(container: str, odd: str) -> None:
    """Catches one type for all rows (`np.asarray` of a list), comparisons after it, and NaN with other bits."""
    if (container, odd) == ("arrays of NumPy's choice", "complex"):
        pytest.skip("an array of complex numbers is refused, by its type")
    rows, labels = some_rows()
    before = seen(container, rows, labels)
    assert len(set(before["classes"][:, 0])) == 2  # both are known
    for place in range(3):
        added = [0.25, 1, 7.0]
        added[place] = ODD[odd]
        after = seen(container, [*rows, added], [*labels, ODD[odd]])
        for part, found in before.items():
            assert len(after[part]) == ROWS + 1
            np.testing.assert_array_equal(after[part][:ROWS], found, err_msg=part)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("bounds", [None, (0, 2)])
def test_one_row_moves_a_score_by_one(container: str, odd: str, bounds: Any) -> None:
    """Catches a text among the labels that makes all of them wrong: right and wrong move by 1 in L1, but for a grid."""
    _, labels = some_rows()
    scorer, made = private_scorer(1.0, target_bounds=bounds, source="codebook"), CONTAINERS[container][1]
    before = scorer.mechanism.query(scorer._scores(np.array(labels), made(labels))).value
    after = scorer.mechanism.query(scorer._scores(np.array([*labels, 0]), made([*labels, ODD[odd]]))).value
    assert before == pytest.approx([ROWS, 0], abs=1e-4)
    assert np.abs(after - before).sum() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("make", [PrivateClassifier, PrivateRegressor])
def test_one_row_of_no_class_leaves_a_fit_as_it_was(make: Any) -> None:
    """The whole way, with one step over all rows and the same noise: catches a text among labels that blanks them all.

    The row that is added counts for nothing, so that only the sum's rounding differs.
    """
    rows, labels = some_rows()
    given = {
        "source": "codebook",
        "bounds": (-3, 3),
        "categories": {1: [0, 1]},
        "rows": ROWS,
        "batch_size": ROWS,
        "epochs": 1,
        "bins": 4,
    }
    own = {"classes": [0, 1]} if make is PrivateClassifier else {"target_bounds": (0, 1)}

    def weights(x: Rows, y: list[Any]) -> npt.NDArray[Any]:
        model = make(1.0, **given, **own, random_state=7, learning_rate=1.0).fit(x, y).release_.value
        return np.concatenate([each.detach().double().numpy().ravel() for each in model.parameters()])

    alone = weights(rows, labels)
    assert weights([*rows, ["x", "y", None]], [*labels, "?"]) == pytest.approx(alone, abs=1e-6)
    assert np.abs(weights(rows, ["?"] * ROWS) - alone).max() > 1e-4


SAME = [
    1,
    1.0,
    True,
    np.int8(1),
    np.float32(1),
    np.uint64(1),
    np.True_,
    "1",
    "1.0",
    " 01 ",
    "True",
    b"1",
    1 + 0j,
    np.array(1),
]
OTHERS = [
    "one",
    "",
    "x",
    dt.date(2020, 1, 1),
    dt.timedelta(1),
    (1, 2),
    1j,
    np.complex64(2j),
    2,
    -1.5,
    float("inf"),
    frozenset((1,)),
]
MISSING = [None, float("nan"), np.float32("nan"), "nan", np.datetime64("NaT"), np.timedelta64("NaT")]


def test_one_value_has_one_form() -> None:
    """Catches a form by which two ways to write one value down differ, or two values agree."""
    assert {key(each) for each in SAME} == {1.0}
    assert {key(each) for each in MISSING} == {None}
    assert len({key(each) for each in (1, None, *OTHERS)}) == len(OTHERS) + 2
    assert (
        key(np.datetime64("2020-01-01", "ns")) == key(dt.date(2020, 1, 1)) == np.datetime64("2020-01-01", "us").item()
    )
    assert key(np.timedelta64(5, "s")) == dt.timedelta(seconds=5)
    assert key(10**400) == -key(-(10**400)) == float("inf")
    assert key({"a": [1]}) == "{'a': [1]}"


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, 2**53 + 1, -(2**62)]),
        np.array([0.1, -0.0, np.nan, np.inf]),
        np.array([0.1, 3.0], dtype=np.float32),
        np.array([0.1, np.inf, 1e-320], dtype=np.longdouble) * 10,
        np.array([True, False]),
        np.array([1, 1j, np.nan]),
        np.array(["1", "x", "nan", ""]),
        np.array([b"1", b"x"]),
        np.array(["2020-01-01", "NaT"], dtype="M8[ns]"),
        np.array([5, 6], dtype="m8[s]"),
    ],
)
def test_a_type_for_all_cells_says_the_same_as_none(array: npt.NDArray[Any]) -> None:
    """Catches a fast path for arrays with a type that differs from the way of single cells."""
    single = column_of("y", list(array))
    mixed = column_of("y", [*array, object()])
    assert keys(array) == keys(single) == keys(mixed)[:-1]
    np.testing.assert_array_equal(numbers(array), numbers(single))
    np.testing.assert_array_equal(words(array), words(single))
    np.testing.assert_array_equal(words(array), words(mixed)[:-1])
    np.testing.assert_array_equal(numbers(array), numbers(mixed)[:-1])


TYPES: dict[str, Callable[[npt.NDArray[np.float32]], Any]] = {
    "a text": lambda cells: np.array([*cells, "x"]),
    "a float64": lambda cells: np.array([*cells, 0.1]),
    "a whole number": lambda cells: np.array([*cells, 2**40 + 1]),
    "an object": lambda cells: np.array([*cells, None], dtype=object),
    "nothing, in a list": lambda cells: [*cells, None],
    "a float64, in a frame": lambda cells: pl.concat([pl.Series(cells).cast(pl.Float64), pl.Series([0.1])]),
    "a text, in a frame": lambda cells: pl.concat([pl.Series(cells).cast(pl.String), pl.Series(["x"])]),
}
"""What one row more makes of cells that were float32."""


@pytest.mark.parametrize("added", TYPES)
def test_one_row_moves_no_cell_of_float32(added: str) -> None:
    """Catches 0.1 in float32 that is one number as a float32, another as a float64 and a third as a text."""
    drawn = np.random.default_rng(1)
    sizes = 10.0 ** drawn.uniform(-30, 30, 400)
    cells = np.concatenate([drawn.random(400), sizes, [0.1, 1e-45, 2**24, 123456792, 3e38]]).astype(np.float32)
    more = column_of("y", TYPES[added](cells))
    assert more.dtype != np.float32
    assert len(set(keys(cells))) == len(set(cells.tolist()))  # and no two are taken for one
    assert keys(cells) == keys(more)[:-1]
    np.testing.assert_array_equal(numbers(cells), numbers(more)[:-1])
    np.testing.assert_array_equal(words(cells), words(more)[:-1])
    assert np.abs(numbers(cells) / cells.astype(float) - 1)[cells > 1e-37].max() < 2.0**-24


@pytest.mark.parametrize("kind", [np.float16, np.longdouble])
def test_types_without_a_form_are_refused(kind: Any) -> None:
    """Catches an array of which one row more, of another type, would move the others."""
    array = np.zeros((3, 2), dtype=kind)
    with pytest.raises(InvalidInput, match=r"X is of the type float.*\.astype\(float\)"):
        columns_of(array)
    with pytest.raises(InvalidInput, match="y is of the type"):
        column_of("y", array[:, 0])
    assert keys(column_of("y", list(array[:, 0]))) == [0.0] * 3  # cells have no type in common


@pytest.mark.parametrize(
    "cell",
    [
        Decimal("sNaN"),
        Decimal("1e9999"),
        np.ma.masked,
        np.longdouble("1e4000"),
        np.float16(0.1),
        Fraction(10**400),
        np.array(Decimal("sNaN"), dtype=object),
    ],
)
def test_no_cell_raises_or_warns(cell: Any) -> None:
    """Catches a cell whose own arithmetic raises, or warns, which would show an analyst that it is there."""
    column = column_of("y", [1.0, "x", cell])
    alone = column_of("y", [2.0, cell])
    for given in (column, alone):
        assert keys(given)[0] == numbers(given)[0] == given[0]
        assert len(words(given)) == len(given)
    Columns.of((0, 1), {0: [1]}, None, 1).table([column])


def test_what_a_mask_covers_is_missing() -> None:
    """Catches values below a mask that are read all the same."""
    masked = np.ma.masked_equal(np.array([[1.0, 2.0], [3.0, 4.0]]), 3.0)
    assert [keys(each) for each in columns_of(masked)[1]] == [[1.0, None], [2.0, 4.0]]
    assert keys(column_of("y", masked[:, 0])) == [1.0, None]


def test_one_value_has_one_fold() -> None:
    """Catches bits of -0, or of another NaN, that come with the type of a column and not with the value."""
    zeros, gone = [0, 0.0, -0.0, "-0", False], [None, "nan", np.nan, np.copysign(np.nan, -1.0)]
    for alike in (zeros, gone):
        assert len(set(words(column_of("y", alike)).tolist())) == 1
    assert len(set(words(np.array([np.nan, np.copysign(np.nan, -1.0)])).tolist())) == 1
    assert len(set(words(np.array([0.0, -0.0])).tolist())) == 1
    assert len(set(words(column_of("y", [0, None, *OTHERS])).tolist())) == len(OTHERS) + 2


@pytest.mark.parametrize("twice", [[1, 1.0, 2], ["1", 1], ["01", "1"], [True, 1], [2**53, 2**53 + 1]])
def test_values_that_are_one_are_not_listed_twice(twice: list[Any]) -> None:
    """Catches a list of which one value could never be found."""
    rows, labels = some_rows()
    with pytest.raises(InvalidInput, match="categories"):
        Columns.of((0, 1), {0: twice}, None, 2)
    with pytest.raises(InvalidInput, match="classes"):
        PrivateClassifier(source="domain limit", bounds=(0, 1), classes=twice, rows=ROWS).fit(rows, labels)


def test_rows_in_lists_have_shapes_too() -> None:
    for rows in ([[1, 2], [3]], [[1, 2], 3], [3, [1, 2]]):
        with pytest.raises(InvalidInput, match="different lengths"):
            columns_of(rows)
    assert columns_of([1, "x"])[0] == columns_of([])[0] == 1
    assert [len(part) for part in columns_of([[1, [2]], np.array([1, 2])])[1]] == [2, 2]
    assert len(columns_of(np.zeros((4, 3, 2)))[1]) == 6
    assert keys(column_of("y", [[1], [0]])) == [1.0, 0.0]
