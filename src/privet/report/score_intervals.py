"""Confidence intervals of scores, each with a statement of what it covers.

A score on rows that were drawn at random differs from the score on all possible rows (sampling); a private score has
noise on top. The intervals here are proven for any number of rows, under one assumption: units (rows, or users with
all their rows) are independent draws; for users, also that a row is right as often whether its user has many rows or
few. Where noise and sampling are both covered, each has half of the allowed error
and a union bound joins them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.stats import beta

from privet.core import checked

__all__ = [
    "CONFIDENCE",
    "EXACT",
    "NOISE",
    "NOISE_AND_SAMPLING",
    "SAMPLING",
    "SAMPLING_INDEPENDENT",
    "SELECTED",
    "hoeffding",
    "mean_interval",
    "noisy_parts",
    "noisy_share",
    "share_interval",
]

CONFIDENCE = 0.95
NOISE = "the noise alone"
SAMPLING = "the sampling of the test rows"
SAMPLING_INDEPENDENT = f"{SAMPLING}, taken as independent of each other"
"""Where a user may have several rows: then the interval holds if rows of one user are as different as those of two."""
NOISE_AND_SAMPLING = "the noise and the sampling of the held-out rows"
EXACT = "these rows alone, exactly"
SELECTED = ", but not the choice of the best of several models"
"""What follows, where a model was chosen by this very score."""
_ROUNDS = 60
_Ends = tuple[float, float]


def share_interval(right: float, wrong: float, error: float) -> _Ends:
    """Return the interval of a probability from counts of independent trials (Clopper & Pearson 1934).

    Each end fails with half of `error` at most.

    >>> [round(end, 4) for end in share_interval(9, 1, 0.05)]
    [0.555, 0.9975]
    """
    half = checked.probability("error", error) / 2
    low = float(beta.ppf(half, right, wrong + 1)) if right > 0 else 0.0
    high = float(beta.ppf(1 - half, right + 1, wrong)) if wrong > 0 else 1.0
    return low, high


def mean_interval(total: float, count: float, error: float) -> _Ends:
    """Return the interval of the mean of independent numbers in [0, 1] from their sum and count.

    Each end fails with half of `error` at most.

    P(mean of n ≥ x) ≤ e^(-n·kl(x, p)) for x ≥ p and any law on [0, 1] of mean p (Hoeffding 1963, Thm 1).

    >>> [round(end, 4) for end in mean_interval(50.0, 100, 0.05)]
    [0.3667, 0.6333]
    """
    allowed = math.log(2 / checked.probability("error", error))
    if count <= 0:
        return 0.0, 1.0
    mean = min(max(total / count, 0.0), 1.0)
    return _least_mean(mean, count, allowed), 1 - _least_mean(1 - mean, count, allowed)


def _least_mean(mean: float, count: float, allowed: float) -> float:
    """The least p with count · kl(mean, p) ≤ allowed, rounded down."""
    low, high = 0.0, mean
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        inside = middle > 0 and count * _kl(mean, middle) <= allowed
        low, high = (low, middle) if inside else (middle, high)
    return low


def _kl(some: float, other: float) -> float:
    """The relative entropy of two coins."""
    first = some * math.log(some / other) if some > 0 else 0.0
    second = (1 - some) * math.log((1 - some) / (1 - other)) if some < 1 else 0.0
    return first + second


def hoeffding(mean: _Ends, effective: float, error: float) -> _Ends:
    """Return an interval around a mean in [0, 1] that is known up to an interval (Hoeffding 1963, Thm 2).

    Rows of one user are not independent. With n_u rows of user u in [0, 1] each, the effective number is
    (Σ n_u)² / Σ n_u², which is at least the number of rows over the most that one user has.
    """
    if effective <= 0:
        return 0.0, 1.0
    reach = math.sqrt(math.log(2 / checked.probability("error", error)) / (2 * effective))
    return max(mean[0] - reach, 0.0), min(mean[1] + reach, 1.0)


def noisy_share(right: float, wrong: float, reach: float, error: float, rows_per_unit: int = 1) -> _Ends:
    """Return the interval of a probability from two noisy counts.

    Neither count is off by more than `reach`; `error` is that of the sampling.
    Both ends of Clopper & Pearson rise with what is right and fall with what is wrong, so that over all counts within
    reach the extremes lie at two corners. The number of rows is not used but through the noisy counts.
    """
    return _over_reach(share_interval, _around(right, reach), _around(wrong, reach), error, rows_per_unit)


def noisy_parts(one: float, other: float, reach: float, error: float, rows_per_unit: int = 1) -> _Ends:
    """Return an interval of the mean of numbers in [0, 1] from two noisy sums, of the numbers and of 1 less each.

    Neither sum is off by more than `reach`; `error` is that of the sampling. With n = one + other, n·kl(one/n, p) falls
    in `other` for p < one/n and rises in `one`, so that the extremes over all sums within reach lie at two corners.
    """
    return _over_reach(_parts_interval, _around(one, reach), _around(other, reach), error, rows_per_unit)


def _parts_interval(one: float, other: float, error: float) -> _Ends:
    return mean_interval(one, one + other, error)


def _over_reach(
    interval: Callable[[float, float, float], _Ends], right: _Ends, wrong: _Ends, error: float, rows_per_unit: int
) -> _Ends:
    """The least and the largest end of an interval that rises with what is right and falls with what is wrong."""
    (least_right, most_right), (least_wrong, most_wrong) = right, wrong
    if rows_per_unit > 1:
        ends = _share(least_right, most_wrong, 0.0), _share(most_right, least_wrong, 1.0)
        return hoeffding(ends, (least_right + least_wrong) / rows_per_unit, error)
    return interval(least_right, most_wrong, error)[0], interval(most_right, least_wrong, error)[1]


def _around(noisy: float, reach: float) -> _Ends:
    return max(noisy - reach, 0.0), max(noisy + reach, 0.0)


def _share(right: float, wrong: float, otherwise: float) -> float:
    return right / (right + wrong) if right + wrong > 0 else otherwise
