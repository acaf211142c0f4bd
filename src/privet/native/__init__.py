"""A few loops in C, where torch has no operation for what a private step does, or needs many.

They are compiled when the package is installed, if there is a C compiler, and replace code in Python that stays beside
them: it is used where they are missing, for other types than float32 on the processor, and if the environment says
`PRIVET_NATIVE=0`. Both are held to the same tests.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from privet.core.random.lineage import here

try:
    from privet.native import _kernels
except ImportError:  # nobody compiled it
    _kernels = None  # type: ignore[assignment]

__all__ = ["convolution_gradients", "normals", "processor", "squares_of_products", "takes_products", "usable"]

_WANTED: Final = os.environ.get("PRIVET_NATIVE", "1") != "0"
_MOST_RIGHTS: Final = 4
# Where torch's threads live. A forked child inherits the belief that they run, and would wait for them for ever.
_HOME: Final = here()


class _Scratch(threading.local):
    """One thread's working memory, kept between calls."""

    def __init__(self) -> None:
        self.numbers = torch.empty(0, device="cpu")

    def address(self, size: int) -> int:
        if self.numbers.numel() < size:
            with torch.inference_mode(False):
                self.numbers = torch.empty(size, dtype=torch.float32, device="cpu")
        return self.numbers.data_ptr()


_SCRATCH: Final = _Scratch()


def processor() -> str | None:
    """For what kind of processor the kernels in use are made; None if there are none."""
    return _kernels.processor if _kernels is not None and _WANTED else None


def usable(*tensors: Tensor) -> bool:
    """Whether the kernels can take these: float32 in this machine's own memory, and not in a forked process."""
    if _kernels is None or not _WANTED or here() != _HOME:
        return False
    return all(each.dtype == torch.float32 and each.device.type == "cpu" for each in tensors)


def normals(radius: Tensor, angle: Tensor, std: float, cosines: Tensor, sines: Tensor) -> None:
    """`privet.core.random.box_muller.transform` for float32: a normal for each pair of words, and another in `sines`.

    Rounding differs by some 2^-22 of the radius (logarithm, sine and cosine by the polynomials of Moshier's Cephes).
    """
    pairs = len(radius)
    right = radius.dtype == torch.int64 and angle.dtype == torch.int32 and usable(cosines, sines)
    right = right and len(angle) == len(cosines) == pairs and len(sines) <= pairs
    if not right or not all(each.is_contiguous() for each in (radius, angle, cosines, sines)):
        raise ValueError("int64 radii, as many int32 angles, and rows of float32 are needed")
    addresses = (each.data_ptr() for each in (radius, angle, cosines, sines))
    _kernels.noise(*addresses, pairs, len(sines), std, torch.get_num_threads())


def convolution_gradients(
    inputs: Tensor,
    gradient: Tensor,
    window: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    out: Tensor | None,
) -> Tensor:
    """Each example's weight gradient of a convolution with one group, written into `out`; returns their squared norms.

    `inputs` is (B, channels, height, width), `gradient` (B, outputs, rows, columns) and `out` (B, outputs, window,
    channels). Without `out` only the norms are found. They are added up in float64, from sums of at most 12 squares.
    """
    examples, channels, height, width = inputs.shape
    _, outputs, rows, columns = gradient.shape
    reach = [(places - 1) * step + size for places, step, size in zip((rows, columns), stride, window, strict=True)]
    fits = reach[0] <= height + 2 * padding[0] and reach[1] <= width + 2 * padding[1]
    shapes = out is None or out.shape == (examples, outputs, *window, channels)
    given = (inputs, gradient) if out is None else (inputs, gradient, out)
    whole = all(each.is_contiguous() for each in given)
    if not (fits and shapes and whole and len(gradient) == examples and usable(*given)):
        raise ValueError("contiguous float32 tensors whose shapes belong together are needed")
    squares = torch.empty(examples, dtype=torch.float64, device="cpu")
    if not examples:
        return squares
    sizes = (examples, channels, height, width, outputs, rows, columns, *window, *stride, *padding)
    threads = torch.get_num_threads()
    scratch = _SCRATCH.address(threads * _kernels.convolution_room(*sizes))
    to = 0 if out is None else out.data_ptr()
    _kernels.convolution(inputs.data_ptr(), gradient.data_ptr(), to, squares.data_ptr(), scratch, sizes, threads)
    return squares


def takes_products(left: Tensor, rights: Sequence[Tensor]) -> bool:
    """Whether `squares_of_products` can take these."""
    several = (left, *rights)
    return len(rights) <= _MOST_RIGHTS and usable(*several) and all(each.stride(2) == 1 for each in several)


def squares_of_products(left: Tensor, rights: Sequence[Tensor]) -> Tensor:
    """Σ_{t,s} (left_t · left_s)(right_t · right_s) of each example, for each of the right factors: (B, rights, 4).

    Beside the sum, in float64: that of the products' sizes, and the traces Σ_t |left_t|² and Σ_t |right_t|². The
    matrices of products are symmetric, so a little over half of them is computed, and none is ever in memory.
    """
    examples, positions, _ = left.shape
    if not takes_products(left, rights) or any(each.shape[:2] != left.shape[:2] for each in rights):
        raise ValueError("up to four right factors for the same positions, all in rows of float32, are needed")
    factors = [(each.data_ptr(), each.shape[2], each.stride(0), each.stride(1)) for each in (left, *rights)]
    answer = torch.empty(examples, len(rights), 4, dtype=torch.float64, device="cpu")
    threads = torch.get_num_threads()
    size = (positions + 15) // 16 * 16 * sum(each[1] for each in factors) + 64
    scratch = _SCRATCH.address(threads * size)
    _kernels.positions(factors[0], tuple(factors[1:]), answer.data_ptr(), scratch, examples, positions, threads)
    return answer
