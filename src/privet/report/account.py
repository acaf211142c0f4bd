"""The card of a described run: its privacy cost by every accountant, what it means, and warnings."""

from __future__ import annotations

import math

from privet.accounting import (
    Accountant,
    AccountantAnswer,
    RunDescription,
    epsilon,
    ladder,
    meaning,
    neighbours_advice,
    run_conditions,
)
from privet.core import Event, Guarantee, Public, Unit, Whose, digits_up
from privet.report.card import RunCard
from privet.report.single_accountant import curve_of, single_accountant
from privet.report.words import ACCOUNTANTS, is_open, up

__all__ = ["LARGE_DELTA", "WEAK", "guarantee_warnings", "price_description", "price_run", "weaknesses"]

WEAK = 10.0
"""Above this ε an attacker's odds may grow more than 20,000-fold."""
LARGE_DELTA = 0.01
"""A δ from here on is too large for any data set: each person may be published outright with that probability."""
_LARGEST_POWER = 700
"""Above this ε, e^ε is written as a power: it would soon overflow a float."""


def price_run(
    event: Event,
    delta: float,
    *,
    unit: Unit,
    accountant: Accountant | None = None,
    population: int | None = None,
    described: tuple[tuple[str, str], ...] = (),
    conditions: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> RunCard:
    """Return the card of a run that is described and not yet executed. No data is read.

    Args:
        event: Everything that the run does.
        delta: The δ of the guarantee.
        unit: What the guarantee protects.
        accountant: Prove it by this accountant alone; by the tightest, if None.
        population: The number of rows, if it is public: a δ near 1/n gets a warning.
        described: Names and values of the run's settings, for a table.
        conditions: What must be true of the code that runs it.
        notes: How numbers that were not given were computed.

    Raises:
        NotProven: No theorem covers the run.

    >>> from privet.core.event import Gaussian
    >>> price_run(Gaussian(4.0), 1e-5, unit=Unit()).guarantee.value.accountant
    'pld'
    """
    guarantee = epsilon(event, delta, unit=unit, accountant=accountant)
    rungs = tuple(sorted(ladder(event, delta, unit=unit), key=_height))
    which = single_accountant(guarantee, rungs)
    bound = curve_of(event, guarantee, which)
    if which is not None:
        notes = (*notes, _not_the_tightest(which, rungs[0]))
    return RunCard(
        event=Public(event),
        guarantee=Public(guarantee),
        ladder=Public(rungs),
        meaning=Public(meaning(bound.delta, bound.tail)),
        described=Public(described),
        conditions=Public(conditions),
        notes=Public(notes),
        warnings=Public(guarantee_warnings(guarantee, population)),
    )


def price_description(
    run: RunDescription, delta: float, *, accountant: Accountant | None = None, population: int | None = None
) -> RunCard:
    """Return the card of a run from its description. No data is read.

    Args:
        run: The run, from `privet.accounting.describe_run`.
        delta: The δ of the guarantee.
        accountant: Prove it by this accountant alone; by the tightest, if None.
        population: The number of rows, if it is public: a δ near 1/n gets a warning.

    Returns:
        The card, which `privet.report.page` draws and `privet.report.document` turns into JSON.

    Raises:
        NotProven: No theorem covers the run; names the neighbors for which one does.

    >>> from privet.accounting import RunSettings, describe_run
    >>> price_description(describe_run(RunSettings(1.1, sample_rate=0.01, steps=1000)), 1e-5).described.value[2]
    ('steps', '1,000')
    """
    with neighbours_advice(run.event):
        return price_run(
            run.event,
            delta,
            unit=run.unit,
            accountant=accountant,
            population=population,
            described=run.facts,
            conditions=run_conditions(run.batches.scheme, run.unit),
            notes=(run.repetitions.note,) if run.repetitions.note else (),
        )


def _height(rung: AccountantAnswer) -> tuple[bool, float]:
    return rung.guarantee is None, rung.guarantee.epsilon.upper if rung.guarantee else 0.0


def _not_the_tightest(which: Accountant, tightest: AccountantAnswer) -> str:
    proven = up(tightest.guarantee.epsilon.upper) if tightest.guarantee is not None else "∞"
    return (
        f"By {ACCOUNTANTS[which]} alone, as requested, and so is what it means; "
        f"the tightest, {ACCOUNTANTS[tightest.accountant]}, proves ε ≤ {proven}."
    )


def guarantee_warnings(guarantee: Guarantee, population: int | None) -> tuple[str, ...]:
    """Return what is weak about a guarantee, in words: no finite ε, a large ε, or a large δ.

    Args:
        guarantee: The guarantee.
        population: The number of rows, if it is public.

    >>> from privet.core.event import Gaussian
    >>> guarantee_warnings(epsilon(Gaussian(4.0), 1e-5), 1000)
    ()
    """
    warnings = []
    upper, delta = guarantee.epsilon.upper, guarantee.delta
    if is_open(guarantee):
        warnings.append("group privacy found no finite ε: allow fewer records, or use more noise or another accountant")
    elif math.isinf(upper):
        reasons = [text for text in guarantee.assumptions if text.startswith("no guarantee")]
        no_finite = "no guarantee: at δ = 0 this noise has no finite ε; allow a δ such as 1e-5"
        no_bound = "no guarantee: ε has no finite bound"
        warnings.append(reasons[0] if reasons else no_finite if delta == 0 else no_bound)
    return (*warnings, *weaknesses(upper, delta, guarantee.unit, population))


def weaknesses(epsilon: float, delta: float, unit: Unit, population: int | None = None) -> tuple[str, ...]:
    """Return what is weak about the (ε, δ) of a guarantee or of a budget, in words.

    Args:
        epsilon: The ε.
        delta: The δ.
        unit: What is protected.
        population: The number of rows, if it is public.

    >>> weaknesses(3.0, 1e-6, Unit())
    ()
    """
    warnings = []
    if WEAK < epsilon < math.inf:
        times = f"e^{up(epsilon)}" if epsilon > _LARGEST_POWER else f"{math.exp(epsilon):.2g}"
        warnings.append(f"ε is above {WEAK:g}, which is weak: an attacker's odds may grow {times}-fold")
    if population is not None and delta * population >= 1:
        warnings.append(
            f"δ = {digits_up(delta)} is at least 1/n = {1 / population:.2g}: publishing {_of_one('a random', unit)} "
            "outright would be allowed; use a δ far below 1/n"
        )
    elif delta >= LARGE_DELTA:
        warnings.append(
            f"δ = {digits_up(delta)} is large: with that probability {_of_one('any', unit)} may be published outright; "
            "use a δ far below 1/n, such as 1e-5"
        )
    return tuple(warnings)


def _of_one(which: str, unit: Unit) -> str:
    """Name one of n: a record, or all data of one user or client."""
    is_record = unit.whose is Whose.EXAMPLE or unit.records > 1
    return f"{which} record" if is_record else f"{which} {unit.whose.value}'s data"
