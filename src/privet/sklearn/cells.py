"""What a cell holds, in one form that does not depend on the cells beside it.

NumPy, pandas and Polars choose one type for a whole column, so that a single row can turn the numbers of all others
into texts (`np.array([1, "x"])`) or whole numbers into fractions (a missing value in pandas). If `1`, `1.0` and `"1"`
were then three values, one row would move every other. So they are one here, whoever wrote them down and how.

A float32 is the hardest: 0.1 in it is "0.1" as a text, and 0.10000000149011612 as a float64. So every number that a
float32 can hold is the shortest decimal that names it among these, whatever type it came in. No such rule fits three
types at once, and arrays of float16 and of long doubles are refused, by their type.
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
"""Kinds of arrays whose cells are numbers, each of which is the same number in float64."""
_PLAIN = (bool, int, float, np.bool_, np.integer, np.floating)
_FLOATS = (4, 8)
"""Bytes of the floats that have a form here: float32 and float64."""
_WHOLE = 2.0**24
"""Below it every whole number is a float32, and its shortest decimal is itself."""
_FARTHEST = float(np.finfo(np.float32).max)
_TRUTHS = {"true": 1.0, "false": 0.0}


def key(value: Any) -> Any:
    """What a cell is, as something that can be compared and hashed; None if it is missing. No cell raises.

    A number is the nearest float64, or the shortest decimal of a float32 if it is one of these; a text that reads as a
    number is that number, and `True` is 1. Every other text is itself, and so is a date, down to its microsecond. NaN,
    NaT, what a mask covers and whatever else does not equal itself is missing.

    >>> key(1) == key(1.0) == key(True) == key("1") == key(np.float32(1)) == key(" 01.0 ") == key("True") == 1.0
    True
    >>> key(np.float32(0.1)) == key(float(np.float32(0.1))) == key(str(np.float32(0.1))) == 0.1
    True
    >>> key("one"), key(float("nan")), key("nan"), key([1, "x"])
    ('one', None, None, (1.0, 'x'))
    """
    if type(value) is float or type(value) is np.float64:  # most cells, so that these are asked first
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
    """The `key` of each cell of a column."""
    if column.dtype.kind in _NUMERIC:
        return [None if cell != cell else cell for cell in _float64(column).tolist()]
    return [key(cell) for cell in column]  # not tolist, which turns dates into whole numbers


def numbers(column: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Each cell as a number; NaN where it is none."""
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
    """64 bits for each cell: those of its number, or a hash of whatever else it is; all missing cells are alike."""
    found = numbers(column) + 0.0  # which makes 0 of -0
    lost = np.isnan(found)
    found[lost] = np.nan  # of which there are many patterns of bits
    bits = found.view(np.uint64)
    if column.dtype.kind not in _NUMERIC:
        for place in np.flatnonzero(lost):
            cell = key(column[place])
            if cell is not None:
                digest = hashlib.blake2b(repr(cell).encode(), digest_size=8).digest()
                bits[place] = int.from_bytes(digest, "little")
    return bits


def columns_of(X: Any) -> tuple[int, list[npt.NDArray[Any]]]:
    """How many dimensions X has, and one array for each of its columns, or for each cell of a row if there are more.

    What has no type of its own, such as a list of lists, is taken cell by cell, and a frame column by column.
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
    """One value for each row, as an array of which each cell is by itself; a list of one value is that value."""
    if _listed(values):
        return _objects([row[0] if isinstance(row, (list, tuple)) and len(row) == 1 else row for row in values])
    array = _typed(argument, values)
    if array.ndim == 0 or (array.ndim > 1 and array.shape[1:] != (1,)):
        problem = f"has {array.ndim} dimensions"
        raise InvalidInput(argument, problem, f"{argument} should be a 1d array, one target for each row")
    return array


def _typed(argument: str, values: Any) -> npt.NDArray[Any]:
    """An array as it is, but for a mask, below which nothing is read; refused where its type has no form here."""
    array: npt.NDArray[Any] = np.asarray(values)
    if array.dtype.kind == "f" and array.dtype.itemsize not in _FLOATS:
        problem = f"is of the type {array.dtype}, of which one row more can change all others"
        raise InvalidInput(argument, problem, "turn it into float64: .astype(float)")
    if isinstance(values, np.ma.MaskedArray):
        array = array.astype(object)
        array[np.ma.getmaskarray(values)] = None
    return array


def _listed(values: Any) -> bool:
    """Whether these are several values without a type for all of them."""
    return isinstance(values, Sequence) and not isinstance(values, (str, bytes, bytearray))


def _row(values: Any) -> bool:
    """Whether this is a row of a list: its cells may have a type, for they are one row's."""
    return _listed(values) or (isinstance(values, np.ndarray) and values.ndim > 0)


def _objects(values: Any) -> npt.NDArray[Any]:
    """An array of whatever there is, in which nothing is converted and no list becomes a dimension."""
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def _cells(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A frame's column, whose cells may be arrays."""
    return column if column.ndim == 1 else _objects(list(column))


def _plain(kind: type) -> bool:
    """Whether what `key` makes of this is float(); NumPy's stretches of time are whole numbers to it."""
    return issubclass(kind, _PLAIN) and not issubclass(kind, np.timedelta64)


def _float64(column: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    with np.errstate(all="ignore"):  # a wider float may be beyond them, and is infinite
        found: npt.NDArray[np.float64] = column.astype(np.float64)
        narrow = found.astype(np.float32)
        # Small whole numbers, of which there are many, are their own shortest decimals.
        held = (narrow == found) & np.isfinite(found) & ((found % 1 != 0) | (np.abs(found) >= _WHOLE))
    if held.any():
        found = found.copy()
        found[held] = narrow[held].astype(str).astype(np.float64)
    return found


def _shortest(value: float) -> float:
    """The same for one number."""
    if abs(value) > _FARTHEST or (value % 1 == 0 and abs(value) < _WHOLE):
        return value
    held = struct.unpack("f", struct.pack("f", value))[0] == value
    return float(str(np.float32(value))) if held else value


def _text(value: str) -> Any:
    try:
        found = float(value)
    except ValueError:
        plain = value.rstrip("\0")  # which arrays of texts cannot hold
        return _TRUTHS.get(plain.casefold(), plain)
    return None if found != found else _shortest(found)


def _float(value: Any) -> float | None:
    """A number's float64."""
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
    """A date or a stretch of time in Python's own class."""
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
