"""Canonical form of a cell, which does not depend on the cells beside it.

NumPy, pandas and Polars choose one type for a whole column, so that a single row can turn the numbers of all others
into texts (`np.array([1, "x"])`) or integers into floating-point numbers (a missing value in pandas). If `1`, `1.0` and
`"1"` were then three values, one row would move every other. So they are one value here, in whatever type they come.

float32 is the hardest case: its 0.1 is "0.1" as a text, and 0.10000000149011612 as a float64. So every number that a
float32 can hold is represented by the shortest decimal that identifies it among float32 numbers, whatever type it came
in. No such rule fits three types at once, so arrays of float16 and of long doubles are refused, by their type.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput

__all__ = ["column_of", "columns_of", "key", "keys", "numbers", "words"]

_NUMERIC = "biuf"
"""Kinds of arrays whose cells are numbers, and are converted to float64."""
_PLAIN = (bool, int, float, np.bool_, np.integer, np.floating)
_FLOATS = (4, 8)
"""Item sizes of the supported floating-point types, float32 and float64."""
_WHOLE = 2.0**24
"""Below it every whole number is a float32, and its shortest decimal is itself."""
_FARTHEST = float(np.finfo(np.float32).max)
_TRUTHS = {"true": 1.0, "false": 0.0}


def key(value: Any) -> Any:
    """Return a cell in a form that can be compared and hashed; None if it is missing. No cell raises.

    A number is the nearest float64, or the shortest decimal of a float32 if it is one of these; a text that reads as a
    number is that number, and `True` is 1. Every other text is itself, and so is a date, down to its microsecond. NaN,
    NaT, a masked cell and any value that does not equal itself are missing.

    Args:
        value: The content of a cell.

    >>> key(1) == key(1.0) == key(True) == key("1") == key(np.float32(1)) == key(" 01.0 ") == key("True") == 1.0
    True
    >>> key(np.float32(0.1)) == key(float(np.float32(0.1))) == key(str(np.float32(0.1))) == 0.1
    True
    >>> key("one"), key(float("nan")), key("nan"), key([1, "x"])
    ('one', None, None, (1.0, 'x'))
    """
    if type(value) is float or type(value) is np.float64:  # most cells, so these are tested first
        return _shortest(float(value)) if value == value else None
    if value is None or value is np.ma.masked:
        return None
    if type(value) is int:
        return _float(value)
    if isinstance(value, (bytes, bytearray)):
        value = value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if isinstance(value, (list, tuple, np.ndarray)):
        return tuple(key(each) for each in value)
    if _unlike_itself(value):
        return None
    if isinstance(value, (dt.date, dt.timedelta, np.datetime64, np.timedelta64)):
        return _time(value)
    if isinstance(value, (complex, np.complexfloating)):
        return complex(value) if value.imag else _shortest(float(value.real))
    found = _float(value)
    return _other(value) if found is None else found


def keys(column: npt.NDArray[Any]) -> list[Any]:
    """Return the `key` of each cell of a column.

    Args:
        column: A one-dimensional array.
    """
    if column.dtype.kind in _NUMERIC:
        return [None if cell != cell else cell for cell in _float64(column).tolist()]
    return [key(cell) for cell in column]  # not tolist, which turns dates into whole numbers


def numbers(column: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return each cell as a number; NaN where it is not one.

    Args:
        column: A one-dimensional array.
    """
    if column.dtype.kind in _NUMERIC:
        return _float64(column)
    if column.dtype.kind == "O" and all(map(_plain, set(map(type, column)))):
        try:
            return _float64(column)  # by float() of each, as `key` does it
        except OverflowError:  # a whole number beyond all floats; `key` says infinity
            pass
    found = keys(column)
    return np.array([cell if isinstance(cell, float) else np.nan for cell in found], dtype=np.float64)


def words(column: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return 64 bits for each cell: those of its number, or a hash of any other content; all missing cells are equal.

    Args:
        column: A one-dimensional array.
    """
    found = numbers(column) + 0.0  # turns -0 into 0
    lost = np.isnan(found)
    found[lost] = np.nan  # NaN has many bit patterns
    bits = found.view(np.uint64)
    if column.dtype.kind not in _NUMERIC:
        for place in np.flatnonzero(lost):
            cell = key(column[place])
            if cell is not None:
                digest = hashlib.blake2b(repr(cell).encode(), digest_size=8).digest()
                bits[place] = int.from_bytes(digest, "little")
    return bits


def columns_of(X: Any) -> tuple[int, list[npt.NDArray[Any]]]:
    """Return the number of dimensions of X, and one array for each column, or for each cell of a row if there are more.

    Data without a type of its own, such as a list of lists, is taken cell by cell, and a frame column by column.

    Args:
        X: An array, a frame or a list.

    Raises:
        InvalidInput: If rows have different lengths, or X is complex or of a floating-point type other than float32 and
            float64.
    """
    if hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "get_columns")):
        return 2, [_cells(_typed("X", getattr(X, "iloc", X)[:, place])) for place in range(X.shape[1])]
    if _listed(X):
        if not len(X) or not any(map(_row, X)):
            return 1, [_objects(X)]
        width = len(X[0]) if _row(X[0]) else -1
        if not all(_row(row) and len(row) == width for row in X):
            raise InvalidInput("X", "has rows of different lengths", "give one cell for each column")
        return 2, [_objects([row[place] for row in X]) for place in range(width)]
    array = _typed("X", X)
    if array.dtype.kind == "c":
        raise InvalidInput("X", "is complex", "Complex data not supported: give real and imaginary parts as columns")
    if not array.ndim:
        return 0, []
    flat = array.reshape(len(array), int(np.prod(array.shape[1:])))
    return array.ndim, [flat[:, place] for place in range(flat.shape[1])]


def column_of(argument: str, values: Any) -> npt.NDArray[Any]:
    """Return one value for each row, as an array in which each cell is independent of the others.

    A list of one value is that value.

    Args:
        argument: The name of the argument, for messages.
        values: One value for each row: an array, a column of a frame, or a list.

    Raises:
        InvalidInput: If there is more than one value for each row, or the array is of a floating-point type other than
            float32 and float64.
    """
    if _listed(values):
        return _objects([row[0] if isinstance(row, (list, tuple)) and len(row) == 1 else row for row in values])
    array = _typed(argument, values)
    if array.ndim == 0 or (array.ndim > 1 and array.shape[1:] != (1,)):
        problem = f"has {array.ndim} dimensions"
        raise InvalidInput(argument, problem, f"{argument} should be a 1d array, one target for each row")
    return array


def _typed(argument: str, values: Any) -> npt.NDArray[Any]:
    """Return an array unchanged, with masked cells as None; refuse floating-point types without a canonical form."""
    array: npt.NDArray[Any] = np.asarray(values)
    if array.dtype.kind == "f" and array.dtype.itemsize not in _FLOATS:
        problem = f"is of the type {array.dtype}, of which one row more can change all others"
        raise InvalidInput(argument, problem, "turn it into float64: .astype(float)")
    if isinstance(values, np.ma.MaskedArray):
        array = array.astype(object)
        array[np.ma.getmaskarray(values)] = None
    return array


def _listed(values: Any) -> bool:
    """Return whether these are several values without a common type."""
    return isinstance(values, Sequence) and not isinstance(values, (str, bytes, bytearray))


def _row(values: Any) -> bool:
    """Return whether this is a row of a list: its cells may have a common type, because they belong to one row."""
    return _listed(values) or (isinstance(values, np.ndarray) and values.ndim > 0)


def _objects(values: Any) -> npt.NDArray[Any]:
    """Return an array of objects in which nothing is converted and no list becomes a dimension."""
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def _cells(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a frame's column, whose cells may be arrays."""
    return column if column.ndim == 1 else _objects(list(column))


def _plain(kind: type) -> bool:
    """Return whether `key` applies float() to this type; NumPy's time spans count as integers to `issubclass`."""
    return issubclass(kind, _PLAIN) and not issubclass(kind, np.timedelta64)


def _float64(column: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    with np.errstate(all="ignore"):  # a wider float may overflow to infinity
        found: npt.NDArray[np.float64] = column.astype(np.float64)
        narrow = found.astype(np.float32)
        # Small whole numbers, of which there are many, are their own shortest decimals.
        held = (narrow == found) & np.isfinite(found) & ((found % 1 != 0) | (np.abs(found) >= _WHOLE))
    if held.any():
        found = found.copy()
        found[held] = narrow[held].astype(str).astype(np.float64)
    return found


def _shortest(value: float) -> float:
    """Return the shortest decimal of a float32 number; any other number unchanged."""
    if abs(value) > _FARTHEST or (value % 1 == 0 and abs(value) < _WHOLE):
        return value
    held = struct.unpack("f", struct.pack("f", value))[0] == value
    return float(str(np.float32(value))) if held else value


def _text(value: str) -> Any:
    try:
        found = float(value)
    except ValueError:
        plain = value.rstrip("\0")  # NumPy's arrays of texts drop trailing NULs
        return _TRUTHS.get(plain.casefold(), plain)
    return None if found != found else _shortest(found)


def _float(value: Any) -> float | None:
    """Return a number's float64; None if it has none."""
    if not hasattr(value, "__float__"):
        return None
    try:
        with np.errstate(all="ignore"):  # a long double
            return _shortest(float(value))
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    except (ArithmeticError, TypeError, ValueError, RuntimeError):
        return None


def _time(value: Any) -> Any:
    """Return a date or a time span as an object of Python's own class."""
    if isinstance(value, np.datetime64):
        return value.astype("M8[us]").item()
    if isinstance(value, np.timedelta64):
        return value.astype("m8[us]").item()
    if isinstance(value, dt.datetime):
        return dt.datetime.combine(value.date(), value.timetz())
    return dt.datetime.combine(value, dt.time()) if isinstance(value, dt.date) else value


def _unlike_itself(value: Any) -> bool:
    try:
        return not value == value  # noqa: SIM201
    except (ArithmeticError, TypeError, ValueError, RuntimeError):
        return True


def _other(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value
