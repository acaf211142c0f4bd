"""Clippers, which bound how far one unit moves an answer, and mechanisms, which release it."""

from __future__ import annotations

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
from privet.mechanisms.mechanism import Mechanism
from privet.mechanisms.noisy_max import ReportNoisyMax
from privet.mechanisms.partitions import Partitions
from privet.mechanisms.peeling import Peeling
from privet.mechanisms.permute_and_flip import PermuteAndFlip
from privet.mechanisms.quantile import Quantile
from privet.mechanisms.reach import Reach
from privet.mechanisms.smooth import Sensitivities, SmoothMedian
from privet.mechanisms.sparse_vector import SparseVector
from privet.mechanisms.sums import BoundedSum, Norm, VectorSum
from privet.mechanisms.table import MECHANISMS, MechanismEntry
from privet.mechanisms.thresholds import ThresholdedCounts
from privet.mechanisms.top_k import TopK
from privet.mechanisms.tree import RunningSums
from privet.mechanisms.trial import MechanismTrial, TrialSettings, auditable, mechanism_trial

__all__ = [
    "MECHANISMS",
    "Binomial",
    "BoundedSum",
    "Bounds",
    "Categories",
    "Cells",
    "Count",
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "ExponentialMechanism",
    "GaussianMechanism",
    "Histogram",
    "Keys",
    "LaplaceMechanism",
    "Magnitudes",
    "Mechanism",
    "MechanismEntry",
    "MechanismTrial",
    "Norm",
    "Partitions",
    "Peeling",
    "PermuteAndFlip",
    "Quantile",
    "Reach",
    "ReportNoisyMax",
    "RunningSums",
    "Sensitivities",
    "SmoothMedian",
    "SparseVector",
    "ThresholdedCounts",
    "TopK",
    "TrialSettings",
    "VectorSum",
    "auditable",
    "mechanism_trial",
]
