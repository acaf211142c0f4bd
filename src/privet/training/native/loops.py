"""The compiled functions, with what they take checked first: they write to memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from privet.core.random import here

try:
    from privet.training.native import _kernels
except ImportError:  # nobody compiled it
    _kernels = None  # type: ignore[assignment]

__all__ = [
    "additions",
    "bytes_for",
    "convolution_gradients",
    "first_angle",
    "has_cipher",
    "lookup_squares",
    "normalised_gradients",
    "normals",
    "processor",
    "product_squares",
    "row_squares",
    "squares_of_products",
    "takes_products",
    "takes_rows",
    "usable",
]

_WANTED: Final = os.environ.get("PRIVET_NATIVE", "1").lower() not in ("0", "false", "no", "off")
_MOST_RIGHTS: Final = 4
# What else a product of positions goes through: the product, and sums of up to 16 of them.
_SUMMED: Final = 24
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
    """For what kind of processor the loops are made; None if there are none, or they are not for this process."""
    return _kernels.processor if _kernels is not None and _WANTED and here() == _HOME else None


def usable(*tensors: Tensor) -> bool:
    """Whether the kernels can take these: float32 in this machine's own memory, and not in a forked process."""
    if _kernels is None or not _WANTED or here() != _HOME:
        return False
    return all(each.dtype == torch.float32 and each.is_cpu and not each.is_neg() for each in tensors)


def has_cipher() -> bool:
    """Whether the processor has instructions for AES, so that `normals` makes its own key stream."""
    return _kernels is not None and bool(_kernels.cipher)


def normals(key: bytes, words: npt.NDArray[np.uint8] | None, std: float, out: Tensor) -> None:
    """Overwrite a row of float32 with normals of deviation `std`, from the key's stream, or from `words` in its place.

    The stream is that of `privet.core.random.keystream`. It has eight bytes for the radius of every two numbers and,
    from the next multiple of 16 on, four for their angle, as `privet.core.random.box_muller.transform` takes them;
    `bytes_for` says how many there are. The results differ from those by rounding: some 2^-22 of the radius (logarithm,
    sine and cosine by the polynomials of Moshier's Cephes library, in single precision).
    """
    size = out.numel()
    if out.dim() != 1 or not out.is_contiguous() or not usable(out):
        raise ValueError("a row of float32 is needed, in one piece of memory")
    given = 0
    if words is not None:
        if words.dtype != np.uint8 or words.shape != (bytes_for(size),) or not words.flags.c_contiguous:
            raise ValueError(f"{bytes_for(size)} bytes are needed, in one piece of memory")
        given = words.ctypes.data
    _kernels.noise(key, given, out.data_ptr(), size, std, torch.get_num_threads())


def bytes_for(size: int) -> int:
    """How many bytes of the stream so many normals take."""
    pairs = (size + 1) // 2
    return first_angle(pairs) + 4 * pairs


def first_angle(pairs: int) -> int:
    """Where in the stream the angles of so many pairs begin."""
    return (8 * pairs + 15) // 16 * 16


def row_squares(rows: Tensor, units: float, least: float) -> Tensor:
    """The squared norm of each row, and as a second line its slack: `units` times the norm, and `least`.

    The squares are added up in float64, from sums of at most 64 of them in float32.
    """
    return _row_squares(rows, 0, (units, least, 0.0, 0.0))


def product_squares(
    rows: Tensor, others: Tensor, units: float, least: float, least_other: float, least_product: float
) -> Tensor:
    """The squared norm of each row times a number of `others`: that of a product of two vectors, with its slack.

    What may have vanished is `least` in a row's norm, `least_other` in the other number, `least_product` in the result.
    """
    if others.shape != rows.shape[:1] or not takes_rows(others):
        raise ValueError("as many float32 numbers as rows are needed, in one piece of memory")
    return _row_squares(rows, others.data_ptr(), (units, least, least_other, least_product))


def _row_squares(rows: Tensor, others: int, slack: tuple[float, float, float, float]) -> Tensor:
    if rows.dim() != 2 or not takes_rows(rows):
        raise ValueError("rows of float32 are needed, each in one piece of memory")
    examples, size = rows.shape
    squares = rows.new_empty(2, examples)
    shape = (examples, size, rows.stride(0))
    _kernels.rows(rows.data_ptr(), others, squares.data_ptr(), *shape, *slack, torch.get_num_threads())
    return squares


def takes_rows(*tensors: Tensor) -> bool:
    """Whether these are float32 here, and their last axis lies in one piece."""
    return usable(*tensors) and all(each.stride(-1) == 1 or each.shape[-1] == 1 for each in tensors)


def convolution_gradients(
    inputs: Tensor,
    gradient: Tensor,
    window: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    out: Tensor | None,
    units: float,
    least: float,
) -> Tensor:
    """Each example's weight gradient of a convolution with one group, written into `out`; returns their squared norms.

    `inputs` is (B, channels, height, width), `gradient` (B, outputs, rows, columns) and `out` (B, outputs, window,
    channels). Without `out` only the norms are found, which come with their slack as in `row_squares`.
    """
    examples, channels, height, width = inputs.shape
    _, outputs, rows, columns = gradient.shape
    reach = [(places - 1) * step + size for places, step, size in zip((rows, columns), stride, window, strict=True)]
    sound = min((*window, *stride)) >= 1 and min(padding) >= 0
    fits = sound and reach[0] <= height + 2 * padding[0] and reach[1] <= width + 2 * padding[1]
    shapes = out is None or out.shape == (examples, outputs, *window, channels)
    given = (inputs, gradient) if out is None else (inputs, gradient, out)
    whole = all(each.is_contiguous() for each in given)
    if not (fits and shapes and whole and len(gradient) == examples and usable(*given)):
        raise ValueError("contiguous float32 tensors whose shapes belong together are needed")
    sizes = (examples, channels, height, width, outputs, rows, columns, *window, *stride, *padding)
    threads = torch.get_num_threads()
    scratch = _SCRATCH.address(threads * _kernels.convolution_room(*sizes))
    squares, to = inputs.new_empty(2, examples), 0 if out is None else out.data_ptr()
    _kernels.convolution(
        inputs.data_ptr(), gradient.data_ptr(), to, squares.data_ptr(), scratch, sizes, units, least, threads
    )
    return squares


def additions(terms: int) -> int:
    """How many additions a term of a sum of so many products goes through, at most, in these loops."""
    return min(terms, _kernels.chain) + -(-terms // _kernels.chain)


def takes_products(left: Tensor, rights: Sequence[Tensor]) -> bool:
    """Whether `squares_of_products` can take these."""
    return len(rights) <= _MOST_RIGHTS and takes_rows(left, *rights)


def squares_of_products(left: Tensor, rights: Sequence[Tensor], unit: float, least: float) -> Tensor:
    """Σ_{t,s} (left_t · left_s)(right_t · right_s) of each example, for each of the right factors.

    Returns (rights, 2, B): the sums, and their slack, `unit` being that of rounding. Each product of two rows may be
    off by a unit for each addition in a row, times the rows' lengths; so the sum by these, times
    (Σ_t |left_t||right_t|)², which is not small beside the sum itself where the positions cancel. And `least` for what
    may have vanished in each. What will be added is the library's sum of the same products, which may be longer than
    the true one by a unit for each position.

    The matrices of products are symmetric, so a little over half of them is computed, and none is ever in memory.
    """
    examples, positions, _ = left.shape
    if not takes_products(left, rights) or any(each.shape[:2] != left.shape[:2] for each in rights):
        raise ValueError("up to four right factors for the same positions, all in rows of float32, are needed")
    factors = [_factor(each) for each in (left, *rights)]
    squares = left.new_empty(len(rights), 2, examples)
    rooms = tuple(1.01 * unit * (additions(left.shape[2]) + additions(each.shape[2]) + _SUMMED) for each in rights)
    threads = torch.get_num_threads()
    scratch = _SCRATCH.address(threads * _kernels.positions_room(positions, sum(each[1] for each in factors)))
    places, slack = (squares.data_ptr(), scratch, examples, positions), (least, 1.01 * unit)
    _kernels.positions(factors[0], tuple(factors[1:]), rooms, *places, *slack, threads)
    return squares


def lookup_squares(index: Tensor, right: Tensor, units: float, least: float, unit: float) -> Tensor:
    """The squared norms of sums of looked-up rows: those of `right` that go to one place add before they are squared.

    `index` is (B, positions), `right` (B, positions, width). Slack as in `row_squares`; and rows that are added one by
    one, as the library will do it, may give a longer sum, by `unit` for each of them.
    """
    shapes = index.dim() == 2 and right.dim() == 3 and index.shape == right.shape[:2]
    whole = index.dtype == torch.int64 and index.is_cpu and index.is_contiguous()
    if not (shapes and whole and takes_rows(right)):
        raise ValueError("whole numbers for rows of float32 are needed, each in one piece of memory")
    examples, positions = index.shape
    squares, threads = right.new_empty(2, examples), torch.get_num_threads()
    scratch = _SCRATCH.address(2 * threads * _kernels.lookup_room(positions, right.shape[2]))
    addresses = (index.data_ptr(), _factor(right), squares.data_ptr(), scratch)
    _kernels.lookup(*addresses, examples, positions, units, least, 1.01 * unit, threads)
    return squares


def normalised_gradients(gradient: Tensor, inputs: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    """Σ_t gradient · (inputs − mean) · rstd and Σ_t gradient, for each example: of a layer norm's scale and shift.

    The first two are (B, positions, width), the others (B, positions).
    """
    shapes = gradient.dim() == 3 and inputs.shape == gradient.shape
    rows = all(each.shape == gradient.shape[:2] and each.is_contiguous() for each in (mean, rstd))
    if not (shapes and rows and takes_rows(gradient, inputs) and usable(mean, rstd)):
        raise ValueError("gradients and inputs of one shape, in rows of float32, and a number for each row are needed")
    examples, positions, width = gradient.shape
    scale, shift = gradient.new_empty(2, examples, width)
    addresses = (mean.data_ptr(), rstd.data_ptr(), scale.data_ptr(), shift.data_ptr())
    factors = (_factor(gradient), _factor(inputs))
    _kernels.normalised(*factors, *addresses, examples, positions, torch.get_num_threads())
    return scale, shift


def _factor(rows: Tensor) -> tuple[int, int, int, int]:
    """Where (B, positions, width) lies in memory."""
    return rows.data_ptr(), rows.shape[2], rows.stride(0), rows.stride(1)
