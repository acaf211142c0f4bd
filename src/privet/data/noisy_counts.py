"""From noisy counts to a schema: reads what was released and public facts, and no row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privet.data.bounds_source import BoundsSource, SourceKind
from privet.data.columns import Category, Column, Identifier, Number
from privet.data.schema_questions import SIZES, TEXT, ColumnKind

__all__ = ["MOST_CLASSES", "NoisyCounts", "column_of"]

MOST_CLASSES = 20
"""Of a target that holds numbers and nobody described: with more values it is a number."""

_LEARNED = BoundsSource(SourceKind.LEARNED)


@dataclass(frozen=True)
class NoisyCounts:
    """The noisy counts, and what noise alone reaches in the sizes."""

    rows: int
    sizes: Mapping[str, npt.NDArray[np.int64]]
    values: Mapping[str, Mapping[str, int]]
    noise: float


def column_of(name: str, kind: ColumnKind, is_target: bool, found: NoisyCounts) -> Column:
    """Return a column by its kind and the noisy counts; it is valid whatever the counts are."""
    if kind is ColumnKind.IDENTIFIER:
        return Identifier(name)
    if kind is ColumnKind.NUMBER or (kind is ColumnKind.UNKNOWN and _votes_number(name, is_target, found)):
        low, high = _bounds(found.sizes[name][:TEXT], found.noise)
        return Number(name, low, high, source=_LEARNED)
    return Category(name, tuple(found.values[name]), source=_LEARNED)


def _votes_number(name: str, is_target: bool, found: NoisyCounts) -> bool:
    """Whether numbers outvote other cells four to one; few values that make out nearly all rows are classes."""
    counts = found.sizes[name]
    numbers = counts[:TEXT][counts[:TEXT] > found.noise].sum()
    if numbers <= 4 * max(int(counts[TEXT]), 0):
        return False
    values = found.values[name]
    return not (is_target and 1 < len(values) <= MOST_CLASSES and sum(values.values()) >= 0.8 * found.rows)


def _bounds(counts: npt.NDArray[np.int64], noise: float) -> tuple[float, float]:
    """The edges of the outermost counts above the noise (Wilson et al. 2020, §5.2), or of the largest count."""
    full = np.flatnonzero(counts > noise)
    first, last = (full[0], full[-1]) if len(full) else (counts.argmax(), counts.argmax())
    edges, middle = SIZES.edges, SIZES.half
    if first == last == middle:
        return -1.0, 1.0  # nothing but zeros is known of
    # The middle count is of zeros: beside other numbers, its far edge says no more than 0 does.
    low = 0.0 if first == middle != last else float(edges[first])
    high = 0.0 if last == middle != first else float(edges[last + 1])
    return low, high
