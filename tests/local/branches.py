"""The exact law of what a randomiser really does: its code is run once for every way that its draws can fall."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from privet.core.randomness import Randomness

WORD = 1 << 64
Law = dict[Any, Fraction]


class Branches:
    """An `Rng` that forks at every draw. Words fall between the given thresholds, and whole numbers are each as likely.

    It stands for the real one if words are used for nothing but comparisons with these thresholds.
    """

    kind = Randomness.SEEDED

    def __init__(self, thresholds: Iterable[int] = ()) -> None:
        cuts = sorted({0, WORD, *thresholds})
        self._words = [(low, Fraction(high - low, WORD)) for low, high in pairwise(cuts)]
        # The last word of each stretch too: a comparison that is off by one takes it to the wrong side.
        self._edges = {low: high - 1 for low, high in pairwise(cuts)}
        self._path: list[int] = []
        self._widths: list[int] = []
        self._weight = Fraction(1)
        self._last = False

    def law(self, run: Callable[[Any], Hashable]) -> Law:
        """What `run(rng)` gives, with the probability of each outcome."""
        both = [self._explored(run, last) for last in (False, True)]
        assert both[0] == both[1], "a threshold is compared in another way than was said"
        return both[0]

    def _explored(self, run: Callable[[Any], Hashable], last: bool) -> Law:
        found: Law = {}
        self._last, path = last, list[int]()
        while True:
            self._path, self._widths, self._weight = path, [], Fraction(1)
            outcome = run(self)
            found[outcome] = found.get(outcome, Fraction(0)) + self._weight
            taken = [*path, *[0] * (len(self._widths) - len(path))]
            while taken and taken[-1] + 1 == self._widths[len(taken) - 1]:
                taken.pop()
            if not taken:
                return found
            taken[-1] += 1
            path = taken

    def _fork(self, width: int) -> int:
        place = len(self._widths)
        self._widths.append(width)
        return self._path[place] if place < len(self._path) else 0

    def words(self, n: int) -> Any:
        drawn = []
        for _ in range(n):
            low, weight = self._words[self._fork(len(self._words))]
            self._weight *= weight
            drawn.append(self._edges[low] if self._last else low)
        return np.array(drawn, dtype=np.uint64)

    def coin(self, limit: int) -> bool:
        """True with probability limit/2^64."""
        up = self._fork(2) == 1
        self._weight *= Fraction(limit if up else WORD - limit, WORD)
        return up

    def below(self, bound: int, size: int) -> Any:
        drawn = [self._fork(bound) for _ in range(size)]
        self._weight *= Fraction(1, bound) ** size
        return np.array(drawn, dtype=np.int64)

    def uniform(self, size: int) -> Any:
        """Numbers that lie on the grid are not rounded, whatever this is."""
        return np.zeros(size)


def largest_odds(laws: Iterable[Law]) -> Fraction:
    """The largest ratio of two laws' probabilities of one outcome; every outcome must be possible under all laws."""
    rows = list(laws)
    assert all(row.keys() == rows[0].keys() for row in rows), "a report that only some can send gives them away"
    return max(max(row[each] for row in rows) / min(row[each] for row in rows) for each in rows[0])
