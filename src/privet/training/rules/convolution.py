"""Convolutions of one, two and three dimensions, plain and transposed, with stride, padding, dilation and groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from privet.training.engine.arrival import Arrival
from privet.training.engine.groups import Groups
from privet.training.engine.parts import Dense, Part, Squares
from privet.training.rules import kernels
from privet.training.rules.kernels import Geometry

__all__ = ["Convolved", "convolution"]


def convolution(arrival: Arrival) -> Part:
    """Slot 1 is the weight, 2 the bias."""
    if arrival.slot == 2:
        return Dense(arrival.rows(arrival.gradient.flatten(2), 0).sum((1, 3)))
    inputs, gradient = arrival.rows(arrival.saved("input"), 0), arrival.rows(arrival.gradient, 0)
    examples, copies = inputs.shape[:2]
    if arrival.saved("transposed"):
        # The weight gradient of a transposed convolution is that of a plain one with the two roles exchanged.
        inputs, gradient = gradient, inputs
    geometry = Geometry(
        kernel=arrival.shape,
        stride=tuple(arrival.saved("stride")),
        padding=tuple(arrival.saved("padding")),
        dilation=tuple(arrival.saved("dilation")),
        groups=arrival.saved("groups"),
    )
    part = Convolved(inputs.flatten(0, 1), gradient.flatten(0, 1), geometry)
    if copies == 1:
        return part.settle()
    # Several images an example, such as the frames of a film: the gradients of each add up.
    return Dense(part.dense().view(examples, copies, -1).sum(1))


@dataclass(frozen=True)
class Convolved:
    """The input and the output's gradient of a convolution, where they are smaller than the examples' gradients."""

    inputs: Tensor
    gradient: Tensor
    geometry: Geometry

    def settle(self) -> Part:
        """Written out unless that takes much more memory than the factors."""
        factors = self.inputs[0].numel() + self.gradient[0].numel() if len(self.inputs) else 0
        return Dense(self.dense()) if self.geometry.size <= 2 * factors else self

    def squares(self) -> Squares:
        """A few examples at a time, so that memory does not grow with batch × parameters."""
        chunks = [Dense(rows).squares() for rows in self._chunks()]
        return Squares(torch.cat([chunk.value for chunk in chunks]), torch.cat([chunk.slack for chunk in chunks]))

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """The library's own weight gradient, of the scaled gradient."""
        scaled = self.gradient * factors.view(-1, *(1,) * (self.gradient.dim() - 1))
        out.view(self.geometry.kernel).add_(self.geometry.weight_gradient(self.inputs, scaled))

    def dense(self) -> Tensor:
        """Each example's own weight gradient."""
        rows = list(self._chunks())
        return torch.cat(rows) if len(rows) != 1 else rows[0]

    def blank(self, bad: Tensor) -> Part:
        """Zeros in both factors."""
        mark = bad.view(-1, *(1,) * (self.inputs.dim() - 1))
        return replace(self, inputs=self.inputs.masked_fill(mark, 0.0), gradient=self.gradient.masked_fill(mark, 0.0))

    def regroup(self, groups: Groups) -> Part:
        """One row a group."""
        return Dense(self.dense()).regroup(groups)

    def _chunks(self) -> list[Tensor]:
        method = self._method
        size = kernels.chunk(self.geometry, self.inputs, self.gradient)
        pairs = zip(torch.split(self.inputs, size), torch.split(self.gradient, size), strict=True)
        return [method(self.geometry, *pair).flatten(1) for pair in pairs]

    @cached_property
    def _method(self) -> kernels.Method:
        return kernels.fastest(self.geometry, self.inputs, self.gradient)
