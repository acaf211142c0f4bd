"""From an attack's scores to what a card says of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from privet.accounting import best_true_positive_rate
from privet.attacks import ConfidenceInterval, Limit, Outcome
from privet.audit import ALPHA, KINDS
from privet.report import Attacked, Estimate, Point, TrainingCard, curve_of, single_accountant
from privet.report.figures import BLIND

__all__ = ["above_limit", "guarantee_limit", "nonmembers_needed", "summarize_attack", "usable_rates"]

_CONFIDENCE = 0.95
_DECADES, _EACH = 4, 10


def nonmembers_needed(rate: float) -> int:
    """Return the number of non-members that a false-positive rate needs, so that it allows at least one false positive.

    Args:
        rate: The false-positive rate.
    """
    return ceil(1 / rate)


def usable_rates(alarms: Sequence[float], outsiders: int) -> tuple[float, ...]:
    """Return the false-positive rates for which there are enough non-members.

    Args:
        alarms: False-positive rates.
        outsiders: Number of non-members.
    """
    return tuple(rate for rate in alarms if outsiders >= nonmembers_needed(rate))


def above_limit(outcomes: Sequence[Outcome], limit: Limit, error: float = ALPHA / KINDS) -> list[str]:
    """Return the attacks whose confidence band lies above what the guarantee allows.

    The blind baseline is excluded: it never sees the model, so that no guarantee of the model limits it.

    Args:
        outcomes: Outcomes of the attacks.
        limit: Largest true-positive rate at each false-positive rate, under the guarantee.
        error: Error probability that all bands share.
    """
    seeing = [each for each in outcomes if each.attack != BLIND]
    return [each.attack for each in seeing if each.band(error / len(outcomes)).above(limit)]


def guarantee_limit(card: TrainingCard) -> Limit:
    """Return the largest true-positive rate of any attack, as a function of the false-positive rate.

    Args:
        card: Card of the run, whose event limits the attacks.
    """
    privacy = card.privacy
    guarantee = privacy.guarantee.value
    bound = curve_of(privacy.event.value, guarantee, single_accountant(guarantee, privacy.ladder.value))
    return lambda alarms: best_true_positive_rate(bound.delta, alarms)


def summarize_attack(
    outcomes: Sequence[Outcome],
    alarms: Sequence[float],
    *,
    shadows: int,
    notes: dict[str, str],
    error: float = ALPHA / KINDS,
) -> tuple[Attacked, ...]:
    """Return every outcome with its rates, its AUC and its curve.

    Args:
        outcomes: Outcomes of the attacks.
        alarms: False-positive rates to report.
        shadows: Number of shadow models.
        notes: Note on an attack, by its name.
        error: Error probability that all bands share.
    """
    return tuple(_attacked(each, alarms, shadows, notes, error, len(outcomes)) for each in outcomes)


def _attacked(
    outcome: Outcome, alarms: Sequence[float], shadows: int, notes: dict[str, str], error: float, tests: int
) -> Attacked:
    band = outcome.band(error / tests)
    accused, found = outcome.roc()
    rates = sorted({10.0 ** (-i / _EACH) for i in range(_DECADES * _EACH + 1)} | set(alarms))
    curve = []
    for rate in rates:
        if rate < 1 / len(outcome.outsiders):
            continue
        place = int(np.searchsorted(accused, rate + 1e-12, side="right")) - 1
        below = band.hits[band.alarms <= rate]
        curve.append(Point(rate, float(found[place]), float(below.max(initial=0.0))))
    alone = outcome.attack in ("label-only", "loss threshold", BLIND)
    return Attacked(
        outcome.attack,
        len(outcome.members),
        len(outcome.outsiders),
        0 if alone else shadows,
        tuple(
            _estimate(outcome.hits(rate, _CONFIDENCE), rate)
            for rate in sorted(usable_rates(alarms, len(outcome.outsiders)))
        ),
        _estimate(outcome.auc(_CONFIDENCE), None),
        _CONFIDENCE,
        1 - error,
        tuple(curve),
        "; ".join(filter(None, (notes.get(outcome.attack, ""), _ties(outcome, alarms)))),
    )


def _ties(outcome: Outcome, alarms: Sequence[float]) -> str:
    """Whether so many outsiders share the highest score that at few false alarms nobody can be named."""
    top = outcome.outsiders.max()
    share = np.count_nonzero(outcome.outsiders == top) / len(outcome.outsiders)
    if top < outcome.members.max() or not any(share > rate for rate in alarms):
        return ""
    return f"{100 * share:.2g} % of outsiders tie at its highest score, so that it names nobody at fewer false alarms"


def _estimate(found: ConfidenceInterval, at: float | None) -> Estimate:
    return Estimate(found.value, min(found.lower, found.value), max(found.upper, found.value), at)
