"""Products with a matrix: `nn.Linear`, Hugging Face's `Conv1D`, attention's projections, recurrent cells, `x @ w`."""

from __future__ import annotations

import torch

from privet.core import InvalidInput
from privet.training.engine.contributions import Contribution, Dense, Outer
from privet.training.engine.incoming_gradient import IncomingGradient

__all__ = ["addmm", "bmm", "mm", "with_constant"]


def addmm(incoming: IncomingGradient) -> Contribution:
    """bias · beta + (rows @ matrix) · alpha: slot 0 is the bias, 1 the rows, 2 the matrix."""
    if incoming.slot == 0:
        return incoming.broadcast(_scaled(incoming, "beta"))
    return _matrix(incoming, "mat1", _scaled(incoming, "alpha"))


def mm(incoming: IncomingGradient) -> Contribution:
    """rows @ matrix: slot 0 is the rows, 1 the matrix."""
    return _matrix(incoming, "self", incoming.gradient)


def bmm(incoming: IncomingGradient) -> Contribution:
    """A stack of products, (h, rows, q) @ (h, q, p), with the examples among the rows."""
    inputs, gradient = incoming.rows(incoming.saved("self")), incoming.rows(incoming.gradient)
    if incoming.shape[0] == 1:
        return Outer(inputs.flatten(2), gradient.flatten(2)).settle()
    return Dense(torch.einsum("rkhq,rkhp->rhqp", inputs, gradient).flatten(1))


def with_constant(incoming: IncomingGradient) -> Contribution:
    """Refuse a product with one vector, as in spectral normalization: its result has no rows of a batch.

    This rule is reached only if the vector's entries belong to the examples.
    """
    problem = "is multiplied with one vector that holds all examples"
    raise InvalidInput("a parameter", problem, "put the examples along an axis of their own, and use a matrix product")


def _matrix(incoming: IncomingGradient, name: str, gradient: torch.Tensor) -> Contribution:
    return Outer(incoming.rows(incoming.saved(name)), incoming.rows(gradient))


def _scaled(incoming: IncomingGradient, name: str) -> torch.Tensor:
    scale = incoming.saved(name)
    return incoming.gradient if scale == 1 else incoming.gradient * scale
