"""A small residual network for tables, which begins as the linear model."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import torch
from torch import Tensor, nn

from privet.core import checked
from privet.training.models.linear import Linear, task_losses

__all__ = ["Residual"]


class Residual(nn.Module):
    """The linear model of the inputs, and beside it a two-layer network of tanh units, which begins at zero.

    Saturating units keep gradients short (Papernot et al. 2021, "Tempered sigmoid activations"). The first layer begins
    with the same made-up numbers always: a generator of its own, and nothing of the data.
    """

    def __init__(self, features: int, classes: int, width: int = 64) -> None:
        super().__init__()
        checked.count("width", width)
        self.linear = Linear(features, classes)
        self.classes = self.linear.classes
        self.hidden = nn.Linear(features, width)
        self.out = nn.Linear(width, max(classes, 1), bias=False)
        self._scale = 1 / sqrt(width)
        with torch.no_grad():
            drawn = torch.empty(width, features).normal_(generator=torch.Generator().manual_seed(0))
            self.hidden.weight.copy_(2 * drawn)
            self.hidden.bias.zero_()
            self.out.weight.zero_()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs of the model.

        Args:
            inputs: Rows of features, (n, features).

        Returns:
            One score for each row and class, or one prediction for each row.
        """
        return self._outputs(self.linear.away(inputs))

    def losses(self, inputs: Tensor, targets: Tensor, pull: float = 0.0) -> Tensor:
        """Return one loss for each row: that of the task, plus a term whose gradient moves the center.

        Args:
            inputs: Rows of features, (n, features).
            targets: Target of each row: a class number, or a number for regression.
            pull: Weight of the center in an example's gradient.
        """
        away = self.linear.away(inputs)
        return task_losses(self._outputs(away), targets, self.classes) - pull * self.linear.beyond(away)

    def centres(self) -> Iterator[nn.Parameter]:
        """Return the parameters that track the mean of the inputs."""
        return self.linear.centres()

    def _outputs(self, away: Tensor) -> Tensor:
        beside: Tensor = self._scale * self.out(self.hidden(away).tanh())
        return self.linear.outputs(away) + (beside if self.classes else beside[:, 0])
