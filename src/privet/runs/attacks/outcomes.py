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
    """How many outsiders a rate of false alarms takes: fewer than one false alarm is none."""
    return ceil(1 / rate)


def usable_rates(alarms: Sequence[float], outsiders: int) -> tuple[float, ...]:
    """The rates for which there are outsiders enough."""
    return tuple(rate for rate in alarms if outsiders >= nonmembers_needed(rate))


def above_limit(outcomes: Sequence[Outcome], limit: Limit, error: float = ALPHA / KINDS) -> list[str]:
    """The attacks whose band lies above what the guarantee allows; all bands share one `error`.

    The blind baseline is none of them: it never sees the model, so that no guarantee of the model limits it.
    """
    seeing = [each for each in outcomes if each.attack != BLIND]
    return [each.attack for each in seeing if each.band(error / len(outcomes)).above(limit)]


def guarantee_limit(card: TrainingCard) -> Limit:
    """The most members that any attack can find, by the card's own event."""
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
