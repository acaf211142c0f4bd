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
from privet.core.random import Rng
from privet.local.randomizer import Randomizer, ReportState, whole_numbers
from privet.local.shares import Shares
from privet.mechanisms import Integers, usable

__all__ = ["FrequencyOracle", "NumberOracle", "PureOracle", "Tally", "collect_reports"]

_AT_ONCE = 1 << 16


@dataclass(frozen=True, eq=False)
class Tally(ReportState[Shares]):
    """Counts of reports, as an oracle needs them to estimate shares."""

    of: FrequencyOracle
    reports: int
    counts: Integers

    def _merge(self, other: Tally) -> Tally:
        return Tally(self.of, self.reports + other.reports, self.counts + other.counts)


@dataclass(frozen=True)
class FrequencyOracle(Randomizer[Tally, Shares]):
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
    def _count(self, reports: npt.NDArray[Any]) -> Integers:
        """The counts of valid reports."""

    def empty(self) -> Tally:
        """Return the tally of no reports."""
        return Tally(self, 0, np.zeros(self.slots, dtype=np.int64))

    def _aggregate(self, reports: npt.NDArray[Any]) -> Tally:
        return Tally(self, len(reports), self._count(reports))

    def checked_values(self, values: npt.ArrayLike) -> Integers:
        """Return answers as a row of whole numbers below `domain`; an error does not repeat them.

        Args:
            values: One answer for each respondent.

        Raises:
            InvalidInput: A value is no possible answer. Nothing is drawn.
        """
        return whole_numbers("values", values, 0, self.domain - 1, "number the answers from 0")


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

    def _estimate(self, state: Tally) -> Shares:
        reports = state.reports
        gain, floor = float(self.keep - self.other), self.variance(0.0)
        shares = (self._supports(state.counts) / reports - float(self.other)) / gain
        slope = (self.variance(1.0) - floor) / reports
        return Shares(reports, shares, floor / reports, slope, (float(self.keep), float(self.other)))

    def variance(self, share: float) -> float:
        """Return the variance of an estimate from one report, on average; n reports have 1/n of it.

        (1-h)·q(1-q)/(p-q)² + h·p(1-p)/(p-q)², with p = `keep` and q = `other`.

        Args:
            share: The true share of the value.
        """
        keep, other, true = self.keep, self.other, Fraction(share)
        return float((true * keep * (1 - keep) + (1 - true) * other * (1 - other)) / (keep - other) ** 2)


@dataclass(frozen=True)
class NumberOracle(PureOracle):
    """An oracle that reports one of the numbers 0, 1, …, outputs - 1; a tally counts each of them."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many different reports there are."""

    @property
    def slots(self) -> int:
        return self.outputs

    @property
    def report_bits(self) -> int:
        return (self.outputs - 1).bit_length()

    def checked_reports(self, reports: npt.ArrayLike) -> Integers:
        return whole_numbers("reports", reports, 0, self.outputs - 1, "drop what no respondent can send")

    def _count(self, reports: npt.NDArray[Any]) -> Integers:
        return np.bincount(reports, minlength=self.outputs)


def collect_reports(oracle: FrequencyOracle, values: npt.ArrayLike, rng: Rng, *, at_once: int = _AT_ONCE) -> Tally:
    """Randomize and aggregate many answers, some at a time, so that memory does not grow with their number.

    For simulations, and for those who hold answers and want local guarantees for what they keep of them.

    Args:
        oracle: The oracle.
        values: One answer for each respondent.
        rng: The randomness of the reports.
        at_once: How many answers are in memory at a time.

    Raises:
        InvalidInput: A value is no possible answer. Nothing is drawn.
    """
    answers, tally = oracle.checked_values(values), oracle.empty()
    for start in range(0, len(answers), checked.count("at_once", at_once)):
        tally = oracle.aggregate(oracle.randomize(answers[start : start + at_once], rng), tally)
    return tally
