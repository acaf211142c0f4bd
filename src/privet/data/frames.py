"""Rows in memory as a table file: Polars and pandas frames, and arrays."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privet.core import InvalidInput, MissingExtra

if TYPE_CHECKING:
    import polars as pl

__all__ = ["is_frame", "to_polars", "write_rows"]


def is_frame(data: object) -> bool:
    """Return whether `data` is a Polars or pandas frame.

    Args:
        data: Any object.
    """
    return type(data).__name__ in ("DataFrame", "LazyFrame") and hasattr(type(data), "columns")


def to_polars(data: Any) -> pl.DataFrame:
    """Return rows as a Polars frame.

    What a cell becomes depends on that cell alone: cells of a pandas column of objects become texts one by one, so that
    no row changes the type of the others.

    Args:
        data: A Polars frame (lazy frames are collected) or a pandas frame.

    Raises:
        InvalidInput: The frame has two columns of one name, or something else was given.
    """
    try:
        import polars as pl
    except ImportError:
        raise MissingExtra("polars", "data") from None
    if isinstance(data, pl.LazyFrame):
        data = data.collect()
    if isinstance(data, pl.DataFrame):
        return data
    if not is_frame(data):
        problem = f"is of the type {type(data).__name__}"
        raise InvalidInput("data", problem, "give a path, a Polars or pandas frame, arrays (x, y), or a named set")
    names = [str(name) for name in data.columns]
    if len(set(names)) < len(names):
        raise InvalidInput("data", "has two columns of one name", "give each its own name")
    return pl.DataFrame([_series(pl, name, data.iloc[:, place]) for place, name in enumerate(names)])


def _series(pl: Any, name: str, column: Any) -> Any:
    """A pandas column. Numbers stay numbers; everything else becomes texts, cell by cell."""
    missing = np.asarray(column.isna(), dtype=np.bool_)
    if column.dtype.kind in "iuf" and isinstance(column.dtype, np.dtype):
        series = pl.Series(name, column.to_numpy())
        return series.fill_nan(None) if column.dtype.kind == "f" else series
    cells = [None if lost else _text(cell) for cell, lost in zip(column.tolist(), missing, strict=True)]
    return pl.Series(name, cells, dtype=pl.String)


def _text(cell: object) -> str:
    if isinstance(cell, (bool, np.bool_)):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return str(cell)


def write_rows(data: Any, folder: Path, name: str, target: str | None = None) -> Path:
    """Write rows in memory to a file that only its owner can read.

    Args:
        data: A Polars or pandas frame; or a pair of arrays (x, y), of which x is uint8 images, or a matrix whose
            columns are then named x0, x1, …; or x alone.
        folder: Where the file goes.
        name: The file's name without an ending.
        target: What y is called, where x is a matrix.

    Returns:
        The path: a Parquet file, or .npz for images.
    """
    arrays = data if isinstance(data, (tuple, list)) else (data,)
    if not is_frame(data) and all(isinstance(array, np.ndarray) for array in arrays) and len(arrays) in (1, 2):
        x, y = arrays[0], arrays[1] if len(arrays) > 1 else None
        if y is not None and len(x) != len(y):
            raise InvalidInput("data", f"has {len(x)} rows and {len(y)} targets", "give one target for each row")
        if x.ndim > 2:
            path = folder / f"{name}.npz"
            with _private(path) as file:
                np.savez(file, x=x, **({} if y is None else {"y": y}))
            return path
        data = _matrix(x, y, target)
    path = folder / f"{name}.parquet"
    with _private(path) as file:
        to_polars(data).write_parquet(file)
    return path


def _matrix(x: Any, y: Any, target: str | None) -> Any:
    import polars as pl

    columns = {f"x{place}": column for place, column in enumerate(np.atleast_2d(x.T))}
    return pl.DataFrame(columns if y is None else columns | {target or "y": y})


def _private(path: Path) -> Any:
    return os.fdopen(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb")
