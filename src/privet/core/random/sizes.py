"""The `size` argument that every sampler takes, and the types of the arrays that they fill."""

from __future__ import annotations

import math
import operator
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from privet.core.errors import InvalidInput

__all__ = ["Bytes", "Size", "count_of", "shape_of"]

Bytes: TypeAlias = npt.NDArray[np.uint8]
F = TypeVar("F", np.float32, np.float64)
Size: TypeAlias = int | tuple[int, ...]


def count_of(argument: str, value: int) -> int:
    """Return `value` as an int that is not negative.

    Raises:
        InvalidInput: It is negative, or not a whole number.
    """
    try:
        count = operator.index(value)
    except TypeError:
        raise InvalidInput(argument, f"is a {type(value).__name__}", "give a whole number") from None
    if count < 0:
        raise InvalidInput(argument, f"is {count}, which is negative", "give 0 or more")
    return count


def shape_of(size: Size) -> tuple[tuple[int, ...], int]:
    """Return the shape that `size` describes, and how many draws fill it.

    >>> shape_of(3), shape_of((2, 5)), shape_of(())
    (((3,), 3), ((2, 5), 10), ((), 1))
    """
    shape = tuple(count_of("size", n) for n in size) if isinstance(size, tuple) else (count_of("size", size),)
    return shape, math.prod(shape)
