"""A median whose noise follows the data: smooth sensitivity."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from privet.core import Bounded, InvalidInput, Neighbours, Release, Whose, checked, event
from privet.core.random import Rng, discrete_laplace
from privet.mechanisms.additive import checked_confidence, laplace_error, laplace_width
from privet.mechanisms.grid import NoiseGrid
from privet.mechanisms.histogram import Cells, Histogram, cells_of
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import ForClipper

__all__ = ["Sensitivities", "SmoothMedian"]


@dataclass(frozen=True, eq=False)
class Sensitivities:
    """How far one row moves a median: on any data, on these data, and smoothed over their neighbors.

    The first is public. **The others are internal**: they are computed from private rows without a charge to a budget,
    and they neither print nor pickle. Look at them while you learn; do not show them.
    """

    largest: float
    """The global sensitivity: the width of the public bounds."""
    local: float = field(repr=False)
    smooth: float = field(repr=False)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("local and smooth sensitivity are private and cannot be pickled or copied")


@dataclass(frozen=True)
class SmoothMedian(ForClipper):
    """The median of n rows, n public, with noise in proportion to how far it could move (Nissim et al. 2007).

    >>> from privet.core import Neighbours, Unit
    >>> from privet.core.random import SeededRng
    >>> ages = Histogram(Cells(0, 100, 1000, missing=50), Unit(neighbours=Neighbours.REPLACE))
    >>> median = SmoothMedian(1.0, 1e-6, ages)
    >>> 30 < median.release(ages([20, 40, 41] * 500 + [60] * 500), rng=SeededRng(1)).value < 50
    True
    """

    epsilon: float
    delta: float
    of: Histogram
    """Counts in `Cells` that say what a missing value is, for single rows that are replaced."""

    def __post_init__(self) -> None:
        checked.positive("epsilon", self.epsilon)
        if not 0 < checked.finite("delta", self.delta) <= 0.5:
            raise InvalidInput("delta", f"is {self.delta}", "give a share above 0 and at most 1/2, such as 1e-6")
        if self._cells.missing is None:
            advice = "use Histogram(Cells(lower, upper, size, missing=...), unit)"
            raise InvalidInput("of", "is not a histogram of cells in which every row counts", advice)
        unit = self.of.unit
        if (unit.neighbours, unit.whose, unit.records) != (Neighbours.REPLACE, Whose.EXAMPLE, 1):
            problem = f"protects {unit}, and smooth sensitivity is proven here for one row that is replaced"
            raise InvalidInput("of", problem, "use Unit(neighbours=Neighbours.REPLACE), or Quantile")

    @property
    def event(self) -> event.Approximate:
        """A block, as the scale of the noise depends on the data."""
        return event.Approximate(self.epsilon, self.delta, Neighbours.REPLACE)

    @property
    def far(self) -> float:
        """L: noise beyond L scales has a probability of at most δ·e^(-ε/2)."""
        return math.log(2 / self.delta) + self.epsilon / 2

    @property
    def beta(self) -> float:
        """How fast the smooth sensitivity may change from one data set to the next, less a part in a billion.

        The part is more than what rounding can do to a smooth sensitivity.
        """
        return math.log1p(self.epsilon / (2 * self.far)) * (1 - 1e-9)

    @property
    def expected_error(self) -> float:
        """The mean error if the smooth sensitivity were the largest: how much less it is, the data decide."""
        return laplace_error(2 / self.epsilon * (self._cells.size - 1 or 1)) * self._width

    def interval(self, confidence: float) -> float:
        """Return the half-width if the smooth sensitivity were the largest: the true one is private.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        scale = 2 / self.epsilon * (self._cells.size - 1 or 1)
        return (laplace_width(scale, checked_confidence(confidence)) + 0.5) * self._width

    def sensitivities(self, query: Bounded[Any]) -> Sensitivities:
        """Return how far the median of these data can move, beside how far any median can. Internal.

        Args:
            query: An answer of the clipper that the mechanism was made for.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.
        """
        self.reach.require(query)
        _, local, smooth = self._measure(NoiseGrid.whole(self.reach).steps(query.value))
        return Sensitivities((self._cells.size - 1) * self._width, local * self._width, smooth * self._width)

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[float]:
        """Return the middle of the cell that the noisy median falls in, within the bounds.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: (ε, δ) for one row that is replaced, the number of rows being public (Nissim, Raskhodnikova & Smith
        2007, Lemma 2.6, for discrete noise). *Proof.* Let S ≥ 1 be the smooth sensitivity in cells, t = 2S/ε the scale
        on x and t' that on its neighbor y, |log(t/t')| ≤ β. Moving noise of scale t by |f(x) - f(y)| ≤ S costs a
        factor e^(ε/2). From scale t to t' the masses have the ratio tanh(1/2t)/tanh(1/2t')·e^(-|z|(1/t - 1/t')). If t ≤
        t' it is at most t'/t ≤ e^β, as tanh(u)/u falls. If t > t' it is at most e^(|z|/t·(e^β - 1)) ≤ e^(L(e^β - 1)) =
        e^(ε/2) for |z| ≤ L·t, and |z| > L·t has probability at most 2e^-L = δ·e^(-ε/2) under scale t. Together: (ε, δ).
        Every cell can come out, whatever the data.
        """
        self.reach.require(query)
        median, _, smooth = self._measure(NoiseGrid.whole(self.reach).steps(query.value))
        drawn = median + discrete_laplace(2 / self.epsilon * smooth * (1 + 2.0**-40), None, rng)
        chosen = min(max(drawn, 0), self._cells.size - 1)
        return Release.of(self._cells.middle(chosen), self.event, unit=query.unit, source=source, randomness=rng.kind)

    @property
    def _cells(self) -> Cells:
        return cells_of(self.of)

    @property
    def _width(self) -> float:
        return (self._cells.upper - self._cells.lower) / self._cells.size

    def _measure(self, counts: npt.NDArray[np.int64]) -> tuple[int, float, float]:
        """The median's cell, its local sensitivity and its smooth one (Nissim et al. 2007, Prop. 3.4), in cells."""
        last = self._cells.size - 1
        upto = np.cumsum(counts)
        rows = int(upto[-1])
        rank = (rows + 1) // 2
        furthest = math.ceil(math.log(max(last, 2)) / self.beta)  # from here on e^(-kβ)·last is below 1
        ranks = np.arange(rank - furthest - 1, rank + furthest + 2)
        cells = np.searchsorted(upto, np.clip(ranks, 1, max(rows, 1)), side="left").clip(0, last)
        sorted_rows = np.where(ranks < 1, 0, np.where(ranks > rows, last, cells))
        center = furthest + 1
        local, smooth = 0.0, 1.0
        for k in range(furthest + 1):
            high = sorted_rows[center : center + k + 2]
            low = sorted_rows[center - k - 1 : center + 1]
            widest = float((high - low).max())
            local = widest if k == 0 else local
            smooth = max(smooth, math.exp(-self.beta * k) * widest)
        return int(sorted_rows[center]), local, smooth
