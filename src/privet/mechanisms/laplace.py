"""Laplace noise, drawn exactly on a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from privet.core import checked, event
from privet.core.random import discrete_laplace
from privet.mechanisms import additive
from privet.mechanisms.grid import NoiseGrid, ceiling
from privet.mechanisms.reach import COUNT, Of, Reach, reach_of

__all__ = ["LaplaceMechanism", "LaplaceNoise"]


@dataclass(frozen=True)
class LaplaceNoise(additive.AdditiveNoise):
    """P(x) ∝ e^(-|x|/scale) on the steps of a grid: what `LaplaceMechanism` and `DiscreteLaplace` share."""

    law = additive.NoiseLaw(discrete_laplace, additive.laplace_error, additive.laplace_width)
    scale: float
    """In the units of the answer."""
    of: Of = COUNT

    def __post_init__(self) -> None:
        super().__post_init__()
        additive.usable_scale("scale", self.scale, self.grid)

    @classmethod
    def for_epsilon(cls, epsilon: float, of: Of = COUNT) -> Self:
        """Return the mechanism with the least noise that is ε-DP for the unit: L1 distance over ε.

        Args:
            epsilon: The privacy cost of one release, for the unit of the clipper.
            of: The clipper whose answers are to be released, or its reach.

        Raises:
            InvalidInput: If ε is not a positive number, or needs noise beyond the range of the grid.
        """
        grid = cls.grid_of(reach_of(of))
        steps = grid.reach.span * ceiling(grid.contribution("l1"))
        scale = steps * grid.step / checked.positive("epsilon", epsilon)
        return cls(additive.settled_scale(lambda scale: cls(scale, of).event, scale, epsilon, grid.reach.unit), of)

    @cached_property
    def event(self) -> event.DiscreteLaplace:
        """The discrete noise, in steps; the coordinates that one unit cannot move do not count."""
        grid = self.grid
        moved = min(math.ceil(self.reach.distance("l0")), self.reach.dimension)
        return event.DiscreteLaplace(self.scale / grid.step, ceiling(grid.contribution("l1")), moved)

    @property
    def steps(self) -> float:
        return self.event.scale


@dataclass(frozen=True)
class LaplaceMechanism(LaplaceNoise):
    """Laplace noise of one scale on a number or on every coordinate of a vector (Dwork, McSherry, Nissim & Smith 2006).

    The noise is discrete, on a grid of a power of two that has at least 128 steps in a contribution, or on the whole
    numbers where the answers are whole; the event is that of the noise actually drawn. Answers are float64.

    Guarantee: `DiscreteLaplace` in steps of the grid, for the unit and neighbors of the reach: pure
    ε = L1 distance / scale (Ghosh, Roughgarden & Sundararajan 2012; the grid is covered in `grid`). The support is
    all multiples of the step, whatever the data. No assumption on floating-point numbers.

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.count import Count
    >>> count = Count()
    >>> laplace = LaplaceMechanism.for_epsilon(0.5, count)
    >>> laplace.event, round(laplace.interval(0.95), 1)
    (DiscreteLaplace(scale=2.0, bound=1, dimension=1), 6.0)
    >>> isinstance(laplace.release(count([1, 0, 1]), rng=SeededRng(1)).value, float)
    True
    """

    @staticmethod
    def grid_of(reach: Reach) -> NoiseGrid:
        """Return a grid of a power of two; the whole numbers where the answers are whole.

        Args:
            reach: How far one unit moves the answers.
        """
        return NoiseGrid.for_noise(reach, "l1")
