"""Reading the `size` argument that every sampler takes."""

from __future__ import annotations

import math
import operator

from privet.core.errors import InvalidInput
from privet.core.random.protocol import Size

__all__ = ["count_of", "shape_of"]


def count_of(argument: str, value: int) -> int:
    """`value` as an int that is not negative."""
    try:
        count = operator.index(value)
    except TypeError:
        raise InvalidInput(argument, f"is a {type(value).__name__}", "give a whole number") from None
    if count < 0:
        raise InvalidInput(argument, f"is {count}, which is negative", "give 0 or more")
    return count


def shape_of(size: Size) -> tuple[tuple[int, ...], int]:
    """The shape that `size` asks for, and how many draws fill it.

    >>> shape_of(3), shape_of((2, 5)), shape_of(())
    (((3,), 3), ((2, 5), 10), ((), 1))
    """
    shape = tuple(count_of("size", n) for n in size) if isinstance(size, tuple) else (count_of("size", size),)
    return shape, math.prod(shape)
