"""Products with a matrix: `nn.Linear`, Hugging Face's `Conv1D`, attention's projections, recurrent cells, `x @ w`."""

from __future__ import annotations

import torch

from privet.core.errors import InvalidInput
from privet.training.engine.arrival import Arrival
from privet.training.engine.parts import Dense, Outer, Part

__all__ = ["addmm", "bmm", "mm", "with_constant"]


def addmm(arrival: Arrival) -> Part:
    """bias · beta + (rows @ matrix) · alpha: slot 0 is the bias, 1 the rows, 2 the matrix."""
    if arrival.slot == 0:
        return arrival.broadcast(_scaled(arrival, "beta"))
    return _matrix(arrival, "mat1", _scaled(arrival, "alpha"))


def mm(arrival: Arrival) -> Part:
    """rows @ matrix: slot 0 is the rows, 1 the matrix."""
    return _matrix(arrival, "self", arrival.gradient)


def bmm(arrival: Arrival) -> Part:
    """A stack of products, (h, rows, q) @ (h, q, p), with the examples among the rows."""
    inputs, gradient = arrival.rows(arrival.saved("self")), arrival.rows(arrival.gradient)
    if arrival.shape[0] == 1:
        return Outer(inputs.flatten(2), gradient.flatten(2)).settle()
    return Dense(torch.einsum("rkhq,rkhp->rhqp", inputs, gradient).flatten(1))


def with_constant(arrival: Arrival) -> Part:
    """A product with one vector, as spectral normalisation has it: no rule, for the result has no rows of a batch.

    It is met here only if the vector's entries belong to the examples.
    """
    problem = "is multiplied with one vector that holds all examples"
    raise InvalidInput("a parameter", problem, "put the examples along an axis of their own, and use a matrix product")


def _matrix(arrival: Arrival, name: str, gradient: torch.Tensor) -> Part:
    return Outer(arrival.rows(arrival.saved(name)), arrival.rows(gradient))


def _scaled(arrival: Arrival, name: str) -> torch.Tensor:
    scale = arrival.saved(name)
    return arrival.gradient if scale == 1 else arrival.gradient * scale
