"""Which cells of two tables can be of one person: equal ones, and a coarsened one with each value that it covers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from privet.core.errors import InvalidInput, MissingExtra
from privet.data.source import texts_of

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MISSING", "Codes", "Groups", "Matched", "TableLike", "Truths", "agreeing", "matched", "texts"]

Codes = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
TableLike: TypeAlias = "Mapping[str, Any] | pl.DataFrame"
"""Columns by name: a Polars frame, or lists and arrays of one length."""

MISSING = ("", "?", "NA", "*")
"""Cells that say nothing: they agree with everything."""

_MOST = 1 << 28
_PAIRS = 1 << 22
_NUMBER = r"\s*(-?\d+(?:\.\d+)?)\s*"
_PREFIX = re.compile(r"([^*]+)\*\W*")
_RANGE = re.compile(rf"{_NUMBER}(?:-|–|to|\.\.){_NUMBER}")
_BRACKETS = re.compile(rf"([\[(\]]){_NUMBER}(?:-|–|to|\.\.|,|;){_NUMBER}([\])\[])")
_ABOVE = re.compile(rf"(?:>=|≥){_NUMBER}|{_NUMBER}\+")
_STRICT = re.compile(rf"([<>]|<=|≤){_NUMBER}")

_Covers = Callable[[Any, Any], Truths]


@dataclass(frozen=True, eq=False)
class Matched:
    """One column of both tables, as codes of its values; −1 where a cell is missing."""

    name: str
    published: Codes
    known: Codes
    general: Codes
    """[values]: the row of `covers` of a value that stands for others, and −1 for all that do not."""
    covers: Truths
    """[general values, values]."""

    def agree(self, published: Codes, known: Codes) -> Truths:
        """Whether two codes can be of one person, pair by pair; both may be broadcast against each other."""
        found: Truths = (published == known) | (published < 0) | (known < 0)
        if len(self.covers):
            row = np.where(published >= 0, self.general[published], -1)
            found |= (row >= 0) & self.covers[row, known]
        return found


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows that are alike in all columns: the codes, the first row and the size of each group; each row's group."""

    codes: Codes
    """[groups, columns]."""
    first: Codes
    sizes: Codes
    of: Codes

    @staticmethod
    def by(columns: Sequence[Codes]) -> Groups:
        """Groups of rows by columns of codes."""
        of = _keys(columns)
        _, first, of, sizes = np.unique(of, return_index=True, return_inverse=True, return_counts=True)
        return Groups(np.stack([column[first] for column in columns], axis=1), first, sizes, of)


def texts(argument: str, table: TableLike, name: str, missing: Sequence[str] = ()) -> pl.Series:
    """A column as texts, null where missing; refuses a table without it."""
    try:
        import polars as pl
    except ImportError:
        raise MissingExtra("polars", "data") from None
    names = list(table.columns if isinstance(table, pl.DataFrame) else table)
    if name not in names:
        raise InvalidInput(argument, f"has no column {name!r}", f"it has {', '.join(map(repr, names)) or 'none'}")
    cells: Any = table[name]
    objects = isinstance(cells, np.ndarray) and cells.dtype == object
    found = pl.Series(name, cells.tolist() if objects else cells, strict=False)
    if found.dtype == pl.Object or found.dtype.is_nested():
        raise InvalidInput(argument, f"has something else than numbers and texts in {name!r}", "make texts of them")
    return texts_of(found, missing)


def matched(published: pl.Series, known: pl.Series) -> Matched:
    """A column of both tables. Values that stand for others are looked for in the published one."""
    import polars as pl

    both = pl.concat([published, known])
    values = both.drop_nulls().unique(maintain_order=True)
    codes = both.cast(pl.Enum(values)).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    mine, theirs = codes[: len(published)], codes[len(published) :]
    general = np.full(len(values) + 1, -1, dtype=np.int64)
    covers: list[Truths] = []
    spelt = values.to_list()
    numbers = values.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    for code in np.unique(mine[mine >= 0]).tolist():
        covering = _covering(spelt[code])
        if covering is None:
            continue
        row = covering(values, numbers)
        row[code] = True
        if np.count_nonzero(row) > 1:
            general[code] = len(covers)
            covers.append(row)
            if len(covers) * len(values) > _MOST:
                problem = f"names {published.name!r}, which has too many coarsened values"
                raise InvalidInput("on", problem, "coarsen the known table in the same way, so that cells are equal")
    # The last value stands for none: a code of −1 ends there.
    table = np.zeros((len(covers), len(values) + 1), dtype=np.bool_)
    for place, row in enumerate(covers):
        table[place, :-1] = row
    return Matched(published.name, mine, theirs, general, table)


def agreeing(columns: Sequence[Matched], published: Groups, known: Groups) -> Iterator[tuple[Codes, Codes]]:
    """All pairs of a published and a known group that agree in every column, some at a time.

    Columns that are neither missing nor coarsened on either side make a key that is looked up; the others are compared
    pair by pair, among those of one key alone. Groups with different columns of that kind are looked up separately, so
    that one blank cell does not make every pair a possible one. A row without any cell agrees with nobody.
    """
    general = np.stack([c.general[published.codes[:, i]] >= 0 for i, c in enumerate(columns)], axis=1)
    empty, blank = published.codes < 0, known.codes < 0
    loose = general | empty
    for mask in np.unique(loose, axis=0):
        mine = np.flatnonzero((loose == mask).all(axis=1) & ~empty.all(axis=1))
        for other in np.unique(blank[~blank.all(axis=1)], axis=0):
            theirs = np.flatnonzero((blank == other).all(axis=1))
            plain, rest = np.flatnonzero(~mask & ~other).tolist(), np.flatnonzero(mask & ~other).tolist()
            for p, k in _looked_up(published.codes[mine][:, plain], known.codes[theirs][:, plain]):
                kept = np.ones(len(p), dtype=np.bool_)
                for place in rest:
                    kept &= columns[place].agree(published.codes[mine[p], place], known.codes[theirs[k], place])
                yield mine[p[kept]], theirs[k[kept]]


def _looked_up(published: Codes, known: Codes) -> Iterator[tuple[Codes, Codes]]:
    """Pairs of rows with equal codes, a few millions at a time."""
    both = np.concatenate([published, known])
    keys = _keys([*both.T, np.zeros(len(both), dtype=np.int64)])
    mine, theirs = keys[: len(published)], keys[len(published) :]
    order = np.argsort(theirs, kind="stable")
    ordered = theirs[order]
    start, end = np.searchsorted(ordered, mine, side="left"), np.searchsorted(ordered, mine, side="right")
    counts = end - start
    done = 0
    while done < len(mine):
        upto = max(int(np.searchsorted(np.cumsum(counts[done:]), _PAIRS, side="right")), 1) + done
        some = counts[done:upto]
        p = np.repeat(np.arange(done, upto), some)
        within = np.arange(len(p)) - np.repeat(np.cumsum(some) - some, some)
        yield p, order[np.repeat(start[done:upto], some) + within]
        done = upto


def _keys(columns: Sequence[Codes]) -> Codes:
    """One number for each row: rows have the same where they are alike in all columns."""
    found = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        # Numbered anew each time, so that the product stays far below 2^63.
        wide = int(column.max(initial=-1)) + 2
        found = np.unique(found * wide + column + 1, return_inverse=True)[1].astype(np.int64)
    return found


def _covering(text: str) -> _Covers | None:
    """Which values a coarsened text stands for: 130**, 30-39, [30, 40), 65+, <18; None for any other text."""
    if found := _PREFIX.fullmatch(text):
        start = found[1]
        return lambda values, _: np.array(values.str.starts_with(start))
    if found := _RANGE.fullmatch(text):
        return _between(float(found[1]), float(found[2]), left=True, right=True)
    if found := _BRACKETS.fullmatch(text):
        return _between(float(found[2]), float(found[3]), left=found[1] == "[", right=found[4] == "]")
    if found := _ABOVE.fullmatch(text):
        return _between(float(found[1] or found[2]), np.inf, left=True, right=True)
    if found := _STRICT.fullmatch(text):
        end, sign = float(found[2]), found[1]
        return _between(end, np.inf, False, True) if sign == ">" else _between(-np.inf, end, True, sign != "<")
    return None


def _between(low: float, high: float, left: bool, right: bool) -> _Covers:
    def covers(values: Any, numbers: Any) -> Truths:
        above = numbers >= low if left else numbers > low
        found: Truths = above & (numbers <= high if right else numbers < high)
        return found

    return covers
