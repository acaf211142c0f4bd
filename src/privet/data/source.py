"""Read tables larger than memory in batches: CSV (also gzipped) with every cell as text, and Parquet with its types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput, MissingExtra
from privet.data.columns import Category
from privet.data.csv_file import CsvFile, first_bytes
from privet.data.schema import SEPARATORS, Schema

if TYPE_CHECKING:
    import polars as pl
    from polars import Expr
    from polars.datatypes import DataType

__all__ = ["Source", "codes_of", "numbers_of", "spelling", "texts_of"]

_BATCH = 100_000
_EXACT = 2**53


@dataclass(frozen=True)
class Source:
    """A table in a file: its header, which is public, and its rows, batch by batch.

    Batches follow the order of the file. What a cell becomes depends on that cell alone: no type is inferred from rows.
    """

    path: Path
    header: tuple[str, ...]
    csv: CsvFile | None
    """None for Parquet."""

    @staticmethod
    def of(path: str | PathLike[str], separator: str | None = None, *, lines_in_cells: bool = False) -> Source:
        """Open a table; only its header is read.

        Args:
            path: A CSV (also gzipped) or Parquet file.
            separator: What separates the cells of a CSV file; by default, the candidate that is most frequent in the
                header.
            lines_in_cells: Whether line ends in quoted cells of a CSV file are text; otherwise every line is a record.

        Raises:
            InvalidInput: The file cannot be read, is empty or damaged, or is neither CSV nor Parquet.
            MissingExtra: Polars is not installed.
        """
        _polars()
        place = Path(path)
        start = first_bytes(place)
        if start == b"PAR1":
            return Source(place, _parquet_header(place), None)
        if place.suffix == ".parquet" or start[:1] == b"\0":
            raise _unreadable(place)
        if start[:2] == b"PK":
            raise InvalidInput("file", f"{place.name!r} is an archive or a spreadsheet", "export it as CSV or Parquet")
        found = CsvFile.of(place, separator, lines_in_cells)
        return Source(place, found.header, found)

    @staticmethod
    def by(path: str | PathLike[str], schema: Schema) -> Source:
        """Open a table with the separator and the line rule of a schema; only the table's header is read.

        Args:
            path: A CSV (also gzipped) or Parquet file.
            schema: The schema of the table.

        Raises:
            InvalidInput: The file cannot be read, is empty or damaged, or is neither CSV nor Parquet.
            MissingExtra: Polars is not installed.
        """
        return Source.of(path, schema.separator, lines_in_cells=schema.lines_in_cells)

    def require(self, names: Sequence[str], what: str) -> None:
        """Require that the file has these columns, and that no column name occurs twice.

        Other cells of the first line are quoted only after all required columns were found: until then, it may be a
        private row and not a header.

        Args:
            names: The required columns.
            what: What these columns are, for the error message, such as "the target".

        Raises:
            InvalidInput: A column is missing, or two columns have the same name.
        """
        for name in names:
            if name not in self.header:
                problem = f"{self.path.name!r} has no column {name!r}, which is {what}"
                advice = "check the spelling, and that the first line is a header"
                if other := self._other_separator():
                    advice += f"; cells seem to be parted by {other!r}: say separator = {other!r} in the schema"
                raise InvalidInput("file", problem, advice)
        for name in self.header:
            if self.header.count(name) > 1:
                raise InvalidInput("file", f"{self.path.name!r} has two columns {name!r}", "give each its own name")

    def _other_separator(self) -> str | None:
        """What parts the cells of a header that came out as one."""
        if self.csv is None or len(self.header) != 1:
            return None
        return next((each for each in SEPARATORS if each != self.csv.separator and each in self.header[0]), None)

    def batches(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of the file in order, batch by batch.

        In a record that cannot be read (see `CsvFile.blocks`), every cell is null.

        Args:
            names: The columns to read, all of them in the header; a batch has them in this order.

        Raises:
            InvalidInput: The file is damaged, or a Parquet column is neither numeric, Boolean nor text.
        """
        if self.csv is None:
            yield from self._parquet(names)
            return
        pl = _polars()
        # Names of our own: the header's may be empty.
        texts = {f"c{place}": pl.String for place in range(len(self.header))}
        wanted = [self.header.index(name) for name in names]
        for block in self.csv.blocks():
            try:
                batch = pl.read_csv(
                    block.text,
                    has_header=False,
                    schema=texts,
                    columns=sorted(set(wanted)),
                    separator=self.csv.separator,
                    empty_string_is_null=False,
                )
            except pl.exceptions.PolarsError:
                raise _unreadable(self.path) from None  # its own words quote the cell
            if len(batch) != block.rows + 1:
                raise _unreadable(self.path)
            batch = batch[1:]  # the first record of a block is empty and no row
            if block.empty:
                read = np.ones(block.rows, dtype=np.bool_)
                read[list(block.empty)] = False
                batch = batch.with_columns(pl.when(pl.Series(read)).then(pl.all()))
            yield batch.select(pl.col(f"c{place}").alias(name) for place, name in zip(wanted, names, strict=True))

    def _parquet(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        pl = _polars()
        try:
            frame = pl.scan_parquet(self.path, glob=False).select(names)
            for name, kind in frame.collect_schema().items():
                if not (kind.is_numeric() or kind in (pl.Boolean, pl.String, pl.Categorical, pl.Enum, pl.Null)):
                    problem = f"{self.path.name!r} has {kind} in {name!r}"
                    raise InvalidInput("file", problem, "store it as a number or a text, or call it an identifier")
            rows, total = 0, int(pl.scan_parquet(self.path, glob=False).select(pl.len()).collect().item())
            for batch in frame.collect_batches(chunk_size=_BATCH, maintain_order=True):
                rows += len(batch)
                yield batch
            if rows != total:
                raise _unreadable(self.path)  # a damaged page ends the batches early, without an error
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            raise _unreadable(self.path) from None


def texts_of(cells: pl.Series, missing: Sequence[str]) -> pl.Series:
    """Return cells as text without surrounding blanks; null where missing.

    Args:
        cells: The cells of one column.
        missing: Texts that count as missing.
    """
    texts = _spelt(cells).str.strip_chars()
    return texts.set(texts.is_in(list(missing)).fill_null(False), None)


def spelling(cell: Expr, kind: DataType) -> Expr:
    """Return an expression for a cell as text; null where the cell is missing or NaN.

    A whole number is spelled the same way in a column of integers and in one of floats: some programs convert all
    integers of a column to floats if one cell is missing, and one cell must not change how the others are read. From
    2^53 on, neighboring integers are not distinct floats, and the float's own spelling is kept.

    Args:
        cell: The cell.
        kind: The data type of its column.
    """
    pl = _polars()
    if not kind.is_float():
        return cell.cast(pl.String)
    whole = cell.cast(pl.Int64, strict=False)
    plain = (cell == whole) & (cell.abs() < _EXACT)
    found: Expr = pl.when(plain).then(whole.cast(pl.String)).otherwise(cell.fill_nan(None).cast(pl.String))
    return found


def _spelt(cells: pl.Series) -> pl.Series:
    pl = _polars()
    if not cells.dtype.is_float():
        return cells if cells.dtype == pl.String else cells.cast(pl.String)
    return cells.alias("cell").to_frame().select(spelling(pl.col("cell"), cells.dtype)).to_series()


def numbers_of(cells: pl.Series, missing: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return cells as numbers; NaN where the cell is missing or not a number.

    Args:
        cells: The cells of one column.
        missing: Texts that count as missing.
    """
    pl = _polars()
    if cells.dtype != pl.String and cells.dtype not in (pl.Categorical, pl.Enum):
        found = cells.cast(pl.Float64, strict=False)
    else:
        found = cells.cast(pl.String).cast(pl.Float64, strict=False)
        if found.null_count():  # only these take more time
            places = found.is_null().arg_true()
            found = found.scatter(places, texts_of(cells.gather(places), ()).cast(pl.Float64, strict=False))
    # Words that are numbers, such as -99; other words are no number, and missing for that.
    words = pl.Series(missing, dtype=pl.String).cast(pl.Float64, strict=False).drop_nulls()
    values = found.fill_null(float("nan")).to_numpy()
    return np.where(np.isin(values, words.to_numpy()), np.nan, values) if len(words) else values


def codes_of(cells: pl.Series, column: Category, missing: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return cells as codes of a category's values.

    Args:
        cells: The cells of one column.
        column: The category.
        missing: Texts that count as missing.

    Returns:
        One code per cell: `column.substitute` if the cell is missing, and `column.other` if its value is not listed.
    """
    pl = _polars()
    if not column.values:
        return np.zeros(len(cells), dtype=np.int64)
    values = pl.Enum(column.values)
    # What is plainly a listed value is one in either way of reading, and this one is quicker. Not so a float that is no
    # number, which is missing and can be spelled as a value: one cell must not change how all others are read.
    found = _spelt(cells).cast(values, strict=False).to_physical().cast(pl.Int64)
    if found.null_count():
        places = found.is_null().arg_true()
        texts = texts_of(cells.gather(places), missing)
        others = texts.cast(values, strict=False)
        if column.missing is not None:
            others = others.set(texts.is_null(), column.missing)
        found = found.scatter(places, others.to_physical().cast(pl.Int64))
    return found.fill_null(column.other).to_numpy()


def _parquet_header(path: Path) -> tuple[str, ...]:
    pl = _polars()
    try:
        return tuple(pl.scan_parquet(path, glob=False).collect_schema().names())
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        raise _unreadable(path) from None


def _unreadable(path: Path) -> InvalidInput:
    return InvalidInput("file", f"{path.name!r} is damaged, or no such table", "get it again, or repair it")


def _polars() -> Any:
    try:
        import polars as pl
    except ImportError:
        raise MissingExtra("polars", "train") from None
    return pl
