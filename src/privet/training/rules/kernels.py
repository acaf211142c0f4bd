"""Ways to compute every example's own weight gradient of a convolution. None is quickest everywhere.

The library's own backward pass sums over the batch. Which of these comes closest to its speed depends on the layer;
`privet.training.rules.tuning` measures. They agree up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from privet.training.engine.squares import Squares, rounding
from privet.training.native import loops

__all__ = [
    "METHODS",
    "Geometry",
    "Method",
    "additions",
    "as_groups",
    "chunk",
    "chunk_of_places",
    "fewer_windows_by_place",
    "has_loops",
    "in_loops",
    "looped",
    "one_by_one",
    "products_of_places",
    "room_for_loops",
    "windows_by_channel",
    "windows_by_place",
]

_LARGEST = 1 << 21
"""Numbers in one temporary array of windows: 8 MB."""
_SMALLER = 1 << 19
"""The same where they are better kept in a cache of 2 MB."""


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

    def padded(self, inputs: Tensor) -> Tensor:
        """The input with its margin of zeros."""
        return F.pad(inputs, [n for pad in reversed(self.padding) for n in (pad, pad)]) if any(self.padding) else inputs

    def windows(self, inputs: Tensor, places: tuple[int, ...]) -> Tensor:
        """A view of the padded input: (B, channels, places…, window…)."""
        dims = len(self.stride)
        view = self.padded(inputs)
        for axis in range(dims):
            extent = self.dilation[axis] * (self.kernel[2 + axis] - 1) + 1
            view = view.unfold(2 + axis, extent, self.stride[axis])
        for axis, step in enumerate(self.dilation):
            view = view[(slice(None),) * (2 + dims + axis) + (slice(None, None, step),)]
        # A stride may leave places over that the output does not have (in a transposed convolution's other role).
        return view[(slice(None), slice(None), *(slice(0, n) for n in places))]


Method: TypeAlias = Callable[[Geometry, Tensor, Tensor, Tensor], None]
"""From the input and the output's gradient of B examples to their weight gradients, written into (B, kernel…)."""


def one_by_one(geometry: Geometry, inputs: Tensor, gradient: Tensor, out: Tensor) -> None:
    """The library's weight gradient, once for each example."""
    for row in range(len(inputs)):
        out[row] = geometry.weight_gradient(inputs[row : row + 1], gradient[row : row + 1])


def windows_by_place(geometry: Geometry, inputs: Tensor, gradient: Tensor, out: Tensor, most: int = _LARGEST) -> None:
    """Windows copied out, place by place, a few examples at a time; then one product of matrices for each example."""
    dims = len(geometry.stride)
    order = (0, 1, *range(3, 3 + dims), 2, *range(3 + dims, 3 + 2 * dims))
    for some, view in _windows(geometry, inputs, gradient, order, most):
        _product(geometry, gradient[some], view.flatten(0, 1).flatten(1, dims).flatten(2), out[some])


def fewer_windows_by_place(geometry: Geometry, inputs: Tensor, gradient: Tensor, out: Tensor) -> None:
    """The same with as many examples at a time as a cache holds."""
    windows_by_place(geometry, inputs, gradient, out, _SMALLER)


def windows_by_channel(geometry: Geometry, inputs: Tensor, gradient: Tensor, out: Tensor) -> None:
    """The same with the copy in the other order, which suits other shapes."""
    dims = len(geometry.stride)
    order = (0, 1, 2, *range(3 + dims, 3 + 2 * dims), *range(3, 3 + dims))
    for some, view in _windows(geometry, inputs, gradient, order, _LARGEST):
        _product(geometry, gradient[some], view.flatten(0, 1).flatten(1, 1 + dims).flatten(2).mT, out[some])


def _windows(
    geometry: Geometry, inputs: Tensor, gradient: Tensor, order: tuple[int, ...], most: int
) -> Iterator[tuple[slice, Tensor]]:
    """For a few examples at a time (B, groups, channels, places…, window…), copied in another order of axes.

    The copies share one buffer, whose memory is then always the same, and warm.
    """
    size = chunk(geometry, gradient, most)
    buffer: Tensor | None = None
    for start in range(0, len(inputs), size):
        some = slice(start, min(start + size, len(inputs)))
        view = geometry.windows(inputs[some], tuple(gradient.shape[2:]))
        view = torch.unflatten(view, 1, (geometry.groups, -1)).permute(order)
        if buffer is None:
            buffer = view.new_empty(view.shape)
        yield some, buffer[: len(view)].copy_(view)


def _product(geometry: Geometry, gradient: Tensor, columns: Tensor, out: Tensor) -> None:
    """(B · groups, outputs of a group, places) @ (B · groups, places, channels · window)."""
    grads = gradient.reshape(len(gradient) * geometry.groups, -1, columns.shape[1])
    torch.bmm(grads, columns, out=out.view(len(grads), grads.shape[1], columns.shape[2]))


def as_groups(geometry: Geometry, inputs: Tensor, gradient: Tensor, out: Tensor) -> None:
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
    out.copy_(torch.unflatten(answer, 1, (batch, outputs)).movedim(0, 2))


def has_loops(geometry: Geometry, inputs: Tensor, gradient: Tensor) -> bool:
    """Whether there are compiled loops for this: one or two dimensions, one group, windows without gaps."""
    plain = geometry.groups == 1 and len(geometry.stride) < 3 and set(geometry.dilation) == {1}
    return plain and loops.usable(inputs, gradient)


def room_for_loops(geometry: Geometry, inputs: Tensor) -> Tensor:
    """What `in_loops` writes into: (B, outputs, window…, channels)."""
    outputs, channels, *window = geometry.kernel
    return inputs.new_empty(len(inputs), outputs, *window, channels)


def in_loops(geometry: Geometry, inputs: Tensor, gradient: Tensor, out: Tensor | None) -> Squares:
    """The squared norms of the examples' weight gradients, and these themselves if there is an `out`.

    One pass over each example, whose windows stay in a core's cache: as quick as the library's sum over all of them.
    """
    window, stride, padding = geometry.kernel[2:], geometry.stride, geometry.padding
    if len(stride) == 1:  # a row is a picture of height 1
        inputs, gradient, out = inputs.unsqueeze(2), gradient.unsqueeze(2), None if out is None else out.unsqueeze(2)
        window, stride, padding = (1, *window), (1, *stride), (0, *padding)
    both = inputs.contiguous(), gradient.contiguous()
    squares = loops.convolution_gradients(*both, window, stride, padding, out, *rounding(inputs, geometry.size))
    return Squares(*squares)


def looped(geometry: Geometry, inputs: Tensor, gradient: Tensor, out: Tensor) -> None:
    """The compiled loops; where there are none, windows by channel."""
    if has_loops(geometry, inputs, gradient):
        found = room_for_loops(geometry, inputs)
        in_loops(geometry, inputs, gradient, found)
        out.copy_(found.movedim(-1, 2))
    else:
        windows_by_channel(geometry, inputs, gradient, out)


METHODS: tuple[Method, ...] = (
    one_by_one,
    windows_by_channel,
    windows_by_place,
    fewer_windows_by_place,
    as_groups,
    looped,
)


def products_of_places(geometry: Geometry, inputs: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    """For each example the inner products of its windows, and those of its gradients, for all pairs of places.

    The squared norm is Σ_{t,s} (window_t · window_s)(gradient_t · gradient_s), without any weight gradient. Windows
    need not be copied out: window_t · window_s is a sum, over the window's points, of products of single pixels, so
    that one product of matrices over the channels, shifted and added, gives them all. Only for one group.
    """
    places = tuple(gradient.shape[2:])
    padded = geometry.padded(inputs)
    pixels = padded.flatten(2)
    pairs = torch.bmm(pixels.mT, pixels).view(len(inputs), *padded.shape[2:], *padded.shape[2:])
    total = inputs.new_zeros(len(inputs), *places, *places)
    for point in product(*(range(size) for size in geometry.kernel[2:])):
        starts = [at * step for at, step in zip(point, geometry.dilation, strict=True)]
        cut = tuple(
            slice(start, start + step * (count - 1) + 1, step)
            for start, step, count in zip(starts, geometry.stride, places, strict=True)
        )
        total += pairs[(slice(None), *cut, *cut)]
    flat = gradient.flatten(2)
    return total.view(len(inputs), prod(places), prod(places)), torch.bmm(flat.mT, flat)


def additions(places: int, *, compiled: bool) -> int:
    """How many additions a product goes through, at most, in a sum over so many places."""
    return loops.additions(places) if compiled else places


def chunk(geometry: Geometry, gradient: Tensor, most: int = _LARGEST) -> int:
    """How many examples' windows to copy out at once, so that they are at most so many numbers."""
    windows = prod(gradient.shape[2:]) * prod(geometry.kernel[1:]) * geometry.groups
    return max(1, min(max(len(gradient), 1), most // max(windows, 1)))


def chunk_of_places(geometry: Geometry, inputs: Tensor) -> int:
    """The same for the products of places."""
    pixels = prod(size + 2 * pad for size, pad in zip(inputs.shape[2:], geometry.padding, strict=True))
    return max(1, (_LARGEST >> 2) // max(1, pixels**2))
