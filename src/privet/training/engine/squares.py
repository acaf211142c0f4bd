"""Squared norms of many examples' gradients, and how far rounding can have made them too small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from privet.training.native import loops

__all__ = [
    "LEAST",
    "Squares",
    "apart_in_products",
    "apart_in_sums",
    "joined",
    "lengthened",
    "lengths_of",
    "rounding",
    "signed",
    "squares_of_grams",
    "squares_of_lookups",
    "squares_of_rows",
    "squares_of_several",
]

LEAST = torch.finfo(torch.float32).tiny
"""What is smaller may vanish."""
_UNIT = torch.finfo(torch.float32).eps / 2
"""How far one float32 operation may be off, relatively."""
_CHUNK = 1 << 17
"""Numbers in a temporary array of products: half a megabyte, which stays in a core's own cache."""
_LONG = 1 << 15
"""Positions times columns beyond which float32 would leave products of positions too much slack."""
_BLOCK = 64
"""Numbers whose squares are added in their own precision."""


@dataclass(frozen=True)
class Squares:
    """Squared norms of B examples, and how far rounding can have made them too small."""

    value: Tensor
    slack: Tensor

    def __add__(self, other: Squares) -> Squares:
        return Squares(self.value + other.value, self.slack + other.slack)


def rounding(value: Tensor, terms: int) -> tuple[float, float]:
    """How far a sum of so many squares may be off: relatively, and by what may have vanished.

    A unit of rounding for each addition in a row, and a few more.
    """
    wide = value.dtype == torch.float64
    return ((terms if wide else min(terms, _BLOCK)) + 16) * torch.finfo(value.dtype).eps / 2, terms * LEAST


def squares_of_rows(rows: Tensor) -> Squares:
    """The squared norm of each row. There is no cancellation: what is lost is rounding, and what underflows."""
    units, least = rounding(rows, rows.shape[1])
    if loops.takes_rows(rows):
        return Squares(*loops.row_squares(rows, units, least))
    value = _squared(rows)
    return Squares(value, value * units + least)


def _squared(rows: Tensor) -> Tensor:
    """The squared norm of each row, in one pass over the numbers; sums of many float32 drift, so blocks of them add up.

    The library's sum of n squares may be off by n units of rounding; the blocks' are added in float64.
    """
    blocks, left = divmod(rows.shape[1], _BLOCK)
    if rows.dtype == torch.float64 or not blocks:
        norms: Tensor = torch.linalg.vector_norm(rows, dim=1)
        return norms.square_()
    even = _even_block(rows.shape[1])
    if even:
        norms = torch.linalg.vector_norm(torch.unflatten(rows, 1, (-1, even)), dim=2)
        return norms.double().square_().sum(1).to(rows.dtype)
    norms = torch.linalg.vector_norm(torch.unflatten(rows[:, : blocks * _BLOCK], 1, (blocks, _BLOCK)), dim=2)
    found = norms.double().square_().sum(1)
    if left:
        found += torch.linalg.vector_norm(rows[:, -left:], dim=1).double().square_()
    return found.to(rows.dtype)


@cache
def _even_block(size: int) -> int:
    """The longest block that leaves no remainder; 0 if all are so short that a remainder costs less."""
    best = max(each for each in range(1, _BLOCK + 1) if size % each == 0)
    return best if best >= _BLOCK // 2 else 0


def _outer_products(left: Tensor, *several: Tensor) -> list[Squares]:
    lefts = torch.bmm(left, left.mT)
    answer = []
    for right in several:
        rights = torch.bmm(right, right.mT)
        terms = left.shape[2], right.shape[2]
        answer.append(squares_of_grams(lefts, rights, terms, sum(terms)))
    return answer


def squares_of_several(left: Tensor, rights: Sequence[Tensor]) -> list[Squares]:
    """The squares of an `Outer` for each of these right factors, all with the one left factor."""
    if loops.takes_products(left, rights):
        return [Squares(*each) for each in loops.squares_of_products(left, rights, _UNIT, LEAST)]
    long = left.shape[1] * (left.shape[2] + max(each.shape[2] for each in rights)) > _LONG
    if left.dtype == torch.float64 or not long:
        found = _by_chunks(_outer_products, left, *rights)
    else:
        wide = _by_chunks(lambda *some: _outer_products(*(each.double() for each in some)), left, *rights)
        found = [_narrow(each) for each in wide]
    return [lengthened(each, apart_in_products(left, right)) for each, right in zip(found, rights, strict=True)]


def lengthened(found: Squares, apart: Tensor) -> Squares:
    """With slack for a sum of each example that is added and may be `apart` longer than what was measured.

    What is measured in factors is summed anew when it is added, with rounding of its own.
    """
    slack = found.slack.double()
    most = found.value.double().clamp(min=0.0) + slack
    return Squares(found.value, slack.addcmul(apart, 2 * most.sqrt() + apart).to(found.slack.dtype))


def apart_in_products(left: Tensor, right: Tensor) -> Tensor:
    """How much longer Σ_t left_t ⊗ right_t may come out, in the factors' precision: a unit for each addition."""
    return _units(left, left.shape[1]) * (lengths_of(left) * lengths_of(right)).sum(1, dtype=torch.float64)


def apart_in_sums(rows: Tensor, most: int | Tensor) -> Tensor:
    """The same for sums of rows, of which at most so many go to one place."""
    return _units(rows, most) * lengths_of(rows).sum(1, dtype=torch.float64)


def _units(rows: Tensor, additions: int | Tensor) -> Tensor:
    """How far so many additions may be off: 1.01 units of rounding for each, and a few more."""
    return torch.as_tensor(additions + 3, device=rows.device) * (1.01 * torch.finfo(rows.dtype).eps / 2)


def _narrow(found: Squares) -> Squares:
    """In float32, with the slack of that."""
    slack = found.slack + found.value.abs() * (4 * _UNIT) + LEAST
    return Squares(found.value.float(), slack.float())


def squares_of_lookups(index: Tensor, right: Tensor) -> Squares:
    """The squares of a `Lookup`."""
    if loops.takes_rows(right) and index.is_contiguous():
        units, least = rounding(right, right.shape[1] * right.shape[2])
        return Squares(*loops.lookup_squares(index.long(), right, units, least, _UNIT))
    return _by_chunks(_lookup_products, index, right)[0]


def _lookup_products(index: Tensor, right: Tensor) -> list[Squares]:
    same, lengths = index[:, :, None] == index[:, None, :], lengths_of(right)
    sizes = (lengths[:, :, None] * lengths[:, None, :]).mul_(same).flatten(1).sum(1)
    found = signed(torch.bmm(right, right.mT).mul_(same), sizes, right.shape[2])
    slack = found.slack + right.shape[1] ** 2 * right.shape[2] * LEAST
    return [lengthened(Squares(found.value, slack), apart_in_sums(right, same.sum(2).amax(1)))]


def _diagonal(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=1, dim2=2)


def _trace(matrices: Tensor) -> Tensor:
    return _diagonal(matrices).sum(1)


def _by_chunks(squares: Callable[..., list[Squares]], *factors: Tensor) -> list[Squares]:
    """A few examples at a time."""
    size = max(1, _CHUNK // factors[0].shape[1] ** 2)
    found = [squares(*some) for some in zip(*(torch.split(each, size) for each in factors), strict=True)]
    return [Squares(*joined(of)) for of in zip(*found, strict=True)]


def joined(found: Iterable[Squares]) -> tuple[Tensor, Tensor]:
    """The squares of several examples, one after the other."""
    several = list(found)
    return torch.cat([each.value for each in several]), torch.cat([each.slack for each in several])


def squares_of_grams(lefts: Tensor, rights: Tensor, terms: tuple[int, int], additions: int) -> Squares:
    """Σ_{t,s} lefts_ts · rights_ts of matrices of inner products, which have so many terms.

    An inner product of n terms may be off by n units of rounding times both lengths (Higham 2002, §3.1), and by fewer
    if they are added up in parts; so the sum by `additions` units, for both together, of (Σ_t |left_t||right_t|)²,
    which is not small beside it where the positions cancel. And any term may have vanished.
    """
    lengths = (_diagonal(lefts) * _diagonal(rights)).clamp_(min=0.0).sqrt_().sum(1)
    found = signed(lefts * rights, lengths.square_(), additions)
    traces = terms[0] * _trace(rights) + terms[1] * _trace(lefts)
    return Squares(found.value, found.slack + (lefts.shape[1] * traces + 1.0) * LEAST)


def signed(products: Tensor, sizes: Tensor, terms: int) -> Squares:
    """The sum of products that may cancel, each of which may be off by so many units of its share of `sizes`."""
    flat = products.flatten(1)
    wide = flat.dtype == torch.float64
    units = (terms + 16 + (flat.shape[1] if wide else 0)) * torch.finfo(flat.dtype).eps / 2
    value = flat.sum(1) if wide else flat.sum(1, dtype=torch.float64).to(flat.dtype)
    return Squares(value, sizes * (1.01 * units))


def lengths_of(rows: Tensor) -> Tensor:
    """The length of each position's row."""
    found: Tensor = torch.linalg.vector_norm(rows, dim=2)
    return found
