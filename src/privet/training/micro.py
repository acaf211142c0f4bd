"""Pieces of a logical batch that go through the model one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from privet.training.sampling import SampledBatch

__all__ = ["TELLING", "Micro", "RowInputs", "remember_rows", "split"]

_SURVEY = (17, 13, 11, 7, 5, 3, 2)
"""Sizes of the first piece: primes, so that hardly any other size in the model is a multiple of it."""
TELLING = (11, 13, 17)
"""Those of them that are so large that hardly any other number in a model is one of them."""


RowInputs: TypeAlias = dict[tuple[int, int], list[bool]]
"""By a module's `id` and how many inputs a call of it had: which of them have rows."""


def remember_rows(known: RowInputs, module: object, with_rows: list[bool], examples: int) -> list[bool]:
    """Return which inputs have rows: those that look like it now and did so in a batch of a telling size.

    A mask of 12 × 12 that all examples share looks like one of 12 examples, now and then.
    """
    key = id(module), len(with_rows)
    if examples in TELLING:
        known[key] = with_rows
    return [now and before for now, before in zip(with_rows, known.get(key, with_rows), strict=True)]


@dataclass(frozen=True, eq=False)
class Micro:
    """Whole units of a batch."""

    indices: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int64] | None
    """For each row the place of its unit in this piece; None if each row is a unit."""
    units: int
    last: bool
    """Whether the step is complete with this piece."""

    @property
    def rows(self) -> int:
        """How many rows the model sees: an empty piece is one row of zeros."""
        return max(1, len(self.indices))


def split(drawn: SampledBatch, most: int | None, *, survey: bool) -> Iterator[Micro]:
    """Pieces of at most `most` rows, or all at once; at least one piece, and a unit is never cut."""
    if drawn.groups is None and not survey and (most is None or len(drawn.indices) <= most):
        yield Micro(drawn.indices, None, len(drawn.indices), last=True)
        return
    groups = drawn.groups if drawn.groups is not None else np.arange(len(drawn.indices))
    ends = np.flatnonzero(np.diff(groups)) + 1
    borders = np.concatenate([[0], ends, [len(groups)]]) if len(groups) else np.zeros(1, dtype=np.int64)
    pieces = 1 if most is None else max(1, ceil(len(groups) / most))
    most = ceil(len(groups) / pieces)
    start, cuts = 0, [0]
    if survey:
        start = next((size for size in _SURVEY if 2 * size <= len(groups) and size <= max(most, 2)), 0)
        start = int(borders[np.searchsorted(borders, start)]) if start else 0
        cuts += [start] if 0 < start < len(groups) else []
    while start < len(groups):
        place = int(np.searchsorted(borders, start + max(most, 1), side="right")) - 1
        start = (
            int(borders[place]) if borders[place] > start else int(borders[np.searchsorted(borders, start, "right")])
        )
        cuts.append(start)
    if len(cuts) == 1:
        yield Micro(drawn.indices, drawn.groups, 0, last=True)
    for first, last in pairwise(cuts):
        own = groups[first:last] - groups[first]
        # A unit without rows has no place in the groups, so places need not be consecutive in what was drawn.
        numbers = None if drawn.groups is None else np.unique(own, return_inverse=True)[1]
        units = last - first if numbers is None else int(numbers[-1]) + 1
        yield Micro(drawn.indices[first:last], numbers, units, last=last == len(groups))
