"""The numbers behind the figures of a run's page, computed from its card alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from privet.accounting import Accountant
from privet.accounting.meaning import FALSE_POSITIVE_RATES, best_true_positive_rate
from privet.core.event import Repeated
from privet.core.guarantee import Guarantee
from privet.report.alone import Alone, asked_alone, curve_of
from privet.report.bound import Bound
from privet.report.card import RunCard
from privet.report.loss import Loss, loss_of

__all__ = ["Curves", "Point", "curves_of"]

Point = tuple[float, float]
_COUNTS = 12
_POINTS = 180
_LEAST_RATE = 1e-4


@dataclass(frozen=True)
class Curves:
    """Everything that is drawn. Each δ is a certified upper bound, and so is each ε and each true-positive rate."""

    counts: tuple[int, ...]
    """How often the step is repeated: up to the run's own count, and a little further."""
    own_count: int
    deltas: tuple[float, ...]
    by_delta: tuple[tuple[float, ...], ...]
    """For each δ, ε at each count, by the best accountant, or by the one alone that was asked."""
    profile: tuple[Point, ...]
    """δ against ε, as pairs (ε, δ)."""
    loss: Loss | None
    """The loss distribution, where the run has one of its own."""
    roc: tuple[Point, ...]
    """The best true-positive rate against the false-positive rate."""
    alone: Accountant | None = None
    """The one accountant that the curves are of; None where they are of the best. The loss is always the run's own."""


def curves_of(
    card: RunCard, *, progress: Callable[[int, int], None] = lambda done, total: None, whole: bool = True
) -> Curves:
    """All curves of a card; `progress(done, total)` is told after each piece of work.

    Without `whole`, those alone that a training page has: it shows ε by epochs, and no loss distribution.
    """
    event, guarantee = card.event.value, card.guarantee.value
    step, own = (event.event, event.count) if isinstance(event, Repeated) else (event, 1)
    counts, deltas = (_counts(own), _deltas(guarantee.delta)) if whole else ((), ())
    total = len(counts) * len(deltas) + 3
    done = 0
    rows: list[list[float]] = [[] for _ in deltas]
    which = asked_alone(guarantee, card.ladder.value)
    stated = _stated(card, which)
    for count in counts:
        repeated = Repeated(step, count)
        grown = Bound(repeated, guarantee.unit) if which is None else Alone(repeated, guarantee, which)
        for row, delta in zip(rows, deltas, strict=True):
            found = stated if (count, delta) == (own, guarantee.delta) else grown.epsilon(delta)
            # Fewer steps and a larger δ cost no more than the run itself, whatever a quicker method finds.
            row.append(min(found, stated) if count <= own and delta >= guarantee.delta else found)
            done += 1
            progress(done, total)
    bound = curve_of(event, guarantee, which)
    profile = _profile(bound, guarantee)
    progress(done + 1, total)
    loss = loss_of(Bound(event, guarantee.unit, guarantee), guarantee) if whole else None
    progress(done + 2, total)
    roc = tuple((rate, best_true_positive_rate(bound.delta, rate)) for rate in _rates())
    progress(total, total)
    return Curves(counts, own, deltas, tuple(tuple(row) for row in rows), profile, loss, roc, which)


def _stated(card: RunCard, which: Accountant | None) -> float:
    """The ε of the one accountant that was asked, or of the best, which the ladder has already."""
    if which is not None:
        return card.guarantee.value.epsilon.upper
    tightest = card.ladder.value[0].guarantee
    return tightest.epsilon.upper if tightest is not None else math.inf


def _counts(own: int) -> tuple[int, ...]:
    """A dozen counts, evenly spaced on a logarithmic axis, from a thousandth of the run's own to twice as many."""
    least = max(1, own // 1000)
    ratio = max(2 * own, 10) / least
    spaced = {max(1, round(least * ratio ** (i / (_COUNTS - 1)))) for i in range(_COUNTS)}
    # The run's own count takes the place of its nearest neighbour.
    spaced.discard(min(spaced, key=lambda count: abs(math.log(count / max(own, 1)))))
    return tuple(sorted(spaced | {max(own, 1)}))


def _deltas(own: float) -> tuple[float, ...]:
    if own == 0:
        return (1e-4, 1e-6, 1e-8)
    return tuple(delta for delta in (own * 10, own, own / 10) if 1e-300 < delta < 1)


def _profile(bound: Bound | Alone, guarantee: Guarantee) -> tuple[Point, ...]:
    upper = guarantee.epsilon.upper
    if math.isinf(upper):
        upper = bound.epsilon(1e-5)
    if math.isinf(upper):
        return ()
    farthest = max(1.6 * upper, 0.1)
    spaced = {farthest * i / _POINTS for i in range(_POINTS + 1)} | {upper}
    return tuple((epsilon, delta) for epsilon in sorted(spaced) if (delta := bound.delta(epsilon)) > 0)


def _rates() -> list[float]:
    steps = round(-math.log10(_LEAST_RATE) * 10)
    spaced = {10.0 ** (-i / 10) for i in range(steps + 1)}
    return sorted(spaced | set(FALSE_POSITIVE_RATES))
