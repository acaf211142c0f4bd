"""Normal noise on many numbers at once, at the speed of the machine.

The bits come from the calling thread's own stream: one call of the cipher, which is no longer the slow part. The
transform (Box & Muller 1958, as in `privet.core.random.box_muller`, which says why it is written that way) runs on
torch's own threads. They are warm from the model's products a moment before, so no second pool competes with them for
the processors, there is nothing to start or to fork, and no two threads ever draw from one key.

Floating-point normals do not hide the last bits of what they are added to (Mironov 2012). A guarantee that rests on them
assumes real-valued noise; `privet.training.lattice` does not.
"""

from __future__ import annotations

import math
import threading
from typing import Final

import numpy as np
import torch
from torch import Tensor

from privet.core.errors import InvalidInput
from privet.core.random import Rng
from privet.core.random.tensors import view_of, was_written

__all__ = ["fill", "transform"]

# Pairs per pass: long enough to keep several threads busy, short enough for what they touch to stay in their caches.
_PAIRS: Final = 1 << 18
# Beyond these, squares of deviations would leave the range of float32.
_LEAST_STD: Final = 2.0**-50
_MOST_STD: Final = 2.0**50
_HALF_WORD: Final = torch.tensor(2.0**-65)
_HALF_TURN: Final = torch.tensor(math.pi * 2.0**-32)


class _Scratch(threading.local):
    """One thread's working memory, kept between calls: asking for fresh pages would cost more than the cipher."""

    def __init__(self) -> None:
        self.bits = np.empty(0, dtype=np.uint8)
        self.rows = torch.empty(3, 0)

    def of(self, pairs: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint8]], Tensor]:
        """Room for the random bits of so many pairs, and three rows of as many numbers."""
        if self.rows.shape[1] < pairs:
            self.bits = np.empty(12 * pairs, dtype=np.uint8)
            self.rows = torch.empty(3, pairs)
        return self.bits[: 12 * pairs], self.rows[:, :pairs]


_SCRATCH: Final = _Scratch()


def fill(tensor: Tensor, std: float, rng: Rng) -> None:
    """Overwrite a CPU tensor, in place, with independent normals of deviation `std` that reach beyond 9σ.

    A contiguous float32 tensor is filled on as many threads as torch uses; whatever else `rng.fill_normal` takes is left
    to it. A seeded generator gives the same numbers again, up to their last bits.
    """
    if tensor.dtype != torch.float32 or not tensor.is_contiguous() or not _LEAST_STD <= std <= _MOST_STD:
        rng.fill_normal(tensor, std)
        return
    flat = torch.from_numpy(view_of(tensor)).view(-1)
    passes = math.ceil(len(flat) / (2 * _PAIRS))
    with torch.no_grad():
        for chunk in flat.chunk(passes) if passes else ():
            pairs = (len(chunk) + 1) // 2
            bits, rows = _SCRATCH.of(pairs)
            rng.fill_bits(bits)
            words = torch.from_numpy(bits)
            radius, angle = words[: 8 * pairs].view(torch.int64), words[8 * pairs :].view(torch.int32)
            transform(radius, angle, std, chunk[:pairs], chunk[pairs:], rows)
    was_written(tensor)


def transform(radius: Tensor, angle: Tensor, std: float, cosines: Tensor, sines: Tensor, rows: Tensor) -> None:
    """Write one normal per pair of words into `cosines` and another into `sines`, which may be one shorter.

    The same as `box_muller.transform` in float32, in fewer passes. `radius` is int64, `angle` is int32, and `rows` is
    working memory: three rows as long as `radius`.
    """
    if not 3 == len(rows) or rows.shape[1] != len(radius):
        raise InvalidInput("rows", f"has shape {tuple(rows.shape)}", f"give three rows of {len(radius)}")
    x, kept, r = rows
    x.copy_(radius)
    torch.add(_HALF_WORD, x, alpha=2.0**-64, out=x)  # (s + 1/2)/2^64
    torch.floor(x, out=kept)  # -1 or 0
    torch.sub(x, kept, out=r)  # U, rounded
    kept.add_(r).sub_(x)  # exact: what was dropped from U, with a minus
    torch.sub(kept, r.log_(), out=r)  # -ln U
    r.mul_(2.0 * std * std).sqrt_()
    x.copy_(angle)
    torch.add(_HALF_TURN, x, alpha=math.pi * 2.0**-31, out=x)
    torch.cos(x, out=cosines).mul_(r)
    torch.sin(x[: len(sines)], out=sines).mul_(r[: len(sines)])
