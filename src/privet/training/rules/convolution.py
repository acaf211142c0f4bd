"""Convolutions of one, two and three dimensions, plain and transposed, with stride, padding, dilation and groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod, sqrt

import torch
from torch import Tensor

from privet.training.engine.contributions import Contribution, Dense, MeasuredContribution
from privet.training.engine.groups import Groups
from privet.training.engine.incoming_gradient import IncomingGradient
from privet.training.engine.squares import Squares, joined, lengthened, squares_of_grams
from privet.training.rules import kernels
from privet.training.rules.channels_last import ChannelsLast
from privet.training.rules.kernels import Geometry
from privet.training.rules.tuning import Way, way

__all__ = ["ConvolutionFactors", "convolution"]


_SOME = 1 << 21
"""Numbers in a buffer of a few examples' gradients."""


def convolution(incoming: IncomingGradient) -> Contribution:
    """Slot 1 is the weight, 2 the bias."""
    if incoming.slot == 2:
        return Dense(incoming.rows(incoming.gradient.flatten(2), 0).sum((1, 3)))
    inputs, gradient = incoming.rows(incoming.saved("input"), 0), incoming.rows(incoming.gradient, 0)
    examples, copies = inputs.shape[:2]
    if incoming.saved("transposed"):
        # The weight gradient of a transposed convolution is that of a plain one with the two roles exchanged.
        inputs, gradient = gradient, inputs
    geometry = Geometry(
        kernel=incoming.shape,
        stride=tuple(incoming.saved("stride")),
        padding=tuple(incoming.saved("padding")),
        dilation=tuple(incoming.saved("dilation")),
        groups=incoming.saved("groups"),
    )
    contribution = ConvolutionFactors(inputs.flatten(0, 1), gradient.flatten(0, 1), geometry)
    if copies == 1:
        return contribution.settle()
    # Several images an example, such as the frames of a film: the gradients of each add up.
    return Dense(contribution.dense().view(examples, copies, -1).sum(1))


@dataclass(frozen=True)
class ConvolutionFactors(MeasuredContribution):
    """The input and the output's gradient of a convolution, where they are smaller than the examples' gradients."""

    inputs: Tensor
    gradient: Tensor
    geometry: Geometry

    def settle(self) -> Contribution:
        """Written out where that is quicker and does not take much memory."""
        if not self._way.keep:
            return self
        return self._turned() or Dense(self.dense())

    def _squares(self) -> Squares:
        """A few examples at a time, so that memory does not grow with batch × parameters."""
        if self._way.by_places:
            size = kernels.chunk_of_places(self.geometry, self.inputs)
            outputs, channels, *window = self.geometry.kernel
            terms, additions = (channels * prod(window), outputs), channels + prod(window) + outputs
            products = (kernels.products_of_places(self.geometry, *pair) for pair in self._pairs(size))
            found = Squares(*joined(squares_of_grams(*each, terms, additions) for each in products))
        elif self._has_loops:
            found = kernels.in_loops(self.geometry, self.inputs, self.gradient, None)
        else:
            size = max(1, _SOME // self.geometry.size)
            buffer = self.inputs.new_empty(size, *self.geometry.kernel)
            written = (Dense(self._written(*pair, buffer[: len(pair[0])])).squares() for pair in self._pairs(size))
            found = Squares(*joined(written))
        return self._slackened(found)

    def _slackened(self, found: Squares) -> Squares:
        """With the slack of norms of gradients that are not those that are added, which the library sums anew.

        A gradient's entry may be off by a unit of rounding for each addition, times Σ_t |window_t||gradient_t| in all,
        which is at most √points |inputs| |gradient| (Cauchy & Schwarz); and each of its terms may have vanished. That
        is so for what was measured and for what is added; the library may add the places one by one.
        """
        both = (self.inputs, self.gradient)
        lengths = [torch.linalg.vector_norm(each.flatten(1), dim=1, dtype=torch.float64) for each in both]
        places, limits = prod(self.gradient.shape[2:]), torch.finfo(self.inputs.dtype)
        terms = kernels.additions(places, compiled=self._has_loops) + places + 8
        apart = lengths[0] * lengths[1] * (sqrt(prod(self.geometry.kernel[2:])) * terms * 1.01 * limits.eps / 2)
        apart += sqrt(self.geometry.size) * places * limits.tiny
        return lengthened(found, apart)

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """The library's own weight gradient, of the scaled gradient."""
        scaled = self.gradient * factors.view(-1, *(1,) * (self.gradient.dim() - 1))
        out.view(self.geometry.kernel).add_(self.geometry.weight_gradient(self.inputs, scaled))

    def dense(self) -> Tensor:
        """Each example's own weight gradient."""
        return self._written(self.inputs, self.gradient, self.inputs.new_empty(len(self.inputs), *self.geometry.kernel))

    def blank(self, bad: Tensor) -> Contribution:
        """Zeros in both factors."""
        mark = bad.view(-1, *(1,) * (self.inputs.dim() - 1))
        inputs, gradient = self.inputs.masked_fill(mark, 0.0), self.gradient.masked_fill(mark, 0.0)
        return ConvolutionFactors(inputs, gradient, self.geometry)

    def regroup(self, groups: Groups) -> Contribution:
        """One row a group."""
        return Dense(self.dense()).regroup(groups)

    def _written(self, inputs: Tensor, gradient: Tensor, out: Tensor) -> Tensor:
        self._way.method(self.geometry, inputs, gradient, out)
        return out.flatten(1)

    def _turned(self) -> ChannelsLast | None:
        if not self._has_loops:
            return None
        out = kernels.room_for_loops(self.geometry, self.inputs)
        return ChannelsLast(out, known=kernels.in_loops(self.geometry, self.inputs, self.gradient, out))

    @property
    def _has_loops(self) -> bool:
        return self._way.in_loops and kernels.has_loops(self.geometry, self.inputs, self.gradient)

    def _pairs(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(torch.split(self.inputs, size), torch.split(self.gradient, size), strict=True)

    @cached_property
    def _way(self) -> Way:
        return way(self.geometry, self.inputs, self.gradient)
