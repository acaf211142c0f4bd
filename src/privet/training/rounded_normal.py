"""Exact normal noise on the integers: the nearest integer to s·Z, for a true real-valued normal Z.

Adding it to integers is what an ideal Gaussian mechanism with real arithmetic would do, followed by rounding, which is
post-processing. So it is priced as that mechanism is, with every theorem about sampling and composition that holds for
it; for the discrete Gaussian on vectors under sampling nothing close to that is proven.

How an exact law comes out of inexact arithmetic: a real number U in (0, 1) is an endless row of random bits, of which
64 are drawn. By Box & Muller (1958), s·√(-2 ln U)·cos(2πV) for all U and V that begin with these bits lies within
s·2^-40 of what float64 makes of them (below). If no half-integer is that near, every one of them rounds to the same
integer, and the other bits need not be known. Otherwise, for about one number in 2^39/s, the same is done with decimals
of many digits and, while that does not settle it, with 64 more bits; the outcome is always that of the endless rows.
Nothing is drawn again and nothing is cut off, so the law is exact, tails included.

*The distance 2^-40.* Assume that the library's log has a relative error, and its sin and cos an absolute error, of at
most 2^-44 (they are made to be right to a few units in the last place, about 2^-51), and that +, -, ·, √ round as IEEE
754 says. Where U is between 2^-20 and 1 - 2^-24, R = √(-2 ln U) is at most 5.27; the unknown bits move it by at most
2^-65/(U·R) < 2^-46, and the angle by 2^-62. Rounding moves R by a relative 2^-45 + 2^-50 (half of the log's error, and
its argument's), the cosine by 2^-44 + 2^-49, and the products by 2^-51: together 5.27 · 2^-43.3 + 2^-46 < 2^-40. Other
U, one in a million, take the decimals from the start.

The time that a draw takes depends on the noise, and not on the data.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from typing import Final

import numpy as np
import torch
from torch import Tensor

from privet.core import InvalidInput, checked
from privet.core.random import PATIENCE, Rng, broken_source
from privet.training.noise import Scratch, transform

__all__ = ["LARGEST_SCALE", "add_rounded_normal", "settle"]

LARGEST_SCALE: Final = 2.0**30
"""A larger deviation would leave too many numbers to the decimals."""
_DISTANCE: Final = 2.0**-40
_BITS: Final = 64
# U below 2^-20 and above 1 - 2^-24, as words: [-2^40, 2^44).
_ABOVE: Final = np.uint64(1 << 40)
_EXTREME: Final = np.uint64((1 << 40) + (1 << 44))
# Pairs per pass: long enough to keep several threads busy, short enough for what they touch to stay in their caches.
_PAIRS: Final = 1 << 17
_SCRATCH: Final = Scratch(torch.float64, rows=7)


def add_rounded_normal(out: Tensor, scale: float, rng: Rng) -> None:
    """Add independent draws of the nearest integer to `scale` · Z, with Z standard normal, exactly.

    Args:
        out: A row of integers in float64, changed in place; exact while all stay below 2^53.
        scale: The deviation, in steps of the grid.
        rng: The source of random words.

    Raises:
        InvalidInput: The scale is not above 0, or is above 2^30.
    """
    if not 0.0 < checked.finite("scale", scale) <= LARGEST_SCALE:
        raise InvalidInput("scale", f"is {scale}", "give a deviation above 0 and up to 2^30 steps of the grid")
    passes = math.ceil(len(out) / (2 * _PAIRS))
    for chunk in out.chunk(passes) if passes else ():
        pairs = (len(chunk) + 1) // 2
        radius, angle, rows = _SCRATCH.draw(pairs, rng)
        nearest = _nearest(radius, angle, scale, rows, rng)
        chunk[:pairs].add_(nearest[0])
        chunk[pairs:].add_(nearest[1][: len(chunk) - pairs])


def _nearest(radius: Tensor, angle: Tensor, scale: float, rows: Tensor, rng: Rng) -> Tensor:
    """The integers of these words, cosines above sines, in the last two of seven rows of working memory."""
    normals, nearest = rows[3:5], rows[5:7]
    transform(radius, angle, scale, normals[0], normals[1], rows[:3])
    torch.round(normals, out=nearest)
    apart = normals.sub_(nearest).abs_().numpy()
    doubtful = np.flatnonzero((apart >= 0.5 - scale * _DISTANCE).any(0))
    extreme = np.flatnonzero(radius.numpy().view(np.uint64) + _ABOVE < _EXTREME)
    for i in sorted({*doubtful.tolist(), *extreme.tolist()}):
        nearest[0, i], nearest[1, i] = settle(int(radius[i]), int(angle[i]), scale, rng)
    return nearest


def settle(radius: int, angle: int, scale: float, rng: Rng) -> tuple[int, int]:
    """The two integers of a pair of words, each followed by as many more random bits as it takes to know them."""
    bits, one = _BITS, 1 << _BITS
    u, v = radius % one, angle % one
    for _ in range(PATIENCE):
        found = _known(u, v, bits, scale)
        if found is not None:
            return found
        more = rng.words(2)
        u, v, bits = u * one + int(more[0]), v * one + int(more[1]), bits + _BITS
    raise broken_source()


def _known(u: int, v: int, bits: int, scale: float) -> tuple[int, int] | None:
    """The nearest integers, if they are the same for all U in (u, u + 1)/2^bits and V in (v, v + 1)/2^bits.

    The decimals hold 25 digits more than these bits, and the last three of them may be wrong in -2 ln U, in the cosine
    and in the sine. |√a - √b| ≤ √|a - b|, so at least half of that many digits are right in R.
    """
    if not u:
        return None  # U may be as near to 0 as it likes, and R as large
    context = Context(prec=bits // 3 + 25)
    with localcontext(context):
        whole = Decimal(1 << bits)
        most = (-2 * (u / whole).ln()).sqrt()
        least = (-2 * ((u + 1) / whole).ln()).sqrt()
        pi = _pi(context.prec)
        turn = v if 2 * v < 1 << bits else v - (1 << bits)
        cosine, sine = _circle(pi * (2 * turn + 1) / whole, context.prec)
        error = (most - least) / 2 + most * pi / whole + Decimal(10) ** -(context.prec // 2 - 4)
        found = []
        for part in (cosine, sine):
            value = Decimal(scale) * (most + least) / 2 * part
            nearest = value.to_integral_value()
            if abs(value - nearest) + Decimal(scale) * error >= Decimal("0.5"):
                return None
            found.append(int(nearest))
    return found[0], found[1]


def _circle(angle: Decimal, digits: int) -> tuple[Decimal, Decimal]:
    """Cosine and sine of an angle between -π and π, by their power series; no term exceeds 6."""
    sums, term, n = [Decimal(0), Decimal(0)], Decimal(1), 0
    while n < 8 or abs(term) > Decimal(10) ** -digits:
        sums[n % 2] += -term if n % 4 > 1 else term
        n += 1
        term = term * angle / n
    return sums[0], sums[1]


@lru_cache(maxsize=8)
def _pi(digits: int) -> Decimal:
    """π by Machin's formula: 16 arctan(1/5) - 4 arctan(1/239)."""
    one = 10 ** (digits + 10)

    def arctan_inverse(x: int) -> int:
        power, total, k = one // x, 0, 0
        while power:
            total += (-power if k % 2 else power) // (2 * k + 1)
            power //= x * x
            k += 1
        return total

    return Decimal(16 * arctan_inverse(5) - 4 * arctan_inverse(239)) / Decimal(one)
