"""Convert X and y of scikit-learn's users to rows of a table, by public bounds, classes and values alone.

The content of a cell never raises an error and is never quoted in a message. scikit-learn's own checks quote arrays and
their sizes, so they are skipped here, except for those of columns.
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
    """Return the columns of X, each of whatever type.

    Args:
        estimator: The estimator that keeps the names and the number of columns.
        X: A dense array, a frame or a list of lists.
        reset: Whether to keep the columns' names and number, or else compare them with those kept.

    Raises:
        InvalidInput: If X is not two-dimensional, or has no columns.
        TypeError: If X is sparse.
        ValueError: If the columns are not those kept.
    """
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
    """Return y as one value for each row.

    Args:
        y: The targets.
        rows: The number of rows of X.

    Raises:
        InvalidInput: If y is None, or is not one value for each row.
    """
    if y is None:
        problem = "is None: the estimator requires y to be passed, but the target y is None"
        raise InvalidInput("y", problem, "give one target for each row")
    found: npt.NDArray[Any] = column_or_1d(column_of("y", y), warn=True)  # whose shape is right: it quotes nothing
    if len(found) != rows:
        raise InvalidInput("y", "has another number of rows than X", "give one target for each row")
    return found


def listed(argument: str, values: Iterable[Any]) -> Categories:
    """Return public values as categories, which are looked up by `keys`.

    Args:
        argument: The name of the argument, for messages.
        values: All values that there can be.

    Raises:
        InvalidInput: If there are no values, or one is given twice.
    """
    found = tuple(key(each) for each in values)
    if not found or len(set(found)) != len(found):
        problem = "are none, or name one twice: 1, 1.0, True and '1' are one value, as are numbers with one float64"
        raise InvalidInput(argument, problem, "list every value once")
    return Categories(found)


def pair(argument: str, bounds: Any, advice: str) -> tuple[Any, Any]:
    """Return (low, high), of which either may be a sequence.

    Args:
        argument: The name of the argument, for messages.
        bounds: The bounds that the user gave.
        advice: What to do instead, for messages.

    Raises:
        InvalidInput: If no bounds are given, or they are not a pair.
    """
    if bounds is None:
        problem = "is not given, and bounds that are read from the rows tell of them"
        raise InvalidInput(argument, problem, advice)
    if isinstance(bounds, (str, bytes)) or not isinstance(bounds, (Sequence, np.ndarray)) or len(bounds) != 2:
        raise InvalidInput(argument, "is not a pair (low, high)", advice)
    return bounds[0], bounds[1]


def number(argument: str, name: str, low: Any, high: Any, where: str = "") -> Number:
    """Return a column of numbers within public bounds.

    Args:
        argument: The name of the argument, for messages.
        name: The name of the column.
        low: The lower bound.
        high: The upper bound.
        where: Which feature the bounds are for, for messages.

    Raises:
        InvalidInput: If a bound is not a finite number, or they are in the wrong order.
    """
    try:
        return Number(name, plain(low), plain(high))
    except InvalidInput as error:
        raise InvalidInput(argument, f"{where}has a {error.argument} that {error.problem}", error.advice) from None


def target_number(bounds: Any) -> Number:
    """Return the target of a regression within its public bounds.

    Args:
        bounds: (low, high).

    Raises:
        InvalidInput: If no bounds are given, or they are not a pair of numbers in order.
    """
    advice = "give (low, high) from public knowledge, such as (0, 100)"
    return number("target_bounds", "target", *pair("target_bounds", bounds, advice))


def plain(value: Any) -> Any:
    """Return a NumPy scalar, common in parameter grids, as a Python number; other values unchanged.

    Args:
        value: The value of an argument.
    """
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True)
class Columns:
    """What is public about the features: a range or a list of values for each."""

    features: tuple[Number | Categories, ...]

    @staticmethod
    def of(bounds: Any, categories: Any, names: Sequence[str] | None, width: int) -> Columns:
        """Return the columns that the constructor's arguments describe.

        Args:
            bounds: (low, high), each a number or one number for each feature.
            categories: {column: values} for columns that hold categories, by name or place.
            names: The names of the columns, if they have any.
            width: The number of columns.

        Raises:
            InvalidInput: If bounds are missing or invalid, or categories name a column that does not exist.
        """
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
        """The schema for the models of `privet.training`."""
        return Schema(
            tuple(
                feature
                if isinstance(feature, Number)
                else Category(f"x{place}", tuple(f"v{code}" for code in range(feature.size)))
                for place, feature in enumerate(self.features)
            )
        )

    def table(self, X: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
        """Return columns as `privet.data.Table.x` has them: each cell is converted by itself, and none raises.

        Args:
            X: The columns.
        """
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
    """Return one number for each feature."""
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
