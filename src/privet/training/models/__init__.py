"""Models that learn well under noise, and features for them that cost no privacy."""

from __future__ import annotations

from privet.training.models.additive import Additive
from privet.training.models.alone import each_alone
from privet.training.models.choose import Family, Model, choose, decided
from privet.training.models.front import Front
from privet.training.models.kernel import Kernel
from privet.training.models.linear import Linear
from privet.training.models.own import Own
from privet.training.models.pictures import Convolutions, Pictures, Pixels
from privet.training.models.residual import Residual
from privet.training.models.shortened import Shortened
from privet.training.models.stored import Described, restore, store

__all__ = [
    "Additive",
    "Convolutions",
    "Described",
    "Family",
    "Front",
    "Kernel",
    "Linear",
    "Model",
    "Own",
    "Pictures",
    "Pixels",
    "Residual",
    "Shortened",
    "choose",
    "decided",
    "each_alone",
    "restore",
    "store",
]
