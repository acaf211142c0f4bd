"""Discrete Laplace noise on whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from privet.core import checked, event
from privet.core.bounded import Bounded
from privet.core.random import Rng, discrete_laplace
from privet.core.release import Release
from privet.mechanisms import additive
from privet.mechanisms.grid import Grid, ceiling
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import COUNT, Of, Reach, reach_of

__all__ = ["DiscreteLaplace"]


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(x) ∝ e^(-|x|/scale) on whole numbers, also called the geometric mechanism (Ghosh et al. 2012): whole answers.

    A contribution is rounded up to a whole number, so that a count of replaced rows pays for two steps where one moves
    it; `Laplace`, which counts in halves there, does not.

    >>> DiscreteLaplace.for_epsilon(1.0).event
    DiscreteLaplace(scale=1.0, bound=1, dimension=1)
    """

    scale: float
    of: Of = COUNT

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", reach_of(self.of))
        additive.usable_scale("scale", self.scale, self.grid)

    @staticmethod
    def for_epsilon(epsilon: float, of: Of = COUNT) -> DiscreteLaplace:
        """With the least noise that is ε-DP for the unit."""
        grid = Grid.whole(reach_of(of))
        steps = grid.reach.span * ceiling(grid.contribution("l1"))
        scale = steps / checked.positive("epsilon", epsilon)
        unit = grid.reach.unit
        return DiscreteLaplace(
            additive.settled(lambda scale: DiscreteLaplace(scale, of).event, scale, epsilon, unit), of
        )

    @property
    def reach(self) -> Reach:
        """What the mechanism was made for."""
        return reach_of(self.of)

    @property
    def grid(self) -> Grid:
        """The whole numbers."""
        return Grid.whole(self.reach)

    @property
    def event(self) -> event.DiscreteLaplace:
        """The noise; the coordinates that one unit cannot move do not count."""
        moved = min(math.ceil(self.reach.distance("l0")), self.reach.dimension)
        return event.DiscreteLaplace(self.scale, ceiling(self.grid.contribution("l1")), moved)

    @property
    def expected_error(self) -> float:
        """E|noise| of one coordinate, exactly."""
        return additive.laplace_error(self.scale)

    def interval(self, confidence: float) -> float:
        """The half-width for one coordinate."""
        return float(additive.laplace_width(self.scale, additive.checked_confidence(confidence)))

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[Any]:
        """The answer with its noise, as whole numbers.

        Guarantee: pure ε = L1 distance / scale, for the unit and neighbours of the reach (Ghosh, Roughgarden &
        Sundararajan 2012, Thm 3.1's mechanism; the ratio of two masses is e^(|x|-|y|)/scale). The support is all whole
        numbers, whatever the data.
        """
        scale = self.event.scale
        return additive.noisy(
            query, self.event, self.grid, lambda n: discrete_laplace(scale, n, rng), whole=True, rng=rng, source=source
        )
