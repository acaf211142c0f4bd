"""What a training run and everything around it cost together: the bill, its total, and ε from epoch to epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from privet.accounting import epsilon
from privet.core.disclosure import Public
from privet.core.errors import InvalidInput
from privet.core.event import Composed, Event
from privet.core.guarantee import Guarantee
from privet.core.release import Release
from privet.core.scores import Score, Trial
from privet.core.unit import Unit
from privet.report.account import price_run
from privet.report.bound import Bound
from privet.report.card import RunCard
from privet.report.training_records import BillLine, Growth

__all__ = ["around", "growth_of", "priced", "tried"]

_MOST_EPOCHS = 12
"""At how many epochs ε is computed, at most."""


def priced(
    lines: Sequence[tuple[str, Event]],
    delta: float,
    *,
    unit: Unit,
    population: int | None = None,
    assumptions: tuple[str, ...] | None = None,
    rests_on: tuple[str, ...] = (),
    described: tuple[tuple[str, str], ...] = (),
    conditions: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> tuple[RunCard, Public[tuple[BillLine, ...]]]:
    """The price of everything together, and the bill line by line.

    Args:
        lines: what was paid for, in words, and its event: the model, its scores, a schema that was learned, …
        delta: of the whole. Each line is priced at this δ by itself, so that the lines add up to more than the whole.
        unit: of all of it.
        population: the public number of units, if it is known, against which δ is held.
        assumptions: what the guarantee rests on, where whoever ran it knows better than the price
            (`release.guarantee.assumptions`: noise on a grid is not continuous noise).
        rests_on: further assumptions, of the data: where bounds and values come from (`Schema.assumptions`).
        described, conditions, notes: as for `price_run`.

    >>> from privet.core.event import Gaussian
    >>> card, bill = priced([("the model", Gaussian(4.0)), ("a score", Gaussian(40.0))], 1e-5, unit=Unit())
    >>> print(card.guarantee.value)
    (ε ≤ 0.932, δ = 1e-05) for one example, add/remove, central [pld]
    """
    if not lines:
        raise InvalidInput("lines", "is empty", "name at least the model and its event")
    events = tuple(event for _, event in lines)
    card = price_run(
        events[0] if len(events) == 1 else Composed(events),
        delta,
        unit=unit,
        population=population,
        described=described,
        conditions=conditions,
        notes=notes,
    )
    of_noise = card.guarantee.value.assumptions if assumptions is None else assumptions
    stated = replace(card.guarantee.value, assumptions=(*of_noise, *rests_on))
    card = replace(card, guarantee=Public(stated))
    bill = tuple(BillLine(what, event, epsilon(event, delta, unit=unit)) for what, event in lines)
    return card, Public(bill)


def growth_of(after: Callable[[int], Event], epochs: int, guarantee: Guarantee, by: str = "epochs") -> Growth:
    """ε after each of at most a dozen epochs, at ten times the guarantee's δ, at δ, and at a tenth of it.

    `after(k)` is everything that was done when k epochs were over; `after(epochs)` is what the guarantee is of. `by`
    says what is counted, if it is something else than epochs.
    """
    if epochs < 1:
        raise InvalidInput("epochs", f"is {epochs}", "give 1 or more")
    count = min(epochs, _MOST_EPOCHS)
    chosen = sorted({max(1, round(epochs * (i + 1) / count)) for i in range(count)})
    own, stated = guarantee.delta, guarantee.epsilon.upper
    deltas = around(own)
    rows: list[list[float]] = [[] for _ in deltas]
    for epoch in chosen:
        bound = Bound(after(epoch), guarantee.unit)
        for row, delta in zip(rows, deltas, strict=True):
            found = stated if (epoch, delta) == (epochs, own) else bound.epsilon(delta)
            # Fewer epochs and a larger δ cost no more than the run itself, whatever a quicker method finds.
            row.append(min(found, stated) if delta >= own else found)
    return Growth(tuple(map(float, chosen)), deltas, tuple(map(tuple, rows)), by)


def around(delta: float) -> tuple[float, ...]:
    """Ten times a δ, the δ, and a tenth of it.

    >>> around(1e-5)
    (0.0001, 1e-05, 1e-06)
    """
    near = (float(f"{delta * 10:.6g}"), delta, float(f"{delta / 10:.6g}"))
    return tuple(each for each in near if 0 < each < 1) or (1e-4, 1e-6)


def tried(run: str, method: str, score: Release[Score], delta: float) -> Release[Trial]:
    """A score as a point of accuracy against ε, with the ε that its own draws cost at δ.

    Guarantee: that of `score`, of which this is post-processing.
    """
    cost = epsilon(score.event, delta, unit=score.unit).epsilon.upper
    return score.map(lambda known: Trial(run, method, cost, delta, known))
