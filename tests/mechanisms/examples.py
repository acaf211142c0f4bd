"""One small instance of every mechanism, for each kind of unit: what the contract tests walk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.core.unit import Neighbours, Unit, Whose
from privet.mechanisms import (
    Binomial,
    Bounds,
    Categories,
    Cells,
    Count,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Histogram,
    Keys,
    Laplace,
    Magnitudes,
    NoisyMax,
    Norm,
    Partitions,
    Peeling,
    PermuteAndFlip,
    Quantile,
    RunningSums,
    SmoothMedian,
    SparseVector,
    Sum,
    ThresholdedCounts,
    TopK,
    VectorSum,
)

ADD = Unit()
ZERO = Unit(neighbours=Neighbours.ZERO_OUT)
REPLACE = Unit(neighbours=Neighbours.REPLACE)
USER = Unit(whose=Whose.USER)
USER_REPLACE = Unit(whose=Whose.USER, neighbours=Neighbours.REPLACE)
GROUP = Unit(whose=Whose.USER, records=3)
UNITS = (ADD, ZERO, REPLACE, USER, USER_REPLACE, GROUP)

EPSILON, DELTA = 1.0, 1e-5
LETTERS = Categories(("a", "b", "c"))


def rows_of(unit: Unit) -> int:
    """Two rows a user where ids say whose they are."""
    return 2 if unit.whose is Whose.USER and unit.records == 1 else 1


def users_of(unit: Unit, size: int) -> list[int] | None:
    """Each user has three rows, of which two count."""
    return [i // 3 for i in range(size)] if rows_of(unit) == 2 else None


@dataclass(frozen=True)
class Example:
    """How to make a mechanism and a query for a unit, and what was asked of its price."""

    clip: Callable[[Unit], Any]
    make: Callable[[Any], Any]
    rows: list[Any]
    delta: float = 0.0
    units: tuple[Unit, ...] = UNITS

    def query(self, clip: Any, rows: list[Any] | None = None) -> Any:
        rows = self.rows if rows is None else rows
        return clip(rows, users_of(clip.unit, len(rows)))


def _letters(unit: Unit) -> Histogram:
    return Histogram(LETTERS, unit, rows_of(unit))


def _cells(unit: Unit) -> Histogram:
    return Histogram(Cells(0, 10, 16, missing=5.0), unit, rows_of(unit))


def _keys(unit: Unit) -> Keys:
    return Keys(unit, rows_of(unit))


def _vectors(unit: Unit) -> VectorSum:
    return VectorSum(4, 1.0, Norm.LINF, unit, rows_of(unit))


NUMBERS: list[Any] = [1, 2.5, None, 9, "x", float("nan"), float("inf"), -4, 3]
WORDS: list[Any] = ["a", "b", "a", None, "zebra", "a", 3.5, "c", "c"]
VECTORS: list[Any] = [np.array([1.0, -2.0, 0.1, np.nan]), [0.0, 0.5, np.inf, 0.0], [1.0, 1.0, 1.0, 1.0]]
NAMED = tuple(unit for unit in UNITS if unit.records == 1)

EXAMPLES: dict[str, Example] = {
    "Laplace": Example(
        lambda unit: Sum(-1, 3, unit, rows_of(unit)), lambda of: Laplace.for_epsilon(EPSILON, of), NUMBERS
    ),
    "Gaussian": Example(
        lambda unit: Sum(-1, 3, unit, rows_of(unit)),
        lambda of: Gaussian.for_epsilon(EPSILON, DELTA, of),
        NUMBERS,
        DELTA,
    ),
    "DiscreteLaplace": Example(_letters, lambda of: DiscreteLaplace.for_epsilon(EPSILON, of), WORDS),
    "DiscreteGaussian": Example(_letters, lambda of: DiscreteGaussian.for_epsilon(EPSILON, DELTA, of), WORDS, DELTA),
    "Binomial": Example(
        lambda unit: Count(unit, rows_of(unit)), lambda of: Binomial.for_epsilon(EPSILON, DELTA, of), NUMBERS, DELTA
    ),
    "Exponential": Example(_letters, lambda of: Exponential.for_epsilon(EPSILON, of), WORDS),
    "NoisyMax": Example(_letters, lambda of: NoisyMax.for_epsilon(EPSILON, of), WORDS),
    "PermuteAndFlip": Example(_letters, lambda of: PermuteAndFlip.for_epsilon(EPSILON, of), WORDS),
    "TopK": Example(_letters, lambda of: TopK.for_epsilon(EPSILON, of, k=2), WORDS),
    "Quantile": Example(_cells, lambda of: Quantile.for_epsilon(EPSILON, of, 0.25), NUMBERS),
    "SmoothMedian": Example(_cells, lambda of: SmoothMedian(EPSILON, DELTA, of), NUMBERS, DELTA, (REPLACE,)),
    "SparseVector": Example(_letters, lambda of: SparseVector.for_epsilon(EPSILON, of, threshold=3, answers=2), WORDS),
    "RunningSums": Example(_letters, lambda of: RunningSums.for_epsilon(EPSILON, DELTA, of), WORDS, DELTA),
    "Peeling": Example(_vectors, lambda of: Peeling.for_epsilon(EPSILON, DELTA, of, k=2), VECTORS, DELTA),
    "Bounds": Example(
        lambda unit: Histogram(Magnitudes(-2, 6), unit, rows_of(unit)),
        lambda of: Bounds.for_epsilon(EPSILON, of),
        NUMBERS,
    ),
    "Partitions": Example(_keys, lambda of: Partitions.for_epsilon(EPSILON, DELTA, of), WORDS, DELTA, NAMED),
    "ThresholdedCounts": Example(_keys, lambda of: ThresholdedCounts.laplace(EPSILON, DELTA, of), WORDS, DELTA, NAMED),
}
CASES = [(name, unit) for name, example in EXAMPLES.items() for unit in example.units]
