"""Which rows of two tables agree in every column: cells as codes of their distinct values, and a join of those."""

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
"""Columns by name: a Polars frame, or lists and arrays of one length."""

MISSING = ("?", "NA", "N/A", "null", "None", "nan")
"""Cells that say nothing, in large or small letters, beside empty ones and those of stars alone: they agree with
everything."""

_PAIRS, _STEP = 1 << 22, 2000


@dataclass(frozen=True, eq=False)
class MatchedColumn:
    """One column of both tables, as codes of each side's own values; −1 where a cell is missing."""

    name: str
    published: Codes
    known: Codes
    values: int
    """How many different ones are published."""
    others: int
    """How many different ones are known."""
    mine: Codes
    theirs: Codes
    """The pairs of a published and a known code that can be of one person, in order."""

    @property
    def unmet(self) -> int:
        """Published cells that can be of nobody in the known table."""
        met = np.zeros(self.values + 1, dtype=np.bool_)
        met[self.mine] = met[-1] = True
        return int(np.count_nonzero(~met[self.published]))

    def agreeing_with(self, known: Codes) -> Truths:
        """[known codes, published values and one for missing]: whether both can be of one person; False if missing."""
        order = np.argsort(self.theirs, kind="stable")
        ordered = self.theirs[order]
        of, where = expand_ranges(np.searchsorted(ordered, known, "left"), np.searchsorted(ordered, known, "right"))
        found = np.zeros((len(known), self.values + 1), dtype=np.bool_)
        found[of, self.mine[order[where]]] = True
        return found


@dataclass(frozen=True, eq=False)
class RowGroups:
    """Rows that are alike in all columns: the codes, the first row and the size of each group; each row's group."""

    codes: Codes
    """[groups, columns]."""
    first: Codes
    sizes: Codes
    of: Codes

    @staticmethod
    def by(columns: Sequence[Codes]) -> RowGroups:
        """Groups of rows by columns of codes."""
        found = np.zeros(len(columns[0]), dtype=np.int64)
        for column in columns:
            # Numbered anew each time, so that the product stays far below 2^63.
            wide = int(column.max(initial=-1)) + 2
            found = np.unique(found * wide + column + 1, return_inverse=True)[1].astype(np.int64)
        _, first, of, sizes = np.unique(found, return_index=True, return_inverse=True, return_counts=True)
        return RowGroups(np.stack([column[first] for column in columns], axis=1), first, sizes, of)


def column_texts(argument: str, table: TableLike, name: str, missing: Sequence[str] = MISSING) -> pl.Series:
    """A column as texts, null where missing; refuses a table without it. Dates are spelled 1984-02-29."""
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
        # Some programs know no days, but midnights alone.
        days = bool((found.dt.truncate("1d") == found).all())
        found = found.dt.date() if days else found.dt.to_string("iso")
    spelt = texts_of(found, ())
    silent = spelt.str.to_lowercase().is_in([each.strip().lower() for each in missing]) | spelt.str.contains(r"^\**$")
    return spelt.set(silent.fill_null(False), None)


def spelled_alike(published: pl.Series, known: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Numbers that are equal spelled alike: 30.0 as 30, unless a cell of either table starts with 0, as codes do."""
    if any(cells.str.contains(r"^-?0\d").any() for cells in (published, known)):
        return published, known
    one, other = (
        cells.str.replace(r"^(-?\d+)\.0*$", "$1").str.replace(r"^(-?\d+\.\d*[1-9])0+$", "$1")
        for cells in (published, known)
    )
    return one, other


def encode(cells: pl.Series) -> tuple[Codes, list[str]]:
    """Texts as the places of their values, and these; −1 where missing."""
    import polars as pl

    values = cells.drop_nulls().unique(maintain_order=True)
    codes: Codes = cells.cast(pl.Enum(values)).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    return codes, values.to_list()


def match_column(published: pl.Series, known: pl.Series) -> MatchedColumn:
    """A column of both tables, and which of its values agree."""
    one, other = spelled_alike(published, known)
    (mine, values), (theirs, others) = encode(one), encode(other)
    return MatchedColumn(published.name, mine, theirs, len(values), len(others), *compatible_pairs(values, others))


def matching_groups(
    columns: Sequence[MatchedColumn],
    published: RowGroups,
    known: RowGroups,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[tuple[int, Codes, Codes]]:
    """All pairs of a published and a known group that agree in every column, some at a time; those whose published
    group has fewer missing cells come first, and how many it has is said. A row without any cell agrees with nobody.

    Known groups are a tree with a column for each level. A published group goes down it in all ways that agree: by the
    values that its own one agrees with, or by the branches that are there, whichever are fewer.
    """
    empty = published.codes < 0
    masks, of = np.unique(empty, axis=0, return_inverse=True)
    there = np.flatnonzero((known.codes >= 0).any(axis=1))
    done = 0
    for place in np.argsort(masks.sum(axis=1), kind="stable").tolist():
        mine = np.flatnonzero(of.reshape(-1) == place)
        places = np.flatnonzero(~masks[place]).tolist()
        if places and len(there):
            # Columns in which little agrees come first: they leave the fewest ways.
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
    """One column: the branches of all nodes, as node · width + known code (the highest where missing), in order; and
    the pairs of codes that agree in the same form. The leaves have groups for branches, and agree with all."""

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
    """From nodes of the first level, all ways down to the leaves: `codes` are those of all published groups."""
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
    """Those of what is wanted that are there, and where."""
    where = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    hit = ordered[where] == wanted
    return of[hit], where[hit]
