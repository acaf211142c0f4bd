"""Tables that are looked up: `nn.Embedding`, `table[index]`."""

from __future__ import annotations

import torch
from torch import Tensor

from privet.core import InvalidInput
from privet.training.engine.contributions import Contribution, Lookup
from privet.training.engine.incoming_gradient import IncomingGradient

__all__ = ["embedding", "index", "index_select"]


def embedding(incoming: IncomingGradient) -> Contribution:
    """Row index[…] of the table for every entry of the index; the row `padding_idx` never learns."""
    if incoming.saved("scale_grad_by_freq"):
        problem = "divides gradients by how often a row occurs in the whole batch, which couples the examples"
        raise InvalidInput("scale_grad_by_freq", problem, "make the embedding without it")
    return _lookup(incoming, incoming.saved("indices"), incoming.saved("padding_idx"))


def index(incoming: IncomingGradient) -> Contribution:
    """table[index], with one index of whole numbers for the first axis."""
    indices = [each for each in incoming.saved("indices") if each is not None]
    first = incoming.saved("indices")[0]
    if len(indices) != 1 or first is None or first.dtype == torch.bool:
        problem = "picks from several axes at once, or by a mask, for which there is no rule"
        raise InvalidInput("indexing a parameter", problem, "use table[index] with one tensor of whole numbers")
    return _lookup(incoming, torch.where(first < 0, first + incoming.shape[0], first), -1)


def index_select(incoming: IncomingGradient) -> Contribution:
    """torch.index_select(table, 0, index)."""
    if incoming.saved("dim") != 0:
        raise InvalidInput("index_select", "picks from another axis than the first", "transpose the parameter first")
    return _lookup(incoming, incoming.saved("index"), -1)


def _lookup(incoming: IncomingGradient, indices: Tensor, padding: int) -> Contribution:
    rows = incoming.layout.split(indices).flatten(1)
    gradient = incoming.rows(incoming.gradient).reshape(*rows.shape, -1)
    if 0 <= padding < incoming.shape[0]:
        gradient = gradient.masked_fill((rows == padding)[:, :, None], 0.0)
    return Lookup(rows, gradient, incoming.shape[0])
