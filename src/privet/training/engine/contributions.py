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
        """Return the squared norm of each example's gradient."""

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """Add Σ_i factors[i] · gradient_i to `out`.

        Args:
            out: The sum, which is changed in place.
            factors: Factor of each example, (B,).
        """

    def dense(self) -> Tensor:
        """Return all gradients in full: B rows of the parameter's size."""

    def blank(self, bad: Tensor) -> Contribution:
        """Return the same with the marked examples' gradients replaced by zeros, even where they hold NaN.

        Args:
            bad: (B,), true for the examples to blank.
        """

    def regroup(self, groups: Groups) -> Contribution:
        """Return the sums over the examples of each group.

        Args:
            groups: The unit of each row.
        """

    def settle(self) -> Contribution:
        """Return the form to keep until the clipping factors are known; by default the contribution itself."""
        return self

    def with_squares(self) -> Contribution:
        """Return the same with its squared norms computed now, while the values are cached; by default itself."""
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
        """Add the weighted sum with one matrix-vector product.

        Args:
            out: The sum, which is changed in place.
            factors: Factor of each example, (B,).
        """
        out.view(-1).addmv_(self.value.T, factors)

    def dense(self) -> Tensor:
        """Return the gradients themselves."""
        return self.value

    def blank(self, bad: Tensor) -> Contribution:
        """Return the same with zeros in the marked rows.

        Args:
            bad: (B,), true for the examples to blank.
        """
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
        """Return the same with its squared norms.

        Args:
            other: Another contribution, whose known norms are reused if it holds the same values as the right factor.
        """
        if self.left.shape[1] == 1 and isinstance(other, Dense) and other.known and _is_same(self.right, other.value):
            return replace(self, known=self._product(other.known.value))
        return self.with_squares()

    def transposed(self) -> Outer:
        """Return the gradient of the transposed matrix; its norms are the same."""
        return Outer(self.right, self.left, known=self.known)

    def add_to(self, out: Tensor, factors: Tensor) -> None:
        """Add the weighted sum with one matrix product, like the ordinary weight gradient.

        Args:
            out: The sum, which is changed in place.
            factors: Factor of each example, (B,).
        """
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
        """Return the matrices in full."""
        return torch.bmm(self.left.mT, self.right).flatten(1)

    def blank(self, bad: Tensor) -> Contribution:
        """Return the same with zeros in both factors, since 0 · NaN is NaN.

        Args:
            bad: (B,), true for the examples to blank.
        """
        mark = bad[:, None, None]
        return Outer(self.left.masked_fill(mark, 0.0), self.right.masked_fill(mark, 0.0))

    def regroup(self, groups: Groups) -> Contribution:
        """Return one example for each group, with the positions of all of its examples.

        Args:
            groups: The unit of each row.
        """
        return Outer(groups.stack_rows(self.left), groups.stack_rows(self.right))

    def settle(self) -> Contribution:
        """Return the matrices in full where they are smaller than the factors; the norms are then cheaper too."""
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
        """Add the weighted sum with one scatter, by the kernel of the ordinary gradient.

        Args:
            out: The sum, which is changed in place.
            factors: Factor of each example, (B,).
        """
        right = (self.right * factors[:, None, None]).flatten(0, 1)
        flat = self.index.flatten()
        added = torch.ops.aten.embedding_dense_backward(right, flat, self.rows, -1, False)
        out.view(self.rows, -1).add_(added)

    def dense(self) -> Tensor:
        """Return the whole table for every example."""
        batch, _, width = self.right.shape
        out = self.right.new_zeros(batch, self.rows, width)
        return out.scatter_add_(1, self.index[:, :, None].expand_as(self.right), self.right).flatten(1)

    def blank(self, bad: Tensor) -> Contribution:
        """Return the same with zeros for the marked examples.

        Args:
            bad: (B,), true for the examples to blank.
        """
        return Lookup(self.index, self.right.masked_fill(bad[:, None, None], 0.0), self.rows)

    def regroup(self, groups: Groups) -> Contribution:
        """Return one example for each group, with the positions of all of its examples.

        Args:
            groups: The unit of each row.
        """
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
        """Add the weighted sums of both contributions.

        Args:
            out: The sum, which is changed in place.
            factors: Factor of each example, (B,).
        """
        self.outer.add_to(out, factors)
        self.lookup.add_to(out, factors)

    def dense(self) -> Tensor:
        """Return the sum of both in full."""
        return self.outer.dense() + self.lookup.dense()

    def blank(self, bad: Tensor) -> Contribution:
        """Return the same with zeros for the marked examples in both.

        Args:
            bad: (B,), true for the examples to blank.
        """
        return combine([self.outer.blank(bad), self.lookup.blank(bad)])

    def regroup(self, groups: Groups) -> Contribution:
        """Return the sums over the examples of each group, for both.

        Args:
            groups: The unit of each row.
        """
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
    """Return the number of values that a contribution stores.

    Args:
        contribution: The contribution.
    """
    held = [value for name, value in vars(contribution).items() if name != "known"]
    own = sum(each.numel() for each in held if isinstance(each, Tensor))
    return own + sum(numbers(each) for each in held if isinstance(each, Outer | Lookup))


def combine(parts: list[Contribution]) -> Contribution:
    """Return one contribution from all uses of a parameter: gradients are added before they are squared.

    Args:
        parts: Contributions of the uses; at least one.
    """
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
