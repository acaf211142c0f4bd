"""What is done to a gradient before it is shared: clipping, clipping with noise, sharing a part of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from privet.core import InvalidInput, checked
from privet.core.random import Rng, default_rng
from privet.training import DPSGD, Flat, fill
from privet.training.engine import Squares

__all__ = ["Gradient", "add_gradient_noise", "clip_gradient", "gradient_tensors", "largest_entries", "squared_norm"]

Gradient = Sequence[Tensor] | Mapping[str, Tensor]
"""One tensor for each trained parameter, in the network's order; or by the parameters' names."""


def clip_gradient(gradient: Gradient, clip: float) -> tuple[Tensor, ...]:
    """The gradient, scaled down to the length `clip` if it is longer, as DP-SGD's flat clipping does it.

    By itself this hides nothing: the direction is the same, and `Cosine` matches directions.

    >>> [float(each) for each in clip_gradient([torch.tensor(3.0), torch.tensor(4.0)], 10.0)]
    [3.0, 4.0]
    """
    given = gradient_tensors(gradient)
    squares = Squares(squared_norm([each.double() for each in given])[None], torch.zeros(1, dtype=torch.float64))
    (factor,) = Flat().factors([squares], checked.positive("clip", clip), [0]).by_parameter
    if factor is None:
        raise InvalidInput("gradient", "has no length", "give its tensors")
    return tuple((each.double() * factor).to(each.dtype) for each in given)


def add_gradient_noise(gradient: Gradient, plan: DPSGD, *, rows: int = 0, rng: Rng | None = None) -> tuple[Tensor, ...]:
    """One step of DP-SGD, as the best-informed attacker sees it: this gradient, clipped, with the noise of the step.

    A step shows the *sum* of a batch's clipped gradients, with normal noise of deviation noise_multiplier · clip on
    every number, divided by the batch size. Whoever knows all other rows of the batch takes their part
    away; what is left is one example's clipped gradient with all of the noise, which is what this gives: the worst case
    of a batch of hundreds, and what a participant with one example shares who adds all of the noise by itself. It is no
    release: to train, use the plan.

    Args:
        gradient: of one example.
        plan: clips flatly; one that is to meet an ε is calibrated.
        rows: how many there are to train on, where the plan counts them.
        rng: a seeded one for experiments that are to be repeated.
    """
    if not isinstance(plan.clipping, Flat):
        raise InvalidInput("plan", f"clips by {plan.clipping!r}", "use one that clips by Flat()")
    found = [each.clone().contiguous() for each in clip_gradient(gradient, plan.clip)]
    std = (plan.calibrated(rows).noise_multiplier or 0.0) * plan.clip
    for each in found:
        noise = torch.zeros_like(each)
        if std > 0:
            fill(noise, std, rng if rng is not None else default_rng())
        each.add_(noise)
    return tuple(found)


def largest_entries(gradient: Gradient, share: float) -> tuple[Tensor, ...]:
    """Selective sharing (Shokri & Shmatikov 2015): the part `share` of numbers that are largest, and zeros elsewhere.

    It saves traffic and hides little: `match_gradient(..., partial=True)` leaves the zeros alone.

    >>> [each.tolist() for each in largest_entries([torch.tensor([1.0, -5.0]), torch.tensor([2.0, 0.5])], 0.5)]
    [[0.0, -5.0], [2.0, 0.0]]
    """
    given = gradient_tensors(gradient)
    sizes = torch.cat([each.flatten().abs().double() for each in given])
    kept = torch.zeros_like(sizes, dtype=torch.bool)
    kept[sizes.topk(max(1, round(checked.probability("share", share) * len(sizes)))).indices] = True
    pieces = torch.split(kept, [each.numel() for each in given])
    return tuple(each * piece.reshape(each.shape) for each, piece in zip(given, pieces, strict=True))


def squared_norm(tensors: Sequence[Tensor]) -> Tensor:
    """The squared length over all tensors."""
    return torch.stack([(each**2).sum() for each in tensors]).sum()


def gradient_tensors(gradient: Gradient) -> tuple[Tensor, ...]:
    """The tensors, if they are finite numbers."""
    found = tuple(gradient.values()) if isinstance(gradient, Mapping) else tuple(gradient)
    if not found or not all(isinstance(each, Tensor) for each in found):
        raise InvalidInput("gradient", "is not a list of tensors", "give one for each trained parameter")
    if not all(bool(each.isfinite().all()) for each in found):
        raise InvalidInput("gradient", "holds NaN or infinity", "nothing can be rebuilt from it: compute it again")
    return tuple(each.detach() for each in found)
