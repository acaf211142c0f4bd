"""A sum of vectors of which only a few coordinates matter: find them, and release these alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.accounting import calibrate
from privet.core import Bounded, Release, checked, event
from privet.core.random import Rng, discrete_laplace
from privet.mechanisms.additive import checked_confidence, laplace_error, laplace_width
from privet.mechanisms.grid import NoiseGrid, ceiling
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import Of, reach_of
from privet.mechanisms.selection import RepeatedChoice

__all__ = ["Peeling"]


@dataclass(frozen=True)
class Peeling(RepeatedChoice):
    """The k coordinates of largest size, with noise, and 0 elsewhere (Dwork, Su & Zhang 2021; Cai, Wang & Zhang 2021).

    One after another, the coordinate whose size and noise together are largest is taken; then the taken ones are
    released with fresh noise. For a sparse mean in many dimensions the error grows with k·log(dimension) and not with
    the dimension. Each choice, and each of the k numbers, has the same ε. Divide by the number of rows with `map`,
    where that is public or released.

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.sums import Norm, VectorSum
    >>> sums = VectorSum(1000, 1.0, Norm.LINF)
    >>> rows = np.zeros((2000, 1000))
    >>> rows[:, 7] = 1.0
    >>> found = Peeling.for_epsilon(1.0, 1e-6, sums, k=3).release(sums(rows), rng=SeededRng(1)).value
    >>> int(np.abs(found).argmax()), int(np.count_nonzero(found) <= 3)
    (7, 1)
    """

    @staticmethod
    def for_epsilon(epsilon: float, delta: float, of: Of, *, k: int) -> Peeling:
        """Return the mechanism with as much ε for each part as the accountant allows within (ε, δ).

        Args:
            epsilon: The privacy cost of one release, for the unit of the clipper.
            delta: The δ at which ε is stated.
            of: The clipper whose answers are to be released, or its reach.
            k: The number of coordinates.

        Raises:
            InvalidInput: ε or δ is out of range.
        """
        reach = reach_of(of)
        share = calibrate.most(
            lambda share_of_each: Peeling(share_of_each, reach, k).event,
            epsilon=epsilon,
            delta=delta,
            unit=reach.unit,
            high=checked.positive("epsilon", epsilon),
        )
        return Peeling(share, of, k)

    @property
    def grid(self) -> NoiseGrid:
        """Where the coordinates and their noise live."""
        return NoiseGrid.for_noise(self.reach, "linf")

    @property
    def scale(self) -> float:
        """The scale of the noise of one number, in steps; a choice has twice that."""
        return ceiling(self.grid.contribution("linf")) / self.epsilon

    @property
    def event(self) -> event.Composed:
        """k choices by noisy maximum, and k numbers."""
        number = event.DiscreteLaplace(self.scale, ceiling(self.grid.contribution("linf")))
        return event.Composed((event.Repeated(event.NoisyMax(self.epsilon), self.k), event.Repeated(number, self.k)))

    @property
    def expected_error(self) -> float:
        """E|noise| of one coordinate that is released."""
        return laplace_error(self.scale) * self.grid.step

    def interval(self, confidence: float) -> float:
        """Return the half-width for one coordinate that is released; others may be off by their size.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        width = laplace_width(self.scale, checked_confidence(confidence))
        return (width + (0.0 if self.grid.exact else 0.5)) * self.grid.step

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[npt.NDArray[np.float64]]:
        """Return the vector, 0 but for k coordinates.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: k choices, each the largest of sizes that a unit moves by its L∞ distance with Laplace noise of twice
        the scale (`ReportNoisyMax`), and k numbers with Laplace noise, all on a grid, for the unit and neighbors of
        the reach; the accountant composes them, where the papers use advanced composition (Cai et al. 2021, Alg. 2 and
        Lemma 3.1).
        """
        self.reach.require(query)
        steps = self.grid.steps(query.value).reshape(-1)
        sizes, left = np.abs(steps), np.ones(len(steps), dtype=np.bool_)
        # A size moves no further than its coordinate does, and up or down: two ways, whatever the coordinates do.
        wide = 2 * self.grid.moves("linf") / (Fraction(self.epsilon) * self.reach.span)
        for _ in range(self.k):
            noisy = sizes + discrete_laplace(wide, len(steps), rng)
            left[int(np.where(left, noisy, np.iinfo(np.int64).min).argmax())] = False
        taken = np.flatnonzero(~left)
        vector = np.zeros(len(steps))
        vector[taken] = self.grid.back(steps[taken] + discrete_laplace(self.scale, len(taken), rng))
        return Release.of(vector, self.event, unit=query.unit, source=source, randomness=rng.kind)
