"""Bounds for numbers of which nothing is known but that most of them are not astronomically large."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.core import Bounded, InvalidInput, Release, event
from privet.core.random import Rng
from privet.mechanisms.additive import checked_confidence, laplace_width
from privet.mechanisms.discrete_laplace import DiscreteLaplaceMechanism
from privet.mechanisms.grid import Integers
from privet.mechanisms.histogram import Histogram, Magnitudes
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import ForClipper

__all__ = ["Bounds"]


@dataclass(frozen=True)
class Bounds(ForClipper):
    """The powers of two between which the values lie (Wilson et al. 2020, approximate bounds).

    Values are counted by sign and size, one count for each power of two; the counts get noise, and the outermost ones
    above what noise alone reaches, with a chance of 1 - `confidence` in any of them, are the bounds.

    >>> from privet.core.random import SeededRng
    >>> sizes = Histogram(Magnitudes())
    >>> found = Bounds.for_epsilon(1.0, sizes).release(sizes([20.0, 35.5, 61.0] * 100), rng=SeededRng(1))
    >>> found.value
    (16.0, 64.0)
    """

    noise: DiscreteLaplaceMechanism
    of: Histogram
    """Counts of numbers in `Magnitudes`."""
    confidence: float = 0.999
    """With which no empty count passes for a full one."""

    def __post_init__(self) -> None:
        checked_confidence(self.confidence)
        if not isinstance(self.of, Histogram) or not isinstance(self.of.bins, Magnitudes):
            raise InvalidInput("of", "is not a histogram of magnitudes", "use Histogram(Magnitudes())")
        if self.noise.reach != self.of.reach:
            raise InvalidInput("noise", "was made for another clipper", "make it for this histogram")

    @staticmethod
    def for_epsilon(epsilon: float, of: Histogram, confidence: float = 0.999) -> Bounds:
        """Return the mechanism that is ε-DP for the unit of the histogram.

        Args:
            epsilon: The privacy cost of one release, for the unit of the clipper.
            of: A histogram of `Magnitudes`.
            confidence: With which no empty count passes for a full one.

        Raises:
            InvalidInput: ε or δ is out of range.
        """
        return Bounds(DiscreteLaplaceMechanism.for_epsilon(epsilon, of), of, confidence)

    @property
    def event(self) -> event.DiscreteLaplace:
        """The noise on the counts; finding the bounds in them is post-processing."""
        return self.noise.event

    @property
    def threshold(self) -> int:
        """What a noisy count must exceed to be taken for a full one."""
        return laplace_width(self.noise.scale, 2 * (1 - self.confidence) / self.reach.dimension)

    @property
    def expected_error(self) -> float:
        """The mean error of one count, in rows."""
        return self.noise.expected_error

    def interval(self, confidence: float) -> float:
        """Return how many rows may lie beyond either bound, as far as noise can hide them, at most.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        per_count = (1 - checked_confidence(confidence)) ** (1 / self.reach.dimension)
        return self.threshold + self.noise.interval(min(per_count, math.nextafter(1.0, 0.0)))

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[tuple[float, float]]:
        """Return (lower, upper), both 0 or powers of two with a sign, lower < upper.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: that of `DiscreteLaplaceMechanism` on the counts, for the unit and neighbors of the histogram; the
        rest is post-processing (Wilson et al. 2020, §5.2). Where no count passes, as without rows, the largest noisy
        one is taken; nothing raises.
        """
        return self.noise.release(query, rng=rng, source=source).map(self._range)

    def _range(self, counts: Integers) -> tuple[float, float]:
        passed = np.flatnonzero(counts > self.threshold)
        if not passed.size:
            passed = np.array([counts.argmax()])
        bins = self.of.bins
        edges = bins.edges if isinstance(bins, Magnitudes) else np.zeros(0)
        lower, upper = float(edges[passed[0]]), float(edges[passed[-1] + 1])
        # The middle count is of numbers that count as 0: a bound of 2^least on its far side says no more than 0 does.
        middle = len(counts) // 2
        lower = 0.0 if passed[0] == middle and passed[-1] != middle else lower
        upper = 0.0 if passed[-1] == middle and passed[0] != middle else upper
        return lower, upper
