"""The default δ: one rule for every command and estimator, from a public or released number of units.

A mechanism that publishes one random unit of n in full is (0, 1/n)-DP, so a δ near 1/n promises nothing (Dwork & Roth
2014, Section 2.3). The default is a tenth of 1/n, rounded down to one digit, and never above 1e-3.
"""

from __future__ import annotations

from privet.core import checked

__all__ = ["LARGEST_DEFAULT_DELTA", "PRIVATE_COUNT_DELTA", "default_delta", "is_near_one_unit"]

PRIVATE_COUNT_DELTA = 1e-6
"""The default δ where the number of units is private, so that δ must not depend on it."""
LARGEST_DEFAULT_DELTA = 1e-3
"""The default δ for fewer than 100 units: a larger one would be a likely failure, however few they are."""
_MARGIN = 10


def default_delta(units: int | None) -> float:
    """Return the δ that is used where nobody gives one.

    Args:
        units: the public or released number of privacy units: rows, or users if the unit is a user. Where only the
            number of rows is public, give that: there are no more users than rows. None if the number is private.

    Returns:
        1/(10 · units) rounded down to one digit, at most 1e-3; 1e-6 if the number is private.

    >>> [default_delta(units) for units in (50, 600, 1_437, 60_000)], default_delta(None)
    ([0.001, 0.0001, 6e-05, 1e-06], 1e-06)
    """
    if units is None:
        return PRIVATE_COUNT_DELTA
    inverse = _MARGIN * checked.count("units", units)
    places = len(str(inverse - 1))  # the least with 10^places ≥ inverse
    return min(LARGEST_DEFAULT_DELTA, float(f"{10**places // inverse}e-{places}"))


def is_near_one_unit(delta: float, units: int) -> bool:
    """Whether δ is above a tenth of 1/units, and so not well below the chance of publishing one unit.

    >>> is_near_one_unit(1e-3, 50), is_near_one_unit(1e-3, 5_000)
    (False, True)
    """
    return delta * units * _MARGIN > 1
