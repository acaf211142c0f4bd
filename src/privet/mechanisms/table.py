"""Every mechanism of this room, by name: the list that contract tests walk."""

from __future__ import annotations

from typing import Any

from privet.mechanisms.binomial import Binomial
from privet.mechanisms.bounds import Bounds
from privet.mechanisms.discrete_gaussian import DiscreteGaussian
from privet.mechanisms.discrete_laplace import DiscreteLaplace
from privet.mechanisms.exponential import Exponential
from privet.mechanisms.gaussian import Gaussian
from privet.mechanisms.laplace import Laplace
from privet.mechanisms.noisy_max import NoisyMax
from privet.mechanisms.partitions import Partitions
from privet.mechanisms.peeling import Peeling
from privet.mechanisms.permute_and_flip import PermuteAndFlip
from privet.mechanisms.quantile import Quantile
from privet.mechanisms.smooth import SmoothMedian
from privet.mechanisms.sparse_vector import SparseVector
from privet.mechanisms.thresholds import ThresholdedCounts
from privet.mechanisms.top_k import TopK
from privet.mechanisms.tree import RunningSums

__all__ = ["MECHANISMS"]

MECHANISMS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Laplace,
        Gaussian,
        DiscreteLaplace,
        DiscreteGaussian,
        Binomial,
        Exponential,
        NoisyMax,
        PermuteAndFlip,
        TopK,
        Quantile,
        SmoothMedian,
        SparseVector,
        RunningSums,
        Peeling,
        Bounds,
        Partitions,
        ThresholdedCounts,
    )
}
"""What a `Bounded` can be released by. Each has `event`, `expected_error`, `interval` and `release`."""
