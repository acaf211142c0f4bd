"""Parameters that are added, multiplied or repeated: biases, scales, position tables, class tokens, learned slopes."""

from __future__ import annotations

from torch import Tensor

from privet.training.engine.arrival import Arrival
from privet.training.engine.parts import Dense, Part

__all__ = ["add", "div", "expand", "mul", "prelu", "repeat", "sub", "where"]


def add(arrival: Arrival) -> Part:
    """self + alpha · other."""
    return arrival.broadcast(_other_scaled(arrival, 1))


def sub(arrival: Arrival) -> Part:
    """self − alpha · other."""
    return arrival.broadcast(_other_scaled(arrival, -1))


def mul(arrival: Arrival) -> Part:
    """self · other."""
    factor = arrival.saved("other" if arrival.slot == 0 else "self")
    return arrival.broadcast(arrival.gradient * factor)


def div(arrival: Arrival) -> Part:
    """self / other: slot 0 is self; a learned divisor has no rule of its own."""
    return arrival.broadcast(arrival.gradient / arrival.saved("other"))


def expand(arrival: Arrival) -> Part:
    """One value for every example, as a class token has."""
    return arrival.broadcast(arrival.gradient)


def repeat(arrival: Arrival) -> Part:
    """Copies one after the other along each axis: `InstanceNorm` repeats its scale for every example."""
    repeats = tuple(arrival.saved("repeats"))
    shape = (1,) * (len(repeats) - len(arrival.shape)) + tuple(arrival.shape)
    # Each axis becomes (copies, size); the copies along the examples' axis are theirs, the others' are summed over.
    gradient = arrival.gradient.reshape([n for pair in zip(repeats, shape, strict=True) for n in pair])
    copies = 2 * arrival.layout.axis
    split = arrival.rows(gradient, copies)
    left = [axis for axis in range(gradient.dim()) if axis != copies]
    return Dense(split.sum([1, *(2 + place for place, axis in enumerate(left) if axis % 2 == 0)]).flatten(1))


def prelu(arrival: Arrival) -> Part:
    """x where it is positive, slope · x elsewhere: slot 1 is the slope."""
    return arrival.broadcast(arrival.gradient * arrival.saved("self").clamp(max=0))


def where(arrival: Arrival) -> Part:
    """self where the condition holds, other elsewhere: slot 0 is self, 1 other."""
    condition = arrival.saved("condition")
    return arrival.broadcast(arrival.gradient.masked_fill(~condition if arrival.slot == 0 else condition, 0.0))


def _other_scaled(arrival: Arrival, sign: int) -> Tensor:
    scale = sign * arrival.saved("alpha") if arrival.slot == 1 else 1
    return arrival.gradient if scale == 1 else arrival.gradient * scale
