"""From what scikit-learn's users pass as X and y to rows of a table, by public bounds, classes and values alone.

What is in a cell never raises and stands in no message: scikit-learn's own checks quote arrays and their sizes, so that
they are left out here, but for those of columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.utils.validation import column_or_1d, validate_data

from privet.core import InvalidInput, checked
from privet.data import Category, Number, Schema
from privet.mechanisms import Categories
from privet.sklearn.cells import column_of, columns_of, key, keys, numbers

__all__ = ["Bounds", "Columns", "cells", "column", "listed", "number", "pair", "plain", "target_number"]

Bounds: TypeAlias = Sequence[Any]
"""(low, high): each a number, or one number for each feature."""


def cells(estimator: Any, X: Any, *, reset: bool) -> list[npt.NDArray[Any]]:
    """The columns of X, each of whatever type; their names and number are kept, or compared with those kept."""
    if issparse(X):
        raise TypeError("X is sparse data, and Privet bounds every cell; give a dense array: X.toarray()")
    dimensions, columns = columns_of(X)
    if dimensions != 2:
        advice = "Reshape your data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row"
        raise InvalidInput("X", f"has {dimensions} dimensions, where rows and columns are wanted", advice)
    if not columns:
        raise InvalidInput("X", "has 0 feature(s) (shape=(, 0)) while a minimum of 1 is required.")
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return columns


def column(y: Any, rows: int) -> npt.NDArray[Any]:
    """y as one value for each row."""
    if y is None:
        problem = "is None: the estimator requires y to be passed, but the target y is None"
        raise InvalidInput("y", problem, "give one target for each row")
    found: npt.NDArray[Any] = column_or_1d(column_of("y", y), warn=True)  # whose shape is right: it quotes nothing
    if len(found) != rows:
        raise InvalidInput("y", "has another number of rows than X", "give one target for each row")
    return found


def listed(argument: str, values: Iterable[Any]) -> Categories:
    """Public values, to be looked up by `keys`."""
    found = tuple(key(each) for each in values)
    if not found or len(set(found)) != len(found):
        problem = "are none, or name one twice: 1, 1.0, True and '1' are one value, as are numbers with one float64"
        raise InvalidInput(argument, problem, "list every value once")
    return Categories(found)


def pair(argument: str, bounds: Any, advice: str) -> tuple[Any, Any]:
    """(low, high), of which either may be a sequence."""
    if bounds is None:
        problem = "is not given, and bounds that are read from the rows tell of them"
        raise InvalidInput(argument, problem, advice)
    if isinstance(bounds, (str, bytes)) or not isinstance(bounds, (Sequence, np.ndarray)) or len(bounds) != 2:
        raise InvalidInput(argument, "is not a pair (low, high)", advice)
    return bounds[0], bounds[1]


def number(argument: str, name: str, low: Any, high: Any, where: str = "") -> Number:
    """Return a column of numbers within public bounds; refuses bounds that are none, in the name of the argument."""
    try:
        return Number(name, plain(low), plain(high))
    except InvalidInput as error:
        raise InvalidInput(argument, f"{where}has a {error.argument} that {error.problem}", error.advice) from None


def target_number(bounds: Any) -> Number:
    """Return the target of a regression within its public bounds (low, high)."""
    advice = "give (low, high) from public knowledge, such as (0, 100)"
    return number("target_bounds", "target", *pair("target_bounds", bounds, advice))


def plain(value: Any) -> Any:
    """A number of NumPy's, as grids of arguments often have them, as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True)
class Columns:
    """What is public of the features: for each a range, or a list of values."""

    features: tuple[Number | Categories, ...]

    @staticmethod
    def of(bounds: Any, categories: Any, names: Sequence[str] | None, width: int) -> Columns:
        """Return the columns that the constructor's arguments describe."""
        values = _values(categories, names, width)
        if len(values) == width:
            return Columns(tuple(values[place] for place in range(width)))
        advice = "give (low, high) from public knowledge, such as (0, 100) or ([0, 18], [1, 120])"
        low, high = (
            _each(side, end, width) for side, end in zip(("low", "high"), pair("bounds", bounds, advice), strict=True)
        )
        return Columns(
            tuple(
                values.get(place) or number("bounds", f"x{place}", low[place], high[place], f"for feature {place} ")
                for place in range(width)
            )
        )

    @property
    def schema(self) -> Schema:
        """The same for the models of `privet.training`."""
        return Schema(
            tuple(
                feature
                if isinstance(feature, Number)
                else Category(f"x{place}", tuple(f"v{code}" for code in range(feature.size)))
                for place, feature in enumerate(self.features)
            )
        )

    def table(self, X: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
        """Return columns as `privet.data.Table.x` has them: each cell by itself, and none raises."""
        table = np.empty((len(X[0]), len(X)), dtype=np.float64)
        for place, feature in enumerate(self.features):
            if isinstance(feature, Number):
                table[:, place] = feature.scaled(numbers(X[place]))
            else:
                codes = feature.place(keys(X[place]))
                table[:, place] = np.where(codes < 0, feature.size, codes)
        return table


def _values(categories: Any, names: Sequence[str] | None, width: int) -> dict[int, Categories]:
    if categories is None:
        return {}
    if not isinstance(categories, Mapping):
        raise InvalidInput("categories", "is not a dict", 'give {column: values}, such as {"ward": ["north", "south"]}')
    values = {}
    places = {name: place for place, name in enumerate(names if names is not None else ())}
    for name, given in categories.items():
        place = places.get(name, name) if isinstance(name, str) else name
        if isinstance(place, bool) or not isinstance(place, (int, np.integer)) or not 0 <= place < width:
            raise InvalidInput("categories", f"has the column {name!r}, which X has not", "use its name or its place")
        if isinstance(given, (str, bytes)) or not isinstance(given, (Sequence, np.ndarray)):
            raise InvalidInput("categories", f"has no list of values for {name!r}", "list every value once")
        values[int(place)] = listed("categories", given)
    return values


def _each(side: str, end: Any, width: int) -> list[float]:
    """One number for each feature."""
    try:
        array = np.asarray(end, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            "bounds", f"has a {side} that is no number", "give numbers, or one for each feature"
        ) from None
    if array.ndim == 0:
        return [checked.finite("bounds", float(array))] * width
    if array.shape != (width,):
        problem = f"has {array.size} numbers as {side}, and X has {width} features"
        raise InvalidInput("bounds", problem, "give (low, high), each a number or one number for each feature")
    return [float(number) for number in array]
