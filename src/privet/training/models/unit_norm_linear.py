"""What the convex methods release, as a module."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.training.convex.linear import LinearModel

__all__ = ["UnitNormLinear"]


class UnitNormLinear(nn.Module):
    """Linear model on rows that are scaled down to a norm of at most 1, as in `LinearModel`. It is not trained.

    >>> import numpy as np
    >>> found = UnitNormLinear.of(LinearModel(np.array([[3.0, 4.0, 0.5]]), radius=2.0), classes=0)
    >>> float(found(torch.tensor([[1.0, 0.0]])))
    1.75
    """

    weight: Tensor

    def __init__(self, features: int, classes: int, radius: float) -> None:
        super().__init__()
        self.classes, self.radius = classes, radius
        self.register_buffer("weight", torch.zeros(max(classes, 1), features + 1, dtype=torch.float64))

    @staticmethod
    def of(model: LinearModel, classes: int) -> UnitNormLinear:
        """Return a module with the weights of a released model.

        Args:
            model: The released model.
            classes: Number of classes; 0 for regression.
        """
        made = UnitNormLinear(model.weight.shape[1] - 1, classes, model.radius)
        made.weight.copy_(torch.from_numpy(model.weight))
        return made

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the scores of rows, which are scaled down to a norm of at most 1.

        Args:
            inputs: Rows of features, (n, features).

        Returns:
            One score for each row and class, or one prediction for each row.
        """
        whole = torch.cat([inputs.double(), torch.ones(len(inputs), 1, dtype=torch.float64)], 1) / self.radius
        rows = whole / whole.norm(dim=1, keepdim=True).clamp_min(1.0)
        found: Tensor = (rows @ self.weight.T).float()
        return found if self.classes else found[:, 0]
