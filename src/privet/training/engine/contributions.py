"""What a layer knows about each example's gradient, in the smallest form that gives exact norms and weighted sums.

A part holds, for one parameter, the gradients of B examples. `Outer` and `Lookup` keep the factors of a product and
never form the B × (size of the parameter) array; `Dense` is that array, used where it is the smaller of the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Protocol

import torch
from torch import Tensor

from privet.training.engine.groups import Groups
from privet.training.engine.squares import (
    LEAST,
    Squares,
    apart_in_products,
    apart_in_sums,
    lengthened,
    lengths_of,
    rounding,
    signed,
    squares_of_lookups,
    squares_of_rows,
    squares_of_several,
)
from privet.training.native import loops

__all__ = ["Contribution", "Dense", "Lookup", "MeasuredContribution", "Mixed", "Outer", "combine", "numbers"]

_PIECE = 1 << 23
"""Numbers of both factors that are multiplied at once: a scaled copy of them stays small."""


class Contribution(Protocol):
    """The gradients of B examples for one parameter."""

    def squares(self) -> Squares:
        """The squared norm of each example's gradient."""

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """out += Σ_i factors[i] · gradient_i."""

    def dense(self) -> Tensor:
        """All gradients, written out: B rows of the parameter's size."""

    def blank(self, bad: Tensor) -> Contribution:
        """The same with the marked examples' gradients replaced by zeros, even where they hold NaN."""

    def regroup(self, groups: Groups) -> Contribution:
        """The sums of the examples of each group."""

    def settle(self) -> Contribution:
        """The form to keep until the clipping factors are known; by default itself."""
        return self

    def with_squares(self) -> Contribution:
        """The same with its squared norms computed now, while the numbers are still in a cache; by default itself."""
        return self


@dataclass(frozen=True)
class MeasuredContribution(Contribution):
    """A contribution that keeps its squared norms once they are computed."""

    known: Squares | None = field(default=None, kw_only=True)

    def squares(self) -> Squares:
        """Return the squared norm of each example's gradient."""
        return self._squares() if self.known is None else self.known

    def with_squares(self) -> Contribution:
        """Return the same with its squared norms."""
        return replace(self, known=self.squares())

    def _squares(self) -> Squares:
        raise NotImplementedError


@dataclass(frozen=True)
class Dense(MeasuredContribution):
    """The gradients themselves: (B, size of the parameter)."""

    value: Tensor

    def _squares(self) -> Squares:
        return squares_of_rows(self.value)

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """One matrix-vector product."""
        out.view(-1).addmv_(self.value.T, factors)

    def dense(self) -> Tensor:
        """Itself."""
        return self.value

    def blank(self, bad: Tensor) -> Contribution:
        """Zeros in the marked rows."""
        return Dense(self.value.masked_fill(bad[:, None], 0.0))

    def regroup(self, groups: Groups) -> Contribution:
        """One row a group."""
        return Dense(groups.add_rows(self.value))


@dataclass(frozen=True)
class Outer(MeasuredContribution):
    """Sums of products: example i's gradient is the matrix Σ_t left[i, t] ⊗ right[i, t].

    A linear layer's weight gradient has this form, with t over the positions of a sequence. Its squared norm is
    Σ_{t,s} (left_t · left_s)(right_t · right_s) (the ghost norm, Li et al. 2022), which needs no matrix of the
    parameter's size.
    """

    left: Tensor
    """(B, k, p)"""
    right: Tensor
    """(B, k, q)"""

    def _squares(self) -> Squares:
        if self.left.shape[1] == 1:
            return self._product(squares_of_rows(self.right.flatten(1)).value)
        return squares_of_several(self.left, [self.right])[0]

    def _product(self, rights: Tensor) -> Squares:
        """For one position: the norm of a product of two vectors is the product of their norms."""
        left = self.left.flatten(1)
        (units, least), (more, other) = (rounding(left, each.shape[2]) for each in (self.left, self.right))
        if loops.takes_rows(left) and loops.takes_rows(rights):
            return Squares(*loops.product_squares(left, rights, units + more, least, other, 3 * LEAST))
        lefts = squares_of_rows(left).value
        value = lefts * rights
        slack = value * (units + more)
        # Squares of the small factor may have vanished, and the large one may be enormous.
        slack.add_(rights, alpha=least).add_(lefts, alpha=other)
        return Squares(value, slack.add_(3 * LEAST))

    def with_squares_beside(self, other: Contribution | None) -> Contribution:
        """With its squared norms; those of the right factor are known if the other part holds the same numbers."""
        if self.left.shape[1] == 1 and isinstance(other, Dense) and other.known and _is_same(self.right, other.value):
            return replace(self, known=self._product(other.known.value))
        return self.with_squares()

    def transposed(self) -> Outer:
        """The gradient of the transposed matrix; its norms are the same."""
        return Outer(self.right, self.left, known=self.known)

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

    def blank(self, bad: Tensor) -> Contribution:
        """Zeros in both factors, since 0 · NaN is NaN."""
        mark = bad[:, None, None]
        return Outer(self.left.masked_fill(mark, 0.0), self.right.masked_fill(mark, 0.0))

    def regroup(self, groups: Groups) -> Contribution:
        """The positions of a group's examples become the positions of one example."""
        return Outer(groups.stack_rows(self.left), groups.stack_rows(self.right))

    def settle(self) -> Contribution:
        """Written out where that is smaller than the factors: it is then also the cheaper way to the norm."""
        if self.known is not None:
            return self
        _, k, p = self.left.shape
        q = self.right.shape[2]
        return Dense(self.dense()) if k > 1 and p * q <= k * (p + q) else self


@dataclass(frozen=True)
class Lookup(MeasuredContribution):
    """Sums of rows: example i's gradient has right[i, t] added to row index[i, t]. An embedding has this form."""

    index: Tensor
    """(B, k), integers"""
    right: Tensor
    """(B, k, q)"""
    rows: int
    """How many rows the parameter has."""

    def _squares(self) -> Squares:
        """Positions that look up the same row add before they are squared."""
        if self.index.shape[1] == 1:
            return squares_of_rows(self.right.flatten(1))
        return squares_of_lookups(self.index, self.right)

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

    def blank(self, bad: Tensor) -> Contribution:
        """Zeros for the marked examples."""
        return Lookup(self.index, self.right.masked_fill(bad[:, None, None], 0.0), self.rows)

    def regroup(self, groups: Groups) -> Contribution:
        """The positions of a group's examples become the positions of one example."""
        index = groups.stack_rows(self.index[:, :, None]).squeeze(2)
        return Lookup(index, groups.stack_rows(self.right), self.rows)


@dataclass(frozen=True)
class Mixed(Contribution):
    """A table that is looked up and also multiplied with, as a tied embedding is: both, and their cross term."""

    outer: Outer
    lookup: Lookup

    def squares(self) -> Squares:
        """|a + b|² = |a|² + |b|² + 2 a·b, with a·b = Σ_{t,s} left_t[index_s] (right_t · right_s)."""
        k, s = self.outer.left.shape[1], self.lookup.index.shape[1]
        index = self.lookup.index[:, None, :].expand(-1, k, s)
        cross = torch.bmm(self.outer.right, self.lookup.right.mT).mul_(self.outer.left.gather(2, index))
        lengths = (lengths_of(self.outer.right)[:, :, None], lengths_of(self.lookup.right)[:, None, :])
        sizes = self.outer.left.gather(2, index).abs_().mul_(lengths[0]).mul_(lengths[1])
        twice = signed(cross, sizes.flatten(1).sum(1), self.outer.right.shape[2])
        double = Squares(twice.value * 2, twice.slack * 2)
        apart = apart_in_products(self.outer.left, self.outer.right) + apart_in_sums(self.lookup.right, s)
        return lengthened(self.outer.squares() + self.lookup.squares() + double, apart)

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """Both sums."""
        self.outer.add_to(out, factors)
        self.lookup.add_to(out, factors)

    def dense(self) -> Tensor:
        """Both, written out."""
        return self.outer.dense() + self.lookup.dense()

    def blank(self, bad: Tensor) -> Contribution:
        """Zeros in both."""
        return combine([self.outer.blank(bad), self.lookup.blank(bad)])

    def regroup(self, groups: Groups) -> Contribution:
        """Both, group by group."""
        return combine([self.outer.regroup(groups), self.lookup.regroup(groups)])


def _is_same(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same numbers in the same memory, but for their shape."""
    return (
        one.data_ptr() == other.data_ptr()
        and one.numel() == other.numel()
        and one.dtype == other.dtype
        and one.is_contiguous()
        and other.is_contiguous()
    )


def numbers(contribution: Contribution) -> int:
    """How many numbers a part keeps."""
    held = [value for name, value in vars(contribution).items() if name != "known"]
    own = sum(each.numel() for each in held if isinstance(each, Tensor))
    return own + sum(numbers(each) for each in held if isinstance(each, Outer | Lookup))


def combine(parts: list[Contribution]) -> Contribution:
    """One part from all uses of a parameter: their gradients add, and so must not be squared one by one."""
    if len(parts) == 1:
        return parts[0]
    outers = [contribution for contribution in parts if isinstance(contribution, Outer)]
    lookups = [contribution for contribution in parts if isinstance(contribution, Lookup)]
    if len(outers) + len(lookups) < len(parts):
        return Dense(reduce(torch.add, (contribution.dense() for contribution in parts)))
    shapes = {(outer.left.shape[2], outer.right.shape[2]) for outer in outers}
    shapes |= {(lookup.rows, lookup.right.shape[2]) for lookup in lookups}
    if len(shapes) > 1:
        return Dense(reduce(torch.add, (contribution.dense() for contribution in parts)))
    outer = Outer(torch.cat([o.left for o in outers], 1), torch.cat([o.right for o in outers], 1)) if outers else None
    lookup = None
    if lookups:
        index = torch.cat([look.index for look in lookups], 1)
        lookup = Lookup(index, torch.cat([look.right for look in lookups], 1), lookups[0].rows)
    if outer is None or lookup is None:
        only: Contribution | None = outer or lookup
        if only is None:
            raise ValueError("parts is empty")
        return only
    return Mixed(outer, lookup)
