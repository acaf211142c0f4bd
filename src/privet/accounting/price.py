"""The front door of accounting: what an event costs a unit, as an interval, by the best certified method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from privet.accounting import gdp, pld, renyi, table, zcdp
from privet.accounting.accountant import Accountant
from privet.accounting.canonical import CountedEvent, canonical
from privet.accounting.certified_bounds import QUIET, between, certain
from privet.accounting.composition import ADVANCED, BASIC
from privet.accounting.group import group_delta, group_epsilon, halfway, portion
from privet.accounting.renyi_leaves import failure
from privet.core import (
    COMPUTATIONAL,
    Guarantee,
    Interval,
    Neighbours,
    NotProven,
    Trust,
    Unit,
    checked,
)
from privet.core import (
    event as events,
)

__all__ = [
    "CONTINUOUS_NOISE",
    "TOO_LARGE",
    "UNLINKED",
    "AccountantAnswer",
    "delta",
    "epsilon",
    "gate",
    "ladder",
    "quick",
    "require_one",
    "upper",
]

T = TypeVar("T")


class _ClosedForm(Protocol):
    def epsilon(self, parts: Sequence[CountedEvent], delta: float, unit: Unit) -> float: ...

    def delta(self, parts: Sequence[CountedEvent], epsilon: float, unit: Unit) -> float: ...


_CLOSED: dict[Accountant, _ClosedForm] = {
    Accountant.RENYI: renyi,
    Accountant.ZCDP: zcdp,
    Accountant.GDP: gdp,
    Accountant.ADVANCED: ADVANCED,
    Accountant.BASIC: BASIC,
}
CONTINUOUS_NOISE = "continuous (floating-point) noise"
"""The assumption of theorems on noise that is any real number: what a computer draws is close to that."""
TOO_LARGE = 150.0
"""Above this Rényi ε a loss distribution is not worth its time; any certified bound will do."""
_MOST_RUNS = 10**8
"""Above this many runs a grid that is fine enough would not fit in memory; closed forms still answer."""
UNLINKED = "whoever shuffles does so, and the mix servers do not all collude: one at least tells nobody its order"
"""What every guarantee of shuffled reports rests on."""
_CHEAP = (events.Gaussian, events.Concentrated)
"""Leaves that need no grid, unless they are sampled."""


@np.errstate(**QUIET)
def epsilon(
    event: events.Event, delta: float, *, unit: Unit | None = None, accountant: Accountant | None = None
) -> Guarantee:
    """Return the privacy cost of an event: ε as a certified interval at the given δ.

    Args:
        event: What is done.
        delta: The δ at which ε is stated.
        unit: Whose data is protected; one example, added or removed, by default.
        accountant: The accountant to use; the least upper end of all that are proven for the event, by default.

    Returns:
        The guarantee. Its upper end is proven, and so is its lower end, which is 0 where no lower bound is known.

    Raises:
        NotProven: No theorem covers the event for the unit.

    >>> from privet.core.event import Gaussian, Poisson, Repeated, Sampled
    >>> run = Repeated(Sampled(Gaussian(1.1), by=Poisson(256 / 60000)), 14062)
    >>> print(epsilon(run, 1e-5))
    (ε ≤ 2.382, δ = 1e-05) for one example, add/remove, central [pld]
    """
    unit = unit or Unit()
    delta = checked.share("delta", delta)
    whole = canonical(event)
    if whole.nonprivate is not None:
        return Guarantee(
            Interval(0.0, math.inf), delta, unit, "none", assumptions=(f"no guarantee: {whole.nonprivate}",)
        )
    rungs = _rungs(whole.parts, unit, accountant)
    answers = _answers(rungs, lambda rung: (_one(rung, whole.parts, delta, unit), rung))
    if accountant is None and not _fine((rung, interval.upper) for interval, rung in answers):
        answers += [(Interval(0.0, other), rung) for rung, other in _in_two_steps(whole.parts, delta, unit)]
    best, method = min(answers, key=lambda pair: pair[0].upper)
    ends = between(max(interval.lower for interval, _ in answers), best.upper)
    error = ends.upper - ends.lower if method is Accountant.PLD and math.isfinite(ends.upper) else 0.0
    return Guarantee(ends, delta, unit, method.value, error, _assumptions(whole.parts, unit))


@np.errstate(**QUIET)
def upper(event: events.Event, delta: float, *, unit: Unit | None = None) -> float:
    """Return only the upper end of `epsilon`, in about half the time; searches use this.

    Args:
        event: What is done.
        delta: The δ at which ε is stated.
        unit: Whose data is protected; one example, added or removed, by default.

    Raises:
        NotProven: No theorem covers the event for the unit.
    """
    unit = unit or Unit()
    whole = canonical(event)
    if whole.nonprivate is not None:
        return math.inf
    answers = _answers(_rungs(whole.parts, unit, None), lambda rung: (rung, _upper(rung, whole.parts, delta, unit)))
    if not _fine(answers):
        answers += _in_two_steps(whole.parts, delta, unit)
    return min(value for _, value in answers)


@np.errstate(**QUIET)
def quick(event: events.Event, delta: float, *, unit: Unit | None = None) -> float:
    """Return a certified upper bound on ε from closed forms alone; infinite where none covers the event.

    Args:
        event: What is done.
        delta: The δ at which ε is stated.
        unit: Whose data is protected; one example, added or removed, by default.

    Raises:
        NotProven: No theorem covers the event for the unit.
    """
    unit = unit or Unit()
    whole = canonical(event)
    if whole.nonprivate is not None:
        return math.inf
    closed = [rung for rung in _rungs(whole.parts, unit, None) if rung is not Accountant.PLD]
    return min(_answers(closed, lambda rung: _upper(rung, whole.parts, delta, unit)), default=math.inf)


@np.errstate(**QUIET)
def delta(event: events.Event, epsilon: float, *, unit: Unit | None = None) -> Interval:
    """Return δ as a certified interval at the given ε, by the best method that is proven for the event.

    Args:
        event: What is done.
        epsilon: The ε at which δ is stated.
        unit: Whose data is protected; one example, added or removed, by default.

    Raises:
        NotProven: No theorem covers the event for the unit.

    >>> from privet.core.event import Gaussian
    >>> round(delta(Gaussian(1.0), 1.0).upper, 6)
    0.126937
    """
    unit = unit or Unit()
    epsilon = checked.nonnegative("epsilon", epsilon)
    whole = canonical(event)
    if whole.nonprivate is not None:
        return Interval(0.0, 1.0)
    rungs = _rungs(whole.parts, unit, None)
    answers = _answers(rungs, lambda rung: (_delta_of(rung, whole.parts, epsilon, unit), rung))
    if not any(rung is Accountant.PLD and interval.upper < 1 for interval, rung in answers):
        others = _in_two_steps(whole.parts, epsilon, unit, of_delta=True)
        answers += [(Interval(0.0, value), rung) for rung, value in others]
    best = min(interval.upper for interval, _ in answers)
    if best == 0 and upper(event, 0.0, unit=unit) > epsilon:
        best = 5e-324  # underflowed, and not pure
    return between(max(interval.lower for interval, _ in answers), best)


@dataclass(frozen=True)
class AccountantAnswer:
    """One accountant's answer for an event, or why it has none."""

    accountant: Accountant
    guarantee: Guarantee | None
    refusal: str | None = None


def ladder(event: events.Event, delta: float, *, unit: Unit | None = None) -> tuple[AccountantAnswer, ...]:
    """Return the answer of every accountant, in the order of `Accountant`; one without a theorem says so.

    Args:
        event: What is done.
        delta: The δ at which ε is stated.
        unit: Whose data is protected; one example, added or removed, by default.
    """
    rungs = []
    for accountant in Accountant:
        try:
            rungs.append(AccountantAnswer(accountant, epsilon(event, delta, unit=unit, accountant=accountant)))
        except NotProven as refusal:
            rungs.append(AccountantAnswer(accountant, None, str(refusal)))
    return tuple(rungs)


def require_one(parts: Sequence[CountedEvent], unit: Unit) -> None:
    """Raise `NotProven` unless some accountant is proven for all parts.

    Args:
        parts: The parts of an event.
        unit: Whose data is protected.
    """
    _rungs(parts, unit, None)


def _rungs(parts: Sequence[CountedEvent], unit: Unit, chosen: Accountant | None) -> list[Accountant]:
    """The accountants that are proven for every part; raises where there is none."""
    table.require_all(parts, unit, chosen)
    if chosen is not None:
        return [chosen]
    common = set(Accountant).intersection(*(table.proven(part, unit) for part in parts))
    if not common:
        raise NotProven("no single accountant is proven for all parts of this event; price them one by one")
    return [accountant for accountant in Accountant if accountant in common]


def _answers(rungs: Sequence[Accountant], ask: Callable[[Accountant], T]) -> list[T]:
    """What the accountants say; one may find no theorem for a part's size or dimension, but not all of them."""
    answers: list[T] = []
    refusal: NotProven | None = None
    for rung in rungs:
        try:
            answers.append(ask(rung))
        except NotProven as reason:
            refusal = refusal or reason
    if refusal is not None and not answers:
        raise refusal
    return answers


def _one(rung: Accountant, parts: Sequence[CountedEvent], delta: float, unit: Unit) -> Interval:
    if rung is not Accountant.PLD:
        return Interval(0.0, _upper(rung, parts, delta, unit))
    if gate(parts, delta, _alone(unit)) > TOO_LARGE:
        return Interval(0.0, math.inf)
    if _grouped(parts, unit):
        return between(pld.epsilon(parts, delta, _alone(unit)).lower, _upper(rung, parts, delta, unit))
    return pld.epsilon(parts, delta, unit)


def _upper(rung: Accountant, parts: Sequence[CountedEvent], delta: float, unit: Unit) -> float:
    def alone(delta: float) -> float:
        if rung is Accountant.PLD:
            too_large = gate(parts, delta, single) > TOO_LARGE
            return math.inf if too_large else pld.upper_epsilon(parts, delta, single)
        return certain(_CLOSED[rung].epsilon(parts, delta, single))

    if not _grouped(parts, unit):
        single = unit
        return alone(delta)
    single = _alone(unit)
    grouped = group_epsilon(alone, delta, unit.records)
    plain = _without_sampling(parts)
    return grouped if plain is None else min(grouped, _upper(rung, plain, delta, unit))


def _fine(answers: Iterable[tuple[Accountant, float]]) -> bool:
    """Whether loss distributions have answered: no detour through two steps is then as good."""
    return any(rung is Accountant.PLD and value <= TOO_LARGE for rung, value in answers)


def _in_two_steps(
    parts: Sequence[CountedEvent], given: float, unit: Unit, *, of_delta: bool = False
) -> list[tuple[Accountant, float]]:
    """A replacement as a removal and an addition: ε at δ (or δ at ε) by the closed forms that are proven for these."""
    way = halfway(parts, unit)
    if way is None or not all(table.proven(part, way[0]) for part in parts):
        return []
    single, count = way

    def ask(rung: Accountant) -> tuple[Accountant, float]:
        rule = _CLOSED[rung]
        if of_delta:
            return rung, group_delta(lambda epsilon: certain(rule.delta(parts, epsilon, single), 1.0), given, count)
        return rung, group_epsilon(lambda delta: certain(rule.epsilon(parts, delta, single)), given, count)

    return _answers([rung for rung in _rungs(parts, single, None) if rung in _CLOSED], ask)


def gate(parts: Sequence[CountedEvent], delta: float, unit: Unit) -> float:
    """A quick certified ε, or 0 where Rényi cannot price the parts: only a gate before heavier work.

    At twice what (ε, δ) blocks reveal outright if that is more than δ, since below it every ε is infinite.
    """
    if sum(part.count for part in parts if part.sampling is not None or not isinstance(part.leaf, _CHEAP)) > _MOST_RUNS:
        return math.inf
    try:
        revealed = math.fsum(part.count * failure(part.leaf, unit) for part in parts)
        return renyi.epsilon(parts, max(delta, min(2 * revealed, 0.5)), unit)
    except NotProven:
        return 0.0


def _alone(unit: Unit) -> Unit:
    return Unit(unit.whose, unit.neighbours, unit.trust, 1, unit.radius)


def _grouped(parts: Sequence[CountedEvent], unit: Unit) -> bool:
    """Whether k records must go through group privacy: sampled parts have no k-record pair of their own here."""
    return unit.records > 1 and any(_samples(part) for part in parts)


def _samples(part: CountedEvent) -> bool:
    """Whether a batch is drawn from the rows, or hidden among them; also inside of a selection."""
    if isinstance(part.leaf, events.Selected):
        return any(_samples(inner) for inner in canonical(part.leaf.event).parts)
    if isinstance(part.leaf, events.Shuffled):
        return part.leaf.reports > 1
    return not isinstance(part.sampling, (type(None), events.ShuffledEpoch, events.IndependentBatches))


def _without_sampling(parts: Sequence[CountedEvent]) -> list[CountedEvent] | None:
    """The same runs on all rows: never cheaper, and priced for k records at once; None where a row may count twice.

    Given which rows are drawn, neighboring sums are as far apart as the drawn records make them, at most as far as all
    of them do, and a mixture of pairs is no easier to tell apart than the worst of them (joint convexity).
    """
    unsampled: list[CountedEvent] = []
    for part in parts:
        leaf: events.Leaf = part.leaf
        if isinstance(leaf, events.Selected):
            inside = _without_sampling(canonical(leaf.event).parts)
            if inside is None:
                return None
            leaf = events.Selected(
                events.Composed(tuple(events.Repeated(inner.leaf, inner.count) for inner in inside)), leaf.trials
            )
        if isinstance(part.sampling, events.WithReplacement):
            return None
        if isinstance(leaf, events.Shuffled):
            leaf = events.Shuffled(leaf.event, 1)  # each report by itself, without a crowd
        unsampled.append(CountedEvent(leaf, None, part.count))
    return unsampled


def _delta_of(rung: Accountant, parts: Sequence[CountedEvent], epsilon: float, unit: Unit) -> Interval:
    k, single = (unit.records, _alone(unit)) if _grouped(parts, unit) else (1, unit)
    if rung is not Accountant.PLD:
        interval = Interval(0.0, certain(_CLOSED[rung].delta(parts, portion(epsilon, k), single), 1.0))
    elif gate(parts, 1e-10, single) > TOO_LARGE:
        return Interval(0.0, 1.0)
    else:
        interval = pld.delta(parts, portion(epsilon, k), single)
    if k == 1:
        return interval
    lower = pld.delta(parts, epsilon, single).lower if rung is Accountant.PLD else 0.0
    return between(lower, group_delta(lambda _: interval.upper, epsilon, k))


def _assumptions(parts: Sequence[CountedEvent], unit: Unit) -> tuple[str, ...]:
    assumptions = []
    selections = [part.leaf for part in parts if isinstance(part.leaf, events.Selected)]
    if any(isinstance(part.leaf, (events.Gaussian, events.Laplace)) for part in parts):
        assumptions.append(CONTINUOUS_NOISE)
    if unit.neighbours is Neighbours.ZERO_OUT:
        assumptions.append("the number of rows is public")
    if unit.trust is Trust.DISTRIBUTED:
        assumptions.append(COMPUTATIONAL)
    if crowds := [part.leaf.reports for part in parts if isinstance(part.leaf, events.Shuffled)]:
        assumptions.append(
            f"at least {min(crowds):,} reports of a batch are honest: one a person, by the same randomizer"
        )
        assumptions.append(UNLINKED)
        if unit.trust is Trust.SHUFFLED:
            assumptions.append(COMPUTATIONAL)
    if selections:
        assumptions.append("the number of runs, and every run but the best, stay hidden")
    for leaf in selections:
        assumptions.extend(_assumptions(canonical(leaf.event).parts, unit))
    return tuple(dict.fromkeys(assumptions))
