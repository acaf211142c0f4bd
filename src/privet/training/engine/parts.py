"""What a layer knows about each example's gradient, in the smallest form that gives exact norms and weighted sums.

A part holds, for one parameter, the gradients of B examples. `Outer` and `Lookup` keep the factors of a product and
never form the B × (size of the parameter) array; `Dense` is that array, used where it is the smaller of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from typing import Protocol

import torch
from torch import Tensor

from privet.training import native
from privet.training.engine.groups import Groups

__all__ = [
    "Dense",
    "Lookup",
    "Mixed",
    "Outer",
    "Part",
    "Squares",
    "combine",
    "joined",
    "numbers",
    "rounding",
    "signed",
    "squares_of_grams",
    "squares_of_rows",
    "squares_of_several",
]

_LEAST = torch.finfo(torch.float32).tiny
"""What is smaller may vanish."""
_UNIT = torch.finfo(torch.float32).eps / 2
"""How far one float32 operation may be off, relatively."""
_CHUNK = 1 << 17
"""Numbers in a temporary array of products: half a megabyte, which stays in a core's own cache."""

_LONG = 1 << 15
"""Positions times columns beyond which float32 would leave products of positions too much slack."""
_BLOCK = 64
"""Numbers whose squares are added in their own precision."""
_PIECE = 1 << 23
"""Numbers of both factors that are multiplied at once: a scaled copy of them stays small."""


@dataclass(frozen=True)
class Squares:
    """Squared norms of B examples, and how far rounding can have made them too small."""

    value: Tensor
    slack: Tensor

    def __add__(self, other: Squares) -> Squares:
        return Squares(self.value + other.value, self.slack + other.slack)


class Part(Protocol):
    """The gradients of B examples for one parameter."""

    def squares(self) -> Squares:
        """The squared norm of each example's gradient."""
        ...

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """out += Σ_i factors[i] · gradient_i."""
        ...

    def dense(self) -> Tensor:
        """All gradients, written out: B rows of the parameter's size."""
        ...

    def blank(self, bad: Tensor) -> Part:
        """The same with the marked examples' gradients replaced by zeros, even where they hold NaN."""
        ...

    def regroup(self, groups: Groups) -> Part:
        """The sums of the examples of each group."""
        ...

    def settle(self) -> Part:
        """The form to keep until the clipping factors are known."""
        ...

    def measured(self) -> Part:
        """The same with its squared norms computed now, while the numbers are still in a cache."""
        ...


def rounding(value: Tensor, terms: int) -> tuple[float, float]:
    """How far a sum of so many squares may be off: relatively, and by what may have vanished.

    A unit of rounding for each addition in a row, and a few more.
    """
    wide = value.dtype == torch.float64
    return ((terms if wide else min(terms, _BLOCK)) + 16) * torch.finfo(value.dtype).eps / 2, terms * _LEAST


def squares_of_rows(rows: Tensor) -> Squares:
    """The squared norm of each row. There is no cancellation: what is lost is rounding, and what underflows."""
    units, least = rounding(rows, rows.shape[1])
    if native.takes_rows(rows):
        return Squares(*native.row_squares(rows, units, least))
    value = _squared(rows)
    return Squares(value, value * units + least)


@dataclass(frozen=True)
class Dense:
    """The gradients themselves: (B, size of the parameter)."""

    value: Tensor
    known: Squares | None = None

    def squares(self) -> Squares:
        """The squared norm of each row."""
        return self.known or squares_of_rows(self.value)

    def measured(self) -> Part:
        """With its squared norms."""
        return replace(self, known=self.squares())

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """One matrix-vector product."""
        out.view(-1).addmv_(self.value.T, factors)

    def dense(self) -> Tensor:
        """Itself."""
        return self.value

    def blank(self, bad: Tensor) -> Part:
        """Zeros in the marked rows."""
        return Dense(self.value.masked_fill(bad[:, None], 0.0))

    def regroup(self, groups: Groups) -> Part:
        """One row a group."""
        return Dense(groups.add_rows(self.value))

    def settle(self) -> Part:
        """Itself."""
        return self


@dataclass(frozen=True)
class Outer:
    """Sums of products: example i's gradient is the matrix Σ_t left[i, t] ⊗ right[i, t].

    A linear layer's weight gradient has this form, with t over the positions of a sequence. Its squared norm is
    Σ_{t,s} (left_t · left_s)(right_t · right_s) (the ghost norm, Li et al. 2022), which needs no matrix of the
    parameter's size.
    """

    left: Tensor
    """(B, k, p)"""
    right: Tensor
    """(B, k, q)"""
    known: Squares | None = None

    def squares(self) -> Squares:
        """The squared norm of each example's sum of products."""
        if self.known is not None:
            return self.known
        if self.left.shape[1] == 1:
            return self._product(squares_of_rows(self.right.flatten(1)).value)
        return squares_of_several(self.left, [self.right])[0]

    def _product(self, rights: Tensor) -> Squares:
        """For one position: the norm of a product of two vectors is the product of their norms."""
        left = self.left.flatten(1)
        (units, least), (more, other) = (rounding(left, each.shape[2]) for each in (self.left, self.right))
        if native.takes_rows(left) and native.takes_rows(rights):
            return Squares(*native.product_squares(left, rights, units + more, least, other, 3 * _LEAST))
        lefts = squares_of_rows(left).value
        value = lefts * rights
        slack = value * (units + more)
        # Squares of the small factor may have vanished, and the large one may be enormous.
        slack.add_(rights, alpha=least).add_(lefts, alpha=other)
        return Squares(value, slack.add_(3 * _LEAST))

    def measured_beside(self, other: Part | None) -> Part:
        """With its squared norms; those of the right factor are known if the other part holds the same numbers."""
        if self.left.shape[1] == 1 and isinstance(other, Dense) and other.known and _is_same(self.right, other.value):
            return replace(self, known=self._product(other.known.value))
        return self.measured()

    def measured(self) -> Part:
        """With its squared norms."""
        return replace(self, known=self.squares())

    def transposed(self) -> Outer:
        """The gradient of the transposed matrix; its norms are the same."""
        return Outer(self.right, self.left, self.known)

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """One product of matrices, like the ordinary weight gradient."""
        examples, k, p = self.left.shape
        q = self.right.shape[2]
        matrix = out.view(p, q)
        size = max(1, _PIECE // max(1, k * (p + q)))
        whole = (self.left, self.right, factors)
        pieces = [whole] if examples <= size else zip(*(torch.split(each, size) for each in whole), strict=True)
        for left, right, factor in pieces:
            if p > q:
                right = right * factor[:, None, None]
            else:
                left = left * factor[:, None, None]
            if left.stride(0) < left.stride(1):  # time comes first in memory, as a recurrent layer leaves it
                left, right = left.transpose(0, 1), right.transpose(0, 1)
            matrix.addmm_(left.flatten(0, 1).T, right.flatten(0, 1))

    def dense(self) -> Tensor:
        """The matrices, written out."""
        return torch.bmm(self.left.mT, self.right).flatten(1)

    def blank(self, bad: Tensor) -> Part:
        """Zeros in both factors, since 0 · NaN is NaN."""
        mark = bad[:, None, None]
        return Outer(self.left.masked_fill(mark, 0.0), self.right.masked_fill(mark, 0.0))

    def regroup(self, groups: Groups) -> Part:
        """The positions of a group's examples become the positions of one example."""
        return Outer(groups.stack_rows(self.left), groups.stack_rows(self.right))

    def settle(self) -> Part:
        """Written out where that is smaller than the factors: it is then also the cheaper way to the norm."""
        if self.known is not None:
            return self
        _, k, p = self.left.shape
        q = self.right.shape[2]
        return Dense(self.dense()) if k > 1 and p * q <= k * (p + q) else self


@dataclass(frozen=True)
class Lookup:
    """Sums of rows: example i's gradient has right[i, t] added to row index[i, t]. An embedding has this form."""

    index: Tensor
    """(B, k), integers"""
    right: Tensor
    """(B, k, q)"""
    rows: int
    """How many rows the parameter has."""
    known: Squares | None = None

    def squares(self) -> Squares:
        """Positions that look up the same row add before they are squared."""
        if self.known is not None:
            return self.known
        if self.index.shape[1] == 1:
            return squares_of_rows(self.right.flatten(1))
        if native.takes_rows(self.right) and self.index.is_contiguous():
            units, least = rounding(self.right, self.right.shape[1] * self.right.shape[2])
            return Squares(*native.lookup_squares(self.index.long(), self.right, units, least))
        return _by_chunks(_lookup_products, self.index, self.right)[0]

    def measured(self) -> Part:
        """With its squared norms."""
        return replace(self, known=self.squares())

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """One scatter, by the kernel that the ordinary gradient uses."""
        right = (self.right * factors[:, None, None]).flatten(0, 1)
        flat = self.index.flatten()
        added = torch.ops.aten.embedding_dense_backward(right, flat, self.rows, -1, False)
        out.view(self.rows, -1).add_(added)

    def dense(self) -> Tensor:
        """The whole table for every example."""
        batch, _, width = self.right.shape
        out = self.right.new_zeros(batch, self.rows, width)
        return out.scatter_add_(1, self.index[:, :, None].expand_as(self.right), self.right).flatten(1)

    def blank(self, bad: Tensor) -> Part:
        """Zeros for the marked examples."""
        return Lookup(self.index, self.right.masked_fill(bad[:, None, None], 0.0), self.rows)

    def regroup(self, groups: Groups) -> Part:
        """The positions of a group's examples become the positions of one example."""
        index = groups.stack_rows(self.index[:, :, None]).squeeze(2)
        return Lookup(index, groups.stack_rows(self.right), self.rows)

    def settle(self) -> Part:
        """Itself."""
        return self


@dataclass(frozen=True)
class Mixed:
    """A table that is looked up and also multiplied with, as a tied embedding is: both, and their cross term."""

    outer: Outer
    lookup: Lookup

    def squares(self) -> Squares:
        """|a + b|² = |a|² + |b|² + 2 a·b, with a·b = Σ_{t,s} left_t[index_s] (right_t · right_s)."""
        k, s = self.outer.left.shape[1], self.lookup.index.shape[1]
        index = self.lookup.index[:, None, :].expand(-1, k, s)
        cross = torch.bmm(self.outer.right, self.lookup.right.mT).mul_(self.outer.left.gather(2, index))
        lengths = (_lengths(self.outer.right)[:, :, None], _lengths(self.lookup.right)[:, None, :])
        sizes = self.outer.left.gather(2, index).abs_().mul_(lengths[0]).mul_(lengths[1])
        twice = signed(cross, sizes.flatten(1).sum(1), self.outer.right.shape[2])
        double = Squares(twice.value * 2, twice.slack * 2)
        return self.outer.squares() + self.lookup.squares() + double

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """Both sums."""
        self.outer.add_to(out, factors)
        self.lookup.add_to(out, factors)

    def dense(self) -> Tensor:
        """Both, written out."""
        return self.outer.dense() + self.lookup.dense()

    def blank(self, bad: Tensor) -> Part:
        """Zeros in both."""
        return combine([self.outer.blank(bad), self.lookup.blank(bad)])

    def regroup(self, groups: Groups) -> Part:
        """Both, group by group."""
        return combine([self.outer.regroup(groups), self.lookup.regroup(groups)])

    def settle(self) -> Part:
        """Itself."""
        return self

    def measured(self) -> Part:
        """Itself: it is made last, and measured once."""
        return self


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


def _is_same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same numbers in the same memory, but for their shape."""
    return (
        one.data_ptr() == other.data_ptr()
        and one.numel() == other.numel()
        and one.dtype == other.dtype
        and one.is_contiguous()
        and other.is_contiguous()
    )


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
    if native.takes_products(left, rights):
        return [Squares(*each) for each in native.squares_of_products(left, rights, _UNIT, _LEAST)]
    long = left.shape[1] * (left.shape[2] + max(each.shape[2] for each in rights)) > _LONG
    if left.dtype == torch.float64 or not long:
        return _by_chunks(_outer_products, left, *rights)
    found = _by_chunks(lambda *some: _outer_products(*(each.double() for each in some)), left, *rights)
    return [_narrow(each) for each in found]


def _narrow(found: Squares) -> Squares:
    """In float32, with the slack of that."""
    slack = found.slack + found.value.abs() * (4 * _UNIT) + _LEAST
    return Squares(found.value.float(), slack.float())


def _lookup_products(index: Tensor, right: Tensor) -> list[Squares]:
    same, lengths = index[:, :, None] == index[:, None, :], _lengths(right)
    sizes = (lengths[:, :, None] * lengths[:, None, :]).mul_(same).flatten(1).sum(1)
    found = signed(torch.bmm(right, right.mT).mul_(same), sizes, right.shape[2])
    return [Squares(found.value, found.slack + right.shape[1] ** 2 * right.shape[2] * _LEAST)]


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
    return Squares(found.value, found.slack + (lefts.shape[1] * traces + 1.0) * _LEAST)


def signed(products: Tensor, sizes: Tensor, terms: int) -> Squares:
    """The sum of products that may cancel, each of which may be off by so many units of its share of `sizes`."""
    flat = products.flatten(1)
    wide = flat.dtype == torch.float64
    units = (terms + 16 + (flat.shape[1] if wide else 0)) * torch.finfo(flat.dtype).eps / 2
    value = flat.sum(1) if wide else flat.sum(1, dtype=torch.float64).to(flat.dtype)
    return Squares(value, sizes * (1.01 * units))


def _lengths(rows: Tensor) -> Tensor:
    found: Tensor = torch.linalg.vector_norm(rows, dim=2)
    return found


def numbers(part: Part) -> int:
    """How many numbers a part keeps."""
    held = [value for name, value in vars(part).items() if name != "known"]
    own = sum(each.numel() for each in held if isinstance(each, Tensor))
    return own + sum(numbers(each) for each in held if isinstance(each, Outer | Lookup))


def combine(parts: list[Part]) -> Part:
    """One part from all uses of a parameter: their gradients add, and so must not be squared one by one."""
    if len(parts) == 1:
        return parts[0]
    outers = [part for part in parts if isinstance(part, Outer)]
    lookups = [part for part in parts if isinstance(part, Lookup)]
    if len(outers) + len(lookups) < len(parts):
        return Dense(reduce(torch.add, (part.dense() for part in parts)))
    shapes = {(outer.left.shape[2], outer.right.shape[2]) for outer in outers}
    shapes |= {(lookup.rows, lookup.right.shape[2]) for lookup in lookups}
    if len(shapes) > 1:
        return Dense(reduce(torch.add, (part.dense() for part in parts)))
    outer = Outer(torch.cat([o.left for o in outers], 1), torch.cat([o.right for o in outers], 1)) if outers else None
    lookup = None
    if lookups:
        index = torch.cat([look.index for look in lookups], 1)
        lookup = Lookup(index, torch.cat([look.right for look in lookups], 1), lookups[0].rows)
    if outer is None or lookup is None:
        only: Part | None = outer or lookup
        if only is None:
            raise ValueError("parts is empty")
        return only
    return Mixed(outer, lookup)
