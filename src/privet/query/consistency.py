"""Counts that agree: none is negative, and the groups of the same rows add up to the same number. Free post-processing.

Several questions may count the same rows: `count`, `count by ward`, `histogram(age)`. Each of them gives an estimate of
how many rows there are; they are weighed by their variances, and each question's groups share what is missing equally.
With independent noise that is the least-squares solution (Hay, Rastogi, Miklau & Suciu 2010, for a tree of one level).
Then every list of groups is projected onto the numbers that are not negative and have this sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["agreed", "projected"]


def agreed(counts: Sequence[npt.NDArray[np.float64]], variances: Sequence[float]) -> list[npt.NDArray[np.float64]]:
    """The counts of several questions about the same rows, made to agree; `variances` are of one count in each.

    >>> total, wards = agreed([np.array([100.0]), np.array([60.0, 46.0])], [1.0, 1.0])
    >>> total.tolist(), wards.tolist()
    ([102.0], [58.0, 44.0])
    """
    precisions = [1 / (len(values) * variance) for values, variance in zip(counts, variances, strict=True)]
    weighed = sum(float(values.sum()) * precision for values, precision in zip(counts, precisions, strict=True))
    total = max(weighed / sum(precisions), 0.0)
    return [projected(values + (total - values.sum()) / len(values), total) for values in counts]


def projected(values: npt.NDArray[np.float64], total: float) -> npt.NDArray[np.float64]:
    """The nearest numbers that are not negative and add up to `total`.

    >>> projected(np.array([5.0, 1.0, -2.0]), 4.0).tolist()
    [4.0, 0.0, 0.0]
    """
    if total <= 0:
        return np.zeros_like(values)
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    least = excess[np.flatnonzero(ordered > excess)[-1]]
    return np.asarray(np.maximum(values - least, 0.0))
