"""Scores on two neighboring inputs, and a test that is chosen on some of them and evaluated on the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.attacks import Reals, checked_scores

__all__ = ["Counts", "Split", "split_scores"]

Counts = npt.NDArray[np.int64]
_MOST = 1000
"""The approximate number of thresholds that are tried."""


@dataclass(frozen=True)
class Split:
    """Scores in two halves: a test is chosen on the first and evaluated on the second, so that the choice is free."""

    chosen_present: Reals
    chosen_absent: Reals
    tried_present: Reals
    tried_absent: Reals

    def counts(self, threshold: float, above: bool) -> tuple[int, int, int, int]:
        """Return true and false positives among the scores that the test was not chosen on, as `epsilon_of` takes them.

        Args:
            threshold: The score at which the test says "present".
            above: Whether scores at or above the threshold mean "present"; otherwise those at or below it.
        """
        present, absent = np.sort(self.tried_present), np.sort(self.tried_absent)
        edge = np.array([threshold])
        hits, alarms = int(_counted(present, edge, above)[0]), int(_counted(absent, edge, above)[0])
        return hits, len(present), alarms, len(absent)

    def best(self, worth: Callable[[Counts, int, Counts, int], Reals]) -> tuple[float, bool]:
        """Return the threshold and the direction with the largest value on the first half.

        Args:
            worth: A function of true positives, positives, false positives and negatives that returns each test's
                value.
        """
        edges = np.unique(np.concatenate([self.chosen_present, self.chosen_absent]))
        edges = edges[:: max(1, len(edges) // _MOST)]
        present, absent = np.sort(self.chosen_present), np.sort(self.chosen_absent)
        found = []
        for above in (True, False):
            hits, alarms = _counted(present, edges, above), _counted(absent, edges, above)
            values = worth(hits, len(present), alarms, len(absent))
            place = int(np.argmax(values))
            found.append((float(values[place]), float(edges[place]), above))
        _, threshold, above = max(found)
        return threshold, above


def split_scores(present: Any, absent: Any) -> Split:
    """Split scores alternately: every second one chooses the test, and the others evaluate it.

    Trials are exchangeable, so that their order does not matter.

    Args:
        present: Scores of trials on one input, four or more.
        absent: Scores of trials on its neighbor, four or more.

    Raises:
        InvalidInput: If there are fewer than four scores of either kind, or one is NaN.
    """
    one, other = checked_scores("present", present, 4), checked_scores("absent", absent, 4)
    return Split(one[::2], other[::2], one[1::2], other[1::2])


def _counted(ordered: Reals, edges: Reals, above: bool) -> Counts:
    if above:
        return len(ordered) - np.searchsorted(ordered, edges, side="left")
    return np.searchsorted(ordered, edges, side="right")
