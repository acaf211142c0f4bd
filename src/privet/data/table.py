"""Tables and images in memory, in the compact form that models use."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput
from privet.data.schema import Schema

__all__ = ["Images", "Index", "Table", "numbered"]

Index: TypeAlias = npt.NDArray[np.bool_] | npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as numbers, which are private, and the schema, which is public.

    A number is its value on [-1, 1] by the public bounds, NaN where the schema says `indicator` and it is missing; a
    category is its code, `len(values)` where it is none of them. No statistic of the rows went into any of these.
    """

    x: npt.NDArray[np.float32] = field(repr=False)
    """One row for each row, one column for each of `schema.features`."""
    y: npt.NDArray[Any] | None = field(repr=False)
    """int64 codes of the classes, or float32 on [-1, 1]; None where no target was read."""
    schema: Schema
    users: npt.NDArray[np.int64] | None = field(default=None, repr=False)
    """Whose each row is: 0, 1, … in the order of their first rows; None where the schema has no user."""
    user_keys: npt.NDArray[np.uint64] | None = field(default=None, repr=False)
    """For each user a number that depends on the user's id alone."""

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: Index, rows: int | None = None) -> Table:
        """Return the selected rows; users are numbered anew, in the order of their first rows.

        Args:
            index: Which rows: a mask with one entry per row, or row numbers.
            rows: A public number of rows for the selection; None if there is none. It is never counted.
        """
        users, keys = self.users, self.user_keys
        if users is not None and keys is not None:
            users, keys = numbered(keys[users[index]])
        schema = replace(self.schema, rows=rows)
        return Table(self.x[index], None if self.y is None else self.y[index], schema, users, keys)


@dataclass(frozen=True, eq=False)
class Images:
    """Images with classes: private rows, and public facts about them."""

    x: npt.NDArray[np.uint8] = field(repr=False)
    """[rows, height, width] or [rows, channels, height, width]."""
    y: npt.NDArray[np.int64] = field(repr=False)
    classes: tuple[str, ...]
    rows: int | None
    """A public number of rows."""
    peak: int = 255
    """The largest value that a pixel can have."""

    def __post_init__(self) -> None:
        if self.x.dtype != np.uint8 or self.x.ndim not in (3, 4) or len(self.x) != len(self.y):
            raise InvalidInput("x", "is not uint8 of 3 or 4 dimensions with one row for each of y")

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: Index, rows: int | None = None) -> Images:
        """Return the selected images.

        Args:
            index: Which images: a mask with one entry per image, or row numbers.
            rows: A public number of rows for the selection; None if there is none. It is never counted.
        """
        return Images(self.x[index], self.y[index], self.classes, rows, self.peak)


def numbered(keys: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Number the users in the order in which they first appear.

    Args:
        keys: The key of each row's user.

    Returns:
        The number of each row's user, and the key of each number.
    """
    found, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place[which], found[order]
