"""Aggregators: noisy votes in, labels or no answer out, with the event that says what was drawn.

All of them add exact discrete noise to whole counts and release nothing but labels, so that what they do is
post-processing of noisy counts. Of equal noisy counts the first wins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from privet.core import checked
from privet.core.errors import InvalidInput
from privet.core.event import DiscreteLaplace, Event, Repeated
from privet.core.random import Rng, discrete_gaussian, discrete_laplace
from privet.core.unit import Unit
from privet.mechanisms.gaussian_price import GaussianPrice
from privet.mechanisms.grid import Grid
from privet.pate.tails import Reals, log_ahead_gaussian, log_ahead_laplace, log_at_least
from privet.pate.theorems import theorem_3, theorem_6
from privet.pate.votes import Counts, moved_teachers, top_reach, vote_reach

__all__ = ["NO_ANSWER", "Aggregator", "Confident", "GNMax", "Interactive", "LNMax", "ThresholdTest"]

NO_ANSWER = -1
"""What stands for a question that got no label, inside; a release has None in its place."""


@dataclass(frozen=True)
class ThresholdTest:
    """Whether enough teachers agree, asked with discrete Gaussian noise; charged whether it is passed or not."""

    threshold: int
    sigma: float

    def __post_init__(self) -> None:
        checked.count("threshold", self.threshold, 0)
        object.__setattr__(self, "sigma", checked.positive("threshold_sigma", self.sigma))

    def event(self, unit: Unit) -> Event:
        """The noise on a number that one teacher moves by 1."""
        return GaussianPrice(Grid.whole(top_reach(unit))).event(self.sigma)

    def passed(self, support: Counts, rng: Rng) -> npt.NDArray[np.bool_]:
        """One draw for each number: whether it reaches the threshold, with noise."""
        found: npt.NDArray[np.bool_] = support + discrete_gaussian(self.sigma, len(support), rng) >= self.threshold
        return found

    def log_chances(self, support: Counts) -> tuple[Reals, Reals]:
        """log P(passed) and log P(not passed), exactly."""
        missing = self.threshold - support
        return log_at_least(missing, self.sigma), log_at_least(1 - missing, self.sigma)


class Aggregator(Protocol):
    """From counts to labels. Its fields are public; the counts are an argument."""

    @property
    def test(self) -> ThresholdTest | None:
        """What is asked before any label is drawn; None where every question is answered."""
        ...

    def vote(self, unit: Unit, labels: int) -> Event:
        """What drawing one label from the votes does."""
        ...

    def support(self, counts: Counts) -> Counts:
        """What a threshold is compared with, for each row: one vote moves it by 1 at most."""
        ...

    def labels_of(self, counts: Counts, answers: int, rng: Rng) -> Counts:
        """A label for each row of counts, or `NO_ANSWER`; at most `answers` of them are drawn from votes."""
        ...

    def log_ahead(self, gaps: Counts) -> Reals:
        """log P(a label that is `gap` votes behind another comes out level or ahead of it)."""
        ...

    def given_missed(self, log_q: Reals, order: float) -> Reals:
        """A bound on D_a of one label where the likeliest is missed with probability q at most; one teacher moves."""
        ...


@dataclass(frozen=True)
class LNMax:
    """The label with the most votes after discrete Laplace noise on each count (Papernot et al. 2017).

    >>> LNMax(20.0).vote(Unit(), 10)
    Repeated(event=DiscreteLaplace(scale=20.0, bound=1, dimension=1), count=2)
    """

    scale: float
    """Of the noise on each count, in votes; 1/γ in the paper."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked.positive("scale", self.scale))

    @property
    def test(self) -> None:
        """Nothing: every question is answered."""
        return

    def vote(self, unit: Unit, labels: int) -> Event:
        """Two counts that move by 1 each, or for units that change several teachers all of L1 in one bound."""
        if moved_teachers(unit) == 1:
            return Repeated(DiscreteLaplace(self.scale, 1), 2)
        return DiscreteLaplace(self.scale, 2, max(2, labels))

    def log_ahead(self, gaps: Counts) -> Reals:
        """By the exact law of the difference of two noises."""
        return log_ahead_laplace(gaps, self.scale)

    def given_missed(self, log_q: Reals, order: float) -> Reals:
        """Papernot et al. 2017, Theorem 3, with ε = 2/scale."""
        return theorem_3(log_q, 2 / self.scale, order)

    def support(self, counts: Counts) -> Counts:
        """The largest count."""
        return _largest(counts)

    def labels_of(self, counts: Counts, answers: int, rng: Rng) -> Counts:
        """The place of the largest noisy count, for the first `answers` rows."""
        return _first(counts, answers, lambda rows: self.noisy(rows, rng))

    def noisy(self, counts: Counts, rng: Rng) -> Counts:
        """The counts with noise: what `vote` is the price of."""
        found: Counts = counts + discrete_laplace(self.scale, counts.shape, rng)
        return found


@dataclass(frozen=True)
class GNMax:
    """The label with the most votes after discrete Gaussian noise on each count (Papernot et al. 2018).

    >>> GNMax(40.0).vote(Unit(), 10)
    Repeated(event=DiscreteGaussian(sigma=40.0, bound=1.0, dimension=1), count=2)
    """

    sigma: float
    """Of the noise on each count, in votes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checked.positive("sigma", self.sigma))

    @property
    def test(self) -> None:
        """Nothing: every question is answered."""
        return

    def vote(self, unit: Unit, labels: int) -> Event:
        """Two counts that move by 1 each, or for units that change several teachers their joint length."""
        return GaussianPrice(Grid.whole(vote_reach(unit, labels))).event(self.sigma)

    def log_ahead(self, gaps: Counts) -> Reals:
        """By the exact law of the difference of two noises."""
        return log_ahead_gaussian(gaps, self.sigma)

    def given_missed(self, log_q: Reals, order: float) -> Reals:
        """Papernot et al. 2018, Theorem 6, with ρ = 1/σ² (Canonne, Kamath & Steinke 2020, Thm 4, twice)."""
        return theorem_6(log_q, 1 / self.sigma**2, order)

    def support(self, counts: Counts) -> Counts:
        """The largest count."""
        return _largest(counts)

    def labels_of(self, counts: Counts, answers: int, rng: Rng) -> Counts:
        """The place of the largest noisy count, for the first `answers` rows."""
        return _first(counts, answers, lambda rows: self.noisy(rows, rng))

    def noisy(self, counts: Counts, rng: Rng) -> Counts:
        """The counts with noise: what `vote` is the price of."""
        found: Counts = counts + discrete_gaussian(self.sigma, counts.shape, rng)
        return found


@dataclass(frozen=True)
class Confident:
    """GNMax for questions on which enough teachers agree; whether they do is asked with noise, and charged.

    Papernot et al. 2018, Algorithm 1: no answer unless the largest count, with noise, reaches the threshold.

    >>> Confident(threshold=200, threshold_sigma=150.0, sigma=40.0).test.event(Unit())
    DiscreteGaussian(sigma=150.0, bound=1.0, dimension=1)
    """

    threshold: int
    threshold_sigma: float
    sigma: float

    def __post_init__(self) -> None:
        _checked(self)

    @property
    def test(self) -> ThresholdTest:
        """Of the largest count, which one teacher moves by 1."""
        return ThresholdTest(self.threshold, self.threshold_sigma)

    def vote(self, unit: Unit, labels: int) -> Event:
        """That of GNMax."""
        return GNMax(self.sigma).vote(unit, labels)

    def log_ahead(self, gaps: Counts) -> Reals:
        """That of GNMax."""
        return GNMax(self.sigma).log_ahead(gaps)

    def given_missed(self, log_q: Reals, order: float) -> Reals:
        """That of GNMax."""
        return GNMax(self.sigma).given_missed(log_q, order)

    def support(self, counts: Counts) -> Counts:
        """The largest count."""
        return _largest(counts)

    def labels_of(self, counts: Counts, answers: int, rng: Rng) -> Counts:
        """Labels for the first `answers` rows that pass the test."""
        return _tested(self, counts, answers, rng)


@dataclass(frozen=True)
class Interactive:
    """GNMax where the teachers disagree with the student; where they do not, the student's own label if it is sure.

    Papernot et al. 2018, Algorithm 2: the threshold is compared with the largest excess of the votes over what the
    student expects of them. The student must have been made from public data and earlier releases alone: then its
    expectations are public, and its own label is free.

    >>> import numpy as np
    >>> sure = np.array([[0.99, 0.01]])
    >>> again = Interactive(threshold=200, threshold_sigma=150.0, sigma=40.0, student=sure, confidence=0.9)
    >>> again.support(np.array([[250, 0]])).tolist()
    [2]
    """

    threshold: int
    threshold_sigma: float
    sigma: float
    student: Any = field(repr=False, compare=False)
    """The student's probabilities: one row for each question, one column for each label."""
    confidence: float = 0.9
    """Above this probability the student's own label is taken where the teachers agree with it."""

    def __post_init__(self) -> None:
        _checked(self)
        checked.probability("confidence", self.confidence)
        said = np.array(self.student, dtype=np.float64)
        if said.ndim != 2 or not np.isfinite(said).all() or said.min(initial=0.0) < 0:
            raise InvalidInput("student", "is no table of probabilities", "give one row for each question")
        if (abs(said.sum(axis=1) - 1) > 1e-3).any():
            raise InvalidInput("student", "has a row that does not add up to 1", "give probabilities, not scores")
        said.setflags(write=False)
        object.__setattr__(self, "student", said)

    @property
    def test(self) -> ThresholdTest:
        """Of the largest excess, which one teacher moves by 1."""
        return ThresholdTest(self.threshold, self.threshold_sigma)

    def vote(self, unit: Unit, labels: int) -> Event:
        """That of GNMax."""
        return GNMax(self.sigma).vote(unit, labels)

    def log_ahead(self, gaps: Counts) -> Reals:
        """That of GNMax."""
        return GNMax(self.sigma).log_ahead(gaps)

    def given_missed(self, log_q: Reals, order: float) -> Reals:
        """That of GNMax."""
        return GNMax(self.sigma).given_missed(log_q, order)

    def support(self, counts: Counts) -> Counts:
        """The largest excess of the votes over the student's expectation, which is rounded to whole votes."""
        if counts.shape != self.student.shape:
            problem = f"has the shape {self.student.shape}, and the votes {counts.shape}"
            raise InvalidInput("student", problem, "predict every question")
        expected = np.rint(self.student * counts[0].sum()).astype(np.int64)
        found: Counts = (counts - expected).max(axis=1)
        return found

    def labels_of(self, counts: Counts, answers: int, rng: Rng) -> Counts:
        """Labels for the first `answers` rows that pass the test, and the student's own where it is sure."""
        found = _tested(self, counts, answers, rng)
        own = np.where(self.student.max(axis=1) > self.confidence, self.student.argmax(axis=1), NO_ANSWER)
        return np.where(found == NO_ANSWER, own, found)


def _checked(one: Confident | Interactive) -> None:
    object.__setattr__(one, "threshold_sigma", one.test.sigma)
    object.__setattr__(one, "sigma", checked.positive("sigma", one.sigma))


def _largest(counts: Counts) -> Counts:
    found: Counts = counts.max(axis=1)
    return found


def _first(counts: Counts, answers: int, noisy: Any) -> Counts:
    found = np.full(len(counts), NO_ANSWER, dtype=np.int64)
    found[:answers] = noisy(counts[:answers]).argmax(axis=1)
    return found


def _tested(one: Confident | Interactive, counts: Counts, answers: int, rng: Rng) -> Counts:
    """One test for every row, then one noisy vote for each of the first `answers` rows that passed."""
    passed = np.flatnonzero(one.test.passed(one.support(counts), rng))[:answers]
    found = np.full(len(counts), NO_ANSWER, dtype=np.int64)
    found[passed] = GNMax(one.sigma).labels_of(counts[passed], len(passed), rng)
    return found
