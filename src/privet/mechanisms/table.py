"""Every mechanism of this room: one row each, which contract tests, replays and audits read.

A row says how to build the mechanism from (ε, δ) and a clipper, and gives rows of data of which the first one comes or
goes, so that there are two neighboring inputs to release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from privet.core import Neighbours, Unit, Whose
from privet.mechanisms.binomial import Binomial
from privet.mechanisms.bounds import Bounds
from privet.mechanisms.count import Count
from privet.mechanisms.discrete_gaussian import DiscreteGaussianMechanism
from privet.mechanisms.discrete_laplace import DiscreteLaplaceMechanism
from privet.mechanisms.exponential import ExponentialMechanism
from privet.mechanisms.gaussian import GaussianMechanism
from privet.mechanisms.histogram import Categories, Cells, Histogram, Magnitudes
from privet.mechanisms.keys import Keys
from privet.mechanisms.laplace import LaplaceMechanism
from privet.mechanisms.noisy_max import ReportNoisyMax
from privet.mechanisms.partitions import Partitions
from privet.mechanisms.peeling import Peeling
from privet.mechanisms.permute_and_flip import PermuteAndFlip
from privet.mechanisms.quantile import Quantile
from privet.mechanisms.smooth import SmoothMedian
from privet.mechanisms.sparse_vector import SparseVector
from privet.mechanisms.sums import BoundedSum, Norm, VectorSum
from privet.mechanisms.thresholds import ThresholdedCounts
from privet.mechanisms.top_k import TopK
from privet.mechanisms.tree import RunningSums

__all__ = ["MECHANISMS", "MechanismEntry"]


def _any_unit(_: Unit) -> bool:
    """Return True: the mechanism is proven for every unit.

    Args:
        _: Whose data is protected.
    """
    return True


def _named_units(unit: Unit) -> bool:
    return unit.records == 1


def _replaced_rows(unit: Unit) -> bool:
    return (unit.neighbours, unit.whose, unit.records) == (Neighbours.REPLACE, Whose.EXAMPLE, 1)


@dataclass(frozen=True)
class MechanismEntry:
    """One mechanism: how to build it, and rows that it can be tried on."""

    kind: type[Any]
    clipper: Callable[[Unit, int], Any]
    """From a unit, and how many rows of one user count."""
    rows: tuple[Any, ...]
    """A small data set. Without its first row it is a neighboring one."""
    needs_delta: bool = False
    scale: str | None = None
    """The field that states the noise itself, where it can be given in place of ε."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What else the mechanism is built with, by name."""
    make: Callable[..., Any] | None = None
    """From ε, δ (where it is needed) and a clipper; by default `kind.for_epsilon`."""
    protects: Callable[[Unit], bool] = _any_unit
    """Whether the mechanism is proven for a unit."""

    def build(self, epsilon: float, delta: float, clipper: Any) -> Any:
        """Return the mechanism that costs (ε, δ) for the unit of a clipper; one that needs no δ ignores it.

        Args:
            epsilon: The privacy cost of one release.
            delta: The δ at which ε is stated.
            clipper: The clipper whose answers are to be released.
        """
        make = self.make or self.kind.for_epsilon
        return make(epsilon, *((delta,) if self.needs_delta else ()), clipper, **self.options)


def _letters(unit: Unit, rows: int) -> Histogram:
    return Histogram(Categories(("a", "b", "c")), unit, rows)


def _cells(unit: Unit, rows: int) -> Histogram:
    return Histogram(Cells(0, 10, 16, missing=5.0), unit, rows)


def _clamped(unit: Unit, rows: int) -> BoundedSum:
    return BoundedSum(-1, 3, unit, rows)


_LETTERS = ("a", "b", "a", None, "zebra", "a", 3.5, "c", "c")
_NUMBERS = (1, 2.5, None, 9, "x", float("nan"), float("inf"), -4, 3)
_VECTORS = ((1.0, -2.0, 0.1, float("nan")), (0.0, 0.5, float("inf"), 0.0), (1.0, 1.0, 1.0, 1.0))

MECHANISMS: dict[str, MechanismEntry] = {
    "laplace": MechanismEntry(LaplaceMechanism, _clamped, _NUMBERS, scale="scale"),
    "gaussian": MechanismEntry(GaussianMechanism, _clamped, _NUMBERS, True, "sigma"),
    "discrete-laplace": MechanismEntry(DiscreteLaplaceMechanism, _letters, _LETTERS, scale="scale"),
    "discrete-gaussian": MechanismEntry(DiscreteGaussianMechanism, _letters, _LETTERS, True, "sigma"),
    "binomial": MechanismEntry(Binomial, Count, _NUMBERS, True),
    "exponential": MechanismEntry(ExponentialMechanism, _letters, _LETTERS),
    "noisy-max": MechanismEntry(ReportNoisyMax, _letters, _LETTERS),
    "permute-and-flip": MechanismEntry(PermuteAndFlip, _letters, _LETTERS),
    "top-k": MechanismEntry(TopK, _letters, _LETTERS, options={"k": 2}),
    "quantile": MechanismEntry(Quantile, _cells, _NUMBERS, options={"quantile": 0.25}),
    "smooth-median": MechanismEntry(SmoothMedian, _cells, _NUMBERS, True, make=SmoothMedian, protects=_replaced_rows),
    "sparse-vector": MechanismEntry(SparseVector, _letters, _LETTERS, options={"threshold": 3, "answers": 2}),
    "running-sums": MechanismEntry(RunningSums, _letters, _LETTERS, True),
    "peeling": MechanismEntry(
        Peeling, lambda unit, rows: VectorSum(4, 1.0, Norm.LINF, unit, rows), _VECTORS, True, options={"k": 2}
    ),
    "bounds": MechanismEntry(Bounds, lambda unit, rows: Histogram(Magnitudes(-2, 6), unit, rows), _NUMBERS),
    "partitions": MechanismEntry(Partitions, Keys, _LETTERS, True, protects=_named_units),
    "thresholded-counts": MechanismEntry(
        ThresholdedCounts, Keys, _LETTERS, True, make=ThresholdedCounts.laplace, protects=_named_units
    ),
}
"""What a `Bounded` can be released by. Each has `event`, `expected_error`, `interval` and `release`."""
