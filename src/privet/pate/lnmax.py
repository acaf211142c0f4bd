"""LNMax: the most votes after Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass

from privet.core import DiscreteLaplace, Event, Repeated, Unit, checked
from privet.core.random import Rng, discrete_laplace
from privet.pate.aggregator import NoisyArgmax
from privet.pate.tails import Reals, log_ahead_laplace
from privet.pate.theorems import theorem_3
from privet.pate.votes import Counts, moved_teachers

__all__ = ["LNMax"]


@dataclass(frozen=True)
class LNMax(NoisyArgmax):
    """The label with the most votes after discrete Laplace noise on each count (Papernot et al. 2017).

    >>> LNMax(20.0).vote(Unit(), 10)
    Repeated(event=DiscreteLaplace(scale=20.0, bound=1, dimension=1), count=2)
    """

    scale: float
    """Of the noise on each count, in votes; 1/γ in the paper."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checked.positive("scale", self.scale))

    def vote(self, unit: Unit, labels: int) -> Event:
        """Return the event of the noise on two counts that move by 1 each; jointly if a unit changes several teachers.

        Args:
            unit: Whose data is protected.
            labels: The number of labels.
        """
        if moved_teachers(unit) == 1:
            return Repeated(DiscreteLaplace(self.scale, 1), 2)
        return DiscreteLaplace(self.scale, 2, max(2, labels))

    def log_ahead(self, gaps: Counts) -> Reals:
        """Return log P(a label comes out level or ahead), by the exact law of the difference of two noises.

        Args:
            gaps: How many votes each label is behind.
        """
        return log_ahead_laplace(gaps, self.scale)

    def given_missed(self, log_q: Reals, order: float) -> Reals:
        """Return a bound on D_a of one label (Papernot et al. 2017, Theorem 3, with ε = 2/scale).

        Args:
            log_q: log of a bound on the probability that the likeliest label is missed.
            order: The Rényi order.
        """
        return theorem_3(log_q, 2 / self.scale, order)

    def noise(self, shape: tuple[int, ...], rng: Rng) -> Counts:
        """Draw discrete Laplace noise.

        Args:
            shape: Of the noise.
            rng: The randomness of the noise.
        """
        return discrete_laplace(self.scale, shape, rng)
