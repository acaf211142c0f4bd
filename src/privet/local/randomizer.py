"""What every local randomizer offers, whatever its reports are about: a price, a unit, and reports as a release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core.errors import InvalidInput
from privet.core.event import Event, Pure
from privet.core.random import Rng
from privet.core.release import Release
from privet.core.unit import Neighbours, Trust, Unit, Whose
from privet.mechanisms.coins import Integers

__all__ = ["ONE_REPORT", "Randomizer", "whole_numbers"]

ONE_REPORT = Unit(whose=Whose.USER, neighbours=Neighbours.REPLACE, trust=Trust.LOCAL)
"""One person's answer becomes any other one, and nobody else is trusted."""


class Randomizer(ABC):
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
        """One report for each answer; this runs on the side of whoever answers.

        Each report is ε-DP for a replaced answer by itself. What is no answer raises before anything is drawn.
        """

    def release(self, values: npt.ArrayLike, *, rng: Rng, source: str = "answers") -> Release[npt.NDArray[Any]]:
        """The reports as a release.

        Guarantee: each report is `event`, for the unit `unit`: one person's answer becomes any other one, and whoever
        collects the reports need not be trusted. Exact probabilities (`privet.mechanisms.coins`); how a number is put
        on a grid does not matter to it, and nothing is assumed of others' answers. Whoever answers twice pays twice.
        """
        return Release.of(self.randomize(values, rng), self.event, unit=self.unit, source=source, randomness=rng.kind)


def whole_numbers(argument: str, values: npt.ArrayLike) -> Integers:
    """A row of whole numbers."""
    found = np.atleast_1d(np.asarray(values))
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iub"):
        raise InvalidInput(argument, "are not a row of whole numbers", "give a list or an array of integers")
    return found.astype(np.int64, copy=False)
