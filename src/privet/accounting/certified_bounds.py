"""The two ends of a price: what is not a number proves nothing, and ends that contradict each other raise."""

from __future__ import annotations

import math
from typing import Final, Literal, TypedDict

from privet.core import Interval

__all__ = ["QUIET", "between", "certain"]


class _Quiet(TypedDict):
    over: Literal["ignore"]
    under: Literal["ignore"]
    divide: Literal["ignore"]
    invalid: Literal["ignore"]


QUIET: Final[_Quiet] = {"over": "ignore", "under": "ignore", "divide": "ignore", "invalid": "ignore"}
"""For `np.errstate` at the doors: absurd scales overflow on their way to an infinite bound; see `certain`."""
_ROUNDING = 1e-9
"""How far a lower end may be above the upper one, relatively, by the rounding of closed forms alone."""


def certain(upper: float, otherwise: float = math.inf) -> float:
    """An upper bound as it was found; where it is not a number, nothing was proven.

    >>> certain(1.5), certain(math.nan), certain(math.nan, 1.0)
    (1.5, inf, 1.0)
    """
    return otherwise if math.isnan(upper) else float(upper)


def between(lower: float, upper: float) -> Interval:
    """Both ends; a lower end above the upper one by more than rounding means that one of two proofs is wrong.

    Which of them cannot be known, so that neither may be shown: it raises, as a mistake of Privet's own.
    """
    upper = certain(upper)
    lower = 0.0 if math.isnan(lower) else lower
    if lower > upper * (1 + _ROUNDING) + 1e-300:
        raise ArithmeticError(f"two proven bounds contradict each other: at least {lower!r} and at most {upper!r}")
    return Interval(min(lower, upper), upper)
