"""Weight gradients of convolutions as the compiled loops leave them: with the channels last."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from privet.training.engine.contributions import Contribution, Dense, MeasuredContribution
from privet.training.engine.groups import Groups
from privet.training.engine.squares import Squares

__all__ = ["ChannelsLast"]


@dataclass(frozen=True)
class ChannelsLast(MeasuredContribution):
    """The gradients themselves, in another order than the weight's, which only their sum is brought into."""

    value: Tensor
    """(B, outputs, window…, channels)"""

    def _squares(self) -> Squares:
        return Dense(self._rows).squares()

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """One matrix-vector product, whose result is turned."""
        total = torch.mv(self._rows.T, factors).view(self.value.shape[1:]).movedim(-1, 1)
        out.view(total.shape).add_(total)

    def dense(self) -> Tensor:
        """In the weight's own order."""
        return self.value.movedim(-1, 2).flatten(1)

    def blank(self, bad: Tensor) -> Contribution:
        """Zeros for the marked examples."""
        return ChannelsLast(self.value.masked_fill(bad.view(-1, *(1,) * (self.value.dim() - 1)), 0.0))

    def regroup(self, groups: Groups) -> Contribution:
        """One row a group."""
        return ChannelsLast(groups.add_rows(self.value))

    @property
    def _rows(self) -> Tensor:
        return self.value.flatten(1)
