"""Which way of clipping a convolution is quickest for a layer: measured once, on its first large batch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from privet.training.rules import kernels
from privet.training.rules.kernels import Geometry, Method

__all__ = ["Way", "way"]

_LEAST = 24
"""Batches below this size say little about larger ones."""
_ENOUGH = 256
"""And larger ones no more than this."""
_TRIED = 1 << 21
"""Numbers that are written out to find the quickest way."""
_ROOM = 1 << 22
"""Numbers that the written-out gradients of one layer may take: 16 MB, whatever the batch and the layer."""


@dataclass(frozen=True)
class Way:
    """How one layer's examples are clipped."""

    method: Method
    """Gives the examples' gradients."""
    keep: bool
    """Whether they are kept until the factors are known; else only their norms are, and the library sums."""
    by_places: bool = False
    """Whether the norms come from products of places, without gradients."""

    @property
    def in_loops(self) -> bool:
        """Whether the gradients come from the compiled loops, which give their norms at the same time."""
        return self.method is kernels.looped


_chosen: dict[tuple[Geometry, tuple[int, ...], torch.dtype, bool], Way] = {}


def way(geometry: Geometry, inputs: Tensor, gradient: Tensor) -> Way:
    """The quickest way for this layer that its memory allows."""
    factors = inputs[0].numel() + gradient[0].numel() if len(inputs) else 0
    room = geometry.size <= 2 * factors or len(inputs) * geometry.size <= _ROOM
    if len(inputs) < _LEAST:
        return Way(kernels.windows_by_channel, keep=room)
    key = (geometry, tuple(inputs.shape[1:]), inputs.dtype, room)
    if key not in _chosen:
        _chosen[key] = _measured(geometry, inputs, gradient, room)
    return _chosen[key]


def _measured(geometry: Geometry, inputs: Tensor, gradient: Tensor, room: bool) -> Way:
    size = min(len(inputs), _ENOUGH, max(_LEAST, _TRIED // geometry.size))
    some = inputs[:size], gradient[:size], inputs.new_empty(size, *geometry.kernel)
    loops = kernels.has_loops(geometry, inputs, gradient)
    # A grouped convolution takes much time and memory to try, and was never seen to be quicker than the loops.
    left_out = {kernels.looped, kernels.as_groups if loops else kernels.looped}
    others = [method for method in kernels.METHODS if method not in left_out]
    times = {method: _seconds(partial(method, geometry, *some)) / size for method in others}
    if loops:
        out = kernels.room_for_loops(geometry, some[0]) if room else None
        times[kernels.looped] = _seconds(partial(kernels.in_loops, geometry, *some[:2], out)) / size
    method = min(times, key=times.__getitem__)
    library = _seconds(partial(geometry.weight_gradient, inputs, gradient)) / len(inputs)
    written = times[method] + (0.0 if room else library)
    places = min(len(inputs), kernels.chunk_of_places(geometry, inputs))
    if geometry.groups == 1 and places > 1:
        few = inputs[:places], gradient[:places]
        if _seconds(partial(kernels.products_of_places, geometry, *few)) / places + library < written:
            return Way(method, keep=False, by_places=True)
    return Way(method, keep=room)


def _seconds(work: Callable[[], object]) -> float:
    work()
    laps = []
    for _ in range(2):
        start = time.perf_counter()
        work()
        laps.append(time.perf_counter() - start)
    return min(laps)
