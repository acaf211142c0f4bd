"""GNMax: the most votes after Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass

from privet.core import Event, Unit, checked
from privet.core.random import Rng, discrete_gaussian
from privet.mechanisms import GaussianPrice, NoiseGrid
from privet.pate.aggregator import NoisyArgmax
from privet.pate.tails import Reals, log_ahead_gaussian
from privet.pate.theorems import theorem_6
from privet.pate.votes import Counts, vote_reach

__all__ = ["GNMax"]


@dataclass(frozen=True)
class GNMax(NoisyArgmax):
    """The label with the most votes after discrete Gaussian noise on each count (Papernot et al. 2018).

    >>> GNMax(40.0).vote(Unit(), 10)
    Repeated(event=DiscreteGaussian(sigma=40.0, bound=1.0, dimension=1), count=2)
    """

    sigma: float
    """Of the noise on each count, in votes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", checked.positive("sigma", self.sigma))

    def vote(self, unit: Unit, labels: int) -> Event:
        """Return the event of the noise on two counts that move by 1 each; jointly if a unit changes several teachers.

        Args:
            unit: Whose data is protected.
            labels: The number of labels.
        """
        return GaussianPrice(NoiseGrid.whole(vote_reach(unit, labels))).event(self.sigma)

    def log_ahead(self, gaps: Counts) -> Reals:
        """Return log P(a label comes out level or ahead), by the exact law of the difference of two noises.

        Args:
            gaps: How many votes each label is behind.
        """
        return log_ahead_gaussian(gaps, self.sigma)

    def given_missed(self, log_q: Reals, order: float) -> Reals:
        """Return a bound on D_a of one label (Papernot et al. 2018, Theorem 6, with ρ = 1/σ²).

        Args:
            log_q: log of a bound on the probability that the likeliest label is missed.
            order: The Rényi order.
        """
        return theorem_6(log_q, 1 / self.sigma**2, order)

    def noise(self, shape: tuple[int, ...], rng: Rng) -> Counts:
        """Draw discrete Gaussian noise.

        Args:
            shape: Of the noise.
            rng: The randomness of the noise.
        """
        return discrete_gaussian(self.sigma, shape, rng)
