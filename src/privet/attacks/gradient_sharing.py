"""Defenses applied to a gradient before it is shared: clipping, noise, sharing only its largest entries."""

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
    """Return the gradient, scaled down to the norm `clip` if it is larger, as DP-SGD's flat clipping does.

    Clipping alone hides nothing: it keeps the direction, and `Cosine` matches directions.

    Args:
        gradient: The gradient.
        clip: The largest norm.

    Raises:
        InvalidInput: If the gradient is not a list of finite tensors, or `clip` is not positive.

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
    """Return this gradient, clipped and with the noise of one DP-SGD step, as the best-informed attacker sees it.

    A step reveals the *sum* of a batch's clipped gradients, with normal noise of standard deviation noise_multiplier ·
    clip on every entry, divided by the batch size. An attacker who knows all other rows of the batch subtracts their
    contribution; what remains is one example's clipped gradient with all of the noise, which is returned here. It is
    the worst case for a batch of hundreds, and what a participant with one example shares who adds all of the noise
    alone. It is not a release: to train, use the plan.

    Args:
        gradient: The gradient of one example.
        plan: The training plan, with flat clipping; one with a target ε is calibrated.
        rows: The number of training rows, for plans that depend on it.
        rng: A seeded generator, for reproducible experiments; secure randomness if omitted.

    Raises:
        InvalidInput: If the plan does not clip with `Flat()`, or the gradient is not a list of finite tensors.
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
    """Return the largest entries of a gradient, with zeros elsewhere: selective sharing (Shokri & Shmatikov 2015).

    It saves traffic and hides little: `match_gradient(..., partial=True)` ignores the zeros.

    Args:
        gradient: The gradient.
        share: The share of entries to keep, in (0, 1]; at least one entry is kept.

    Raises:
        InvalidInput: If the gradient is not a list of finite tensors, or `share` is not in (0, 1].

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
    """Return the squared norm over all tensors.

    Args:
        tensors: The tensors.
    """
    return torch.stack([(each**2).sum() for each in tensors]).sum()


def gradient_tensors(gradient: Gradient) -> tuple[Tensor, ...]:
    """Return the tensors of a gradient, detached.

    Args:
        gradient: The gradient.

    Raises:
        InvalidInput: If it is empty, not made of tensors, or holds NaN or infinity.
    """
    found = tuple(gradient.values()) if isinstance(gradient, Mapping) else tuple(gradient)
    if not found or not all(isinstance(each, Tensor) for each in found):
        raise InvalidInput("gradient", "is not a list of tensors", "give one for each trained parameter")
    if not all(bool(each.isfinite().all()) for each in found):
        raise InvalidInput("gradient", "holds NaN or infinity", "nothing can be rebuilt from it: compute it again")
    return tuple(each.detach() for each in found)
