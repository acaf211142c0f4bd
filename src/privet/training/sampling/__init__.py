"""Which rows enter a step: one object draws the batch and tells the accountant what drawing it so is worth.

Pass one of these and nothing else decides what is sampled, so that the event cannot disagree with the batches.
"""

from __future__ import annotations

from privet.training.sampling.fixed_size import FixedSize
from privet.training.sampling.poisson import Poisson
from privet.training.sampling.protocol import Drawn, Sampler, State
from privet.training.sampling.shuffled import Shuffled
from privet.training.sampling.users import Ids, UserRows, Users, count_units

__all__ = ["Drawn", "FixedSize", "Ids", "Poisson", "Sampler", "Shuffled", "State", "UserRows", "Users", "count_units"]
