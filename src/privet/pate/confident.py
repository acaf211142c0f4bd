"""Confident GNMax: queries on which enough teachers agree are answered, and others are not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privet.core import Event, Unit
from privet.core.random import Rng
from privet.pate.aggregator import NO_ANSWER, ThresholdTest
from privet.pate.gnmax import GNMax
from privet.pate.tails import Reals
from privet.pate.votes import Counts

__all__ = ["Confident", "ThresholdedGNMax"]


@dataclass(frozen=True)
class ThresholdedGNMax:
    """GNMax for the queries that pass a noisy test of their `support`: what `Confident` and `Interactive` share."""

    threshold: int
    threshold_sigma: float
    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold_sigma", self.test.sigma)
        object.__setattr__(self, "sigma", self.argmax.sigma)

    @property
    def test(self) -> ThresholdTest:
        """Of the `support`, which one teacher moves by 1."""
        return ThresholdTest(self.threshold, self.threshold_sigma)

    @property
    def argmax(self) -> GNMax:
        """What answers a query that passed."""
        return GNMax(self.sigma)

    def vote(self, unit: Unit, labels: int) -> Event:
        """As GNMax."""
        return self.argmax.vote(unit, labels)

    def log_ahead(self, gaps: Counts) -> Reals:
        """As GNMax."""
        return self.argmax.log_ahead(gaps)

    def given_missed(self, log_q: Reals, order: float) -> Reals:
        """As GNMax."""
        return self.argmax.given_missed(log_q, order)

    def support(self, counts: Counts) -> Counts:
        """Return the largest count."""
        return self.argmax.support(counts)

    def labels_of(self, counts: Counts, answers: int, rng: Rng) -> Counts:
        """Test every row, then draw one label for each of the first `answers` rows that passed."""
        passed = np.flatnonzero(self.test.passes(self.support(counts), rng))[:answers]
        labels = np.full(len(counts), NO_ANSWER, dtype=np.int64)
        labels[passed] = self.argmax.labels_of(counts[passed], len(passed), rng)
        return labels


@dataclass(frozen=True)
class Confident(ThresholdedGNMax):
    """GNMax for queries on which enough teachers agree; whether they do is tested with noise, and charged.

    Papernot et al. 2018, Algorithm 1: no answer unless the largest count, with noise, reaches the threshold.

    >>> Confident(threshold=200, threshold_sigma=150.0, sigma=40.0).test.event(Unit())
    DiscreteGaussian(sigma=150.0, bound=1.0, dimension=1)
    """
