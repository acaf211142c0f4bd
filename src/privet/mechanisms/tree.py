"""Running sums: after every step the sum so far, at a price that grows with the logarithm of the steps."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.accounting import calibrate
from privet.core import Bounded, Draw, InvalidInput, Release, event
from privet.core.random import Rng, discrete_gaussian
from privet.mechanisms.additive import checked_confidence, gaussian_error, gaussian_width, usable_scale
from privet.mechanisms.grid import FINE, NoiseGrid, ceiling
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import ForReach, Of, reach_of

__all__ = ["RunningSums", "TreeSession"]


@dataclass(frozen=True)
class RunningSums(ForReach):
    """All running sums of a vector, by a binary tree of partial sums (Dwork et al. 2010; Chan, Shi & Song 2011).

    With T steps, each step is in at most ⌊log₂T⌋ + 1 partial sums, and each running sum is made of at most as many,
    each with discrete Gaussian noise of deviation `sigma`.

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.histogram import Categories, Histogram
    >>> days = Histogram(Categories(tuple(range(7))))
    >>> week = RunningSums.for_epsilon(1.0, 1e-6, days)
    >>> week.levels, week.release(days([0, 0, 1, 5]), rng=SeededRng(1)).value.shape
    (3, (7,))
    """

    sigma: float
    of: Of
    """The clipper of the steps: a histogram over public periods, for one. Its dimension is the number of steps."""

    def __post_init__(self) -> None:
        super().__post_init__()
        usable_scale("sigma", self.sigma, self.grid)

    @staticmethod
    def for_epsilon(epsilon: float, delta: float, of: Of) -> RunningSums:
        """Return the mechanism with the least noise, to 0.1 %, that costs (ε, δ) for the unit.

        Args:
            epsilon: The privacy cost of one release, for the unit of the clipper.
            delta: The δ at which ε is stated.
            of: The clipper whose answers are to be released, or its reach.

        Raises:
            InvalidInput: ε or δ is out of range.
        """
        reach = reach_of(of)

        def build(multiplier: float) -> event.Event:
            return RunningSums(multiplier * float(reach.distance("l1")), reach).event

        multiplier = calibrate.least(build, epsilon=epsilon, delta=delta, unit=reach.unit)
        return RunningSums(multiplier * float(reach.distance("l1")), of)

    @property
    def grid(self) -> NoiseGrid:
        """Where sums and noise live."""
        return NoiseGrid.for_noise(self.reach, "l1", fine=FINE)

    @property
    def levels(self) -> int:
        """How many partial sums hold one step, at most."""
        return self.reach.dimension.bit_length()

    @property
    def event(self) -> event.Event:
        """A discrete Gaussian for each level: there, a unit moves the partial sums by at most its L1 distance."""
        moved, bound = math.ceil(self.reach.distance("l0")), ceiling(self.grid.contribution("l1"))
        one = event.DiscreteGaussian(self.sigma / self.grid.step, bound, moved)
        return one if self.levels == 1 else event.Repeated(one, self.levels)

    @property
    def expected_error(self) -> float:
        """A bound on the mean error of a running sum: as if each had noise from all levels."""
        return gaussian_error(self.sigma / self.grid.step) * math.sqrt(self.levels) * self.grid.step * (1 + 1e-3)

    def interval(self, confidence: float) -> float:
        """Return the half-width for one running sum, the worst of them, rounding included.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        miss = checked_confidence(confidence) / self.levels
        rounding = 0.0 if self.grid.exact else 0.5 * self.reach.dimension
        level_width = gaussian_width(self.sigma / self.grid.step, miss)
        together = (
            gaussian_width(self.sigma / self.grid.step * math.sqrt(self.levels), miss * self.levels) + self.levels
        )
        return (min(level_width * self.levels, together) + rounding) * self.grid.step

    def start(self, *, rng: Rng, source: str = SOURCE) -> TreeSession:
        """Start running sums of steps that arrive one by one; charge for the event first.

        Args:
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.
        """
        return TreeSession(self, rng, Draw(source, self.event, secrets.token_hex(16)))

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[npt.NDArray[np.float64]]:
        """Return the running sums, one for each step.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: `levels` discrete Gaussian releases (of vectors, where a unit moves several steps), for the unit and
        neighbors of the reach: a level holds each step once, so that a unit moves its partial sums by at most its L1
        distance, and all running sums are post-processing of the noisy partial sums.
        """
        self.reach.require(query)
        session = self.start(rng=rng, source=source)
        sums = [session._next(step) for step in self.grid.steps(query.value).reshape(-1).tolist()]  # noqa: SLF001
        return Release(np.array(sums), (session.draw,), query.unit, rng.kind)


@dataclass
class TreeSession:
    """Steps so far; all running sums together are one draw."""

    plan: RunningSums
    rng: Rng = field(repr=False)
    draw: Draw = field(repr=False)
    time: int = field(init=False, default=0)
    _exact: list[int] = field(init=False, repr=False)
    _noisy: list[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._exact, self._noisy = [0] * self.plan.levels, [0] * self.plan.levels

    def add(self, step: Bounded[Any]) -> Release[float]:
        """Return the sum up to and with this step.

        Args:
            step: The next step, bounded for the unit of the reach.

        Raises:
            InvalidInput: The step could move further than the plan says, or is one too many.

        Guarantee: as for `RunningSums.release`, for all sums of the session together, provided that over all steps a
        unit moves no more of them, and no further, than the plan's reach says. They are one draw, which `join` counts
        once.
        """
        steps, most = self.plan.grid.single_steps(step, monotone=False), self.plan.reach.dimension
        if self.time == most:
            problem = f"is one more than the {most} that the plan was made for"
            raise InvalidInput("step", problem, "make a plan of more steps; twice as many cost one level more")
        return Release(self._next(steps), (self.draw,), step.unit, self.rng.kind)

    def _next(self, step: int) -> float:
        """The binary counter: what has ended on the lower levels moves up, into a partial sum with noise of its own."""
        self.time += 1
        level = (self.time & -self.time).bit_length() - 1
        self._exact[level] = step + sum(self._exact[:level])
        self._noisy[level] = self._exact[level] + discrete_gaussian(
            self.plan.sigma / self.plan.grid.step, None, self.rng
        )
        for lower in range(level):
            self._exact[lower] = self._noisy[lower] = 0
        total = sum(noisy for bit, noisy in enumerate(self._noisy) if self.time >> bit & 1)
        return total * self.plan.grid.step
