"""A linear model that learns the centre of its inputs on the way."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn
from torch.nn import functional as F

from privet.core import checked

__all__ = ["PULL", "Linear", "task_losses"]

PULL = 0.1
"""The weight of the centre's part in an example's gradient: about 1 % of the squared length that is clipped."""


class Linear(nn.Module):
    """Softmax regression, or least squares where there are no classes, on inputs less their mean.

    The mean of private rows is private. It is learned within the same clipped and noised sums: an example's gradient
    has the part PULL · (centre − x), so that the centre walks to the mean of the inputs, for a hundredth of the budget.
    Without it the common part of all inputs takes most of the clip, and slows every step down. Weights begin at zero.

    Use `losses` to train; calling the model gives one number for each class, or the prediction.
    """

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.features = checked.count("features", features)
        self.classes = checked.count("classes", classes, least=0)
        """How many there are; 0 for regression."""
        self.line = nn.Linear(features, max(classes, 1))
        self.centre = nn.Linear(features, 1, bias=False)
        for weights in self.parameters():
            nn.init.zeros_(weights)

    def forward(self, inputs: Tensor) -> Tensor:
        found: Tensor = self.line(self.away(inputs))
        return found if self.classes else found[:, 0]

    def losses(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """One loss for each row. Its value is of no meaning; its gradient is that of the task, and of the centre."""
        return task_losses(self(inputs), targets, self.classes) - self.pull(inputs)

    def centres(self) -> Iterator[nn.Parameter]:
        """The parameters that follow the mean of the inputs; a step of 1 / PULL takes them there at once."""
        yield self.centre.weight

    def away(self, inputs: Tensor) -> Tensor:
        """Inputs less the centre, through which no gradient passes."""
        return inputs - self.centre.weight.detach()

    def pull(self, inputs: Tensor) -> Tensor:
        """One number for each row, whose gradient is what the centre walks along."""
        found: Tensor = self.centre(self.away(inputs))
        return PULL * found[:, 0]


def task_losses(outputs: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Cross-entropy for classes, half the squared error for numbers: one for each row."""
    if classes:
        return F.cross_entropy(outputs, targets, reduction="none")
    return (outputs - targets.to(outputs.dtype)).square() / 2
