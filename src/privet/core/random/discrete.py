"""Exact discrete Laplace and Gaussian noise (Canonne, Kamath & Steinke 2020, Algorithms 2 and 3), on whole arrays;
`single` draws one number at a time.

The parameters are fractions, a float being the fraction that it holds, and no floating-point number takes part in any
decision. What is drawn is an integer, so the noise of a count or of a sum on a grid hides its last bit too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Rational, Real
from typing import Final, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from privet.core.errors import InvalidInput
from privet.core.random.bernoulli import BITS, CEILING, Exponents, accept, run_lengths
from privet.core.random.faults import PATIENCE, broken_source
from privet.core.random.rng import Rng
from privet.core.random.single import one_gaussian, one_laplace
from privet.core.random.sizes import Size, shape_of

__all__ = ["LARGEST_SCALE", "discrete_gaussian", "discrete_laplace"]

_Integers: TypeAlias = npt.NDArray[np.int64]
_Exact: TypeAlias = Fraction | int | float

# Beyond this a draw could leave the 64-bit integers, and the first bits of a comparison would seldom decide it.
LARGEST_SCALE: Final = 2**50
# Proposals at a time: few enough to stay in the cache, many enough to hide the cost of a call.
_CHUNK: Final = 1 << 15
# Precision of the products below: the largest that fits in 63 bits.
_RATE_BITS: Final = 62
_RATIO_BITS: Final = 56
_HALF_BITS: Final = 24


@overload
def discrete_laplace(scale: _Exact, size: None, rng: Rng) -> int: ...
@overload
def discrete_laplace(scale: _Exact, size: Size, rng: Rng) -> _Integers: ...
def discrete_laplace(scale: _Exact, size: Size | None, rng: Rng) -> int | _Integers:
    """Return integers x with probability proportional to exp(-|x|/scale), exactly.

    Any scale above 0 and up to 2^50. `size=None` gives one Python int.

    >>> from fractions import Fraction
    >>> from privet.core.random import SeededRng
    >>> discrete_laplace(Fraction(5, 2), 8, SeededRng(1)).dtype
    dtype('int64')
    """
    exact = _fraction("scale", scale)
    return _shaped(
        size, lambda: one_laplace(exact, rng), lambda count: _collect(lambda tries: _laplace(exact, tries, rng), count)
    )


@overload
def discrete_gaussian(sigma: _Exact, size: None, rng: Rng) -> int: ...
@overload
def discrete_gaussian(sigma: _Exact, size: Size, rng: Rng) -> _Integers: ...
def discrete_gaussian(sigma: _Exact, size: Size | None, rng: Rng) -> int | _Integers:
    """Return integers x with probability proportional to exp(-x²/(2σ²)), exactly.

    Any σ above 0 and up to 2^50. `size=None` gives one Python int. The variance is at most σ², and close to it unless
    σ is small (Canonne, Kamath & Steinke 2020, Corollary 9).

    >>> from privet.core.random import SeededRng
    >>> discrete_gaussian(0.001, 4, SeededRng(1)).tolist()
    [0, 0, 0, 0]
    """
    exact = _fraction("sigma", sigma)
    return _shaped(
        size,
        lambda: one_gaussian(exact, rng),
        lambda count: _collect(lambda tries: _gaussian(exact, tries, rng), count),
    )


def _laplace(scale: Fraction, tries: int, rng: Rng) -> _Integers:
    """At most `tries` draws by Algorithm 2.

    |x| = u + m·v with m = ⌊scale⌋ (at least 1): u < m is uniform, kept with probability exp(-u/scale), and v counts the
    coins of probability exp(-m/scale) before one fails. Together they weigh exp(-|x|/scale). For a whole scale this is
    Algorithm 2 as printed; a fraction t/s is printed there as ⌊X/s⌋ of a scale t, which has the same law and needs
    integers as long as t, that is 2^53 for any float.
    """
    step = max(1, math.floor(scale))
    size = np.zeros(tries, dtype=np.int64)
    if step > 1:
        size = rng.below(step, tries)
        size = size[accept(_multiples(size, 1 / scale), rng)]
    size += step * run_lengths(step / scale, len(size), rng)
    minus = np.unpackbits(np.frombuffer(rng.bits((len(size) + 7) // 8), dtype=np.uint8), count=len(size)).view(np.bool_)
    kept = ~minus | (size > 0)  # 0 and -0 are one integer: count it once
    return np.where(minus, -size, size)[kept]


def _gaussian(sigma: Fraction, tries: int, rng: Rng) -> _Integers:
    """At most `tries` draws by Algorithm 3: Laplace of scale t = ⌊σ⌋ + 1, kept with exp(-(|y| - σ²/t)²/(2σ²))."""
    scale = math.floor(sigma) + 1
    proposed = _laplace(Fraction(scale), tries, rng)
    return proposed[accept(_squares(np.abs(proposed), sigma, scale), rng)]


def _multiples(factors: _Integers, rate: Fraction) -> Exponents:
    """γ = factor · rate, for factors below 2^50 with γ ≤ 1."""
    unit = math.floor(rate * (1 << _RATE_BITS))
    low = factors * unit  # at most 2^62, and less than γ by under one unit for each factor
    shift = _RATE_BITS - BITS
    return Exponents(low >> shift, ((low + factors) >> shift) + 1, lambda i: int(factors[i]) * rate)


def _squares(sizes: _Integers, sigma: Fraction, scale: int) -> Exponents:
    """γ = x²/2 with x = |y/σ - σ/t|, which is (|y| - σ²/t)²/(2σ²)."""
    # Beyond 65σ, x exceeds 64 (as σ/t < 1) and γ the ceiling; below, y·unit stays under 65 · 2^56 < 2^63.
    furthest = min(math.floor(65 * sigma), (1 << 62) - 1)
    far = sizes > furthest
    near = np.where(far, 0, sizes)
    unit = math.floor((1 << _RATIO_BITS) / sigma) if furthest else 0
    centre = math.floor((1 << _RATIO_BITS) * sigma / scale)
    # y·unit is less than y/σ by under y units, and centre less than σ/t by under one.
    least, most = near * unit - centre - 1, near * unit + near - centre
    low, high = np.maximum(np.maximum(least, -most), 0), np.maximum(most, -least)
    # Halve the precision before squaring: 65 · 2^24 squared is below 2^61.
    shift = _RATIO_BITS - _HALF_BITS
    low, high = low >> shift, (high >> shift) + 1
    shift = 2 * _HALF_BITS + 1 - BITS
    low, high = (low * low) >> shift, ((high * high) >> shift) + 1
    low[far] = high[far] = CEILING << BITS
    np.minimum(low, CEILING << BITS, out=low)
    high[low == CEILING << BITS] = CEILING << BITS
    return Exponents(low, high, lambda i: (int(sizes[i]) / sigma - sigma / scale) ** 2 / 2)


def _collect(draw: Callable[[int], _Integers], count: int) -> _Integers:
    """`count` draws from a sampler that returns somewhat fewer than it tries. Independent draws may be cut anywhere."""
    result, filled, idle = np.empty(count, dtype=np.int64), 0, 0
    while filled < count:
        left = count - filled
        batch = draw(min(_CHUNK, 2 * left + 8))[:left]
        result[filled : filled + len(batch)] = batch
        filled += len(batch)
        idle = 0 if len(batch) else idle + 1
        if idle > PATIENCE:
            raise broken_source()
    return result


def _shaped(size: Size | None, one: Callable[[], int], draw: Callable[[int], _Integers]) -> int | _Integers:
    if size is None:
        return one()
    shape, count = shape_of(size)
    return np.full(shape, one(), dtype=np.int64) if count == 1 else draw(count).reshape(shape)


def _fraction(argument: str, value: _Exact) -> Fraction:
    if isinstance(value, Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
    elif isinstance(value, Real) and math.isfinite(value):
        exact = Fraction(float(value))
    else:
        raise InvalidInput(argument, f"is {value!r}", "give a finite number above 0: a Fraction, an int or a float")
    if exact <= 0:
        raise InvalidInput(argument, f"is {value!r}, which is not above 0", "no noise is not a law to draw from")
    if exact > LARGEST_SCALE:
        problem = f"is {float(exact):.3g}, and draws of more than 2^50 could leave the 64-bit integers"
        raise InvalidInput(argument, problem, "use a coarser grid: round the values to a larger unit first")
    return exact
