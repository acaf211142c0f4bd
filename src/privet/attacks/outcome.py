"""How well an attack tells members from outsiders: few false alarms first, with intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, sqrt

import numpy as np
from scipy.stats import norm

from privet.attacks.counting import Reals, at_least, at_most, scores_of
from privet.core import checked
from privet.core.errors import InvalidInput

__all__ = ["Interval", "Outcome"]


@dataclass(frozen=True)
class Interval:
    """A number and what it may be instead, with some confidence."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """An attack's scores for members and for outsiders; higher means that it takes something for a member.

    >>> found = Outcome("guessing", np.linspace(0, 1, 200), np.linspace(0, 1, 200))
    >>> round(found.auc().value, 2), round(found.hits(0.01).value, 3)
    (0.5, 0.01)
    """

    attack: str
    members: Reals = field(repr=False)
    outsiders: Reals = field(repr=False)

    def __post_init__(self) -> None:
        checked.text("attack", self.attack)
        for name in ("members", "outsiders"):
            object.__setattr__(self, name, scores_of(name, getattr(self, name), 2))

    def hits(self, alarms: float, confidence: float = 0.95) -> Interval:
        """The part of the members that is found where the part `alarms` of outsiders, at most, is wrongly accused.

        The threshold is the lowest that keeps the outsiders at hand within it; the interval (Clopper & Pearson 1934) is
        for the members, given that threshold.
        """
        share = checked.probability("alarms", alarms)
        needed = ceil(1 / share)
        if len(self.outsiders) < needed:
            problem = f"is {share:g}, and there are {len(self.outsiders)} outsiders"
            raise InvalidInput("alarms", problem, f"it takes {needed:,} of them or more")
        allowed = int(share * len(self.outsiders) + 1e-9)
        threshold = np.sort(self.outsiders)[::-1][allowed] if allowed < len(self.outsiders) else -np.inf
        count, trials = int(np.count_nonzero(self.members > threshold)), len(self.members)
        error = (1 - checked.probability("confidence", confidence)) / 2
        return Interval(count / trials, at_least(count, trials, error), at_most(count, trials, error))

    def auc(self, confidence: float = 0.95) -> Interval:
        """The chance that a member's score is above an outsider's, ties counting half (DeLong et al. 1988)."""
        above, below = _ranked(self.members, self.outsiders), _ranked(self.outsiders, self.members)
        value = float(above.mean())
        variance = float(above.var(ddof=1) / len(above) + below.var(ddof=1) / len(below))
        reach = float(norm.ppf((1 + checked.probability("confidence", confidence)) / 2)) * sqrt(variance)
        return Interval(value, max(value - reach, 0.0), min(value + reach, 1.0))

    def roc(self) -> tuple[Reals, Reals]:
        """Parts of the outsiders that are accused and of the members that are found, for every threshold."""
        edges = np.unique(np.concatenate([self.members, self.outsiders]))[::-1]
        alarms = len(self.outsiders) - np.searchsorted(np.sort(self.outsiders), edges, side="left")
        hits = len(self.members) - np.searchsorted(np.sort(self.members), edges, side="left")
        first = np.zeros(1)
        return (
            np.concatenate([first, alarms / len(self.outsiders)]),
            np.concatenate([first, hits / len(self.members)]),
        )


def _ranked(some: Reals, others: Reals) -> Reals:
    """For each of some, the part of the others that is below it."""
    ordered = np.sort(others)
    both = np.searchsorted(ordered, some, side="left") + np.searchsorted(ordered, some, side="right")
    found: Reals = both / (2 * len(others))
    return found
