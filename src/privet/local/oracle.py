"""What every frequency oracle offers: reports on the respondent's side, a tally and estimates on the collector's.

An oracle is a small public plan. A report *supports* some of the values; it supports the one that its sender holds with
probability `keep`, and any other one with probability `other`. The number of reports that support a value, shifted and
scaled, is an unbiased estimate of its share (Wang, Blocki, Li & Jha 2017, "pure" protocols).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import checked
from privet.core.errors import InvalidInput
from privet.core.random import Rng
from privet.local.randomizer import Randomizer, whole_numbers
from privet.local.shares import Shares
from privet.mechanisms.coins import Integers, usable

__all__ = ["FrequencyOracle", "PureOracle", "Tally", "collect_reports"]

_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class Tally:
    """All that is kept of any number of reports: its size does not depend on how many they are. `+` merges."""

    of: FrequencyOracle
    reports: int
    counts: Integers

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if other.of != self.of:
            raise InvalidInput("tally", "is of another oracle", "merge what was reported under one plan")
        return Tally(self.of, self.reports + other.reports, self.counts + other.counts)

    def extended(self, reports: npt.ArrayLike) -> Tally:
        """This and some more reports."""
        return self.of.aggregate(reports, self)

    def estimated(self) -> Shares:
        """What the reports say."""
        return self.of.estimate(self)


@dataclass(frozen=True)
class FrequencyOracle(Randomizer):
    """A way to report one of the values 0, 1, …, domain - 1 under ε-local differential privacy."""

    domain: int
    epsilon: float

    def __post_init__(self) -> None:
        checked.count("domain", self.domain, 2)
        object.__setattr__(self, "epsilon", usable(self.epsilon))

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many counts a tally has."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """How long a report is."""

    @abstractmethod
    def checked_reports(self, reports: npt.ArrayLike) -> npt.NDArray[Any]:
        """Reports as they came in, if they all could have been made by this oracle."""

    @abstractmethod
    def _count(self, reports: npt.NDArray[Any]) -> Integers:
        """The counts of valid reports."""

    @abstractmethod
    def _estimate(self, reports: int, counts: Integers) -> Shares:
        """The shares, from the counts of one report or more."""

    def empty(self) -> Tally:
        """A tally of no reports."""
        return Tally(self, 0, np.zeros(self.slots, dtype=np.int64))

    def aggregate(self, reports: npt.ArrayLike, tally: Tally | None = None) -> Tally:
        """The tally of these reports, added to another one if there is one."""
        valid = self.checked_reports(reports)
        fresh = Tally(self, len(valid), self._count(valid))
        return fresh if tally is None else tally + fresh

    def estimate(self, tally: Tally) -> Shares:
        """The share of each value among those who reported, unbiased."""
        if tally.of != self:
            raise InvalidInput(
                "tally", "is of another oracle", "estimate with the oracle that the reports were made by"
            )
        if tally.reports < 1:
            raise InvalidInput("tally", "holds no reports", "aggregate some first")
        return self._estimate(tally.reports, tally.counts)

    def checked_values(self, values: npt.ArrayLike) -> Integers:
        """Answers as a row of whole numbers below `domain`; an error does not repeat them."""
        found = whole_numbers("values", values)
        if found.size and not 0 <= int(found.min()) <= int(found.max()) < self.domain:
            raise InvalidInput("values", f"are not all in 0 … {self.domain - 1}", "number the answers from 0")
        return found


@dataclass(frozen=True)
class PureOracle(FrequencyOracle):
    """An oracle whose reports support values, each with one of two probabilities."""

    @property
    @abstractmethod
    def keep(self) -> Fraction:
        """The chance, exactly, that a report supports its sender's value."""

    @property
    @abstractmethod
    def other(self) -> Fraction:
        """The chance, exactly, that a report supports any one other value."""

    @abstractmethod
    def _supports(self, counts: Integers) -> Integers:
        """For each value, how many reports support it."""

    def _estimate(self, reports: int, counts: Integers) -> Shares:
        gain, floor = float(self.keep - self.other), self.variance(0.0)
        shares = (self._supports(counts) / reports - float(self.other)) / gain
        slope = (self.variance(1.0) - floor) / reports
        return Shares(reports, shares, floor / reports, slope, (float(self.keep), float(self.other)))

    def variance(self, share: float) -> float:
        """The variance of an estimate from one report on average, for a value of this true share; n reports have 1/n.

        (1-h)·q(1-q)/(p-q)² + h·p(1-p)/(p-q)², with p = `keep` and q = `other`.
        """
        keep, other, true = self.keep, self.other, Fraction(share)
        return float((true * keep * (1 - keep) + (1 - true) * other * (1 - other)) / (keep - other) ** 2)


def collect_reports(oracle: FrequencyOracle, values: npt.ArrayLike, rng: Rng, *, at_once: int = _AT_ONCE) -> Tally:
    """Randomize and aggregate many answers, some at a time, so that memory does not grow with their number.

    For simulations, and for those who hold answers and want local guarantees for what they keep of them.
    """
    found, tally = oracle.checked_values(values), oracle.empty()
    for start in range(0, len(found), checked.count("at_once", at_once)):
        tally = oracle.aggregate(oracle.randomize(found[start : start + at_once], rng), tally)
    return tally
