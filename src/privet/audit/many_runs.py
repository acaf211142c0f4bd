"""Audit by many runs, with a record and without it: the oldest audit, which assumes nothing about the mechanism."""

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
    """Return a lower bound on ε that assumes nothing about the mechanism.

    Every second run chooses a threshold and a direction, and only the others are counted (Jagielski, Ullman & Oprea
    2020): a threshold that is chosen on the scores that it is tested on finds ε where there is none. Runs must be
    independent; runs that share a seed count as one.

    Args:
        present: A score for each independent run on one data set.
        absent: A score for each independent run on a neighbor of it.
        unit: Which neighbors the two data sets are. It has no default: what a *replaced* record reveals is no evidence
            against a guarantee for records that are added or removed, whose ε is smaller.
        delta: The δ of the guarantee that is tested.
        confidence: The probability that the bound is right, over the runs.
        attack: The name of the attack in the evidence.

    Raises:
        InvalidInput: If there are fewer than four scores of either kind, one is NaN, or `delta` or `confidence` is out
            of range.

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
