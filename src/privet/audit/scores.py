"""Scores of two worlds, and a test that is chosen on some of them and tried on the others."""

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
"""Thresholds that are tried, about."""


@dataclass(frozen=True)
class Split:
    """Scores in two halves: on the first a test is chosen, on the second it is tried, so that the choice is free."""

    chosen_present: Reals
    chosen_absent: Reals
    tried_present: Reals
    tried_absent: Reals

    def counts(self, threshold: float, above: bool) -> tuple[int, int, int, int]:
        """Hits and alarms among the scores that the test was not chosen on, as `epsilon_of` takes them."""
        present, absent = np.sort(self.tried_present), np.sort(self.tried_absent)
        edge = np.array([threshold])
        hits, alarms = int(_counted(present, edge, above)[0]), int(_counted(absent, edge, above)[0])
        return hits, len(present), alarms, len(absent)

    def best(self, worth: Callable[[Counts, int, Counts, int], Reals]) -> tuple[float, bool]:
        """The threshold and the direction that are worth most on the first half."""
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
    """Every second score chooses the test, and the others try it: trials are alike, in whatever order they come."""
    one, other = checked_scores("present", present, 4), checked_scores("absent", absent, 4)
    return Split(one[::2], other[::2], one[1::2], other[1::2])


def _counted(ordered: Reals, edges: Reals, above: bool) -> Counts:
    if above:
        return len(ordered) - np.searchsorted(ordered, edges, side="left")
    return np.searchsorted(ordered, edges, side="right")
