"""What an aggregator is: noisy votes in, labels or no answer out, with the event that says what was drawn.

All of them add exact discrete noise to whole counts and release nothing but labels, so that what they do is
post-processing of noisy counts. Of equal noisy counts the first wins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from privet.core import Event, Unit, checked
from privet.core.random import Rng, discrete_gaussian
from privet.mechanisms import GaussianPrice, NoiseGrid
from privet.pate.tails import Reals, log_at_least
from privet.pate.votes import Counts, top_reach

__all__ = ["NO_ANSWER", "Aggregator", "NoisyArgmax", "ThresholdTest"]

NO_ANSWER = -1
"""What stands for a query that got no label, inside; a release has None in its place."""


@dataclass(frozen=True)
class ThresholdTest:
    """Whether enough teachers agree, tested with discrete Gaussian noise; charged whether it is passed or not."""

    threshold: int
    sigma: float

    def __post_init__(self) -> None:
        checked.count("threshold", self.threshold, 0)
        object.__setattr__(self, "sigma", checked.positive("threshold_sigma", self.sigma))

    def event(self, unit: Unit) -> Event:
        """Return the event of the noise on a number that one teacher moves by 1."""
        return GaussianPrice(NoiseGrid.whole(top_reach(unit))).event(self.sigma)

    def passes(self, support: Counts, rng: Rng) -> npt.NDArray[np.bool_]:
        """Return for each number whether it reaches the threshold, with noise of its own."""
        return np.asarray(support + discrete_gaussian(self.sigma, len(support), rng) >= self.threshold)

    def log_chances(self, support: Counts) -> tuple[Reals, Reals]:
        """Return log P(passed) and log P(not passed), exactly."""
        missing = self.threshold - support
        return log_at_least(missing, self.sigma), log_at_least(1 - missing, self.sigma)


class Aggregator(Protocol):
    """From counts to labels. Its fields are public; the counts are an argument."""

    @property
    def test(self) -> ThresholdTest | None:
        """The test before any label is drawn; None where every query is answered."""
        ...

    def vote(self, unit: Unit, labels: int) -> Event:
        """Return the event of drawing one label from the votes.

        Args:
            unit: Whose data is protected.
            labels: The number of labels.
        """
        ...

    def support(self, counts: Counts) -> Counts:
        """Return what a threshold is compared with, for each row: one vote moves it by 1 at most.

        Args:
            counts: One row of votes for each query.
        """
        ...

    def labels_of(self, counts: Counts, answers: int, rng: Rng) -> Counts:
        """Return a label for each row of counts, or `NO_ANSWER`; at most `answers` of them are drawn from votes.

        Args:
            counts: One row of votes for each query.
            answers: How many labels may be drawn.
            rng: The randomness of the noise.
        """
        ...

    def log_ahead(self, gaps: Counts) -> Reals:
        """Return log P(a label that is `gap` votes behind another comes out level or ahead of it).

        Args:
            gaps: How many votes each label is behind.
        """
        ...

    def given_missed(self, log_q: Reals, order: float) -> Reals:
        """Return a bound on D_a of one label where the likeliest one is missed with probability q at most.

        Args:
            log_q: log of a bound on the probability that the likeliest label is missed.
            order: The Rényi order.
        """
        ...


class NoisyArgmax(ABC):
    """The label with the most votes after noise on each count: what `LNMax` and `GNMax` share."""

    @property
    def test(self) -> None:
        """None: every query is answered."""
        return

    @abstractmethod
    def noise(self, shape: tuple[int, ...], rng: Rng) -> Counts:
        """Draw the noise of counts of this shape: what `vote` is the event of."""

    def support(self, counts: Counts) -> Counts:
        """Return the largest count."""
        return np.asarray(counts.max(axis=1))

    def noisy(self, counts: Counts, rng: Rng) -> Counts:
        """Return the counts with noise: what `vote` is the price of."""
        return np.asarray(counts + self.noise(counts.shape, rng))

    def labels_of(self, counts: Counts, answers: int, rng: Rng) -> Counts:
        """Return the label of the largest noisy count, for the first `answers` rows."""
        labels = np.full(len(counts), NO_ANSWER, dtype=np.int64)
        labels[:answers] = self.noisy(counts[:answers], rng).argmax(axis=1)
        return labels
