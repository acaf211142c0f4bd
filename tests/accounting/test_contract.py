"""Every event × unit is priced or refused; counts are never forgotten. Events are found, not listed."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest

from privet import accounting
from privet.accounting import Accountant
from privet.accounting.table import TABLE
from privet.core.errors import NotProven
from privet.core.event import (
    EVENTS,
    SAMPLINGS,
    Composed,
    Event,
    Gaussian,
    Joint,
    Leaf,
    NonPrivate,
    Repeated,
    Sampled,
)
from privet.core.guarantee import Interval
from privet.core.trials import Trials
from privet.core.unit import Neighbours, Unit

EXAMPLES: dict[str, dict[str, Any]] = {
    "Approximate": {"epsilon": 0.1, "delta": 1e-9},
    "Concentrated": {"rho": 0.01},
    "DiscreteGaussian": {"sigma": 15.0, "bound": 1},
    "DiscreteLaplace": {"scale": 15.0, "bound": 1},
    "Exponential": {"epsilon": 0.1},
    "Gaussian": {"noise_multiplier": 9.0},
    "Joint": {"events": (Gaussian(9.0), Gaussian(20.0))},
    "Laplace": {"noise_multiplier": 12.0},
    "NoisyMax": {"epsilon": 0.1},
    "Pure": {"epsilon": 0.1},
    "RandomizedResponse": {"epsilon": 0.1, "categories": 4},
    "Selected": {"event": Gaussian(30.0), "trials": Trials(0.5, 1.0)},
    "Shuffled": {"event": EVENTS["RandomizedResponse"](0.5, 4), "reports": 500},
    "IndependentBatches": {"batches": 10},
    "Poisson": {"sample_rate": 0.05},
    "ShuffledEpoch": {"batches": 10},
    "WithReplacement": {"draws": 20, "population": 400},
    "WithoutReplacement": {"batch_size": 20, "population": 400},
}
LEAVES = {name: kind for name, kind in EVENTS.items() if issubclass(kind, Leaf)}
UNITS = [
    Unit(neighbours=n, radius=0.5 if n in (Neighbours.L1_BALL, Neighbours.L2_BALL) else 0.0, records=k)
    for n in Neighbours
    for k in (1, 2)
]


def events() -> list[Event]:
    """Every leaf, alone and under every sampling scheme."""
    leaves = [kind(**EXAMPLES[name]) for name, kind in LEAVES.items()]
    schemes = [kind(**EXAMPLES[name]) for name, kind in SAMPLINGS.items()]
    return [*leaves, *(Sampled(leaf, by=scheme) for leaf, scheme in itertools.product(leaves, schemes))]


def name_of(value: object) -> str:
    if isinstance(value, Sampled):
        return f"{type(value.event).__name__}-{type(value.by).__name__}"
    if isinstance(value, Unit):
        return f"{value.neighbours.value}-{value.records}"
    return type(value).__name__


def priced(event: Event, unit: Unit) -> Interval | NotProven:
    try:
        return accounting.epsilon(event, 1e-6, unit=unit).epsilon
    except NotProven as refusal:
        return refusal


def test_every_event_and_scheme_has_an_example() -> None:
    """A new class without an example here would go untested."""
    assert set(LEAVES) | set(SAMPLINGS) == set(EXAMPLES)


@pytest.mark.parametrize("event", events(), ids=name_of)
def test_priced_or_refused(event: Event) -> None:
    """No event × unit falls through: a finite interval, or `NotProven` in words; and the table agrees."""
    for unit in UNITS:
        found = priced(event, unit)
        if isinstance(found, NotProven):
            assert len(str(found)) > 20
        else:
            assert 0 <= found.lower <= found.upper < math.inf


@pytest.mark.parametrize("accountant", list(Accountant), ids=lambda a: a.value)
@pytest.mark.parametrize("event", events(), ids=name_of)
def test_counts_are_not_forgotten(event: Event, accountant: Accountant) -> None:
    """n copies cost the same as the n-fold repetition, and not the same as one."""
    for unit in (Unit(neighbours=n) for n in (Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT, Neighbours.REPLACE)):
        try:
            one = accounting.epsilon(event, 1e-4, unit=unit, accountant=accountant).epsilon.upper
        except NotProven:
            continue
        for count in (2, 9, 64):
            repeated = accounting.epsilon(Repeated(event, count), 1e-4, unit=unit, accountant=accountant).epsilon
            composed = accounting.epsilon(Composed((event,) * count), 1e-4, unit=unit, accountant=accountant).epsilon
            nested = accounting.epsilon(
                Composed((Repeated(event, count - 1), Composed((event,)))), 1e-4, unit=unit, accountant=accountant
            ).epsilon
            assert repeated == composed == nested
            assert repeated.upper > one or repeated.upper == one == 0


def test_the_table_says_where_a_cell_is_empty() -> None:
    """The three refusals that other tools let through."""
    from privet.core.event import ShuffledEpoch, WithoutReplacement

    for scheme in (ShuffledEpoch(10), WithoutReplacement(20, 400)):
        with pytest.raises(NotProven, match=r"add/remove"):
            accounting.epsilon(Sampled(Gaussian(1.0), by=scheme), 1e-5)
    sampled = Sampled(Gaussian(1.0), by=SAMPLINGS["Poisson"](0.1))
    with pytest.raises(NotProven, match=r"zcdp"):
        accounting.epsilon(sampled, 1e-5, accountant=Accountant.ZCDP)


def test_blocks_do_not_change_neighbours() -> None:
    """A block proven for replace-one says nothing about add/remove; two add/remove steps make a replacement."""
    from privet.core.event import Pure

    replace = Unit(neighbours=Neighbours.REPLACE)
    with pytest.raises(NotProven):
        accounting.epsilon(Pure(1.0, Neighbours.REPLACE), 0.0)
    assert accounting.epsilon(Pure(1.0), 0.0, unit=replace).epsilon.upper == pytest.approx(2.0)
    assert accounting.epsilon(Pure(1.0, Neighbours.REPLACE), 0.0, unit=replace).epsilon.upper == pytest.approx(1.0)


def test_shuffled_epochs_claim_no_amplification() -> None:
    """One Gaussian an epoch: σ for zero-out, σ/2 for replace-one, whatever the number of batches."""
    from privet.core.event import IndependentBatches, ShuffledEpoch

    zero, replace = (Unit(neighbours=n) for n in (Neighbours.ZERO_OUT, Neighbours.REPLACE))
    for batches in (1, 1000):
        epoch = Sampled(Gaussian(3.0), by=ShuffledEpoch(batches))
        assert accounting.upper(epoch, 1e-5, unit=zero) == accounting.upper(Gaussian(3.0), 1e-5)
        assert accounting.upper(epoch, 1e-5, unit=replace) == accounting.upper(Gaussian(1.5), 1e-5)
        independent = Sampled(Gaussian(3.0), by=IndependentBatches(batches))
        assert accounting.upper(independent, 1e-5) == accounting.upper(Gaussian(3.0), 1e-5)


def test_two_records_cost_more_than_one() -> None:
    """Group privacy: k records of plain Gaussians are an exact shift of k; sampled ones go through the group bound."""
    two = Unit(records=2)
    assert accounting.upper(Gaussian(4.0), 1e-5, unit=two) == accounting.upper(Gaussian(2.0), 1e-5)
    sampled = Repeated(Sampled(Gaussian(2.0), by=SAMPLINGS["Poisson"](0.01)), 50)
    one = accounting.epsilon(sampled, 1e-5).epsilon
    both = accounting.epsilon(sampled, 1e-5, unit=two).epsilon
    assert both.lower >= one.lower * 0.999
    assert both.upper > 2 * one.lower


def test_many_records_have_a_finite_price() -> None:
    """Where group privacy gives up, the same runs without sampling still bound the price."""
    sampled = Repeated(Sampled(Gaussian(1.1), by=SAMPLINGS["Poisson"](0.01)), 100)
    twenty = Unit(records=20)
    plain = accounting.upper(Repeated(Gaussian(1.1 / 20), 100), 1e-5)
    assert accounting.upper(sampled, 1e-5, unit=twenty) <= plain * 1.02
    assert math.isfinite(plain)


def test_every_row_of_the_table_names_a_theorem() -> None:
    """A cell without a theorem is not proven."""
    assert all(row.theorem and row.accountants and row.neighbours for row in TABLE)


def test_composition_of_everything() -> None:
    """All plain leaves together have one price, at least as high as the dearest."""
    others = ("RandomizedResponse", "Shuffled", "Joint")
    plain = [kind(**EXAMPLES[name]) for name, kind in LEAVES.items() if name not in others]
    together = accounting.epsilon(Composed((*plain, Joint((Gaussian(9.0),)))), 1e-5).epsilon
    assert together.upper >= max(accounting.upper(leaf, 1e-5) for leaf in plain)
    assert math.isinf(accounting.upper(Composed((*plain, NonPrivate("a raw mean"))), 1e-5))
