"""Normal noise on many numbers at once, at the speed of the machine.

For float32 the generator gives a key of 32 bytes, used for one stretch of numbers and forgotten. Its stream (AES-256 in
counter mode, `privet.core.random.keystream`) and the transform (Box & Muller 1958; `privet.core.random.box_muller` says
why it is written this way) are made together by `privet.training.native`, piece by piece, on torch's own threads. These
are warm from the model's products a moment before, so no second pool competes with them for the processors, and there
is nothing to start or to fork. Without the compiled loops the same stream comes from OpenSSL, and the transform is
torch's; so it always is for float64, from words that are drawn one by one.

Floating-point normals do not hide the last bits of what they are added to (Mironov 2012). A guarantee that rests on
them assumes real-valued noise; `privet.training.lattice` does without that assumption.
"""

from __future__ import annotations

import math
import threading
from enum import Enum
from typing import Final

import numpy as np
import torch
from torch import Tensor

from privet.core import InvalidInput
from privet.core.random import KEY_BYTES, Bytes, Keystream, Rng, here, view_of, was_written
from privet.training.native import loops

__all__ = ["ANGLES", "Noise", "Scratch", "fill", "transform"]


class Noise(Enum):
    """What kind of noise is added: normals as floating point has them, or exact ones on a grid."""

    REAL = "real"
    LATTICE = "lattice"


# Pairs per pass: long enough to keep several threads busy, short enough for what they touch to stay in their caches.
_PAIRS: Final = 1 << 18
# Beyond these, squares of deviations would leave the range of float32.
_LEAST_STD: Final = 2.0**-50
_MOST_STD: Final = 2.0**50
ANGLES: Final = {torch.float32: torch.int32, torch.float64: torch.int64}
"""The type of the random words of angles, for each type of normals."""
# Where torch's threads live. A forked child inherits the belief that they run, and would wait for them for ever.
_HOME: Final = here()
_HALF_WORD: Final = torch.tensor(2.0**-65, dtype=torch.float64, device="cpu")


class Scratch(threading.local):
    """One thread's working memory, kept between calls: fresh pages would cost more than the cipher."""

    def __init__(self, dtype: torch.dtype, rows: int = 3) -> None:
        self.dtype = dtype
        self._bits = np.empty(0, dtype=np.uint8)
        self._rows = torch.empty(rows, 0, dtype=dtype, device="cpu")

    def memory(self, size: int, pairs: int) -> tuple[Bytes, Tensor]:
        """Room for so many random bytes, and rows of working memory, one number a pair."""
        if len(self._bits) < size:
            self._bits = np.empty(size, dtype=np.uint8)
        if self._rows.shape[1] < pairs:
            with torch.inference_mode(False):  # or nobody could write to it outside of that mode
                self._rows = self._rows.new_empty(len(self._rows), pairs)
        return self._bits[:size], self._rows[:, :pairs]

    def draw(self, pairs: int, rng: Rng) -> tuple[Tensor, Tensor, Tensor]:
        """Random words for the radii and the angles of so many pairs, and rows of working memory, one number a pair."""
        bits, rows = self.memory(pairs * (8 + self._rows.itemsize), pairs)
        rng.fill_bits(bits)
        words = torch.from_numpy(bits)
        return words[: 8 * pairs].view(torch.int64), words[8 * pairs :].view(ANGLES[self.dtype]), rows


_SCRATCH: Final = {dtype: Scratch(dtype) for dtype in ANGLES}


def fill(tensor: Tensor, std: float, rng: Rng) -> None:
    """Overwrite a CPU tensor, in place, with independent normals of deviation `std` that reach beyond 9σ.

    A contiguous float32 or float64 tensor is filled on as many threads as torch uses. What else `rng.fill_normal` takes
    is left to it, and so is everything in a forked process. A seeded generator gives the same numbers again.
    """
    plain = tensor.dtype in ANGLES and tensor.is_contiguous() and _LEAST_STD <= std <= _MOST_STD
    if not plain or here() != _HOME:
        rng.fill_normal(tensor, std)
        return
    flat = torch.from_numpy(view_of(tensor)).view(-1)
    for chunk in torch.split(flat, 2 * _PAIRS) if flat.numel() else ():
        (_expand if chunk.dtype == torch.float32 else _draw)(chunk, std, rng)
    was_written(tensor)


def _expand(out: Tensor, std: float, rng: Rng) -> None:
    """From a fresh key, used for this alone: its stream can be made in pieces, on several threads."""
    key = np.empty(KEY_BYTES, dtype=np.uint8)
    rng.fill_bits(key)
    compiled = loops.usable(out)
    if compiled and loops.has_cipher():
        loops.normals(key.tobytes(), None, std, out)
        return
    size = out.numel()
    pairs = (size + 1) // 2
    words, rows = _SCRATCH[out.dtype].memory(loops.bytes_for(size), 0 if compiled else pairs)
    Keystream(key.tobytes()).fill(words)
    if compiled:
        loops.normals(key.tobytes(), words, std, out)
        return
    bits, angles = torch.from_numpy(words), loops.first_angle(pairs)
    transform(bits[: 8 * pairs].view(torch.int64), bits[angles:].view(torch.int32), std, out[:pairs], out[pairs:], rows)


def _draw(out: Tensor, std: float, rng: Rng) -> None:
    pairs = (out.numel() + 1) // 2
    radius, angle, rows = _SCRATCH[out.dtype].draw(pairs, rng)
    transform(radius, angle, std, out[:pairs], out[pairs:], rows)


def transform(radius: Tensor, angle: Tensor, std: float, cosines: Tensor, sines: Tensor, rows: Tensor) -> None:
    """Write one normal per pair of words into `cosines` and another into `sines`, which may be one shorter.

    The same as `box_muller.transform`, in fewer passes. `radius` holds int64 and `angle` int32 or int64, and `rows` is
    working memory: three rows as long as these, of the type of the normals.
    """
    if rows.shape != (3, len(radius)) or rows.dtype != cosines.dtype:
        problem = f"is {rows.dtype} of shape {tuple(rows.shape)}"
        raise InvalidInput("rows", problem, f"give three rows of {len(radius)} in {cosines.dtype}")
    x, kept, r = rows
    x.copy_(radius)
    torch.add(_HALF_WORD, x, alpha=2.0**-64, out=x)  # (s + 1/2)/2^64
    torch.floor(x, out=kept)  # -1 or 0
    torch.sub(x, kept, out=r)  # U, rounded
    kept.add_(r).sub_(x)  # exact: what rounding dropped from U, with a minus
    torch.sub(kept, r.log_(), out=r)  # -ln U
    r.mul_(2.0 * std * std).sqrt_()
    half = math.pi / 2.0 ** (8 * angle.itemsize)
    x.copy_(angle)
    torch.add(torch.tensor(half, dtype=torch.float64, device="cpu"), x, alpha=2.0 * half, out=x)
    torch.cos(x, out=cosines).mul_(r)
    torch.sin(x[: len(sines)], out=sines).mul_(r[: len(sines)])
