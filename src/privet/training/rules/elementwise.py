"""Parameters that are added, multiplied or repeated: biases, scales, position tables, class tokens, learned slopes."""

from __future__ import annotations

from torch import Tensor

from privet.training.engine.contributions import Contribution, Dense
from privet.training.engine.incoming_gradient import IncomingGradient

__all__ = ["add", "div", "expand", "mul", "prelu", "repeat", "sub", "where"]


def add(incoming: IncomingGradient) -> Contribution:
    """self + alpha · other."""
    return incoming.broadcast(_other_scaled(incoming, 1))


def sub(incoming: IncomingGradient) -> Contribution:
    """self − alpha · other."""
    return incoming.broadcast(_other_scaled(incoming, -1))


def mul(incoming: IncomingGradient) -> Contribution:
    """self · other."""
    factor = incoming.saved("other" if incoming.slot == 0 else "self")
    return incoming.broadcast(incoming.gradient * factor)


def div(incoming: IncomingGradient) -> Contribution:
    """self / other: slot 0 is self; a learned divisor has no rule of its own."""
    return incoming.broadcast(incoming.gradient / incoming.saved("other"))


def expand(incoming: IncomingGradient) -> Contribution:
    """One value for every example, as a class token has."""
    return incoming.broadcast(incoming.gradient)


def repeat(incoming: IncomingGradient) -> Contribution:
    """Copies one after the other along each axis: `InstanceNorm` repeats its scale for every example."""
    repeats = tuple(incoming.saved("repeats"))
    shape = (1,) * (len(repeats) - len(incoming.shape)) + tuple(incoming.shape)
    # Each axis becomes (copies, size); the copies along the examples' axis are theirs, the others' are summed over.
    gradient = incoming.gradient.reshape([n for pair in zip(repeats, shape, strict=True) for n in pair])
    copies = 2 * incoming.layout.axis
    split = incoming.rows(gradient, copies)
    left = [axis for axis in range(gradient.dim()) if axis != copies]
    return Dense(split.sum([1, *(2 + place for place, axis in enumerate(left) if axis % 2 == 0)]).flatten(1))


def prelu(incoming: IncomingGradient) -> Contribution:
    """x where it is positive, slope · x elsewhere: slot 1 is the slope."""
    return incoming.broadcast(incoming.gradient * incoming.saved("self").clamp(max=0))


def where(incoming: IncomingGradient) -> Contribution:
    """self where the condition holds, other elsewhere: slot 0 is self, 1 other."""
    condition = incoming.saved("condition")
    return incoming.broadcast(incoming.gradient.masked_fill(~condition if incoming.slot == 0 else condition, 0.0))


def _other_scaled(incoming: IncomingGradient, sign: int) -> Tensor:
    scale = sign * incoming.saved("alpha") if incoming.slot == 1 else 1
    return incoming.gradient if scale == 1 else incoming.gradient * scale
