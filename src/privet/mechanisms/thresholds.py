"""Noisy counts by key, of those keys whose noisy count is large, where the keys themselves are private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from privet.accounting import largest_count
from privet.core import Bounded, InvalidInput, Neighbours, Release, checked, event
from privet.core.random import Rng
from privet.mechanisms.discrete_gaussian import DiscreteGaussianMechanism
from privet.mechanisms.discrete_laplace import DiscreteLaplaceMechanism
from privet.mechanisms.keys import Keys
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.partitions import in_order
from privet.mechanisms.reach import ForClipper

__all__ = ["ThresholdedCounts"]

_UP = 1 + 1e-12
_MOST = 2**62


@dataclass(frozen=True)
class ThresholdedCounts(ForClipper):
    """Counts with Laplace or Gaussian noise, shown where they reach a threshold (Korolova et al. 2009).

    With Laplace noise it keeps fewer keys than `Partitions` does for the same price, and shows their counts too.

    >>> from privet.core.random import SeededRng
    >>> wards = Keys()
    >>> counts = ThresholdedCounts.laplace(1.0, 1e-6, wards)
    >>> counts.threshold
    15
    >>> sorted(counts.release(wards(["north"] * 90 + ["?"]), rng=SeededRng(1)).value)
    ['north']
    """

    noise: DiscreteLaplaceMechanism | DiscreteGaussianMechanism
    threshold: int
    """The least noisy count that is shown."""
    of: Keys

    def __post_init__(self) -> None:
        if not isinstance(self.of, Keys):
            raise InvalidInput("of", f"is a {type(self.of).__name__}", "use Keys(unit)")
        if self.noise.reach != self.of.reach:
            raise InvalidInput("noise", "was made for another clipper", "make it for these keys")
        checked.count("threshold", self.threshold, 2)

    @staticmethod
    def laplace(epsilon: float, delta: float, of: Keys) -> ThresholdedCounts:
        """Return the mechanism with Laplace noise that is (ε, δ)-DP: ε by the noise, δ by the threshold.

        Args:
            epsilon: The privacy cost of one release, for the unit of the clipper.
            delta: The δ at which ε is stated.
            of: The keys.

        Raises:
            InvalidInput: ε or δ is out of range.
        """
        noise = DiscreteLaplaceMechanism.for_epsilon(epsilon, of)
        return ThresholdedCounts(noise, _least(noise, _target(delta, of), of.keys), of)

    @staticmethod
    def gaussian(epsilon: float, delta: float, of: Keys) -> ThresholdedCounts:
        """Return the mechanism with Gaussian noise that is (ε, δ)-DP; for users of many keys.

        Args:
            epsilon: The privacy cost of one release, for the unit of the clipper.
            delta: The δ at which ε is stated: half of it is for the noise, and half for the threshold.
            of: The keys.

        Raises:
            InvalidInput: ε or δ is out of range.
        """
        noise = DiscreteGaussianMechanism.for_epsilon(epsilon, delta / 2, of)
        return ThresholdedCounts(noise, _least(noise, _target(delta / 2, of), of.keys), of)

    @property
    def delta(self) -> float:
        """The chance that a key which one unit alone has is shown, for any of its keys."""
        return _shown(self.noise, self.threshold, self.of.keys)

    @property
    def event(self) -> event.Composed:
        """The noise, and a block that reveals a unit's own keys with probability δ."""
        return event.Composed((self.noise.event, event.Approximate(0.0, self.delta, Neighbours.ADD_REMOVE)))

    @property
    def expected_error(self) -> float:
        """The mean error of one count that is shown whatever its noise."""
        return self.noise.expected_error

    def interval(self, confidence: float) -> float:
        """Return the half-width for one count; a key with `threshold` + this many units is released.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        return self.noise.interval(confidence)

    def release(self, query: Bounded[dict[Any, int]], *, rng: Rng, source: str = SOURCE) -> Release[dict[Any, int]]:
        """Return the keys whose noisy count reaches the threshold, in order, with these counts.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: as the event, for the unit and neighbors of the keys (Korolova, Kenthapadi, Mishra & Ntoulas 2009;
        Wilson et al. 2020, Thm 2). A key that only one unit has is shown with probability at most δ over all its keys;
        where that does not happen, the outputs with and without the unit differ by noise alone.
        """
        self.reach.require(query)
        names = list(query.value)
        noisy = np.array([query.value[name] for name in names], dtype=np.int64)
        noisy += self.noise.draw(len(names), rng)
        released = {name: int(count) for name, count in zip(names, noisy, strict=True) if count >= self.threshold}
        value = {name: released[name] for name in in_order(list(released))}
        return Release.of(value, self.event, unit=query.unit, source=source, randomness=rng.kind)


def _target(delta: float, of: Keys) -> float:
    """The δ of one step: someone who is replaced takes two."""
    if checked.share("delta", delta) == 0:
        raise InvalidInput("delta", "is 0, and keys that only one unit has cannot be hidden for sure", "use 1e-6")
    return delta / of.reach.span * (1 - 1e-9)


def _tail(noise: DiscreteLaplaceMechanism | DiscreteGaussianMechanism, least: int) -> float:
    """P(noise ≥ least) for least ≥ 1, rounded up."""
    if isinstance(noise, DiscreteLaplaceMechanism):
        return math.exp(-least / noise.scale) / (1 + math.exp(-1 / noise.scale)) * _UP
    return float(ndtr(-(least - 1) / noise.sigma)) * _UP  # Canonne, Kamath & Steinke 2020, Prop. 25


def _shown(noise: DiscreteLaplaceMechanism | DiscreteGaussianMechanism, threshold: int, keys: int) -> float:
    """1 - (1 - p)^keys, with p the chance that a count of 1 reaches the threshold, rounded up."""
    return min(-math.expm1(keys * math.log1p(-_tail(noise, threshold - 1))) * _UP, 1.0 - 2.0**-53)


def _least(noise: DiscreteLaplaceMechanism | DiscreteGaussianMechanism, delta: float, keys: int) -> int:
    return 1 + largest_count(lambda threshold: _shown(noise, threshold, keys) > delta, _MOST, start=1)
