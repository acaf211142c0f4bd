"""What every local randomizer offers, whatever its reports are about: an event, a unit, reports, their aggregation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from privet.core import Event, InvalidInput, Neighbours, Pure, Release, Trust, Unit, Whose
from privet.core.random import Rng
from privet.mechanisms import Integers

__all__ = ["ONE_REPORT", "Randomizer", "ReportState", "whole_numbers"]

ONE_REPORT = Unit(whose=Whose.USER, neighbours=Neighbours.REPLACE, trust=Trust.LOCAL)
"""One person's answer becomes any other one, and nobody else is trusted."""


E = TypeVar("E")
S = TypeVar("S", bound="ReportState[Any]")


class ReportState(ABC, Generic[E]):
    """The aggregate of any number of reports: its size does not depend on how many there are. `+` merges two."""

    of: Any
    """The randomizer that made the reports."""
    reports: int

    @abstractmethod
    def _merge(self, other: Self) -> Self:
        """Return the sum of two states of one randomizer."""

    def __add__(self, other: Self) -> Self:
        if not isinstance(other, type(self)):
            return NotImplemented
        if other.of != self.of:
            raise InvalidInput("tally", "is of another oracle or mechanism", "merge what was reported under one plan")
        return self._merge(other)

    def extended(self, reports: npt.ArrayLike) -> Self:
        """Return this state with more reports added.

        Args:
            reports: Reports as they were received.

        Raises:
            InvalidInput: A report could not have been made by the randomizer.
        """
        state: Self = self.of.aggregate(reports, self)
        return state

    def estimated(self) -> E:
        """Return the estimate from all reports.

        Raises:
            InvalidInput: There are no reports.
        """
        estimate: E = self.of.estimate(self)
        return estimate


class Randomizer(ABC, Generic[S, E]):
    """A way to report an answer under local differential privacy."""

    epsilon: float

    @property
    def event(self) -> Event:
        """What one report does to its sender's answer."""
        return Pure(self.epsilon, Neighbours.REPLACE)

    @property
    def unit(self) -> Unit:
        """One person's answer, which nobody else sees."""
        return ONE_REPORT

    @abstractmethod
    def randomize(self, values: npt.ArrayLike, rng: Rng) -> npt.NDArray[Any]:
        """Return one report for each answer; this runs on the side of whoever answers.

        Each report is ε-DP for a replaced answer by itself. What is no answer raises before anything is drawn.

        Args:
            values: One answer for each respondent.
            rng: The randomness of the reports.

        Raises:
            InvalidInput: A value is no possible answer. Nothing is drawn.
        """

    @abstractmethod
    def checked_reports(self, reports: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return reports as an array, if they all could have been made by this randomizer.

        Args:
            reports: Reports as they were received.

        Raises:
            InvalidInput: A report could not have been made.
        """

    @abstractmethod
    def _aggregate(self, reports: npt.NDArray[Any]) -> S:
        """The state of valid reports."""

    @abstractmethod
    def _estimate(self, state: S) -> E:
        """The estimate from one report or more."""

    def aggregate(self, reports: npt.ArrayLike, tally: S | None = None) -> S:
        """Return the state of these reports.

        Args:
            reports: Reports as they were received.
            tally: A state to add them to.

        Raises:
            InvalidInput: A report could not have been made by this randomizer.
        """
        state = self._aggregate(self.checked_reports(reports))
        return state if tally is None else tally + state

    def estimate(self, tally: S) -> E:
        """Return an unbiased estimate about those who reported.

        Args:
            tally: The state of their reports.

        Raises:
            InvalidInput: The state belongs to another randomizer, or holds no reports.
        """
        if tally.of != self:
            raise InvalidInput("tally", "is of another oracle or mechanism", "use the one that made the reports")
        if tally.reports < 1:
            raise InvalidInput("tally", "holds no reports", "aggregate some first")
        return self._estimate(tally)

    def release(self, values: npt.ArrayLike, *, rng: Rng, source: str = "answers") -> Release[npt.NDArray[Any]]:
        """Return the reports as a release.

        Args:
            values: One answer for each respondent.
            rng: The randomness of the reports.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: A value is no possible answer. Nothing is drawn.

        Guarantee: each report is `event`, for the unit `unit`: one person's answer becomes any other one, and whoever
        collects the reports need not be trusted. Exact probabilities (`privet.mechanisms.coins`); how a number is put
        on a grid does not matter to it, and nothing is assumed of others' answers. Whoever answers twice pays twice.
        """
        return Release.of(self.randomize(values, rng), self.event, unit=self.unit, source=source, randomness=rng.kind)


def whole_numbers(argument: str, values: npt.ArrayLike, low: int, high: int, advice: str) -> Integers:
    """Return a row of whole numbers from `low` to `high`; an error does not repeat them."""
    numbers = np.atleast_1d(np.asarray(values))
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iub"):
        raise InvalidInput(argument, "are not a row of whole numbers", "give a list or an array of integers")
    if numbers.size and not low <= int(numbers.min()) <= int(numbers.max()) <= high:
        raise InvalidInput(argument, f"are not all in {low} … {high}", advice)
    return numbers.astype(np.int64, copy=False)
