"""Noise that keeps its promise in floating point: exact normals on a grid of powers of two.

A sum that was computed in floating point is rounded to whole multiples of `step`, and the nearest multiple to a true
normal is added (`privet.training.rounded_normal`). Integers add exactly, so the result is, to the last bit, what
rounding would make of an ideal Gaussian mechanism. Every output is a whole number of steps whatever the data are, which
prevents the attack of Mironov (2012).

Guarantee: that of `Gaussian(sigma / sensitivity)`, for the unit that the clip is for.

*Theorem.* Let h map one unit's data to a vector of at most `clip` in length, let Ŝ(D) be the sum as computed, in d
coordinates, and let |Ŝ(D) - Σ h| ≤ E for every data set D. Let Q round each coordinate to the nearest multiple of g.
Then for neighbours by addition, removal or blanking

    |Q(Ŝ(D)) - Q(Ŝ(D'))| ≤ clip + 2E + g·√d,

as Σ h moves by at most the clip, each Ŝ is at most E away from its Σ h, and each Q moves a coordinate by at most g/2.
Q(Ŝ) plus the nearest multiple of g to σZ is the nearest multiple of g to Q(Ŝ) + σZ: a function of what the Gaussian
mechanism makes of Q(Ŝ), so that it is priced as `Gaussian`, by post-processing (Dwork & Roth 2014, Prop. 2.1).
Replacing a unit is a removal and an addition, and moves the sum by at most twice that distance.

`error_bound` gives an E. What is assumed stands in its docstring and in docs/explanation/noise.md: above all that h is
a function of one unit's data, that is, that the other rows of a batch do not change how this row is rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from privet.core import Gaussian, InvalidInput, checked
from privet.core.random import Rng
from privet.training.rounded_normal import LARGEST_SCALE, add_rounded_normal

__all__ = ["Lattice", "error_bound"]

# Sums beyond so many steps are cut to them. Cutting brings no two sums further apart, and with noise of at most 2^30
# deviations on top, every integer stays within the 53 bits of a float64.
_MOST_STEPS: Final = 2.0**52
_STEPS_PER_DEVIATION: Final = 2.0**22
_SMALLEST: Final = 2.0**-900
_LARGEST: Final = 2.0**900
# Covers the rounding of the handful of operations in which a bound itself is computed.
_UP: Final = 1.0 + 2.0**-48


@dataclass(frozen=True)
class Lattice:
    """The whole multiples of a power of two.

    >>> lattice = Lattice.for_deviation(1.1)
    >>> lattice.step == 2.0**-22, lattice.sensitivity(1.0, dimension=1_000_000)
    (True, 1.0002384185791018)
    """

    step: float

    def __post_init__(self) -> None:
        step = checked.positive("step", self.step)
        if math.frexp(step)[0] != 0.5 or not _SMALLEST <= step <= _LARGEST:
            nearest = 2.0 ** min(max(round(math.log2(step)), -900), 900)
            raise InvalidInput("step", f"is {step}, not a power of two that float64 can count in", f"use {nearest}")

    @staticmethod
    def for_deviation(deviation: float) -> Lattice:
        """Return a grid with 2^22 to 2^23 steps in a deviation: √d of them are little, and few draws need decimals.

        Args:
            deviation: Standard deviation of the noise.
        """
        exponent = math.frexp(checked.positive("deviation", deviation))[1] - 1
        return Lattice(2.0**exponent / _STEPS_PER_DEVIATION)

    def sensitivity(self, clip: float, dimension: int, error: float = 0.0) -> float:
        """Return the largest distance of neighboring data sets' sums on the grid: clip + 2·error + step·√dimension.

        Args:
            clip: Largest norm of one unit's contribution.
            dimension: Number of coordinates of the sum.
            error: Bound on the distance of a computed sum from the exact one, for every data set: see `error_bound`.
        """
        size = math.nextafter(math.sqrt(checked.count("dimension", dimension)), math.inf)
        parts = [checked.positive("clip", clip), 2.0 * checked.nonnegative("error", error), self.step * size]
        return math.nextafter(math.fsum(parts), math.inf)

    def deviation(self, noise_multiplier: float, clip: float, dimension: int, error: float = 0.0) -> float:
        """Return the σ whose event is `Gaussian(noise_multiplier)`: slightly more than noise_multiplier · clip.

        Args:
            noise_multiplier: Noise multiplier of the event.
            clip: Largest norm of one unit's contribution.
            dimension: Number of coordinates of the sum.
            error: Bound on the distance of a computed sum from the exact one, for every data set: see `error_bound`.
        """
        return checked.positive("noise_multiplier", noise_multiplier) * self.sensitivity(clip, dimension, error) * _UP

    def event(self, sigma: float, clip: float, dimension: int, error: float = 0.0) -> Gaussian:
        """Return the event of one call of `add`, for the accountant.

        Args:
            sigma: Standard deviation of the noise.
            clip: Largest norm of one unit's contribution.
            dimension: Number of coordinates of the sum.
            error: Bound on the distance of a computed sum from the exact one, for every data set: see `error_bound`.
        """
        return Gaussian(checked.positive("sigma", sigma) / self.sensitivity(clip, dimension, error) / _UP)

    def add(self, total: Tensor, sigma: float, rng: Rng) -> Tensor:
        """Return the sum on the grid with noise: whole multiples of `step`, exactly, in float64.

        The caller must keep NaN out of the sum, by blanking such rows. A NaN that is there all the same counts as 0,
        since an error would reveal that such a row exists.

        Args:
            total: The sum, in float64 on the CPU.
            sigma: Standard deviation of the noise.
            rng: Source of randomness.

        Raises:
            InvalidInput: The sum has another type or device, or the grid is too fine or too coarse for `sigma`.
        """
        if total.dtype != torch.float64 or total.device.type != "cpu":
            problem = f"is {total.dtype} on {total.device}, and the grid is counted in float64 on the CPU"
            raise InvalidInput("total", problem, "sum in float64, or convert the sum")
        scale = checked.positive("sigma", sigma) / self.step
        if not 0.0 < scale <= LARGEST_SCALE:
            problem = f"is {sigma}, which is {scale:.3g} steps of the grid"
            raise InvalidInput("sigma", problem, "use Lattice.for_deviation(sigma), or a grid within 2^30 of it")
        with torch.no_grad():
            steps = (total.detach() / self.step).nan_to_num_(0.0, _MOST_STEPS, -_MOST_STEPS).contiguous()
            steps.clamp_(-_MOST_STEPS, _MOST_STEPS).round_()
            add_rounded_normal(steps.view(-1), scale, rng)
            return steps.mul_(self.step)


def error_bound(
    clip: float,
    *,
    examples: int,
    dimension: int,
    rows: int = 1,
    micro_batch: int | None = None,
    precision: torch.dtype = torch.float64,
    cancellation: float = 1.0,
) -> float:
    """How far a sum of clipped gradients can be from the exact sum of the same gradients, for every data set.

    The public numbers that it depends on: no batch has more than `examples` examples (under Poisson sampling that is
    the population), no product of matrices more than `micro_batch` of them, and each example has at most `rows` rows
    (positions, over all uses of a parameter; 1 where its gradient is written out first). Products are computed in
    `precision`; their results are added up in float64.

    *Theorem.* Let every coordinate of a micro-batch's sum be that of at most L = micro_batch · rows products of two
    stored numbers, added in any order, with or without fused operations, to what there was before or by themselves.
    With γ_n = n·u/(1 - n·u), they are off by at most γ_(L+1) · Σ |product| (Higham 2002, §3.1 and §3.5), and adding up
    the micro-batches of N examples has at most N · (rows + 1) more roundings in float64. If the vector of one example's
    Σ |product| is at most R = cancellation times the clip in length, then E is at most

        N · clip · (R·γ_(L+1) + γ'_(N·(rows+1)) · (1 + R·γ_(L+1)))   (and √d · N · rows least numbers, for underflow).

    With one row an example, Σ |product| is as long as the gradient, and R = 1. With more, rows may cancel: a clip makes
    R true that also keeps factor · Σ_t |left_t| · |right_t| ≤ R · clip.

    Not covered, so not to be used for such a sum: products in TF32 or bfloat16 (keep
    `torch.get_float32_matmul_precision()` at "highest"), Winograd or Strassen kernels, subnormal numbers flushed to 0.

    >>> 100 * error_bound(1.0, examples=256, dimension=10**6, precision=torch.float32) < 1  # in % of the clip
    True
    >>> error_bound(1.0, examples=60_000, dimension=10**7, rows=64, micro_batch=256, cancellation=1024) < 2e-4
    True
    """
    count = checked.count("examples", examples)
    terms = checked.count("rows", rows) * min(count, checked.count("micro_batch", micro_batch or count))
    if precision not in (torch.float32, torch.float64):
        raise InvalidInput("precision", f"is {precision}", "sum in torch.float32 or torch.float64")
    if checked.finite("cancellation", cancellation) < 1.0:
        raise InvalidInput("cancellation", f"is {cancellation}", "give 1 or more: |Σ x| is never above Σ |x|")
    info = torch.finfo(precision)
    inner = _gamma(terms + 1, info.eps / 2) * cancellation
    outer = _gamma(count * (rows + 1), torch.finfo(torch.float64).eps / 2)
    total = count * checked.positive("clip", clip)
    if total * cancellation > info.max / 4:
        raise InvalidInput("clip", f"is {clip}, with which {count} examples could overflow {precision}")
    lost = math.sqrt(checked.count("dimension", dimension)) * count * rows * info.smallest_normal * info.eps
    return (total * (inner + outer * (1.0 + inner)) + 2.0 * lost) * _UP


def _gamma(terms: int, unit: float) -> float:
    """γ_n = n·u/(1 - n·u): the relative error of n roundings (Higham 2002, Lemma 3.1)."""
    product = terms * unit
    if product > 0.5:
        problem = f"is too large: {terms} terms in one sum can lose every digit"
        raise InvalidInput("micro_batch", problem, "use smaller micro-batches or float64")
    return product / (1.0 - product)
