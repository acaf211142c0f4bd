"""`nn.LSTM` where the library runs a whole layer as one operation: the gates' gradients, from what it saved.

Cells, `nn.RNN`, `nn.GRU` and an LSTM in float64 are made of linear operations and need no rule of their own.
"""

from __future__ import annotations

import torch
from torch import Tensor

from privet.core.errors import InvalidInput
from privet.training.engine.arrival import Arrival
from privet.training.engine.parts import Dense, Outer, Part

__all__ = ["lstm_layer"]

_LSTM = 2
"""The library's number for this kind of recurrent layer."""


def lstm_layer(arrival: Arrival) -> Part:
    """Slots 1 and 2 are the weights of the input and of the state, 3 and 4 their biases."""
    if "gates" not in arrival.shared:
        arrival.shared["gates"] = arrival.rows(_gates(arrival), 1).flatten(1, 2)
    gates: Tensor = arrival.shared["gates"]
    if arrival.slot in (3, 4):
        return Dense(gates.sum(1))
    other = arrival.saved("input") if arrival.slot == 1 else _states_before(arrival)
    return Outer(gates, arrival.rows(other, 1).flatten(1, 2))


def _states_before(arrival: Arrival) -> Tensor:
    """The state that each time's cell saw: (time, B, width)."""
    states, first = arrival.saved("result0"), arrival.saved("hx_").unsqueeze(0)
    if arrival.saved("reverse"):
        return torch.cat([states[1:], first])
    return torch.cat([first, states[:-1]])


def _gates(arrival: Arrival) -> Tensor:
    """The gradients of the four gates before their activations: (time, B, 4 · width), back-propagated through time.

    All states are known, so the gates of all times are recomputed by one product of matrices; only the cell and the
    chain of gradients go step by step.
    """
    if arrival.saved("mode") != _LSTM:
        raise InvalidInput("the recurrent layer", "is of a kind that has no rule", "use nn.LSTM, nn.GRU or nn.RNN")
    inputs, before = arrival.saved("input"), _states_before(arrival)
    weights = [arrival.saved(f"weight{place}") for place in range(4)]
    bias = weights[2] + weights[3] if arrival.saved("has_biases") else None
    gates = torch.nn.functional.linear(inputs, weights[0], bias)
    gates += torch.nn.functional.linear(before, weights[1])
    i, f, g, o = gates.chunk(4, 2)
    for gate in (i, f, o):
        gate.sigmoid_()
    g.tanh_()
    times = range(len(gates))
    order = list(reversed(times)) if arrival.saved("reverse") else list(times)
    cells = torch.empty_like(i)
    cell = arrival.saved("cx_")
    product = i * g
    for time in order:
        cell = torch.addcmul(product[time], f[time], cell, out=cells[time])
    squashed = cells.tanh()
    # d(output)/d(cell), and of each gate's activation; the forget gate meets the cell of the time before.
    onto_cell = torch.addcmul(o, o, squashed.square(), value=-1)
    earlier = torch.empty_like(cells)
    earlier[order[0]] = arrival.saved("cx_")
    earlier[order[1:]] = cells[order[:-1]]
    slopes = torch.empty_like(gates)
    si, sf, sg, so = slopes.chunk(4, 2)
    torch.mul(g, i - i.square(), out=si)
    torch.mul(earlier, f - f.square(), out=sf)
    torch.mul(i, 1 - g.square(), out=sg)
    torch.mul(squashed, o - o.square(), out=so)
    return _through_time(arrival, weights[1], slopes, onto_cell, f, order)


def _through_time(
    arrival: Arrival, recurrent: Tensor, slopes: Tensor, onto_cell: Tensor, forget: Tensor, order: list[int]
) -> Tensor:
    """Multiply the slopes, in place, by the gradients that reach them; the last time comes first."""
    outputs, last_state, last_cell = (*arrival.gradients, None, None)[:3]
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
