"""Choosing one of many by score: scores as whole numbers, exact coins about them, and what all such choices share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from privet.core import Bounded, Event, InvalidInput, Release, checked
from privet.core.random import BITS, CEILING, PATIENCE, Exponents, Rng, accept, broken_source
from privet.mechanisms.additive import checked_confidence
from privet.mechanisms.grid import FINE, Integers, NoiseGrid
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import ForReach, Of, Reach, reach_of, steps_of

__all__ = ["ChoiceByScore", "RepeatedChoice", "Scores", "Selection", "coins", "exponential_choice", "random_order"]

_BATCH = 1 << 14


@dataclass(frozen=True)
class Scores:
    """Scores of a reach on a grid: whole numbers of which one unit moves each by at most `moved`."""

    reach: Reach

    @property
    def grid(self) -> NoiseGrid:
        """Fine enough that rounding costs next to nothing; the whole numbers for whole scores."""
        grid = NoiseGrid.for_noise(self.reach, "linf", fine=FINE)
        return NoiseGrid(self.reach, 1.0, True) if grid.exact else grid

    @property
    def moved(self) -> int:
        """How many steps one unit moves a score."""
        return math.ceil(self.grid.moves("linf"))

    @property
    def ways(self) -> int:
        """2, as one score may fall while another rises; 1 where whoever comes makes none of them smaller."""
        return 1 if self.reach.monotone else 2

    def rate(self, epsilon: float) -> Fraction:
        """ε of one contribution as ε a step: span·ε/(ways·moved), so that the unit's privacy cost is span·ε."""
        return Fraction(epsilon) * self.reach.span / (self.ways * self.moved)

    def width(self, epsilon: float) -> float:
        """Return one over the rate, in the units of the scores."""
        return self.grid.step / float(self.rate(epsilon))

    def steps(self, query: Bounded[Any]) -> Integers:
        """Return the scores in steps."""
        self.reach.require(query)
        return self.grid.steps(query.value).reshape(-1)

    def expected_gap(self, epsilon: float) -> float:
        """Return a bound on how far below the best score the chosen one is, on average: width·(1 + ln of the number).

        It holds for the exponential mechanism, and for whatever chooses no worse than that.
        """
        return self.width(epsilon) * (1 + math.log(self.reach.dimension))

    def largest_gap(self, epsilon: float, miss: float) -> float:
        """Return how far below the best score the chosen one is at most, but for a chance of `miss`.

        McSherry & Talwar 2007, Thm 6; it holds for whatever chooses no worse than the exponential mechanism.
        """
        rounding = 0.0 if self.grid.exact else self.grid.step
        return self.width(epsilon) * max(0.0, math.log(self.reach.dimension / miss)) + rounding


@dataclass(frozen=True)
class ChoiceByScore(ForReach):
    """A mechanism with choices by score, each of which has the same ε."""

    epsilon: float
    """Of each choice, for one contribution that comes or goes; `for_epsilon` works it out for the unit."""
    of: Of
    """The clipper of the scores: a histogram, a vector of clamped scores or losses with a minus."""

    def __post_init__(self) -> None:
        checked.positive("epsilon", self.epsilon)
        super().__post_init__()

    @property
    def expected_error(self) -> float:
        """A bound on how far below the best score (that is left) the chosen one is, on average."""
        return Scores(self.reach).expected_gap(self.epsilon)


@dataclass(frozen=True)
class RepeatedChoice(ChoiceByScore):
    """k coordinates, chosen one after another: what `TopK` and `Peeling` share."""

    k: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if checked.count("k", self.k) > self.reach.dimension:
            raise InvalidInput("k", f"is {self.k}, of {self.reach.dimension} coordinates", "ask for fewer")


@dataclass(frozen=True)
class Selection(ChoiceByScore, ABC):
    """One of many, chosen by score: what the exponential mechanism, noisy max and permute-and-flip share."""

    @classmethod
    def for_epsilon(cls, epsilon: float, of: Of) -> Self:
        """Return the mechanism that is ε-DP for the unit of the clipper.

        Args:
            epsilon: The privacy cost of one choice, for the unit of the clipper.
            of: The clipper of the scores, or its reach.

        Raises:
            InvalidInput: If ε is not a positive number.
        """
        return cls(steps_of(epsilon, reach_of(of).unit), of)

    @property
    @abstractmethod
    def event(self) -> Event:
        """The choice."""

    @abstractmethod
    def _choose(self, scores: Integers, rate: Fraction, rng: Rng) -> int:
        """Return the index of one of the scores, which are in steps; `rate` is ε a step."""

    def interval(self, confidence: float) -> float:
        """Return how far below the best score the chosen one is, at most.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        return Scores(self.reach).largest_gap(self.epsilon, checked_confidence(confidence))

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[int]:
        """Return the index of the chosen one.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: ε of one contribution, for the unit and neighbors of the reach; the class says by which theorem.
        Every index can come out, whatever the data.
        """
        scores = Scores(self.reach)
        chosen = self._choose(scores.steps(query), scores.rate(self.epsilon), rng)
        return Release.of(chosen, self.event, unit=query.unit, source=source, randomness=rng.kind)


def coins(gaps: Integers, rate: Fraction, rng: Rng) -> npt.NDArray[np.bool_]:
    """Return for each gap a coin that is true with probability e^(-rate·gap), exactly."""
    distinct, where = np.unique(gaps, return_inverse=True)
    gammas = [int(gap) * rate for gap in distinct]
    low = np.array([min(math.floor(gamma * 2**BITS), CEILING << BITS) for gamma in gammas], dtype=np.int64)
    high = np.array([min(math.ceil(gamma * 2**BITS), CEILING << BITS) for gamma in gammas], dtype=np.int64)
    return accept(Exponents(low[where], high[where], lambda i: gammas[where[i]]), rng)


def exponential_choice(gaps: Integers, rate: Fraction, rng: Rng) -> int:
    """Return an index with probability ∝ e^(-rate·gap), exactly: one is proposed at random, and accepted by its coin.

    The best one is always accepted, so that it takes no more than `len(gaps)` proposals on average.
    """
    size = len(gaps)
    for _ in range(PATIENCE * (1 + size // _BATCH)):
        proposed = rng.below(size, min(max(64, 2 * size), _BATCH))
        accepted = np.flatnonzero(coins(gaps[proposed], rate, rng))
        if accepted.size:
            return int(proposed[accepted[0]])
    raise broken_source()


def random_order(size: int, rng: Rng) -> Integers:
    """Return a permutation, each equally likely, exactly (Fisher & Yates)."""
    order = np.arange(size, dtype=np.int64)
    if size < 2:
        return order
    picks = rng.below(np.arange(size, 1, -1, dtype=np.int64)).tolist()
    listed = order.tolist()
    for index, pick in zip(range(size - 1, 0, -1), picks, strict=True):
        listed[index], listed[pick] = listed[pick], listed[index]
    return np.array(listed, dtype=np.int64)
