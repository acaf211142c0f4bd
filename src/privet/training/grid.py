"""A run's noise on a grid: how many rows may be added, how fine the grid is, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from privet.core import InvalidInput
from privet.core.random import Rng
from privet.training.clipping import Adaptive
from privet.training.lattice import Lattice, error_bound

if TYPE_CHECKING:
    from privet.training.plan import DPSGD

__all__ = ["ASSUMPTION", "Grid", "most_units"]

ASSUMPTION = "what a row adds does not depend on the rest of its batch, to the last bit"


@dataclass(frozen=True)
class Grid:
    """Exact noise for sums of gradients that are written out and added in float64 (`docs/explanation/noise.md`).

    Guarantee: `Gaussian(noise_multiplier)` for a sum of at most `most` units, each no longer than the clip: rounding to
    the grid and the rounding of the sum are in the sensitivity, and the deviation is that much larger.
    """

    lattice: Lattice
    deviation: float
    dimension: int
    most: int

    @staticmethod
    def of(plan: DPSGD, dimension: int) -> Grid:
        """For a plan with `noise="lattice"`."""
        if isinstance(plan.clipping, Adaptive):
            problem = "is adaptive, and the count's noise is not on a grid"
            raise InvalidInput("clipping", problem, "use another clipping, or noise='real'")
        multiplier = plan.noise_multiplier or 0.0
        if multiplier <= 0:
            raise InvalidInput("noise_multiplier", "is 0, and a grid without noise protects nobody", "give some noise")
        most = most_units(plan.batch_size or 1)
        lattice = Lattice.for_deviation(multiplier * plan.clip)
        error = error_bound(plan.clip, examples=most, dimension=dimension)
        return Grid(lattice, lattice.deviation(multiplier, plan.clip, dimension, error), dimension, most)

    def noisy(self, total: Tensor, rng: Rng) -> Tensor:
        """The sum on the grid, with its noise."""
        return self.lattice.add(total, self.deviation, rng)


def most_units(batch_size: int) -> int:
    """More units than any batch has: a Poisson batch exceeds this with a probability below 2^-4096."""
    return 32 * batch_size + 8192
