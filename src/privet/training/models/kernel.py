"""What kernel ridge regression learns, as a module: public rows, and how much each of them speaks for a class."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["Kernel"]


class Kernel(nn.Module):
    """Scores Σ exp(-‖x - row‖² / (2 width²)) · coefficient + offset; nothing in it is trained, and its rows are public.

    >>> found = Kernel.of(torch.zeros(1, 2), torch.ones(1, 3), torch.zeros(3), width=1.0)
    >>> found(torch.tensor([[0.0, 0.0]])).tolist()
    [[1.0, 1.0, 1.0]]
    """

    rows: Tensor
    coefficients: Tensor
    offset: Tensor
    width: Tensor

    def __init__(self, support: int, features: int, classes: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(support, features))
        self.register_buffer("coefficients", torch.zeros(support, classes))
        self.register_buffer("offset", torch.zeros(classes))
        self.register_buffer("width", torch.ones(()))

    @staticmethod
    def of(rows: Tensor, coefficients: Tensor, offset: Tensor, width: float) -> Kernel:
        """Return a module with the given weights.

        Args:
            rows: Public rows, (support, features).
            coefficients: Coefficient of each row for each class, (support, classes).
            offset: Offset of each class.
            width: Width of the Gaussian kernel.
        """
        made = Kernel(rows.shape[0], rows.shape[1], len(offset))
        for name, value in (("rows", rows), ("coefficients", coefficients), ("offset", offset)):
            getattr(made, name).copy_(value)
        made.width.fill_(width)
        return made

    def forward(self, inputs: Tensor) -> Tensor:
        """Return one score for each row and class.

        Args:
            inputs: Rows of features, (n, features).
        """
        squared = inputs.square().sum(1)[:, None] + self.rows.square().sum(1) - 2 * inputs @ self.rows.T
        kernel = (squared.clamp_min(0) / (-2 * self.width**2)).exp()
        found: Tensor = kernel @ self.coefficients + self.offset
        return found
