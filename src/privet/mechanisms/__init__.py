"""Clippers, which bound how far one unit moves an answer, and mechanisms, which release it."""

from __future__ import annotations

from privet.mechanisms import randomized_response as randomized_response
from privet.mechanisms.additive import gaussian_width as gaussian_width
from privet.mechanisms.binomial import Binomial
from privet.mechanisms.bounds import Bounds
from privet.mechanisms.coins import WORD as WORD
from privet.mechanisms.coins import Booleans as Booleans
from privet.mechanisms.coins import Integers as Integers
from privet.mechanisms.coins import Words as Words
from privet.mechanisms.coins import coins as coins
from privet.mechanisms.coins import cost as cost
from privet.mechanisms.coins import growth as growth
from privet.mechanisms.coins import packed as packed
from privet.mechanisms.coins import threshold as threshold
from privet.mechanisms.coins import usable as usable
from privet.mechanisms.contribution import Chunk as Chunk
from privet.mechanisms.contribution import Limiter as Limiter
from privet.mechanisms.count import Count
from privet.mechanisms.discrete_gaussian import DiscreteGaussianMechanism
from privet.mechanisms.discrete_laplace import DiscreteLaplaceMechanism
from privet.mechanisms.exponential import ExponentialMechanism
from privet.mechanisms.gaussian import GaussianMechanism
from privet.mechanisms.gaussian_price import GaussianPrice as GaussianPrice
from privet.mechanisms.grid import MOST_STEPS as MOST_STEPS
from privet.mechanisms.grid import NoiseGrid as NoiseGrid
from privet.mechanisms.grid import ceiling as ceiling
from privet.mechanisms.histogram import Categories, Cells, Histogram, Magnitudes
from privet.mechanisms.keys import Keys
from privet.mechanisms.keys import KeysTally as KeysTally
from privet.mechanisms.laplace import LaplaceMechanism
from privet.mechanisms.mechanism import SOURCE as SOURCE
from privet.mechanisms.mechanism import Mechanism
from privet.mechanisms.noisy_max import ReportNoisyMax
from privet.mechanisms.partitions import Partitions
from privet.mechanisms.peeling import Peeling
from privet.mechanisms.permute_and_flip import PermuteAndFlip
from privet.mechanisms.quantile import Quantile
from privet.mechanisms.randomized_response import RandomizedResponseMechanism as RandomizedResponseMechanism
from privet.mechanisms.reach import Reach
from privet.mechanisms.reach import replaces as replaces
from privet.mechanisms.selection import random_order as random_order
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
