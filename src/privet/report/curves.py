"""The numbers behind the figures of a run's page, computed from its card alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from privet.accounting import FALSE_POSITIVE_RATES, Accountant, best_true_positive_rate
from privet.core import Guarantee, Repeated
from privet.report.bound import Bound
from privet.report.card import RunCard
from privet.report.loss import LossDensity, loss_of
from privet.report.single_accountant import SingleAccountantCurve, curve_of, single_accountant

__all__ = ["Curves", "Point", "curves_of", "epsilon_growth"]

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
    """For each δ, ε at each count, by the best accountant, or by the requested one alone."""
    profile: tuple[Point, ...]
    """δ against ε, as pairs (ε, δ)."""
    loss: LossDensity | None
    """The loss distribution, where the run has one of its own."""
    roc: tuple[Point, ...]
    """The best true-positive rate against the false-positive rate."""
    alone: Accountant | None = None
    """The one accountant that the curves are of; None where they are of the best. The loss is always the run's own."""


def curves_of(
    card: RunCard, *, progress: Callable[[int, int], None] = lambda done, total: None, whole: bool = True
) -> Curves:
    """Return the curves of a card.

    Args:
        card: The card.
        progress: Called with the number of finished steps and their total.
        whole: Whether to compute ε by steps and the loss distribution too, which a training page does not have.
    """
    event, guarantee = card.event.value, card.guarantee.value
    step, own = (event.event, event.count) if isinstance(event, Repeated) else (event, 1)
    counts, deltas = (_counts(own), _deltas(guarantee.delta)) if whole else ((), ())
    total, which = len(counts) * len(deltas) + 3, single_accountant(guarantee, card.ladder.value)
    stated = _stated(card, which)
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    def bound_at(count: int) -> Bound | SingleAccountantCurve:
        repeated = Repeated(step, count)
        if which is None:
            return Bound(repeated, guarantee.unit)
        return SingleAccountantCurve(repeated, guarantee, which)

    rows = epsilon_growth(bound_at, counts, deltas, (own, guarantee.delta, stated), advance)
    bound = curve_of(event, guarantee, which)
    profile = _profile(bound, guarantee)
    advance()
    loss = loss_of(Bound(event, guarantee.unit, guarantee), guarantee) if whole else None
    advance()
    roc = tuple((rate, best_true_positive_rate(bound.delta, rate)) for rate in _rates())
    advance()
    return Curves(counts, own, deltas, rows, profile, loss, roc, which)


def epsilon_growth(
    bound_at: Callable[[int], Bound | SingleAccountantCurve],
    counts: Sequence[int],
    deltas: Sequence[float],
    own: tuple[int, float, float],
    advance: Callable[[], None] = lambda: None,
) -> tuple[tuple[float, ...], ...]:
    """Return ε at each count, for each δ.

    Args:
        bound_at: The δ(ε) after a number of steps.
        counts: The numbers of steps.
        deltas: The δ.
        own: The run's own number of steps, its δ, and the ε that is stated for both.
        advance: Called after each ε.
    """
    steps, own_delta, stated = own
    rows: list[list[float]] = [[] for _ in deltas]
    for count in counts:
        bound = bound_at(count)
        for row, delta in zip(rows, deltas, strict=True):
            epsilon = stated if (count, delta) == (steps, own_delta) else bound.epsilon(delta)
            # Fewer steps and a larger δ cost no more than the run itself, whatever a quicker method finds.
            row.append(min(epsilon, stated) if count <= steps and delta >= own_delta else epsilon)
            advance()
    return tuple(map(tuple, rows))


def _stated(card: RunCard, which: Accountant | None) -> float:
    """Return the ε of the requested accountant, or of the best, which the ladder has already."""
    if which is not None:
        return card.guarantee.value.epsilon.upper
    tightest = card.ladder.value[0].guarantee
    return tightest.epsilon.upper if tightest is not None else math.inf


def _counts(own: int) -> tuple[int, ...]:
    """Return a dozen counts, evenly spaced on a logarithmic axis, from a thousandth of the run's own to twice it."""
    least = max(1, own // 1000)
    ratio = max(2 * own, 10) / least
    spaced = {max(1, round(least * ratio ** (i / (_COUNTS - 1)))) for i in range(_COUNTS)}
    # The run's own count takes the place of its nearest neighbor.
    spaced.discard(min(spaced, key=lambda count: abs(math.log(count / max(own, 1)))))
    return tuple(sorted(spaced | {max(own, 1)}))


def _deltas(own: float) -> tuple[float, ...]:
    if own == 0:
        return (1e-4, 1e-6, 1e-8)
    return tuple(delta for delta in (own * 10, own, own / 10) if 1e-300 < delta < 1)


def _profile(bound: Bound | SingleAccountantCurve, guarantee: Guarantee) -> tuple[Point, ...]:
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
