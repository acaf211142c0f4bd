"""The privacy cost of a training run and everything around it: line by line, in total, and by epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from privet.accounting import epsilon
from privet.core import Composed, Event, Guarantee, InvalidInput, Public, Release, Score, Trial, Unit
from privet.report.account import price_run
from privet.report.bound import Bound
from privet.report.card import RunCard
from privet.report.curves import epsilon_growth
from privet.report.training_records import BillLine, Growth

__all__ = ["growth_of", "nearby_deltas", "price_lines", "trial_of"]

_MOST_EPOCHS = 12
"""The largest number of epochs at which ε is computed."""


def price_lines(
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
    """Return the card of everything that a run releases together, and its privacy cost line by line.

    Args:
        lines: What the budget is spent on, in words, and its event: the model, its scores, a learned schema, …
        delta: The δ of the whole. Each line is priced at this δ by itself, so that the lines add up to more.
        unit: What all of it protects.
        population: The number of units, if it is public: a δ near 1/n gets a warning.
        assumptions: What the guarantee rests on, if whoever ran it knows better than the accountant
            (`release.guarantee.assumptions`: noise on a grid is not continuous noise).
        rests_on: Further assumptions, about the data: where bounds and values come from (`Schema.assumptions`).
        described: Names and values of the run's settings, for a table.
        conditions: What must be true of the code that runs it.
        notes: How numbers that were not given were computed.

    Returns:
        The card of the whole, and the lines.

    Raises:
        InvalidInput: There are no lines.
        NotProven: No theorem covers the run.

    >>> from privet.core.event import Gaussian
    >>> card, bill = price_lines([("the model", Gaussian(4.0)), ("a score", Gaussian(40.0))], 1e-5, unit=Unit())
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
    """Return ε after at most a dozen numbers of epochs, at ten times the guarantee's δ, at δ, and at a tenth of it.

    Args:
        after: Everything that was done after a number of epochs; `after(epochs)` is the event of the guarantee.
        epochs: The number of epochs.
        guarantee: The guarantee of the whole run.
        by: What is counted, if not epochs.

    Raises:
        InvalidInput: `epochs` is below 1.
    """
    if epochs < 1:
        raise InvalidInput("epochs", f"is {epochs}", "give 1 or more")
    count = min(epochs, _MOST_EPOCHS)
    chosen = sorted({max(1, round(epochs * (i + 1) / count)) for i in range(count)})
    own, deltas = (epochs, guarantee.delta, guarantee.epsilon.upper), nearby_deltas(guarantee.delta)
    rows = epsilon_growth(lambda epoch: Bound(after(epoch), guarantee.unit), chosen, deltas, own)
    return Growth(tuple(map(float, chosen)), deltas, rows, by)


def nearby_deltas(delta: float) -> tuple[float, ...]:
    """Return ten times a δ, the δ, and a tenth of it.

    >>> nearby_deltas(1e-5)
    (0.0001, 1e-05, 1e-06)
    """
    near = (float(f"{delta * 10:.6g}"), delta, float(f"{delta / 10:.6g}"))
    return tuple(each for each in near if 0 < each < 1) or (1e-4, 1e-6)


def trial_of(run: str, method: str, score: Release[Score], delta: float) -> Release[Trial]:
    """Return a score as a point of accuracy against ε, with the privacy cost of its own draws at δ.

    Args:
        run: The name of the run.
        method: The title of the method.
        score: The score.
        delta: The δ at which it is priced.

    Guarantee: That of `score`, of which this is post-processing.
    """
    cost = epsilon(score.event, delta, unit=score.unit).epsilon.upper
    return score.map(lambda known: Trial(run, method, cost, delta, known))
