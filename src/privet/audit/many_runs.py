"""Many runs, with a record and without it: the oldest audit, and the one that assumes nothing."""

from __future__ import annotations

from typing import Any

from privet.audit.counting import epsilon_of, epsilons
from privet.audit.scores import split_scores
from privet.core import Evidence, Unit, checked

__all__ = ["many_runs"]


def many_runs(
    present: Any,
    absent: Any,
    *,
    unit: Unit,
    delta: float = 0.0,
    confidence: float = 0.95,
    attack: str = "many runs",
) -> Evidence:
    """ε is at least what it says, with the stated confidence, whatever the mechanism does inside.

    Args:
        present: a score for each independent run on one data set.
        absent: a score for each independent run on a neighbor of it.
        unit: which neighbors the two data sets are. Nothing is presumed: what a record that was *replaced* shows is no
            evidence against a promise about records that come or go, which is smaller.
        delta: the δ of the guarantee that is tried.
        confidence: the chance that the bound is right, over the runs.

    Every second run chooses a threshold and a direction, and the others alone are counted (Jagielski, Ullman & Oprea
    2020): a threshold that is chosen on the scores that it is tried on finds ε where there is none. Runs must be
    independent; a seed that is used again makes them one.

    >>> import numpy as np
    >>> drawn = np.random.default_rng(0)
    >>> found = many_runs(drawn.normal(2, 1, 4000), drawn.normal(0, 1, 4000), unit=Unit())
    >>> 2.5 < found.epsilon < 5
    True
    """
    error = 1 - checked.probability("confidence", confidence)
    checked.share("delta", delta)
    split = split_scores(present, absent)
    threshold, above = split.best(lambda hits, some, alarms, others: epsilons(hits, some, alarms, others, delta, error))
    found = epsilon_of(*split.counts(threshold, above), delta=delta, error=error)
    trials = len(split.tried_present) + len(split.tried_absent)
    return Evidence(found, delta, confidence, attack, trials, unit)
