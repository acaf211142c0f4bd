"""Clipping rules. Under each of them, no unit's contribution has a norm above the clip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, sqrt
from typing import Protocol

import torch
from torch import Tensor

from privet.core import Gaussian, InvalidInput, Joint, Leaf, checked
from privet.training.engine.squares import Squares

__all__ = ["Adaptive", "Automatic", "Clipping", "Factors", "Flat", "PerLayer"]

_MARGIN = 1.0 - 1e-6
"""Room for the rounding of the factor itself and of the product with it, in float32."""

_SMALLEST_CLIP, _LARGEST_CLIP = 1e-9, 1e9
"""Bounds of an adaptive clip: beyond them, float32 has no room for the noise."""


@dataclass(frozen=True)
class Factors:
    """Factors by which each example's gradients are multiplied, and which examples were not clipped."""

    by_parameter: list[Tensor | None]
    unclipped: Tensor
    """(B,), true where the norm of the whole gradient was at most the clip."""


class Clipping(Protocol):
    """Clipping rule: for each example, the factors times the gradients of all parameters have a joint norm ≤ `clip`."""

    def factors(self, squares: Sequence[Squares | None], clip: float, layers: Sequence[int]) -> Factors:
        """Return the factor of each example's gradient, for each parameter.

        Args:
            squares: Squared gradient norms of the examples, for each parameter; None for one without a gradient.
            clip: Largest norm of one example's contribution.
            layers: For each parameter, the number of the layer that owns it.

        Returns:
            The factors, and which examples were not clipped.
        """

    def leaf(self, noise_multiplier: float) -> Leaf:
        """Return the event of one step on its batch, before subsampling.

        Args:
            noise_multiplier: Standard deviation of the noise, divided by the clip.

        Returns:
            The event.
        """


def _norms(squares: Squares) -> Tensor:
    """Return upper bounds on the norms: the rounding slack is added before the root, and NaN becomes infinite."""
    value = squares.value.nan_to_num(nan=inf, posinf=inf, neginf=inf).clamp_(min=0.0)
    return (value + squares.slack).nan_to_num_(nan=inf, posinf=inf).sqrt_()


def _total(squares: Sequence[Squares | None]) -> Squares | None:
    """Return the sum over all parameters, in float64, because there may be thousands of them."""
    known = [each for each in squares if each is not None]
    if not known:
        return None
    values, slacks = (torch.stack(each) for each in ([of.value for of in known], [of.slack for of in known]))
    return Squares(values.sum(0, dtype=torch.float64), slacks.sum(0, dtype=torch.float64))


class _WholeGradient:
    """Base of the rules that clip by the norm over all parameters."""

    def factors(self, squares: Sequence[Squares | None], clip: float, layers: Sequence[int]) -> Factors:
        """Return one factor for each example, the same for all parameters.

        Args:
            squares: Squared gradient norms of the examples, for each parameter; None for one without a gradient.
            clip: Largest norm of one example's contribution.
            layers: For each parameter, the number of the layer that owns it; unused here.

        Returns:
            The factors, and which examples were not clipped.
        """
        total = _total(squares)
        if total is None:
            return Factors([None] * len(squares), torch.ones(0, dtype=torch.bool))
        norms = _norms(total)
        factors = self._scale(norms, clip)
        return Factors([None if square is None else factors for square in squares], norms <= clip)

    def leaf(self, noise_multiplier: float) -> Leaf:
        """Return the event of the noisy sum.

        Args:
            noise_multiplier: Standard deviation of the noise, divided by the clip.

        Returns:
            The event.
        """
        return Gaussian(noise_multiplier)

    def _scale(self, norms: Tensor, clip: float) -> Tensor:
        """Return min(1, clip / norm)."""
        return (clip * _MARGIN) / norms.clamp(min=clip * _MARGIN)


@dataclass(frozen=True)
class Flat(_WholeGradient):
    """Clip by one norm over all parameters: scale a gradient above the clip down to it (Abadi et al. 2016)."""


@dataclass(frozen=True)
class Automatic(_WholeGradient):
    """Scale every gradient to (almost) the same norm, with the factor clip / (norm + stability) (Bu et al. 2023)."""

    stability: float = 0.01

    def __post_init__(self) -> None:
        checked.positive("stability", self.stability)

    def _scale(self, norms: Tensor, clip: float) -> Tensor:
        """Return clip / (norm + stability), which leaves no gradient longer than the clip."""
        return (clip * _MARGIN) / (norms + self.stability)


@dataclass(frozen=True)
class PerLayer(_WholeGradient):
    """Clip every layer separately, to clip / √(number of layers), so that the whole gradient is within the clip."""

    def factors(self, squares: Sequence[Squares | None], clip: float, layers: Sequence[int]) -> Factors:
        """Return min(1, share / norm of the layer) for each example and layer, with the same share for each layer.

        Args:
            squares: Squared gradient norms of the examples, for each parameter; None for one without a gradient.
            clip: Largest norm of one example's contribution over all layers.
            layers: For each parameter, the number of the layer that owns it.

        Returns:
            The factors, and which examples were clipped in no layer.
        """
        share = clip / sqrt(len(set(layers)) or 1)
        found: dict[int, Factors] = {}
        for layer in sorted(set(layers)):
            own = [each if number == layer else None for each, number in zip(squares, layers, strict=True)]
            found[layer] = super().factors(own, share, layers)
        known = [each.unclipped for each in found.values() if len(each.unclipped)]
        unclipped = torch.stack(known).all(0) if known else torch.ones(0, dtype=torch.bool)
        return Factors([found[layer].by_parameter[place] for place, layer in enumerate(layers)], unclipped)


@dataclass(frozen=True)
class Adaptive(_WholeGradient):
    """Clip by one norm over all parameters; the clip tracks a quantile of the norms (Andrew et al. 2021).

    In each step the number of gradients within the clip is released too, as Σ (b_i − ½), which one unit moves by at
    most ½, with normal noise of deviation `count_noise`. Both releases are of the same batch and are one event.
    """

    quantile: float = 0.5
    count_noise: float = 10.0
    """Deviation of the noise on the count; a twentieth of the batch is a usual choice."""
    rate: float = 0.2
    """How fast the clip moves: it is multiplied by exp(−rate · (share within it − quantile))."""

    def __post_init__(self) -> None:
        checked.positive("count_noise", self.count_noise)
        checked.positive("rate", self.rate)
        if not 0 < checked.finite("quantile", self.quantile) < 1:
            raise InvalidInput("quantile", f"is {self.quantile}", "give a share between 0 and 1, such as 0.5")

    def leaf(self, noise_multiplier: float) -> Leaf:
        """Return the joint event of the noisy sum and the noisy count of one batch.

        Args:
            noise_multiplier: Standard deviation of the noise on the sum, divided by the clip.

        Returns:
            The event.
        """
        return Joint((Gaussian(noise_multiplier), Gaussian(2 * self.count_noise)))

    def next_clip(self, clip: float, noisy_count: float, divisor: float) -> float:
        """Return the clip of the next step. This is post-processing of the noisy count.

        Args:
            clip: Clip of the current step.
            noisy_count: Σ (b_i − ½) over the batch, plus its noise; b_i is 1 where a gradient is within the clip.
            divisor: Expected number of units in a batch.

        Returns:
            The new clip, from 1e-9 to 1e9.
        """
        share = min(max(noisy_count / divisor + 0.5, 0.0), 1.0)
        return min(max(clip * exp(-self.rate * (share - self.quantile)), _SMALLEST_CLIP), _LARGEST_CLIP)
