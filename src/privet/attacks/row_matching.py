"""Join of two tables on columns whose cells may be generalized or missing, on codes of their distinct values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from privet.attacks.generalized_values import Codes, compatible_pairs, expand_ranges
from privet.core import InvalidInput, MissingExtra
from privet.data import texts_of

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "MISSING",
    "Codes",
    "MatchedColumn",
    "RowGroups",
    "TableLike",
    "Truths",
    "column_texts",
    "encode",
    "match_column",
    "matching_groups",
    "spelled_alike",
]

Truths = npt.NDArray[np.bool_]
TableLike: TypeAlias = "Mapping[str, Any] | pl.DataFrame"
"""Columns by name: a Polars frame, or lists and arrays of the same length."""

MISSING = ("?", "NA", "N/A", "null", "None", "nan")
"""Cells that count as missing, regardless of case, as do empty cells and those that consist of stars: they agree with
everything.
"""

_PAIRS, _STEP = 1 << 22, 2000


@dataclass(frozen=True, eq=False)
class MatchedColumn:
    """Column of both tables, as codes of each table's distinct values; −1 where a cell is missing."""

    name: str
    published: Codes
    known: Codes
    values: int
    """Number of distinct published values."""
    others: int
    """Number of distinct known values."""
    mine: Codes
    theirs: Codes
    """`mine` and `theirs` are the pairs of a published and a known code that can belong to one person, in order."""

    @property
    def unmet(self) -> int:
        """Number of published cells that agree with nobody in the known table."""
        met = np.zeros(self.values + 1, dtype=np.bool_)
        met[self.mine] = met[-1] = True
        return int(np.count_nonzero(~met[self.published]))

    def agreeing_with(self, known: Codes) -> Truths:
        """Return whether known codes and published values can belong to one person; False if missing.

        Args:
            known: Codes of known values.

        Returns:
            [known codes, published values and one for missing].
        """
        order = np.argsort(self.theirs, kind="stable")
        ordered = self.theirs[order]
        of, where = expand_ranges(np.searchsorted(ordered, known, "left"), np.searchsorted(ordered, known, "right"))
        found = np.zeros((len(known), self.values + 1), dtype=np.bool_)
        found[of, self.mine[order[where]]] = True
        return found


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Groups of rows that are equal in all columns: codes, first row and size of each; and the group of each row."""

    codes: Codes
    """[groups, columns]."""
    first: Codes
    sizes: Codes
    of: Codes

    @staticmethod
    def by(columns: Sequence[Codes]) -> RowGroups:
        """Group rows by columns of codes.

        Args:
            columns: The codes of each column; −1 where a cell is missing.
        """
        found = np.zeros(len(columns[0]), dtype=np.int64)
        for column in columns:
            # Renumbered each time, so that the product stays far below 2^63.
            wide = int(column.max(initial=-1)) + 2
            found = np.unique(found * wide + column + 1, return_inverse=True)[1].astype(np.int64)
        _, first, of, sizes = np.unique(found, return_index=True, return_inverse=True, return_counts=True)
        return RowGroups(np.stack([column[first] for column in columns], axis=1), first, sizes, of)


def column_texts(argument: str, table: TableLike, name: str, missing: Sequence[str] = MISSING) -> pl.Series:
    """Return a column as texts, null where missing. Dates are written as 1984-02-29.

    Args:
        argument: The name of the table's argument, for the error message.
        table: The table.
        name: The name of the column.
        missing: Cells that count as missing, regardless of case.

    Raises:
        InvalidInput: If the table has no such column, or its cells are neither numbers nor texts.
        MissingExtra: If Polars is not installed.
    """
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
    if isinstance(found.dtype, pl.Datetime):
        # Some programs store dates as timestamps at midnight.
        days = bool((found.dt.truncate("1d") == found).all())
        found = found.dt.date() if days else found.dt.to_string("iso")
    spelt = texts_of(found, ())
    silent = spelt.str.to_lowercase().is_in([each.strip().lower() for each in missing]) | spelt.str.contains(r"^\**$")
    return spelt.set(silent.fill_null(False), None)


def spelled_alike(published: pl.Series, known: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Normalize equal numbers to the same text, such as 30.0 to 30.

    Nothing is changed if a cell of either table has a leading zero, as codes have.

    Args:
        published: A column of the published table, as texts.
        known: The same column of the known table, as texts.
    """
    if any(cells.str.contains(r"^-?0\d").any() for cells in (published, known)):
        return published, known
    one, other = (
        cells.str.replace(r"^(-?\d+)\.0*$", "$1").str.replace(r"^(-?\d+\.\d*[1-9])0+$", "$1")
        for cells in (published, known)
    )
    return one, other


def encode(cells: pl.Series) -> tuple[Codes, list[str]]:
    """Return texts as indices into their distinct values, −1 where missing, and these values.

    Args:
        cells: A column, as texts.
    """
    import polars as pl

    values = cells.drop_nulls().unique(maintain_order=True)
    codes: Codes = cells.cast(pl.Enum(values)).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    return codes, values.to_list()


def match_column(published: pl.Series, known: pl.Series) -> MatchedColumn:
    """Match a column between both tables: encode its cells and find which values agree.

    Args:
        published: The column of the published table, as texts.
        known: The column of the known table, as texts.

    Raises:
        InvalidInput: If generalized values agree in too many ways.
    """
    one, other = spelled_alike(published, known)
    (mine, values), (theirs, others) = encode(one), encode(other)
    return MatchedColumn(published.name, mine, theirs, len(values), len(others), *compatible_pairs(values, others))


def matching_groups(
    columns: Sequence[MatchedColumn],
    published: RowGroups,
    known: RowGroups,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[tuple[int, Codes, Codes]]:
    """Yield all pairs of a published and a known group that agree in every column, in batches.

    Pairs whose published group has fewer missing cells come first. A row whose cells are all missing agrees with
    nobody.

    Known groups form a tree with one level for each column. A published group descends along all branches that agree:
    by the values that its own value agrees with, or by the branches that exist, whichever are fewer.

    Args:
        columns: The columns, matched between both tables.
        published: Groups of equal published rows.
        known: Groups of people who are equal in these columns.
        progress: Called with the number of published groups that were matched, and their total.

    Yields:
        The number of missing cells of the published groups, their indices, and the indices of the known groups.
    """
    empty = published.codes < 0
    masks, of = np.unique(empty, axis=0, return_inverse=True)
    there = np.flatnonzero((known.codes >= 0).any(axis=1))
    done = 0
    for place in np.argsort(masks.sum(axis=1), kind="stable").tolist():
        mine = np.flatnonzero(of.reshape(-1) == place)
        places = np.flatnonzero(~masks[place]).tolist()
        if places and len(there):
            # The most selective columns come first: they leave the fewest paths.
            places.sort(key=lambda each: len(columns[each].mine) / max(columns[each].values, 1))
            levels = _levels([columns[each] for each in places], known.codes[there][:, places])
            codes = published.codes[mine][:, places]
            for start in range(0, len(mine), _STEP):
                some = np.arange(start, min(start + _STEP, len(mine)))
                for p, k in _down(levels, codes, some, np.zeros_like(some)):
                    yield int(masks[place].sum()), mine[p], there[k]
                progress(done + start, len(empty))
        done += len(mine)
    progress(done, done)


@dataclass(frozen=True, eq=False)
class _Level:
    """One level of the tree, for one column.

    Branches of all nodes are stored as node · width + known code (the highest where missing), in order, and the pairs
    of codes that agree in the same form. The branches of the last level are groups, and all of them agree.
    """

    width: int
    branches: Codes
    starts: Codes
    """[nodes + 1]: where the branches of a node start."""
    pairs: Codes
    firsts: Codes
    """[published values + 1]: where the pairs of a value start."""
    leaves: Codes
    """[branches]: the known group at each; of the last level alone."""


def _levels(columns: Sequence[MatchedColumn], codes: Codes) -> list[_Level]:
    nodes, count, none = np.zeros(len(codes), dtype=np.int64), 1, np.zeros(0, dtype=np.int64)
    levels = []
    for place, column in enumerate(columns):
        width = column.others + 1
        keys = nodes * width + np.where(codes[:, place] >= 0, codes[:, place], column.others)
        branches, below = np.unique(keys, return_inverse=True)
        every = np.arange(column.values + 1)
        blank = every[:-1] * width + column.others
        pairs = np.sort(np.concatenate([column.mine * width + column.theirs, blank]))
        starts = np.searchsorted(branches, np.arange(count + 1) * width)
        levels.append(_Level(width, branches, starts, pairs, np.searchsorted(pairs, every * width), none))
        nodes, count = below.reshape(-1).astype(np.int64), len(branches)
    order = np.argsort(nodes, kind="stable")
    starts = np.searchsorted(nodes[order], np.arange(count + 1))
    return [*levels, _Level(1, nodes[order], starts, none, none, order)]


def _down(levels: Sequence[_Level], codes: Codes, mine: Codes, nodes: Codes) -> Iterator[tuple[Codes, Codes]]:
    """Yield all paths from nodes of the first level to the leaves; `codes` are those of all published groups."""
    level, last = levels[0], len(levels) == 1
    code = mine if last else codes[mine, codes.shape[1] - len(levels) + 1]
    children = level.starts[nodes + 1] - level.starts[nodes]
    values = children if last else level.firsts[code + 1] - level.firsts[code]
    done, ways = 0, np.cumsum(np.minimum(children, values))
    while done < len(mine):
        before = ways[done - 1] if done else 0
        upto = max(int(np.searchsorted(ways, before + _PAIRS, side="right")), done + 1)
        some = slice(done, upto)
        done = upto
        if last:
            of, where = expand_ranges(level.starts[nodes[some]], level.starts[nodes[some] + 1])
            yield mine[some][of], level.leaves[where]
            continue
        by_value = values[some] <= children[some]
        a, down = _by_value(level, code[some][by_value], nodes[some][by_value])
        b, along = _by_branch(level, code[some][~by_value], nodes[some][~by_value])
        of = np.concatenate([mine[some][by_value][a], mine[some][~by_value][b]])
        yield from _down(levels[1:], codes, of, np.concatenate([down, along]))


def _by_value(level: _Level, code: Codes, nodes: Codes) -> tuple[Codes, Codes]:
    of, where = expand_ranges(level.firsts[code], level.firsts[code + 1])
    wanted = nodes[of] * level.width + level.pairs[where] % level.width
    return _found(level.branches, wanted, of)


def _by_branch(level: _Level, code: Codes, nodes: Codes) -> tuple[Codes, Codes]:
    of, where = expand_ranges(level.starts[nodes], level.starts[nodes + 1])
    kept, _ = _found(level.pairs, code[of] * level.width + level.branches[where] % level.width, np.arange(len(of)))
    return of[kept], where[kept]


def _found(ordered: Codes, wanted: Codes, of: Codes) -> tuple[Codes, Codes]:
    """Return which of the wanted keys exist, and their positions."""
    where = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    hit = ordered[where] == wanted
    return of[hit], where[hit]
