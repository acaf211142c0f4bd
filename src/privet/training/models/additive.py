"""What input perturbation releases, as a module."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from privet.data import Schema
from privet.training.convex.input import AdditiveModel, InputPerturbation

__all__ = ["Additive"]


class Additive(nn.Module):
    """Scores that add up over the columns of a row, as `AdditiveModel` has them; nothing in it is trained."""

    bias: Tensor

    def __init__(self, schema: Schema, bins: int) -> None:
        super().__init__()
        # Of the plan only the values are used in which columns are told; they do not depend on ε.
        self._plan = InputPerturbation(schema, 1.0, bins)
        self.classes = len(schema.classes)
        self.register_buffer("bias", torch.zeros(self._plan.outputs, dtype=torch.float64))
        for place, size in enumerate(self._plan.sizes):
            self.register_buffer(f"weight{place}", torch.zeros(size, self._plan.outputs, dtype=torch.float64))

    @staticmethod
    def of(model: AdditiveModel) -> Additive:
        """Return a module with the weights of a released model.

        Args:
            model: The released model.
        """
        made = Additive(model.plan.schema, model.plan.bins)
        made.bias.copy_(torch.from_numpy(model.bias))
        for place, weight in enumerate(model.weights):
            made.get_buffer(f"weight{place}").copy_(torch.from_numpy(weight))
        return made

    def forward(self, rows: Tensor) -> Tensor:
        """Return the scores of rows.

        Args:
            rows: Rows as in `Table.x`.

        Returns:
            One score for each row and class, or one prediction for each row.
        """
        weights = tuple(self.get_buffer(f"weight{place}").numpy() for place in range(len(self._plan.sizes)))
        scores = torch.from_numpy(AdditiveModel(self._plan, self.bias.numpy(), weights).scores(rows.numpy())).float()
        return scores if self.classes else scores[:, 0]
