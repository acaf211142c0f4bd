"""A linear model that estimates the center of its inputs during training."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from privet.core import checked

__all__ = ["Linear", "task_losses"]

_BIAS = 0.25
"""What the bias is multiplied by: with 1 it would take half of the clip from inputs of length 1."""


class Linear(nn.Module):
    """Softmax regression, or least squares where there are no classes, on inputs less their mean.

    The mean of private rows is private. It is learned within the same clipped and noised sums: an example's gradient
    has the part pull · (centre − x), so that the centre walks to the mean of the inputs. With a pull of a fifth of the
    clip, that takes 4 % of the squared length that is clipped; without it the common part of all inputs takes most of
    the clip, and slows every step down. Weights begin at zero.

    Train it by `losses`; calling it gives one number for each class, or the prediction.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.features = checked.count("features", features)
        self.classes = checked.count("classes", classes, least=0)
        """How many there are; 0 for regression."""
        self.line = nn.Linear(features, max(classes, 1), bias=False)
        self.bias = nn.Parameter(torch.empty(max(classes, 1)))
        self.centre = nn.Linear(features, 1, bias=False)
        with torch.no_grad():
            for weights in self.parameters():
                weights.zero_()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the outputs of the model.

        Args:
            inputs: Rows of features, (n, features).

        Returns:
            One score for each row and class, or one prediction for each row.
        """
        return self.outputs(self.away(inputs))

    def losses(self, inputs: Tensor, targets: Tensor, pull: float = 0.0) -> Tensor:
        """Return one loss for each row: that of the task, plus a term whose gradient moves the center.

        Args:
            inputs: Rows of features, (n, features).
            targets: Target of each row: a class number, or a number for regression.
            pull: Weight of the center in an example's gradient.
        """
        away = self.away(inputs)
        return task_losses(self.outputs(away), targets, self.classes) - pull * self.beyond(away)

    def centres(self) -> Iterator[nn.Parameter]:
        """Return the parameters that track the mean of the inputs; a rate of 1 / pull moves them there at once."""
        return self.centre.parameters()

    def away(self, inputs: Tensor) -> Tensor:
        """Return the inputs minus the center, without a gradient to the center.

        Args:
            inputs: Rows of features, (n, features).
        """
        return inputs - self.centre.weight.detach()

    def outputs(self, away: Tensor) -> Tensor:
        """Return the outputs of the model for centered inputs.

        Args:
            away: Inputs minus the center, as `away` returns them.

        Returns:
            One score for each row and class, or one prediction for each row.
        """
        found: Tensor = self.line(away) + _BIAS * self.bias
        return found if self.classes else found[:, 0]

    def beyond(self, away: Tensor) -> Tensor:
        """Return one number for each row, whose gradient with respect to the center is the row's offset from it.

        Args:
            away: Inputs minus the center, as `away` returns them.
        """
        found: Tensor = self.centre(away)
        return found[:, 0]


def task_losses(outputs: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Return one loss for each row: cross-entropy for classes, half the squared error for regression.

    Args:
        outputs: Outputs of the model.
        targets: Target of each row.
        classes: Number of classes; 0 for regression.
    """
    if classes:
        return F.cross_entropy(outputs, targets, reduction="none")
    return (outputs - targets.to(outputs.dtype)).square() / 2
