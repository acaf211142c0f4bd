"""Random features: a linear model on them approximates one with a Gaussian kernel."""

from __future__ import annotations

from math import pi, sqrt

import torch
from torch import Tensor, nn

from privet.core import checked
from privet.ensemble.seeding import generator

__all__ = ["RandomFeatures"]


class RandomFeatures(nn.Module):
    """√(2/count) cos(xW + b), whose products approach exp(-‖x - z‖² / (2 width²)) (Rahimi & Recht 2007).

    W and b follow from the key and do not depend on the data. The features of a row have a norm of at most √2, and of
    about 1.

    >>> RandomFeatures(4, 100)(torch.zeros(3, 4)).shape
    torch.Size([3, 100])
    """

    weights: Tensor
    phases: Tensor

    def __init__(self, inputs: int, count: int, width: float = 1.0, key: str = "privet") -> None:
        super().__init__()
        checked.count("inputs", inputs)
        self.features = checked.count("count", count)
        """How many features a row has."""
        drawn = generator(key, "random features")
        weights = torch.randn(inputs, count, generator=drawn) / checked.positive("width", width)
        self.register_buffer("weights", weights)
        self.register_buffer("phases", 2 * pi * torch.rand(count, generator=drawn))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the features [n, count] of rows.

        Args:
            rows: [n, inputs].
        """
        return (rows @ self.weights + self.phases).cos() * sqrt(2 / self.features)
