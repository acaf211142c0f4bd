"""Which rows enter a step: one object draws the batch and tells the accountant what drawing it so is worth.

Pass one of these and nothing else decides what is sampled, so that the event cannot disagree with the batches.
"""

from __future__ import annotations

from privet.training.sampling.fixed_size import FixedSizeSampler
from privet.training.sampling.poisson import PoissonSampler
from privet.training.sampling.protocol import SampledBatch, Sampler, State
from privet.training.sampling.shuffled import ShuffledSampler
from privet.training.sampling.users import Ids, UserRows, UserSampler, count_units

__all__ = [
    "FixedSizeSampler",
    "Ids",
    "PoissonSampler",
    "SampledBatch",
    "Sampler",
    "ShuffledSampler",
    "State",
    "UserRows",
    "UserSampler",
    "count_units",
]
