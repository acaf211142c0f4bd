"""Standard normals from random words (Box & Muller 1958), with a radius of 64 bits.

A word s, read as a signed integer, stands for x = (s + 1/2)/2^64, and U = x mod 1 is uniform on the 2^64 midpoints of
(0, 1). The radius is sqrt(-2 ln U). Two things are easy to lose here and are kept:

- *The tail.* A small positive s is a small U, which floating point holds in full: the least U is 2^-65, a radius of
  9.49. A U of 24 or 32 bits, as in common generators, ends at 5.8 or 6.7.
- *The middle.* A small negative s is a U just under 1, which rounds to 1 and would pile up at a radius of 0. The part
  that rounding dropped is recovered exactly (Dekker 1971: U = u + e with u the rounded value; both differences below
  are exact) and ln(u + e) = ln u + e up to a relative 2^-24, so small radii are as precise as large ones, none is 0.

The angle has 32 bits for float32 (25 of them survive the rounding) and 64 bits for float64 (53 survive).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from privet.core.random.sizes import Bytes, F

__all__ = ["LARGEST", "fill", "transform"]

# Nothing drawn here exceeds this many deviations: sqrt(2 · 65 · ln 2) = 9.4929, and a little for rounding.
LARGEST: Final = 9.5
# Pairs per pass; all that one pass touches fits in a megabyte of cache.
_PAIRS: Final = 1 << 15


def transform(
    radius: npt.NDArray[np.int64],
    angle: npt.NDArray[np.signedinteger[Any]],
    std: float,
    cosines: npt.NDArray[F],
    sines: npt.NDArray[F],
) -> None:
    """Write one normal per pair of words into `cosines` and another into `sines`, which may be one shorter.

    The words of `angle` are int32 or int64 and cover the whole circle.
    """
    x = radius.astype(cosines.dtype)
    x += 0.5
    x *= 2.0**-64
    kept = np.floor(x)  # -1 or 0
    r = x - kept  # U, rounded
    kept += r  # exact: the part of x that survived
    x -= kept  # exact: the part that was dropped
    np.log(r, out=r)
    r += x
    r *= -2.0
    np.sqrt(r, out=r)
    r *= std
    x[...] = angle
    x += 0.5  # no exact 0 among the angles, as a coordinate of exactly 0 would hide nothing
    x *= 2.0 * math.pi / 2.0 ** (8 * angle.itemsize)
    np.cos(x, out=cosines)
    cosines *= r
    np.sin(x[: len(sines)], out=sines)
    sines *= r[: len(sines)]


def fill(out: npt.NDArray[F], std: float, source: Callable[[Bytes], None]) -> None:
    """Overwrite the row `out` with independent normals of deviation `std`; `source` fills bytes at random."""
    turn = np.dtype("<i4" if out.itemsize == 4 else "<i8")
    for start in range(0, len(out), 2 * _PAIRS):
        chunk = out[start : start + 2 * _PAIRS]
        pairs = (len(chunk) + 1) // 2
        raw = np.empty(pairs * (8 + turn.itemsize), dtype=np.uint8)
        source(raw)
        transform(raw[: 8 * pairs].view("<i8"), raw[8 * pairs :].view(turn), std, chunk[:pairs], chunk[pairs:])
