"""Several rows of a batch that belong to one unit: augmented copies of an example, or the examples of a user."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from privet.core import InvalidInput

__all__ = ["Groups"]


@dataclass(frozen=True)
class Groups:
    """Which unit each row of a batch belongs to."""

    of_row: Tensor
    """(rows,), integers in [0, units)."""
    units: int

    @staticmethod
    def of(ids: Tensor, rows: int, units: int) -> Groups:
        """Checked: one id for each row, each the position of a unit in the batch."""
        if not isinstance(ids, Tensor):
            problem, advice = f"is of the type {type(ids).__name__}", "give a tensor with one integer for each loss"
            raise InvalidInput("groups", problem, advice)
        if ids.dim() != 1 or len(ids) != rows or ids.is_floating_point() or ids.dtype == torch.bool:
            problem = f"is a {ids.dtype} tensor of shape {tuple(ids.shape)}"
            raise InvalidInput("groups", problem, f"give one integer for each of the {rows} losses")
        if rows and not (int(ids.min()) >= 0 and int(ids.max()) < units):
            problem = f"has ids outside 0 … {units - 1}"
            advice = "an id is the place of the row's unit in the batch; with users, run.groups has those of the rows"
            raise InvalidInput("groups", problem, advice)
        return Groups(ids.to(torch.int64), units)

    def weights(self) -> Tensor:
        """1/size of the row's group: what makes a sum over the group a mean."""
        sizes = torch.bincount(self.of_row, minlength=self.units)
        return sizes.to(torch.float32).reciprocal()[self.of_row]

    def add_rows(self, value: Tensor) -> Tensor:
        """(rows, n) to (units, n): the sums of each unit's rows."""
        return value.new_zeros(self.units, *value.shape[1:]).index_add_(0, self.of_row, value)

    def stack_rows(self, value: Tensor) -> Tensor:
        """(rows, k, n) to (units, most rows of a unit · k, n), filled up with zeros."""
        sizes = torch.bincount(self.of_row, minlength=self.units)
        most = int(sizes.max()) if len(self.of_row) else 0
        order = torch.argsort(self.of_row, stable=True)
        starts = sizes.cumsum(0) - sizes
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=order.device) - starts[self.of_row[order]]
        out = value.new_zeros(self.units, most, *value.shape[1:])
        out[self.of_row, place] = value
        return out.flatten(1, 2)
