"""The k largest of many counts, one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privet.accounting import most
from privet.core import Bounded, Release, checked, event
from privet.core.random import Rng
from privet.mechanisms.additive import checked_confidence
from privet.mechanisms.mechanism import SOURCE
from privet.mechanisms.reach import Of, reach_of, steps_of
from privet.mechanisms.selection import RepeatedChoice, Scores, exponential_choice

__all__ = ["TopK"]


@dataclass(frozen=True)
class TopK(RepeatedChoice):
    """k places by k exponential mechanisms, each among those that are left (peeling; Durfee & Rogers 2019).

    >>> from privet.core.random import SeededRng
    >>> from privet.mechanisms.histogram import Categories, Histogram
    >>> letters = Histogram(Categories(tuple("abcd")))
    >>> TopK.for_epsilon(2.0, letters, k=2).release(letters("aaab" * 50 + "b" * 50), rng=SeededRng(1)).value
    (0, 1)
    """

    @staticmethod
    def for_epsilon(epsilon: float, of: Of, *, k: int, delta: float = 0.0) -> TopK:
        """Return the mechanism with as much ε for each choice as the accountant allows within (ε, δ).

        Args:
            epsilon: The privacy cost of one release, for the unit of the clipper.
            of: The clipper whose answers are to be released, or its reach.
            k: The number of choices.
            delta: The δ at which ε is stated; more than 0 allows more ε for each of many choices.

        Raises:
            InvalidInput: ε or δ is out of range.
        """
        unit = reach_of(of).unit
        share = steps_of(epsilon / checked.count("k", k), unit)
        if delta > 0:
            allowed = most(
                lambda choice_epsilon: event.Repeated(event.Exponential(choice_epsilon), k),
                epsilon=epsilon,
                delta=delta,
                unit=unit,
                high=checked.positive("epsilon", epsilon),
            )
            share = max(share, allowed)
        return TopK(share, of, k)

    @property
    def event(self) -> event.Repeated:
        """k choices."""
        return event.Repeated(event.Exponential(self.epsilon), self.k)

    def interval(self, confidence: float) -> float:
        """Return how far below the best score that is left any of the chosen ones is, at most.

        Args:
            confidence: The confidence, between 0 and 1.
        """
        return Scores(self.reach).largest_gap(self.epsilon, checked_confidence(confidence) / self.k)

    def release(self, query: Bounded[Any], *, rng: Rng, source: str = SOURCE) -> Release[tuple[int, ...]]:
        """Return the indices, in the order in which they were chosen.

        Args:
            query: An answer of the clipper that the mechanism was made for.
            rng: The randomness of the noise.
            source: The name of the data, for the ledger.

        Raises:
            InvalidInput: The answer could move further than the mechanism was made for.

        Guarantee: the composition of k exponential mechanisms for the unit and neighbors of the reach; leaving out
        what was chosen before is post-processing of earlier answers (adaptive composition).
        """
        scores = Scores(self.reach)
        steps, rate = scores.steps(query), scores.rate(self.epsilon)
        left = list(range(len(steps)))
        chosen: list[int] = []
        for _ in range(self.k):
            mine = steps[np.array(left)]
            chosen.append(left.pop(exponential_choice(mine.max() - mine, rate, rng)))
        return Release.of(tuple(chosen), self.event, unit=query.unit, source=source, randomness=rng.kind)
