"""Scales and shifts after a normalization within each example: `LayerNorm`, `GroupNorm`, `BatchNorm` in eval mode."""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor

from privet.core import InvalidInput
from privet.training.engine.contributions import Contribution, Dense
from privet.training.engine.incoming_gradient import IncomingGradient
from privet.training.native import loops

__all__ = ["batch_norm", "group_norm", "layer_norm"]


def layer_norm(incoming: IncomingGradient) -> Contribution:
    """Slot 1 is the scale, 2 the shift: Σ_t b·(x − mean)·rstd and Σ_t b."""
    if "both" not in incoming.shared:
        width = prod(incoming.shape)
        gradient = incoming.rows(incoming.gradient).reshape(incoming.layout.examples, -1, width)
        inputs, mean, rstd = (
            incoming.rows(incoming.saved(name)).reshape(len(gradient), -1, size)
            for name, size in (("input", width), ("result1", 1), ("result2", 1))
        )
        incoming.shared["both"] = _scale_and_shift(gradient, inputs, mean, rstd)
    return Dense(incoming.shared["both"][incoming.slot - 1])


def _scale_and_shift(gradient: Tensor, inputs: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """In one compiled pass, or Σ_t rstd·(b·x) − Σ_t (mean·rstd)·b by two products."""
    if loops.takes_rows(gradient, inputs) and loops.usable(mean, rstd):
        return loops.normalised_gradients(gradient, inputs, *(each.squeeze(2).contiguous() for each in (mean, rstd)))
    scaled = torch.bmm(rstd.mT, gradient * inputs)
    return torch.baddbmm(scaled, (mean * rstd).mT, gradient, alpha=-1).squeeze(1), gradient.sum(1)


def group_norm(incoming: IncomingGradient) -> Contribution:
    """Slot 1 is the scale, 2 the shift; Σ b·(x − mean)·rstd = rstd·(Σ b·x − mean·Σ b) for each channel."""
    gradient = incoming.gradient.flatten(2) if incoming.gradient.dim() > 2 else incoming.gradient.unsqueeze(2)
    gradient = gradient.float() if gradient.dtype not in (torch.float32, torch.float64) else gradient
    shift = gradient.sum(2)
    if incoming.slot == 2:
        return _channels(incoming, shift)
    inputs, groups = incoming.saved("input").reshape_as(gradient), incoming.saved("group")
    per_group = shift.shape[1] // groups
    mean, rstd = (incoming.saved(name).repeat_interleave(per_group, 1) for name in ("result1", "result2"))
    return _channels(incoming, rstd * ((gradient * inputs).sum(2) - mean * shift))


def batch_norm(incoming: IncomingGradient) -> Contribution:
    """Slot 1 is the scale, 2 the shift; only with the stored statistics, which do not depend on the batch."""
    if incoming.saved("training"):
        problem = "normalises with the statistics of the whole batch, which couples the examples"
        raise InvalidInput("BatchNorm", problem, "use privet.training.replace_batchnorm(model), or put it in eval mode")
    gradient = incoming.gradient.flatten(2) if incoming.gradient.dim() > 2 else incoming.gradient.unsqueeze(2)
    if incoming.slot == 2:
        return _channels(incoming, gradient.sum(2))
    rstd = (incoming.saved("running_var") + incoming.saved("eps")).rsqrt()
    inputs = incoming.saved("input").reshape_as(gradient) - incoming.saved("running_mean")[:, None]
    return _channels(incoming, (gradient * inputs).sum(2) * rstd)


def _channels(incoming: IncomingGradient, value: Tensor) -> Contribution:
    return Dense(incoming.rows(value, 0).sum(1))
