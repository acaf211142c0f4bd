"""Ways to compute every example's own weight gradient of a convolution. None is quickest everywhere.

The library's own backward pass sums over the batch. Which of these comes closest to its speed depends on the layer,
so each is timed once on the layer's first batch and the quickest is kept. They agree up to rounding.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["METHODS", "Geometry", "Method", "chunk", "fastest"]

_LARGEST = 1 << 22
"""Numbers in one temporary array of windows: 16 MB."""


@dataclass(frozen=True)
class Geometry:
    """What a convolution does, apart from the numbers in it."""

    kernel: tuple[int, ...]
    """(outputs, inputs / groups, the window's sizes)"""
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    @property
    def size(self) -> int:
        """How many numbers the weight has."""
        return prod(self.kernel)

    def weight_gradient(self, inputs: Tensor, gradient: Tensor) -> Tensor:
        """The library's: summed over the batch."""
        weight = inputs.new_empty(1).expand(self.kernel)
        answer: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
            gradient,
            inputs,
            weight,
            None,
            list(self.stride),
            list(self.padding),
            list(self.dilation),
            False,
            [0] * len(self.stride),
            self.groups,
            [False, True, False],
        )
        return answer[1]

    def windows(self, inputs: Tensor, places: tuple[int, ...]) -> Tensor:
        """A view of the padded input: (B, channels, places…, window…)."""
        dims = len(self.stride)
        padded = (
            F.pad(inputs, [n for pad in reversed(self.padding) for n in (pad, pad)]) if any(self.padding) else inputs
        )
        view = padded
        for axis in range(dims):
            extent = self.dilation[axis] * (self.kernel[2 + axis] - 1) + 1
            view = view.unfold(2 + axis, extent, self.stride[axis])
        for axis, step in enumerate(self.dilation):
            view = view[(slice(None),) * (2 + dims + axis) + (slice(None, None, step),)]
        # A stride may leave places over that the output does not have (in a transposed convolution's other role).
        return view[(slice(None), slice(None), *(slice(0, n) for n in places))]


Method: TypeAlias = Callable[[Geometry, Tensor, Tensor], Tensor]


def one_by_one(geometry: Geometry, inputs: Tensor, gradient: Tensor) -> Tensor:
    """The library's weight gradient, once for each example."""
    pairs = zip(torch.split(inputs, 1), torch.split(gradient, 1), strict=True)
    return torch.stack([geometry.weight_gradient(*pair) for pair in pairs])


def windows_by_place(geometry: Geometry, inputs: Tensor, gradient: Tensor) -> Tensor:
    """All windows copied out, place by place, then one product of matrices for each example."""
    batch, dims, groups = len(inputs), len(geometry.stride), geometry.groups
    places = tuple(gradient.shape[2:])
    view = torch.unflatten(geometry.windows(inputs, places), 1, (groups, -1))
    # (B, groups, channels, places…, window…) to (B, groups, places, channels · window)
    order = (0, 1, *range(3, 3 + dims), 2, *range(3 + dims, 3 + 2 * dims))
    columns = view.permute(order).reshape(batch * groups, prod(places), -1)
    return torch.bmm(gradient.reshape(batch * groups, -1, prod(places)), columns).view(batch, *geometry.kernel)


def windows_by_channel(geometry: Geometry, inputs: Tensor, gradient: Tensor) -> Tensor:
    """The same with the copy in the other order, which suits other shapes."""
    batch, dims, groups = len(inputs), len(geometry.stride), geometry.groups
    places = tuple(gradient.shape[2:])
    view = torch.unflatten(geometry.windows(inputs, places), 1, (groups, -1))
    order = (0, 1, 2, *range(3 + dims, 3 + 2 * dims), *range(3, 3 + dims))
    columns = view.permute(order).reshape(batch * groups, -1, prod(places))
    grads = gradient.reshape(batch * groups, -1, prod(places))
    return torch.bmm(grads, columns.mT).view(batch, *geometry.kernel)


def as_groups(geometry: Geometry, inputs: Tensor, gradient: Tensor) -> Tensor:
    """One grouped convolution: each example's input is slid over by its own output gradient."""
    batch, groups, dims = len(inputs), geometry.groups, len(geometry.stride)
    outputs, channels = geometry.kernel[:2]
    convolve = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]
    # (channels of a group, B · groups, …) slid over by (B · groups · outputs of a group, 1, …)
    moved = torch.unflatten(inputs, 1, (groups, channels)).permute(2, 0, 1, *range(3, 3 + dims)).flatten(1, 2)
    filters = gradient.reshape(batch * outputs, 1, *gradient.shape[2:])
    answer = convolve(
        moved,
        filters,
        padding=geometry.padding,
        stride=geometry.dilation,
        dilation=geometry.stride,
        groups=batch * groups,
    )
    answer = answer[(slice(None), slice(None), *(slice(0, n) for n in geometry.kernel[2:]))]
    return torch.unflatten(answer, 1, (batch, outputs)).movedim(0, 2).reshape(batch, *geometry.kernel)


METHODS: tuple[Method, ...] = (one_by_one, windows_by_place, windows_by_channel, as_groups)

_chosen: dict[tuple[Geometry, tuple[int, ...], torch.dtype], Method] = {}


def chunk(geometry: Geometry, inputs: Tensor, gradient: Tensor) -> int:
    """How many examples to do at once, so that their windows stay in a cache."""
    windows = prod(gradient.shape[2:]) * prod(geometry.kernel[1:]) * geometry.groups
    return max(1, min(max(len(inputs), 1), _LARGEST // max(windows, geometry.size)))


def fastest(geometry: Geometry, inputs: Tensor, gradient: Tensor) -> Method:
    """The quickest method for this layer: measured on its first batch, then remembered."""
    if len(inputs) < 2:
        return one_by_one
    key = (geometry, tuple(inputs.shape[1:]), inputs.dtype)
    if key not in _chosen:
        size = min(len(inputs), max(2, chunk(geometry, inputs, gradient)), 32)
        some = inputs[:size], gradient[:size]
        _chosen[key] = min(METHODS, key=lambda method: _seconds(method, geometry, *some))
    return _chosen[key]


def _seconds(method: Method, geometry: Geometry, inputs: Tensor, gradient: Tensor) -> float:
    method(geometry, inputs, gradient)
    laps = []
    for _ in range(2):
        start = time.perf_counter()
        method(geometry, inputs, gradient)
        laps.append(time.perf_counter() - start)
    return min(laps)
