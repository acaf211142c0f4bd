"""Models that learn well under noise, and features for them that cost no privacy."""

from __future__ import annotations

from privet.training.models.additive import Additive
from privet.training.models.choose import Family, Model, choose, decided
from privet.training.models.kernel import Kernel
from privet.training.models.linear import Linear
from privet.training.models.pictures import Convolutions, Pictures, Pixels
from privet.training.models.residual import Residual
from privet.training.models.rowwise import apply_rowwise
from privet.training.models.storage import DESCRIPTION as DESCRIPTION
from privet.training.models.storage import WEIGHTS as WEIGHTS
from privet.training.models.storage import ModelDescription, restore, store
from privet.training.models.table_features import TableFeatures
from privet.training.models.unit_norm_linear import UnitNormLinear
from privet.training.models.user_model import UserModel

__all__ = [
    "Additive",
    "Convolutions",
    "Family",
    "Kernel",
    "Linear",
    "Model",
    "ModelDescription",
    "Pictures",
    "Pixels",
    "Residual",
    "TableFeatures",
    "UnitNormLinear",
    "UserModel",
    "apply_rowwise",
    "choose",
    "decided",
    "restore",
    "store",
]
