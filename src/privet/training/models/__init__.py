"""Models that learn well under noise, and features for them that cost no privacy."""

from __future__ import annotations

from privet.training.models.choose import Family, Head, Model, choose
from privet.training.models.front import Front
from privet.training.models.linear import Linear
from privet.training.models.pictures import Convolutions, Pictures
from privet.training.models.residual import Residual

__all__ = ["Convolutions", "Family", "Front", "Head", "Linear", "Model", "Pictures", "Residual", "choose"]
