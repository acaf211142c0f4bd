"""One pass over the rows for all questions: sums by group, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from privet.core import InvalidInput
from privet.mechanisms import Keys, KeysTally
from privet.query.column_reader import ColumnReader
from privet.query.question_spec import Label, QuestionSpec
from privet.query.table_source import TableSource

__all__ = ["Totals", "tally_rows"]


@dataclass
class Totals:
    """The private sums of one question; they print nothing of themselves."""

    spec: QuestionSpec
    public: npt.NDArray[Any] = field(repr=False)
    """[groups, sums] where the groups are public."""
    private: dict[Label, npt.NDArray[Any]] = field(default_factory=dict, repr=False)
    """The sums of each group where they are not."""
    owners: KeysTally | None = field(default=None, repr=False)
    """How many units are in each private group."""

    @staticmethod
    def of(spec: QuestionSpec) -> Totals:
        """Nothing yet."""
        shape = (len(spec.groups or ()), spec.sums)
        owners = Keys(spec.unit, spec.rows).start() if spec.private else None
        return Totals(spec, np.zeros(shape, dtype=np.int64 if spec.whole else object), {}, owners)

    def add(self, piece: pl.DataFrame) -> None:
        """The sums of a piece, as `_query` asks for them."""
        if not self.spec.private:
            self._add_public(piece)
            return
        sums = self._sums(piece)
        cells = piece["cell"].to_list() if self.spec.ranked else None
        keys = zip(*(piece[f"g{axis}"].to_list() for axis in range(len(self.spec.axes))), strict=True)
        for row, key in enumerate(keys):
            label = self.spec.label(key)
            if label is None:
                continue
            mine = self.private.get(label)
            if mine is None:
                mine = self.private[label] = np.zeros(self.spec.sums, dtype=self.public.dtype)
            if cells is not None:
                mine[cells[row]] += sums[row, 0]
            else:
                mine += sums[row]

    def _sums(self, piece: pl.DataFrame) -> npt.NDArray[Any]:
        names = [name for name in piece.columns if name.startswith("s")]
        added = np.stack([piece[name].to_numpy().astype(np.int64) for name in names], axis=1)
        return self.spec.sums_of(added.astype(self.public.dtype))

    def _add_public(self, piece: pl.DataFrame) -> None:
        sums = self._sums(piece)
        if not self.spec.axes and not self.spec.ranked:
            self.public += sums.sum(axis=0)
            return
        groups = np.zeros(len(piece), dtype=np.int64)
        within = np.ones(len(piece), dtype=np.bool_)
        for axis, name in enumerate(self.spec.axes):
            size = self.spec.size(name)
            code = piece[f"g{axis}"].to_numpy()
            within &= code < size  # `top` has no group for what is not among the values
            groups = groups * size + np.minimum(code, size - 1)
        if self.spec.ranked:
            np.add.at(self.public, (groups[within], piece["cell"].to_numpy()[within]), sums[within, 0])
        else:
            np.add.at(self.public, groups[within], sums[within])


def tally_rows(specs: Sequence[QuestionSpec], table: TableSource) -> list[Totals]:
    """The sums of every question. What the rows hold decides nothing but these numbers."""
    totals = [Totals.of(spec) for spec in specs]
    if not specs:
        return totals
    if table.bare:  # no column is asked for, so that what is counted is all rows
        rows = table.rows()
        for total in totals:
            total.add(pl.DataFrame({"s0": [rows]}))
        return totals
    cells = ColumnReader(specs[0].schema, table.types)
    names = list(dict.fromkeys(name for spec in specs for name in spec.question.columns))
    try:
        for piece, users in _pieces(specs[0], table, names):
            queries = [_query(spec, cells, piece) for spec in specs]
            for total, sums in zip(totals, pl.collect_all(queries, engine="streaming"), strict=True):
                total.add(sums)
            for total in totals:
                _count_owners(total, cells, piece, users)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        problem = f"{table.named} damaged, or no such table"
        raise InvalidInput("data", problem, "get them again, or repair them") from None
    return totals


def _pieces(
    spec: QuestionSpec, table: TableSource, names: list[str]
) -> Iterator[tuple[pl.LazyFrame, list[int] | None]]:
    schema = spec.schema
    if schema.user is None:
        for piece in table.pieces(names):
            yield piece, None
        return
    for owned in table.limited(names, schema.user, schema.missing, spec.unit, spec.rows):
        yield owned.rows.lazy(), owned.users


def _query(spec: QuestionSpec, cells: ColumnReader, piece: pl.LazyFrame) -> pl.LazyFrame:
    if spec.question.where is not None:
        piece = piece.filter(cells.meets(spec.question.where))
    keys = [*spec.keys(cells), *([spec.cell(cells).alias("cell")] if spec.ranked else [])]
    steps = [step.alias(f"s{index}") for index, step in enumerate(spec.steps(cells), start=1)]
    if not keys and not steps:
        return piece.select(pl.len().alias("s0"))  # and no cast: what a file knows of itself is not counted again
    # Row by row first, so that a group adds up columns and nothing else.
    rows = piece.select(*keys, *steps)
    names = [f"s{index}" for index in range(1, len(steps) + 1)]
    count = pl.col("s1").count() if steps else pl.len()
    sums = [count.cast(pl.Int64).alias("s0"), *(pl.col(name).sum() for name in names)]
    if not keys:
        return rows.select(sums)
    grouped = rows.group_by([key.meta.output_name() for key in keys]).agg(sums)
    return grouped.filter(pl.col("cell").is_not_null()) if spec.ranked else grouped


def _count_owners(total: Totals, cells: ColumnReader, piece: pl.LazyFrame, users: list[int] | None) -> None:
    """How many units are in each private group; a row that is counted nowhere still is its owner's."""
    owners, spec = total.owners, total.spec
    if owners is None:
        return
    keys = spec.keys(cells)
    if users is None:
        if spec.question.where is not None:
            piece = piece.filter(cells.meets(spec.question.where))
        grouped = piece.group_by(keys).agg(pl.len().cast(pl.Int64).alias("rows")).collect(engine="streaming")
        for *key, rows in grouped.iter_rows():
            label = spec.label(tuple(key))
            if label is not None:
                owners.counts[label] = owners.counts.get(label, 0) + rows
        return
    met = pl.lit(True) if spec.question.where is None else cells.meets(spec.question.where)
    rows = piece.select(*keys, met.alias("met")).collect()
    labels, mine = [], []
    for (*key, counts), user in zip(rows.iter_rows(), users, strict=True):
        label = spec.label(tuple(key))
        if label is not None and counts:
            labels.append(label)
            mine.append(user)
    owners.add(labels, mine)
