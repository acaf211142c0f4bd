"""What a rule is given: the gradient that arrived at an operation in which a parameter meets data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd.graph import Node

from privet.core import InvalidInput
from privet.training.engine.contributions import Contribution, Dense
from privet.training.engine.graph import saved
from privet.training.engine.layout import Layout

__all__ = ["IncomingGradient", "Rule"]


@dataclass(frozen=True)
class IncomingGradient:
    """The gradient of an operation's output, while the operation's saved tensors are still there."""

    node: Node
    slot: int
    """Which input of the operation the parameter is."""
    shape: tuple[int, ...]
    """The parameter's shape, as the operation sees it."""
    gradients: tuple[Tensor | None, ...]
    """Of each of the operation's outputs."""
    layout: Layout
    shared: dict[str, Any]
    """For what the operation's several parameters need in common."""

    @property
    def gradient(self) -> Tensor:
        """Gradient of the operation's first output, which for most operations is the only one."""
        found = self.gradients[0]
        if found is None:
            raise ValueError("nothing depends on the operation's first output")
        return found

    def saved(self, name: str) -> Any:
        """Return a value that autograd saved for the operation's own derivative.

        Args:
            name: Name of the value, without autograd's prefix `_saved_`.
        """
        return saved(self.node, name)

    def rows(self, tensor: Tensor, axis: int | None = None) -> Tensor:
        """Return a tensor as (B, k, …), in float32 or better.

        Args:
            tensor: The tensor, with the examples along one axis.
            axis: Axis of the examples; by default that of the layout.
        """
        split = self.layout.split(tensor, axis)
        return split if split.dtype in (torch.float32, torch.float64) else split.float()

    def broadcast(self, full: Tensor) -> Contribution:
        """Return the contribution of a parameter that was broadcast to the output's shape.

        The parameter's own axes are kept; all others except the examples' are summed over.

        Args:
            full: Gradient before summing, of the output's shape.

        Raises:
            InvalidInput: The parameter has one entry for each row of the batch.
        """
        axis = self.layout.axis
        aligned = (1,) * (full.dim() - len(self.shape)) + tuple(self.shape)
        if aligned[axis] != 1:
            problem = "has one entry for each row of the batch, so that it is no parameter that examples share"
            raise InvalidInput("a parameter", problem, "give every example the same parameters")
        rest = aligned[:axis] + aligned[axis + 1 :]
        split = self.rows(full)
        summed = [1] + [place + 2 for place, size in enumerate(rest) if size == 1 and split.shape[place + 2] != 1]
        if all(split.shape[place] == 1 for place in summed):
            return Dense(split.reshape(len(split), -1))
        return Dense(split.sum(summed, keepdim=True).reshape(len(split), -1))


Rule: TypeAlias = Callable[[IncomingGradient], Contribution]
