"""From an attack's scores to what a card says of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np

from privet.accounting.meaning import best_true_positive_rate
from privet.attacks.outcome import Interval, Limit, Outcome
from privet.report import TrainingCard
from privet.report.alone import asked_alone, curve_of
from privet.report.attack_records import Attacked, Estimate, Point

__all__ = ["attacked", "limit_for", "usable"]

_CONFIDENCE = 0.95
_DECADES, _EACH = 4, 10


def usable(alarms: Sequence[float], outsiders: int) -> tuple[float, ...]:
    """The rates for which there are outsiders enough: fewer than one false alarm is none."""
    return tuple(rate for rate in alarms if outsiders >= ceil(1 / rate))


def limit_for(card: TrainingCard) -> Limit:
    """The most members that any attack can find, by the card's own event."""
    privacy = card.privacy
    guarantee = privacy.guarantee.value
    bound = curve_of(privacy.event.value, guarantee, asked_alone(guarantee, privacy.ladder.value))
    return lambda alarms: best_true_positive_rate(bound.delta, alarms)


def attacked(
    outcomes: Sequence[Outcome], alarms: Sequence[float], *, shadows: int, notes: dict[str, str], error: float = 0.05
) -> tuple[Attacked, ...]:
    """Every outcome with its rates, its AUC and its curve; all bands share one `error`."""
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
    alone = outcome.attack in ("label-only", "loss threshold", "blind baseline")
    return Attacked(
        outcome.attack,
        len(outcome.members),
        len(outcome.outsiders),
        0 if alone else shadows,
        tuple(
            _estimate(outcome.hits(rate, _CONFIDENCE), rate) for rate in sorted(usable(alarms, len(outcome.outsiders)))
        ),
        _estimate(outcome.auc(_CONFIDENCE), None),
        _CONFIDENCE,
        1 - error,
        tuple(curve),
        notes.get(outcome.attack, ""),
    )


def _estimate(found: Interval, at: float | None) -> Estimate:
    return Estimate(found.value, min(found.lower, found.value), max(found.upper, found.value), at)
