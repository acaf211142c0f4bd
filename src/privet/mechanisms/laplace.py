"""Laplace noise, drawn exactly on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from privet.core import checked, event
from privet.core.bounded import Bounded
from privet.core.random import Rng, discrete_laplace
from privet.core.release import Release
from privet.mechanisms import additive
from privet.mechanisms.grid import Grid, ceiling
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import COUNT, Of, Reach, reach_of

__all__ = ["Laplace"]


@dataclass(frozen=True)
class Laplace:
    """Laplace noise of one scale on a number or on every coordinate of a vector (Dwork, McSherry, Nissim & Smith 2006).

    The noise is discrete, on a grid of a power of two that has at least 128 steps in a contribution, or on the whole
    numbers where the answers are whole; the event is that of the noise actually drawn.

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.count import Count
    >>> count = Count()
    >>> laplace = Laplace.for_epsilon(0.5, count)
    >>> laplace.event, round(laplace.interval(0.95), 1)
    (DiscreteLaplace(scale=2.0, bound=1, dimension=1), 6.0)
    >>> isinstance(laplace.release(count([1, 0, 1]), rng=SeededRng(1)).value, float)
    True
    """

    scale: float
    """In the units of the answer."""
    of: Of = COUNT

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", reach_of(self.of))
        additive.usable_scale("scale", self.scale, self.grid)

    @staticmethod
    def for_epsilon(epsilon: float, of: Of = COUNT) -> Laplace:
        """With the least noise that is ε-DP for the unit: L1 distance over ε."""
        grid = Grid.for_noise(reach_of(of), "l1")
        steps = grid.reach.span * ceiling(grid.contribution("l1"))
        scale = steps * grid.step / checked.positive("epsilon", epsilon)
        return Laplace(additive.settled(lambda scale: Laplace(scale, of).event, scale, epsilon, grid.reach.unit), of)

    @property
    def reach(self) -> Reach:
        """What the mechanism was made for."""
        return reach_of(self.of)

    @cached_property
    def grid(self) -> Grid:
        """Where the noise lives."""
        return Grid.for_noise(self.reach, "l1")

    @cached_property
    def event(self) -> event.DiscreteLaplace:
        """The discrete noise, in steps; the coordinates that one unit cannot move do not count."""
        grid = self.grid
        moved = min(math.ceil(self.reach.distance("l0")), self.reach.dimension)
        return event.DiscreteLaplace(self.scale / grid.step, ceiling(grid.contribution("l1")), moved)

    @property
    def expected_error(self) -> float:
        """E|noise| of one coordinate; rounding to the grid adds less than half a step."""
        return additive.laplace_error(self.scale / self.grid.step) * self.grid.step

    def interval(self, confidence: float) -> float:
        """The half-width for one coordinate, rounding to the grid included."""
        width = additive.laplace_width(self.scale / self.grid.step, additive.checked_confidence(confidence))
        return (width + (0.0 if self.grid.exact else 0.5)) * self.grid.step

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[Any]:
        """The answer with its noise, as float64.

        Guarantee: `DiscreteLaplace` in steps of the grid, for the unit and neighbours of the reach: pure
        ε = L1 distance / scale (Ghosh, Roughgarden & Sundararajan 2012; the grid is covered in `grid`). The support is
        all multiples of the step, whatever the data. No assumption on floating-point numbers.
        """
        scale, grid = self.event.scale, self.grid
        return additive.noisy(
            query, self.event, grid, lambda n: discrete_laplace(scale, n, rng), whole=False, rng=rng, source=source
        )
