"""Which keys may be shown, where the keys themselves are private: optimal partition selection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from privet.core import Bounded, InvalidInput, Neighbours, Release, checked, event
from privet.core.random import Rng
from privet.mechanisms.additive import checked_confidence
from privet.mechanisms.keys import Keys
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import ForClipper

__all__ = ["Partitions", "in_order", "keeping"]

_ONE = 1 << 64
_FINE = 1 << 60
_LONGEST = 1 << 21


def in_order(keys: list[Any]) -> tuple[Any, ...]:
    """Return the keys sorted by type and text, an order that reveals nothing about the rows."""
    return tuple(sorted(keys, key=lambda key: (type(key).__name__, str(key))))


@lru_cache(maxsize=32)
def keeping(epsilon: float, delta: float) -> tuple[int, ...]:
    """Return, for n = 0, 1, …, the probability of keeping a key of n units, in units of 2^-64, until it is certain.

    π(n+1) = min(e^ε·π(n) + δ, 1 - e^-ε·(1 - π(n) - δ), 1), the most that (ε, δ) allows (Desfontaines, Voss, Gipson &
    Mandayam 2022, Thm 1). e^ε is replaced by a fraction below it, and every step is rounded down to whole units, so
    that each inequality of the definition holds exactly between neighboring n.

    >>> [round(chance / 2**64, 3) for chance in keeping(1.0, 0.1)]
    [0.0, 0.1, 0.372, 0.806, 0.965, 1.0]
    """
    share = math.floor(Fraction(delta) * _ONE)
    grown = math.floor(Fraction(math.nextafter(math.nextafter(math.exp(min(epsilon, 700.0)), 0.0), 0.0)) * _FINE)
    if share < 1:
        raise InvalidInput("delta", f"is {delta}, below 2^-64 for each key", "allow more, or fewer keys for each user")
    if grown <= _FINE:
        raise InvalidInput("epsilon", f"is {epsilon} for each key, which is next to nothing", "allow more")
    if 2 / epsilon * math.log1p(math.expm1(min(epsilon, 700.0)) / delta) > _LONGEST:
        raise InvalidInput("epsilon", f"is {epsilon} for each key: even crowds would be left out", "allow more")
    chances = [0]
    while chances[-1] < _ONE:
        now = chances[-1]
        left = max(0, _ONE - now - share)
        chances.append(min(grown * now // _FINE + share, _ONE + (-left * _FINE) // grown, _ONE))
    return tuple(chances)


@dataclass(frozen=True)
class Partitions(ForClipper):
    """Keys that enough units have, and nothing of the others (Desfontaines et al. 2022).

    No mechanism that is (ε, δ)-DP for each key keeps a key with a higher probability.

    >>> from privet.core.random import SeededRng
    >>> wards = Keys()
    >>> chosen = Partitions.for_epsilon(1.0, 1e-6, wards)
    >>> chosen.release(wards(["north"] * 90 + ["south"] * 80 + ["?"]), rng=SeededRng(1)).value
    ('north', 'south')
    """

    epsilon: float
    """For one contribution and each of its keys; `for_epsilon` works both out for the unit."""
    delta: float
    of: Keys

    def __post_init__(self) -> None:
        checked.positive("epsilon", self.epsilon)
        checked.positive("delta", checked.share("delta", self.delta))
        if not isinstance(self.of, Keys):
            raise InvalidInput("of", f"is a {type(self.of).__name__}", "use Keys(unit)")
        keeping(self.epsilon, self.delta)

    @staticmethod
    def for_epsilon(epsilon: float, delta: float, of: Keys) -> Partitions:
        """Return the mechanism that is (ε, δ)-DP for the unit.

        Args:
            epsilon: The privacy cost of one release, for the unit of the clipper.
            delta: The δ at which ε is stated.
            of: The keys; each that a unit may have gets a share, and each of two steps if it is replaced.

        Raises:
            InvalidInput: ε or δ is out of range.
        """
        steps = of.reach.span * of.keys
        share = checked.positive("epsilon", epsilon) / steps * (1 - 2.0**-50)
        # Two steps cost δ·(1 + e^ε): Vadhan 2017, Lemma 2.2.
        worse = 1 + math.exp(share) if of.reach.span == 2 else 1.0
        return Partitions(share, checked.positive("delta", delta) / (of.keys * worse) * (1 - 1e-9), of)

    @property
    def event(self) -> event.Event:
        """An (ε, δ) block for each key of a unit."""
        one = event.Approximate(self.epsilon, self.delta, Neighbours.ADD_REMOVE)
        return one if self.of.keys == 1 else event.Repeated(one, self.of.keys)

    @property
    def expected_error(self) -> float:
        """The mean number of units at which a key is first kept: Σ (1 - π(n))."""
        return sum(1 - chance / _ONE for chance in keeping(self.epsilon, self.delta)[1:])

    def interval(self, confidence: float) -> float:
        """Return how many units a key must have to be released with this confidence.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        needed = 1 - checked_confidence(confidence)
        chances = keeping(self.epsilon, self.delta)
        return float(next(n for n, chance in enumerate(chances) if chance / _ONE >= needed))

    def release(self, query: Bounded[dict[Any, int]], *, rng: Rng, source: str = SOURCE) -> Release[tuple[Any, ...]]:
        """Return the keys that enough units have, in order.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: (ε, δ) for each key of one contribution that comes or goes (Desfontaines et al. 2022, Thms 1 and 2);
        a key that nobody has is never shown. A unit moves `keys` of them, whose coins are independent: that many
        blocks.
        """
        self.reach.require(query)
        chances = np.array([max(chance - 1, 0) for chance in keeping(self.epsilon, self.delta)], dtype=np.uint64)
        names = list(query.value)
        counts = np.array([query.value[name] for name in names], dtype=np.int64)
        drawn = rng.words(len(names))
        passes = (counts > 0) & (drawn <= chances[np.clip(counts, 0, len(chances) - 1)])
        value = in_order([name for name, keep in zip(names, passes, strict=True) if keep])
        return Release.of(value, self.event, unit=query.unit, source=source, randomness=rng.kind)
