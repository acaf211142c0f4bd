"""How much of each example's gradient is kept. Whatever the way, no unit's contribution is longer than the clip."""

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
"""Where an adaptive clip stops: beyond, float32 has no room for the noise."""


@dataclass(frozen=True)
class Factors:
    """For each parameter the factor of every example's gradient, and which examples were left as they were."""

    by_parameter: list[Tensor | None]
    unclipped: Tensor
    """(B,), true where the whole gradient was no longer than the clip."""


class Clipping(Protocol):
    """A way to clip. `sum of (factor · gradient)` over all parameters is never longer than `clip`, for any example."""

    def factors(self, squares: Sequence[Squares | None], clip: float, layers: Sequence[int]) -> Factors:
        """The factors, from each parameter's squared norms; `layers` numbers the layer that owns each parameter."""

    def leaf(self, noise_multiplier: float) -> Leaf:
        """What one step releases of its batch."""


def _norms(squares: Squares) -> Tensor:
    """Never less than the true norms: the rounding slack is added before the root. What is unknown is infinite."""
    value = squares.value.nan_to_num(nan=inf, posinf=inf, neginf=inf).clamp_(min=0.0)
    return (value + squares.slack).nan_to_num_(nan=inf, posinf=inf).sqrt_()


def _total(squares: Sequence[Squares | None]) -> Squares | None:
    """Over all parameters, in float64: there may be thousands of them."""
    known = [each for each in squares if each is not None]
    if not known:
        return None
    values, slacks = (torch.stack(each) for each in ([of.value for of in known], [of.slack for of in known]))
    return Squares(values.sum(0, dtype=torch.float64), slacks.sum(0, dtype=torch.float64))


class _WholeGradient:
    """What is common to clipping by the norm over all parameters."""

    def factors(self, squares: Sequence[Squares | None], clip: float, layers: Sequence[int]) -> Factors:
        """Return one factor an example, for all of its parameters."""
        total = _total(squares)
        if total is None:
            return Factors([None] * len(squares), torch.ones(0, dtype=torch.bool))
        norms = _norms(total)
        factors = self._scale(norms, clip)
        return Factors([None if square is None else factors for square in squares], norms <= clip)

    def leaf(self, noise_multiplier: float) -> Leaf:
        """Return the event of the noisy sum."""
        return Gaussian(noise_multiplier)

    def _scale(self, norms: Tensor, clip: float) -> Tensor:
        """Return min(1, clip / norm)."""
        return (clip * _MARGIN) / norms.clamp(min=clip * _MARGIN)


@dataclass(frozen=True)
class Flat(_WholeGradient):
    """One norm over all parameters: a gradient longer than the clip is scaled down to it (Abadi et al. 2016)."""


@dataclass(frozen=True)
class Automatic(_WholeGradient):
    """Every gradient is scaled to (almost) the same length: clip / (norm + stability) (Bu et al. 2023)."""

    stability: float = 0.01

    def __post_init__(self) -> None:
        checked.positive("stability", self.stability)

    def _scale(self, norms: Tensor, clip: float) -> Tensor:
        """Return clip / (norm + stability), which leaves no gradient longer than the clip."""
        return (clip * _MARGIN) / (norms + self.stability)


@dataclass(frozen=True)
class PerLayer(_WholeGradient):
    """Every layer is clipped by itself, to clip / √(number of layers), so that together they are within the clip."""

    def factors(self, squares: Sequence[Squares | None], clip: float, layers: Sequence[int]) -> Factors:
        """min(1, share / norm of the layer), with the same share for each layer."""
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
    """The clip follows a quantile of the norms, learned from a noisy count (Andrew et al. 2021).

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
        """The noisy sum and the noisy count, of one batch."""
        return Joint((Gaussian(noise_multiplier), Gaussian(2 * self.count_noise)))

    def next_clip(self, clip: float, noisy_count: float, divisor: float) -> float:
        """The clip of the next step, from Σ (b_i − ½) with its noise: post-processing."""
        share = min(max(noisy_count / divisor + 0.5, 0.0), 1.0)
        return min(max(clip * exp(-self.rate * (share - self.quantile)), _SMALLEST_CLIP), _LARGEST_CLIP)
