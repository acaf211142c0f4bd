"""What every mechanism for means offers: a report about one number, a running sum, and an estimate of the mean.

Numbers between `low` and `high` are put on a grid of `steps` steps, up or down at random so that nothing is lost on
average, and what is drawn about a step is whole numbers, exactly. Reports are whole numbers too: `(report - center) ·
gain` is an unbiased estimate of the number, on a scale from -1 to 1.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput, checked
from privet.core.random import Rng
from privet.local.randomizer import Randomizer, ReportState, whole_numbers
from privet.local.shares import quantile
from privet.mechanisms import Integers, usable

__all__ = ["Mean", "MeanMechanism", "ReportSum"]

_FARTHEST = 1 << 40
"""No noise of ours reaches this far; a report beyond it was not drawn."""


@dataclass(frozen=True)
class Mean:
    """An estimated mean among those who reported; the variance is that of the noise, the numbers being as they are."""

    reports: int
    estimate: float
    """Unbiased; it may lie outside of the bounds."""
    variance: float
    low: float
    high: float

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the ends of a normal interval, cut to the bounds; it covers as stated from some hundred reports on.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        half = quantile(confidence) * math.sqrt(self.variance)
        return self._within(self.estimate - half), self._within(self.estimate + half)

    def drawn(self, share: float) -> Mean:
        """Return the same estimate for all who answered, of whom each reported with probability `share`.

        Args:
            share: The probability to report.
        """
        most = (self.high - self.low) ** 2 / 4
        return replace(self, variance=self.variance + most * (1 - share) / max(self.reports, 1))

    def consistent(self) -> float:
        """Return the nearest possible mean; free post-processing."""
        return self._within(self.estimate)

    def _within(self, value: float) -> float:
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class ReportSum(ReportState[Mean]):
    """Sums of reports and of their squares."""

    of: MeanMechanism
    reports: int = 0
    total: int = 0
    squares: float = 0.0

    def _merge(self, other: ReportSum) -> ReportSum:
        return ReportSum(self.of, self.reports + other.reports, self.total + other.total, self.squares + other.squares)


@dataclass(frozen=True)
class MeanMechanism(Randomizer[ReportSum, Mean]):
    """A way to report a number between two public bounds under local differential privacy."""

    epsilon: float
    low: float = -1.0
    high: float = 1.0
    steps: int = 1 << 16

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", usable(self.epsilon))
        for name in ("low", "high"):
            object.__setattr__(self, name, checked.finite(name, getattr(self, name)))
        if not (self.low < self.high and math.isfinite(self.high - self.low)):
            raise InvalidInput("high", f"is {self.high}, and low is {self.low}", "give two bounds, the lower one first")
        if checked.count("steps", self.steps, 2) > 1 << 20 or self.steps % 2:
            raise InvalidInput("steps", f"is {self.steps}", "use an even number up to 2**20")

    @property
    def center(self) -> float:
        """The mean report about a number halfway between the bounds."""
        return self.steps / 2

    @property
    def gain(self) -> float:
        """What one unit of a report is worth, on the scale from -1 to 1."""
        return 2 / self.steps

    @property
    @abstractmethod
    def noise(self) -> tuple[float, float]:
        """The a and b of the variance a·t² + b of a report about t, on the scale from -1 to 1."""

    @property
    def outputs(self) -> int | None:
        """Reports are 0, 1, …, outputs - 1; or any whole numbers, if None."""
        return None

    @abstractmethod
    def _draw(self, steps: Integers, rng: Rng) -> Integers:
        """One report for each number of steps above `low`."""

    def randomize(self, values: npt.ArrayLike, rng: Rng) -> Integers:
        """Return one report for each number, which is cut to the bounds first.

        Args:
            values: One answer for each respondent.
            rng: The randomness of the reports.

        Raises:
            InvalidInput: A value is no number. Nothing is drawn.
        """
        return self._draw(self._on_grid(values, rng), rng)

    def empty(self) -> ReportSum:
        """Return the state of no reports."""
        return ReportSum(self)

    def _aggregate(self, reports: npt.NDArray[Any]) -> ReportSum:
        real = reports.astype(np.float64)
        return ReportSum(self, reports.size, int(reports.sum()), float(real @ real))

    def checked_reports(self, reports: npt.ArrayLike) -> Integers:
        """Return reports as an array, if they all could have been made by this mechanism.

        Args:
            reports: Reports as they were received.

        Raises:
            InvalidInput: A report could not have been made.
        """
        low, high = (-_FARTHEST, _FARTHEST) if self.outputs is None else (0, self.outputs - 1)
        return whole_numbers("reports", reports, low, high, "drop what no respondent can send")

    def _estimate(self, state: ReportSum) -> Mean:
        n = state.reports
        mean = (state.total / n - self.center) * self.gain
        slope, floor = self.noise
        # What reports are worth squared tells the mean square of the numbers, except where their square is constant
        # (Duchi); there the square of the mean is taken, which is at most that, so that the variance is at least right.
        least = min(mean**2, 1.0)
        moment = self.gain**2 * (state.squares / n - 2 * self.center * state.total / n + self.center**2)
        square = min(max((moment - floor) / (1 + slope), least), 1.0) if slope > -1 else least
        half = (self.high - self.low) / 2
        return Mean(n, self.low + half * (1 + mean), half**2 * (floor + slope * square) / n, self.low, self.high)

    def variance(self, value: float) -> float:
        """Return the variance of one report about this number.

        Args:
            value: The number.
        """
        slope, floor = self.noise
        half = (self.high - self.low) / 2
        scaled = (min(max(value, self.low), self.high) - self.low) / half - 1
        return half**2 * (slope * scaled**2 + floor)

    @property
    def worst_variance(self) -> float:
        """The largest variance of one report, on the scale from -1 to 1."""
        slope, floor = self.noise
        return floor + max(slope, 0.0)

    def _on_grid(self, values: npt.ArrayLike, rng: Rng) -> Integers:
        numbers: npt.NDArray[Any] = np.atleast_1d(np.asarray(values))
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iufb") or np.isnan(numbers).any():
            raise InvalidInput("values", "are not a row of numbers", "leave those out who do not answer")
        cut = np.clip(numbers.astype(np.float64), self.low, self.high)
        position = np.clip((cut - self.low) / (self.high - self.low) * self.steps, 0, self.steps)
        below = np.floor(position)
        above = rng.uniform(numbers.size) < position - below
        return (below + above).astype(np.int64)
