"""Which of several scores is best, if their intervals can tell."""

from __future__ import annotations

from collections.abc import Mapping

from privet.core import Score
from privet.report.score_intervals import NOISE, NOISE_AND_SAMPLING, SAMPLING
from privet.report.words import listed

__all__ = ["verdict_on", "verdicts_on"]

_LARGER_IS_BETTER = {"accuracy": True, "AUC": True, "mean absolute error": False, "root mean squared error": False}
_WHOLE = (SAMPLING, NOISE_AND_SAMPLING)
"""What an interval must cover before it can tell two models apart."""


def verdicts_on(what: str, scores: Mapping[str, Score]) -> list[str]:
    """Return the verdicts on one measure: one for each set of test rows that several runs share, and why there is no
    other; none for a single run.

    Args:
        what: the measure and the rows, such as "accuracy on the test file".
        scores: of one measure on rows of the same name, by run.
    """
    by_rows: dict[str, dict[str, Score]] = {}
    for run, score in scores.items():
        by_rows.setdefault(score.rows, {})[run] = score
    shared = [group for digest, group in by_rows.items() if digest and len(group) > 1]
    if len(scores) < 2:
        return []
    if len(by_rows) == 1 or not shared:
        return [verdict_on(what, scores)]
    rest = [run for run in scores if not any(run in group for group in shared)]
    found = [verdict_on(f"{what}, of {listed(list(group))}, which share their test rows", group) for group in shared]
    if rest:
        found.append(f"{what}: {listed(rest)} cannot be compared: the test rows differ or are not recorded")
    return found


def verdict_on(what: str, scores: Mapping[str, Score]) -> str:
    """Return a sentence on which run is best, or that the intervals cannot decide it.

    A best is named only where its interval lies beyond all others, every interval covers all randomness of its score,
    and all scores are on the same public rows, by their digests. Then the order is right with the confidence that a
    union bound leaves for all intervals at once.

    Args:
        what: the measure and the rows, such as "accuracy on the test file".
        scores: of one measure on the same kind of rows, by run: two or more.
    """
    reasons = [reason for run, score in scores.items() if (reason := _unusable(run, score))]
    if any(_is_private(score) for score in scores.values()):
        reasons.append("held-out rows are private, and nobody can know whether those of several runs are the same")
    elif unknown := [run for run, score in scores.items() if not score.rows]:
        reasons.append(f"the test rows of {listed(unknown)} are not recorded")
    elif len({score.rows for score in scores.values()}) > 1:
        reasons.append("the test rows differ")
    if reasons:
        return f"{what}: no best is named: {'; '.join(reasons)}"
    larger = _LARGER_IS_BETTER.get(next(iter(scores.values())).name)
    if larger is None:
        return f"{what}: no best is named: whether more of it is better is not known"
    ends = {run: _oriented(score, larger=larger) for run, score in scores.items()}
    leader = max(ends, key=lambda run: ends[run][0])
    ties = [run for run in ends if run != leader and ends[run][1] >= ends[leader][0]]
    if ties:
        return f"{what}: the difference is not resolved: the intervals of {listed([leader, *ties])} overlap"
    together = 1 - sum(1 - (score.confidence or 0.0) for score in scores.values())
    if together <= 0:
        return f"{what}: no best is named: {len(scores)} intervals leave no confidence for all of them together"
    sure = f"with {100 * together:.3g} % confidence for all {len(scores)} together"
    return f"{what}: {leader} is best: its interval lies beyond all others, {sure}"


def _is_private(score: Score) -> bool:
    """Whether a score has noise, and so is one on private rows."""
    return score.covers.startswith("the noise")


def _oriented(score: Score, *, larger: bool) -> tuple[float, float]:
    """The interval on a scale on which more is better."""
    low, high = score.lower or 0.0, score.upper or 0.0
    return (low, high) if larger else (-high, -low)


def _unusable(run: str, score: Score) -> str:
    """Why a score cannot be compared; empty if it can."""
    if score.value is None:
        return f"{run} has no such score"
    if not score.has_interval:
        return f"{run} has no interval recorded"
    if score.covers in ("the noise", NOISE):  # cards of earlier versions say "the noise"
        return f"the interval of {run} covers the noise alone"
    return (
        "" if score.covers in _WHOLE else f"the interval of {run} covers {score.covers or 'nothing that is recorded'}"
    )
