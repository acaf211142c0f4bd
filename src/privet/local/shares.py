"""What reports say about the share of each value: an unbiased estimate, its variance, and intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtr, ndtri

from privet.core import checked

__all__ = ["Floats", "Shares", "on_simplex", "quantile"]

Floats = npt.NDArray[np.float64]
_FEW = 200


@dataclass(frozen=True, eq=False)
class Shares:
    """Estimated shares of the values 0, 1, … among those who reported.

    The variance is that of the randomized reports, the answers being what they are. Whoever wants to speak of people
    who were not asked has to add the variance of that sample, at most 1/(4·reports).
    """

    reports: int
    estimate: Floats
    """Unbiased; some may be below 0 or above 1, and they need not sum to 1."""
    floor: float | Floats
    """The variance for a value that nobody holds."""
    slope: float | Floats
    """By how much the variance grows up to a value that everybody holds."""
    chances: tuple[float, float] | None = None
    """The chances that a report supports its sender's value and any other one, where there are just these two."""
    sample: float = 0.0
    """The share h adds h·(1 - h) times this, where those who reported were drawn from all who answered."""

    def variance(self, share: float | Floats | None = None) -> Floats:
        """Return the variance of each estimate.

        Args:
            share: The true share; the estimate, cut to 0 … 1, by default.
        """
        true = np.clip(self.estimate if share is None else np.asarray(share, dtype=np.float64), 0.0, 1.0)
        return np.broadcast_to(self.floor + self.slope * true + self.sample * true * (1 - true), self.estimate.shape)

    def drawn(self, share: float) -> Shares:
        """Return the same estimates for all who answered, of whom each reported with probability `share`.

        Args:
            share: The probability to report.
        """
        return replace(self, sample=(1 - share) / max(self.reports, 1))

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return the low and the high end for each share by itself: all shares h with (estimate - h)² ≤ z²·variance(h).

        This is Wilson's interval, good where the sum of the reports is near a normal law. With fewer than 200 reports
        it is Clopper and Pearson's (1934) for the number of reports that support a value; that number has shorter tails
        than the binomial law of its mean (Hoeffding 1956, Thm 4), also where those who reported were drawn at random,
        so that it covers at least as often as stated.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        if self.chances is not None and self.reports < _FEW:
            return self._few(quantile(confidence), *self.chances)
        z2 = quantile(confidence) ** 2
        # (1 + z²·sample)·h² - (2x + z²·(slope + sample))·h + x² - z²·floor ≤ 0
        square = 1 + z2 * self.sample
        half = self.estimate + z2 * (self.slope + self.sample) / 2
        root = np.sqrt(np.maximum(half**2 - square * (self.estimate**2 - z2 * self.floor), 0.0))
        return np.clip((half - root) / square, 0.0, 1.0), np.clip((half + root) / square, 0.0, 1.0)

    def _few(self, z: float, keep: float, other: float) -> tuple[Floats, Floats]:
        count = np.rint((self.estimate * (keep - other) + other) * self.reports)
        miss = float(ndtr(-z))
        low = np.where(count > 0, betaincinv(np.maximum(count, 1), self.reports - count + 1, miss), 0.0)
        left = np.maximum(self.reports - count, 1)
        high = np.where(count < self.reports, betaincinv(count + 1, left, 1 - miss), 1.0)
        ends = ((end - other) / (keep - other) for end in (low, high))
        first, last = (np.clip(end, 0.0, 1.0) for end in ends)
        return first, last

    def consistent(self) -> Floats:
        """Return the nearest shares that are not negative and sum to 1; post-processing, no longer unbiased."""
        return on_simplex(self.estimate)


def quantile(confidence: float) -> float:
    """Return the z of a two-sided normal interval.

    Args:
        confidence: The confidence, between 0 and 1.

    >>> round(quantile(0.95), 3)
    1.96
    """
    return -float(ndtri((1 - checked.confidence("confidence", confidence)) / 2))


def on_simplex(values: Floats) -> Floats:
    """The point of the simplex that is nearest in L2 (the Norm-Sub of Wang et al. 2020: shift all, cut at 0).

    >>> on_simplex(np.array([0.7, 0.5, -0.1])).round(2).tolist()
    [0.6, 0.4, 0.0]
    """
    falling = np.sort(values)[::-1]
    shifts = (np.cumsum(falling) - 1.0) / np.arange(1, values.size + 1)
    last = int(np.flatnonzero(falling - shifts > 0)[-1])
    return np.asarray(np.maximum(values - shifts[last], 0.0))
