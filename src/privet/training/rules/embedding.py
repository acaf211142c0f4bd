"""Tables that are looked up: `nn.Embedding`, `table[index]`."""

from __future__ import annotations

import torch
from torch import Tensor

from privet.core.errors import InvalidInput
from privet.training.engine.arrival import Arrival
from privet.training.engine.parts import Lookup, Part

__all__ = ["embedding", "index", "index_select"]


def embedding(arrival: Arrival) -> Part:
    """Row index[…] of the table for every entry of the index; the row `padding_idx` never learns."""
    if arrival.saved("scale_grad_by_freq"):
        problem = "divides gradients by how often a row occurs in the whole batch, which couples the examples"
        raise InvalidInput("scale_grad_by_freq", problem, "make the embedding without it")
    return _lookup(arrival, arrival.saved("indices"), arrival.saved("padding_idx"))


def index(arrival: Arrival) -> Part:
    """table[index], with one index of whole numbers for the first axis."""
    indices = [each for each in arrival.saved("indices") if each is not None]
    first = arrival.saved("indices")[0]
    if len(indices) != 1 or first is None or first.dtype == torch.bool:
        problem = "picks from several axes at once, or by a mask, for which there is no rule"
        raise InvalidInput("indexing a parameter", problem, "use table[index] with one tensor of whole numbers")
    return _lookup(arrival, torch.where(first < 0, first + arrival.shape[0], first), -1)


def index_select(arrival: Arrival) -> Part:
    """torch.index_select(table, 0, index)."""
    if arrival.saved("dim") != 0:
        raise InvalidInput("index_select", "picks from another axis than the first", "transpose the parameter first")
    return _lookup(arrival, arrival.saved("index"), -1)


def _lookup(arrival: Arrival, indices: Tensor, padding: int) -> Part:
    rows = arrival.layout.split(indices).flatten(1)
    gradient = arrival.rows(arrival.gradient).reshape(*rows.shape, -1)
    if 0 <= padding < arrival.shape[0]:
        gradient = gradient.masked_fill((rows == padding)[:, :, None], 0.0)
    return Lookup(rows, gradient, arrival.shape[0])
