"""`nn.LSTM` where the library runs a whole layer as one operation: the gates' gradients, from what it saved.

Cells, `nn.RNN`, `nn.GRU` and an LSTM in float64 are made of linear operations and need no rule of their own.
"""

from __future__ import annotations

import torch
from torch import Tensor

from privet.core import InvalidInput
from privet.training.engine.contributions import Contribution, Dense, Outer
from privet.training.engine.incoming_gradient import IncomingGradient
from privet.training.engine.squares import squares_of_several

__all__ = ["lstm_layer"]

_LSTM = 2
"""The library's number for this kind of recurrent layer."""


def lstm_layer(incoming: IncomingGradient) -> Contribution:
    """Slots 1 and 2 are the weights of the input and of the state, 3 and 4 their biases."""
    if "gates" not in incoming.shared:
        before = _states_before(incoming)
        gates = incoming.rows(_gates(incoming, before), 1).flatten(1, 2)
        rights = [incoming.rows(each, 1).flatten(1, 2) for each in (incoming.saved("input"), before)]
        incoming.shared["gates"] = gates
        incoming.shared["weights"] = [
            Outer(gates, right, known=known)
            for right, known in zip(rights, squares_of_several(gates, rights), strict=True)
        ]
    if incoming.slot in (3, 4):
        gates = incoming.shared["gates"]
        return Dense(gates.sum(1))
    weight: Outer = incoming.shared["weights"][incoming.slot - 1]
    return weight


def _states_before(incoming: IncomingGradient) -> Tensor:
    """The state that each time's cell saw: (time, B, width)."""
    states, first = incoming.saved("result0"), incoming.saved("hx_").unsqueeze(0)
    if incoming.saved("reverse"):
        return torch.cat([states[1:], first])
    return torch.cat([first, states[:-1]])


def _gates(incoming: IncomingGradient, before: Tensor) -> Tensor:
    """The gradients of the four gates before their activations: (time, B, 4 · width), back-propagated through time.

    All states are known, so the gates of all times are recomputed by one product of matrices; only the cell and the
    chain of gradients go step by step. The gates' memory is used again for their slopes: fresh pages cost more than
    the arithmetic.
    """
    if incoming.saved("mode") != _LSTM:
        raise InvalidInput("the recurrent layer", "is of a kind that has no rule", "use nn.LSTM, nn.GRU or nn.RNN")
    weights = [incoming.saved(f"weight{place}") for place in range(4)]
    bias = weights[2] + weights[3] if incoming.saved("has_biases") else None
    gates = torch.nn.functional.linear(incoming.saved("input"), weights[0], bias)
    gates.view(-1, gates.shape[2]).addmm_(before.flatten(0, 1), weights[1].T)
    i, f, g, o = gates.chunk(4, 2)
    for gate in (i, f, o):
        gate.sigmoid_()
    g.tanh_()
    times = range(len(gates))
    order = list(reversed(times)) if incoming.saved("reverse") else list(times)
    cells = torch.empty_like(i, memory_format=torch.contiguous_format)
    cell = incoming.saved("cx_")
    product = i * g
    for time in order:
        cell = torch.addcmul(product[time], f[time], cell, out=cells[time])
    # The slope of each gate's activation times what the gate is multiplied with: g·i(1 - i), i·(1 - g²), …
    torch.addcmul(i, product, g, value=-1, out=g)
    torch.addcmul(product, product, i, value=-1, out=i)
    forget = f.clone(memory_format=torch.contiguous_format)
    first, later, earlier = order[0], slice(1, None), slice(None, -1)
    if incoming.saved("reverse"):
        later, earlier = earlier, later
    torch.ops.aten.sigmoid_backward(incoming.saved("cx_"), f[first], grad_input=f[first])
    torch.ops.aten.sigmoid_backward(cells[earlier], f[later], grad_input=f[later])
    squashed = cells.tanh_()
    onto_cell = torch.ops.aten.tanh_backward(o, squashed)
    torch.ops.aten.sigmoid_backward(squashed, o, grad_input=o)
    return _through_time(incoming, weights[1], gates, onto_cell, forget, order)


def _through_time(
    incoming: IncomingGradient, recurrent: Tensor, slopes: Tensor, onto_cell: Tensor, forget: Tensor, order: list[int]
) -> Tensor:
    """Multiply the slopes, in place, by the gradients that reach them; the last time comes first."""
    outputs, last_state, last_cell = (*incoming.gradients, None, None)[:3]
    width = onto_cell.shape[2]
    zeros = onto_cell.new_zeros(onto_cell.shape[1:])
    state = zeros if last_state is None else last_state.reshape_as(zeros)
    cell = zeros if last_cell is None else last_cell.reshape_as(zeros)
    by_gate = slopes.view(*slopes.shape[:2], 4, width)
    for time in reversed(order):
        if outputs is not None:
            state = state + outputs[time]
        cell = torch.addcmul(cell, state, onto_cell[time])
        by_gate[time, :, :3] *= cell.unsqueeze(1)
        by_gate[time, :, 3] *= state
        state = slopes[time] @ recurrent
        cell = cell * forget[time]
    return slopes
