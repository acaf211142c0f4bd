"""Scales and shifts after a normalisation within each example: `LayerNorm`, `GroupNorm`, `BatchNorm` in eval mode."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from privet.core.errors import InvalidInput
from privet.training.engine.arrival import Arrival
from privet.training.engine.parts import Dense, Part
from privet.training.native import loops

__all__ = ["batch_norm", "group_norm", "layer_norm"]


def layer_norm(arrival: Arrival) -> Part:
    """Slot 1 is the scale, 2 the shift: Σ_t b·(x − mean)·rstd and Σ_t b."""
    if "both" not in arrival.shared:
        width = prod(arrival.shape)
        gradient = arrival.rows(arrival.gradient).reshape(arrival.layout.examples, -1, width)
        inputs, mean, rstd = (
            arrival.rows(arrival.saved(name)).reshape(len(gradient), -1, size)
            for name, size in (("input", width), ("result1", 1), ("result2", 1))
        )
        arrival.shared["both"] = _scale_and_shift(gradient, inputs, mean, rstd)
    return Dense(arrival.shared["both"][arrival.slot - 1])


def _scale_and_shift(gradient: Tensor, inputs: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """In one compiled pass, or Σ_t rstd·(b·x) − Σ_t (mean·rstd)·b by two products."""
    if loops.takes_rows(gradient, inputs) and loops.usable(mean, rstd):
        return loops.normalised_gradients(gradient, inputs, *(each.squeeze(2).contiguous() for each in (mean, rstd)))
    scaled = torch.bmm(rstd.mT, gradient * inputs)
    return torch.baddbmm(scaled, (mean * rstd).mT, gradient, alpha=-1).squeeze(1), gradient.sum(1)


def group_norm(arrival: Arrival) -> Part:
    """Slot 1 is the scale, 2 the shift; Σ b·(x − mean)·rstd = rstd·(Σ b·x − mean·Σ b) for each channel."""
    gradient = arrival.gradient.flatten(2) if arrival.gradient.dim() > 2 else arrival.gradient.unsqueeze(2)
    gradient = gradient.float() if gradient.dtype not in (torch.float32, torch.float64) else gradient
    shift = gradient.sum(2)
    if arrival.slot == 2:
        return _channels(arrival, shift)
    inputs, groups = arrival.saved("input").reshape_as(gradient), arrival.saved("group")
    per_group = shift.shape[1] // groups
    mean, rstd = (arrival.saved(name).repeat_interleave(per_group, 1) for name in ("result1", "result2"))
    return _channels(arrival, rstd * ((gradient * inputs).sum(2) - mean * shift))


def batch_norm(arrival: Arrival) -> Part:
    """Slot 1 is the scale, 2 the shift; only with the stored statistics, which do not depend on the batch."""
    if arrival.saved("training"):
        problem = "normalises with the statistics of the whole batch, which couples the examples"
        raise InvalidInput("BatchNorm", problem, "use privet.training.replace_batchnorm(model), or put it in eval mode")
    gradient = arrival.gradient.flatten(2) if arrival.gradient.dim() > 2 else arrival.gradient.unsqueeze(2)
    if arrival.slot == 2:
        return _channels(arrival, gradient.sum(2))
    rstd = (arrival.saved("running_var") + arrival.saved("eps")).rsqrt()
    inputs = arrival.saved("input").reshape_as(gradient) - arrival.saved("running_mean")[:, None]
    return _channels(arrival, (gradient * inputs).sum(2) * rstd)


def _channels(arrival: Arrival, value: Tensor) -> Part:
    return Dense(arrival.rows(value, 0).sum(1))
