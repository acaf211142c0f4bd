"""In which form an event enters a budget: as its curve, as a block at its PLD price, or as the whole budget."""

from __future__ import annotations

import math

import pytest

from privet.accounting import epsilon, noise_multiplier
from privet.core.errors import BudgetExceeded, NotProven
from privet.core.event import (
    Approximate,
    Composed,
    Event,
    Gaussian,
    Laplace,
    Poisson,
    Pure,
    Repeated,
    Sampled,
    WithoutReplacement,
)
from privet.core.unit import Neighbours, Unit
from privet.ledger import Form, Ledger, Refused, State, entry_forms
from privet.ledger.filter import Sums, rules_for
from privet.ledger.records import NOT_A_GUARANTEE

RATE, STEPS = 0.01, 1000


def training(noise: float, steps: int = STEPS) -> Event:
    """A run of DP-SGD."""
    return Repeated(Sampled(Gaussian(noise), by=Poisson(RATE)), steps)


def tight() -> Event:
    """A run whose PLD price is just below (1, 1e-6)."""
    return training(noise_multiplier(epsilon=1.0, delta=1e-6, sample_rate=RATE, steps=STEPS))


@pytest.mark.parametrize(
    "plan",
    [
        tight,
        lambda: Approximate(1.0, 1e-6),
        lambda: Pure(1.0),
        lambda: Laplace(1.0),
        lambda: Composed((Pure(0.5), Approximate(0.5, 1e-6))),
    ],
    ids=["training", "block", "pure", "Laplace", "two blocks"],
)
def test_a_fixed_plan_of_the_budget_fits_a_fresh_budget(file_ledger: Ledger, plan: object) -> None:
    """Catches a filter whose shares, or whose rounding, would refuse a plan of exactly the budget's (ε, δ)."""
    assert callable(plan)
    charge = file_ledger.reserve("clinic", plan())
    charge.draw()
    charge.commit()
    assert file_ledger.verify("clinic")


def test_a_plan_that_took_the_whole_budget_leaves_nothing(file_ledger: Ledger) -> None:
    """Catches finite orders that stay open after the switch."""
    charge = file_ledger.reserve("clinic", tight())
    assert file_ledger.entry(charge.id).form is Form.WHOLE
    budget = file_ledger.budget("clinic")
    assert budget.basic
    assert budget.delta_left == 0
    assert budget.epsilon_left < 0.01
    with pytest.raises(BudgetExceeded):
        file_ledger.reserve("clinic", Gaussian(1000.0))
    with pytest.raises(BudgetExceeded):
        file_ledger.reserve("clinic", Laplace(50.0))


def test_the_whole_budget_can_be_given_back_and_taken_otherwise(file_ledger: Ledger) -> None:
    """While nothing was drawn nothing is decided; a drawn plan keeps the switch for ever."""
    file_ledger.reserve("clinic", tight()).abort()
    assert not file_ledger.budget("clinic").basic
    first = file_ledger.reserve("clinic", Gaussian(50.0))
    with pytest.raises(BudgetExceeded):
        file_ledger.reserve("clinic", tight())
    first.abort()
    file_ledger.reserve("clinic", tight()).draw()
    assert file_ledger.budget("clinic").basic
    assert file_ledger.verify("clinic")


def test_a_used_budget_admits_no_plan_of_its_full_size(file_ledger: Ledger) -> None:
    """Catches a switch that is offered although something was drawn, however little."""
    file_ledger.reserve("clinic", Laplace(1e6)).draw()
    with pytest.raises(BudgetExceeded):
        file_ledger.reserve("clinic", tight())


@pytest.mark.parametrize("noise", [4.0, 8.0])
def test_an_entry_is_fixed_as_a_curve_or_as_a_block(file_ledger: Ledger, noise: float) -> None:
    """The caller may choose; a block is at most what PLD says at its δ, and takes that δ for certain."""
    run = training(noise)
    curve = file_ledger.entry(file_ledger.reserve("clinic", run, as_block=False).id)
    assert (curve.form, curve.epsilon, curve.delta) == (Form.CURVE, None, 0.0)
    block = file_ledger.entry(file_ledger.reserve("clinic", run, as_block=True).id)
    assert block.form is Form.BLOCK
    assert block.delta > 0
    assert block.epsilon == pytest.approx(epsilon(run, block.delta, unit=Unit()).epsilon.upper, rel=1e-6)
    assert file_ledger.verify("clinic")


def test_blocks_carry_what_curves_cannot(file_ledger: Ledger) -> None:
    """A run that no order admits as a curve enters beside others as a block at its PLD price."""
    file_ledger.reserve("clinic", Laplace(1000.0)).draw()
    low_noise = training(1.1, 20)
    assert not file_ledger.admits("clinic", low_noise, as_block=False)
    entry = file_ledger.entry(file_ledger.reserve("clinic", low_noise).id)
    assert entry.form is Form.BLOCK
    assert entry.epsilon is not None
    assert 0 < entry.epsilon < 1


def test_the_block_that_leaves_most_room_is_chosen() -> None:
    """Catches the first δ that fits instead of the one that harms least."""
    rules = rules_for(1.0, 1e-6)
    sums = Sums.empty(rules)
    chosen = entry_forms.choose(rules, Unit(), sums, training(3.0), True)
    assert chosen is not None
    others = entry_forms._blocks(rules, Unit(), sums, training(3.0), True)
    fitting = [offer for offer in others if sums.order_for(offer.amount, rules) is not None]
    assert len(fitting) > 3
    assert sums.harm(chosen.amount, rules) == min(sums.harm(offer.amount, rules) for offer in fitting)
    assert chosen.amount.offset < rules.shares[-1]


def test_events_without_a_curve_enter_as_blocks(file_ledger: Ledger) -> None:
    """Catches a ledger that knows Rényi curves only, and one that takes a missing curve for a free one."""
    file_ledger.create("replaced", epsilon=3.0, delta=1e-6, unit=Unit(neighbours=Neighbours.REPLACE))
    event = Sampled(Approximate(0.1, 1e-9), by=WithoutReplacement(10, 1000))
    with pytest.raises(NotProven, match="Rényi"):
        file_ledger.reserve("replaced", event, as_block=False)
    entry = file_ledger.entry(file_ledger.reserve("replaced", event).id)
    assert entry.form is Form.BLOCK
    assert 0 < entry.delta < 1e-6


def test_adaptive_queries_beat_basic_composition(file_ledger: Ledger) -> None:
    """Many small queries, one after the other: the Rényi orders admit far more of them than Σε ≤ 1 would."""
    query, count = Laplace(100.0), 0
    rules = rules_for(1.0, 1e-6)
    offer = entry_forms.choose(rules, Unit(), Sums.empty(rules), query, None)
    assert offer is not None
    sums = Sums.empty(rules)
    while sums.order_for(offer.amount, rules) is not None:
        sums, count = sums.after(offer.amount), count + 1
    assert count > 300  # basic composition stops at 100


def test_the_price_of_the_history_is_shown_and_called_no_guarantee(file_ledger: Ledger) -> None:
    """What counts is in it, what was aborted is not; catches a figure that could be mistaken for a promise."""
    for state in (State.COMMITTED, State.COMMITTED, State.ABORTED, State.RESERVED):
        charge = file_ledger.reserve("clinic", Gaussian(20.0))
        if state is State.ABORTED:
            charge.abort()
        if state is State.COMMITTED:
            charge.draw()
            charge.commit()
    shown = file_ledger.show("clinic")
    assert shown.planned is not None
    assert shown.planned.epsilon.upper == pytest.approx(epsilon(Repeated(Gaussian(20.0), 3), 1e-6).epsilon.upper)
    assert shown.planned.epsilon.upper < shown.budget.epsilon
    assert shown.note == NOT_A_GUARANTEE == "had it been planned in advance; not a guarantee"


def test_a_history_that_no_accountant_prices_as_one_says_so(
    file_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a page that fails because of a figure that is only for information."""
    file_ledger.reserve("clinic", Gaussian(20.0))

    def unproven(*_: object) -> None:
        raise NotProven("no theorem")

    monkeypatch.setattr("privet.ledger.pricing.planned", unproven)
    shown = file_ledger.show("clinic")
    assert shown.planned is None
    assert "no theorem" in shown.note


@pytest.mark.parametrize(
    "event", [Gaussian(2.0), training(1.1, 5000), Laplace(0.5)], ids=["Gaussian", "training", "Laplace"]
)
def test_a_refusal_says_what_would_fit(file_ledger: Ledger, event: Event) -> None:
    """The suggestion fits, and 1 % less noise or one more step does not; catches wrong and over-careful advice."""
    file_ledger.reserve("clinic", Gaussian(10.0)).draw()
    head = file_ledger.head("clinic")
    with pytest.raises(Refused) as caught:
        file_ledger.reserve("clinic", event, purpose="mean age")
    refused = caught.value
    assert file_ledger.head("clinic") == head
    assert refused.asked == pytest.approx(epsilon(event, 1e-6).epsilon.upper, rel=1e-6)
    assert refused.least_noise is not None
    assert file_ledger.admits("clinic", refused.least_noise)
    less = offers_scaled(refused.least_noise, 0.99)
    assert not file_ledger.admits("clinic", less)
    if isinstance(event, Repeated):
        assert refused.most_steps is not None
        assert refused.most_steps == 0 or file_ledger.admits("clinic", Repeated(event.event, refused.most_steps))
        assert not file_ledger.admits("clinic", Repeated(event.event, refused.most_steps + 1))
    else:
        assert refused.most_steps is None
    text = str(refused)
    for part in ("clinic", "mean age", "asks ε =", "is left", "would fit with noise_multiplier ="):
        assert part in text
    assert "\n" not in text


def offers_scaled(event: Event, factor: float) -> Event:
    """The event with its noise changed by a factor."""
    from privet.ledger.scaling import noisier

    changed = noisier(event, factor)
    assert changed is not None
    return changed


def test_a_refusal_that_nothing_helps_says_so(file_ledger: Ledger) -> None:
    """A block that somebody else proved has no noise to turn up."""
    with pytest.raises(Refused, match="no change that is known here") as caught:
        file_ledger.reserve("clinic", Pure(2.0))
    assert caught.value.least_noise is None
    assert caught.value.left == (1.0, 1e-6)
    with pytest.raises(Refused, match="asks no finite ε"):
        file_ledger.reserve("clinic", Approximate(0.1, 0.5))
    assert math.isfinite(caught.value.asked)


def test_several_kinds_of_noise_are_turned_up_together(file_ledger: Ledger) -> None:
    """Catches advice for one part of a composed event that leaves the others as they are."""
    with pytest.raises(Refused, match=r"all noise .* times larger") as caught:
        file_ledger.reserve("clinic", Composed((Gaussian(1.0), Laplace(1.0))))
    least = caught.value.least_noise
    assert isinstance(least, Composed)
    first, second = least.events
    assert isinstance(first, Gaussian)
    assert isinstance(second, Laplace)
    assert first.noise_multiplier == second.noise_multiplier > 1
    assert file_ledger.admits("clinic", least)
