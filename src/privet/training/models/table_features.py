"""From the compact numbers of a table to features: bins of numbers, values, categories.

There are no parameters, and no statistics of the data: edges and codes come from the public schema.
"""

from __future__ import annotations

from math import log1p, sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from privet.core import checked
from privet.data import Category, Number, Schema

__all__ = ["TableFeatures"]

_SKEWED = 1000.0
"""Bounds that reach this far are cut into bins on a logarithmic scale too, as sums of money are read."""


class TableFeatures(nn.Module):
    """Features of the rows of a table, made when a batch is used; a row's features have a length of at most 1.

    A number becomes the bin that it is in, of equal widths between its public bounds, and its value on [-1, 1]; where
    the bounds reach 1,000, also its bin on the scale sign(v)·log(1 + |v|). A missing number has one feature of its own
    instead. A category becomes one feature for each value, and one for all others.

    >>> from privet.data.columns import Category, Number
    >>> from privet.data.schema import Schema
    >>> columns = Number("age", 0, 100), Category("smokes", ("no", "yes")), Number("risk", 0, 1)
    >>> front = TableFeatures(Schema(columns, target="risk"), bins=4)
    >>> front.features
    9
    >>> (3**0.5 * front(torch.tensor([[-0.25, 1.0]]))).round(decimals=2).tolist()
    [[0.0, 1.0, 0.0, 0.0, -0.25, 0.0, 0.0, 1.0, 0.0]]
    """

    def __init__(self, schema: Schema, bins: int = 16) -> None:
        super().__init__()
        self.bins = checked.count("bins", bins)
        self.columns = schema.features
        """The columns, in the order of the rows' numbers."""
        parts = sum(_longest(column) for column in self.columns)
        self._scale = 1 / sqrt(parts)
        self.features = sum(_width(column, bins) for column in self.columns)
        """How many features a row has."""

    def forward(self, rows: Tensor) -> Tensor:
        """Return the features of rows, (n, features).

        Args:
            rows: Rows (n, columns) as in `Table.x`.
        """
        parts = [
            self._category(column, rows[:, place])
            if isinstance(column, Category)
            else self._number(column, rows[:, place])
            for place, column in enumerate(self.columns)
        ]
        return torch.cat(parts, 1) * self._scale

    def _number(self, column: Number, scaled: Tensor) -> Tensor:
        missing = scaled.isnan()
        value = torch.where(missing, 0.0, scaled.clamp(-1, 1))
        share = (value + 1) / 2
        parts = [self._bin(share).to(scaled.dtype)]
        if _skewed(column):
            low, high = _symlog(column.low), _symlog(column.high)
            real = column.low + share.double() * (column.high - column.low)
            logarithmic = (real.sign() * real.abs().log1p() - low) / (high - low)
            parts.append(self._bin(logarithmic).to(scaled.dtype))
        known = torch.cat([*parts, value[:, None]], 1)
        return torch.cat([known * ~missing[:, None], missing[:, None].to(scaled.dtype)], 1)

    def _bin(self, share: Tensor) -> Tensor:
        place = (share * self.bins).long().clamp(0, self.bins - 1)
        return F.one_hot(place, self.bins)

    @staticmethod
    def _category(column: Category, codes: Tensor) -> Tensor:
        # A code that is none of the column's is "other", so that no row can raise.
        known = torch.where((codes >= 0) & (codes <= column.other), codes, float(column.other))
        return F.one_hot(known.long(), column.other + 1).to(codes.dtype)


def _skewed(column: Number) -> bool:
    return max(abs(column.low), abs(column.high)) >= _SKEWED


def _symlog(value: float) -> float:
    return log1p(value) if value >= 0 else -log1p(-value)


def _width(column: Number | Category, bins: int) -> int:
    if isinstance(column, Category):
        return column.other + 1
    return bins * (1 + _skewed(column)) + 2


def _longest(column: Number | Category) -> int:
    """Return the largest squared norm of a column's features, before they are scaled."""
    return 1 if isinstance(column, Category) else 2 + _skewed(column)
