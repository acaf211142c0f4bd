"""What is drawn and said beside a guarantee is proven the way that the guarantee is."""

from __future__ import annotations

import math
from functools import cache

import pytest

from privet.accounting import Accountant, delta, epsilon
from privet.core.event import Event, Gaussian, Poisson, Repeated, Sampled, WithoutReplacement
from privet.core.unit import Neighbours, Unit, Whose
from privet.report import Curves, RunCard, curves_of, page, price_run
from privet.report.bound import Bound, Chords
from privet.report.figures import figures
from privet.report.single_accountant import SingleAccountantCurve

POISSON = Repeated(Sampled(Gaussian(1.1), by=Poisson(0.01)), 500)
FIXED = Repeated(Sampled(Gaussian(4.0), by=WithoutReplacement(30, 1000)), 40)
CASES: dict[str, tuple[Event, Unit, Accountant]] = {
    "renyi": (POISSON, Unit(), Accountant.RENYI),
    "advanced": (POISSON, Unit(), Accountant.ADVANCED),
    "basic": (POISSON, Unit(), Accountant.BASIC),
    "zcdp": (Repeated(Gaussian(10.0), 5), Unit(), Accountant.ZCDP),
    "fixed size": (FIXED, Unit(neighbours=Neighbours.REPLACE), Accountant.RENYI),
    "two records": (Repeated(Sampled(Gaussian(4.0), by=Poisson(0.01)), 100), Unit(records=2), Accountant.RENYI),
}


@cache
def made(name: str) -> tuple[RunCard, Curves]:
    event, unit, accountant = CASES[name]
    card = price_run(event, 1e-5, unit=unit, accountant=accountant)
    return card, curves_of(card)


@pytest.mark.parametrize("name", CASES)
def test_the_point_of_the_run_lies_on_its_curves(name: str) -> None:
    """Fails when the curves are by another accountant than the guarantee, so that its point floats above them."""
    card, curves = made(name)
    guarantee, accountant = card.guarantee.value, CASES[name][2]
    upper = guarantee.epsilon.upper
    assert guarantee.accountant == accountant.value
    assert upper > 1.01 * epsilon(card.event.value, 1e-5, unit=guarantee.unit).epsilon.upper
    assert dict(curves.profile)[upper] == guarantee.delta
    row = curves.by_delta[curves.deltas.index(guarantee.delta)]
    assert row[curves.counts.index(curves.own_count)] == upper
    for row in curves.by_delta:
        assert list(row) == sorted(row)
    # Beside the point, too: before and after it the curve is the accountant's own.
    more = next(i for i, count in enumerate(curves.counts) if count > curves.own_count)
    step = card.event.value.event  # type: ignore[attr-defined]
    other = Repeated(step, curves.counts[more])
    own = curves.by_delta[curves.deltas.index(guarantee.delta)][more]
    assert own == epsilon(other, 1e-5, unit=guarantee.unit, accountant=accountant).epsilon.upper


@pytest.mark.parametrize("name", CASES)
def test_the_meaning_is_that_of_the_guarantee(name: str) -> None:
    """Fails when attacks are bounded better than the accountant alone can prove, or promise less than (ε, δ) itself."""
    card, curves = made(name)
    event, unit, _ = CASES[name]
    guarantee = card.guarantee.value
    tight = price_run(event, 1e-5, unit=unit).meaning.value
    for ours, best in zip(card.meaning.value.attacks, tight.attacks, strict=True):
        # All that one (ε, δ) says about attacks: tpr ≤ e^ε·fpr + δ.
        least = math.exp(min(guarantee.epsilon.upper, 700.0)) * ours.false_positive_rate + guarantee.delta
        assert best.true_positive_rate < ours.true_positive_rate + 1e-12
        assert ours.true_positive_rate <= 1.001 * min(1.0, least)
        assert dict(curves.roc)[ours.false_positive_rate] == ours.true_positive_rate


@pytest.mark.parametrize("name", CASES)
def test_the_curve_of_one_accountant_is_an_upper_bound(name: str) -> None:
    """Fails when a chord between the points that were asked for cuts below what is true."""
    event, unit, accountant = CASES[name]
    stated = epsilon(event, 1e-5, unit=unit, accountant=accountant)
    alone = SingleAccountantCurve(event, stated, accountant)
    for each in (0.0, 0.01, 0.3, 1.0, stated.epsilon.upper, 1.3 * stated.epsilon.upper):
        assert delta(event, each, unit=unit).lower <= alone.delta(each) <= 1
        assert 0 <= alone.tail(each) <= 1


@pytest.mark.parametrize("name", ["renyi", "basic", "fixed size"])
def test_it_is_said_whose_proof_it_is(name: str) -> None:
    """Fails when a caption or the text leaves open why the headline is larger than the tightest rung."""
    card, curves = made(name)
    (note,) = card.notes.value
    assert "alone, as requested, and so is what it means; the tightest, privacy-loss distribution, proves ε ≤" in note
    words = {figure.id: figure.alternative for figure in figures(card, curves)}
    for figure in ("attack", "growth", "profile"):
        assert " alone" in words[figure]
    if curves.loss is not None:
        assert "That is less than the stated δ = 1e-05: the loss is the run's own, whatever is stated." in words["loss"]
    assert " alone, as requested" in page(card, curves)


def test_the_tightest_needs_no_words() -> None:
    """Fails when a page by the best accountant, asked for or not, excuses itself; or one that is as good."""
    plain = price_run(POISSON, 1e-5, unit=Unit())
    asked = price_run(POISSON, 1e-5, unit=Unit(), accountant=Accountant.PLD)
    same = price_run(Repeated(Gaussian(10.0), 5), 1e-5, unit=Unit(), accountant=Accountant.GDP)
    assert plain == asked
    for card in (plain, same):
        curves = curves_of(card)
        assert card.notes.value == ()
        assert curves.alone is None
        assert not [figure.id for figure in figures(card, curves) if " alone" in figure.alternative]


def test_many_records_are_drawn_as_they_are_priced() -> None:
    """Fails when the headline finds a bound for many records that the curves do not, and lies below all of them."""
    event, unit = Repeated(Sampled(Gaussian(2.0), by=Poisson(0.5)), 10), Unit(Whose.USER, records=5)
    card = price_run(event, 1e-5, unit=unit)
    guarantee = card.guarantee.value
    curves = curves_of(card)
    assert dict(curves.profile)[guarantee.epsilon.upper] <= guarantee.delta
    for row in curves.by_delta:
        assert all(math.isfinite(value) for value in row[: curves.counts.index(curves.own_count) + 1])
        assert list(row) == sorted(row)
    assert all(attack.true_positive_rate < 1 for attack in card.meaning.value.attacks[:2])


@pytest.mark.parametrize("unit", [Unit(), Unit(records=2), Unit(records=5)])
def test_no_curve_lies_above_the_guarantee(unit: Unit) -> None:
    """Fails when the stated (ε, δ) is better than the curve at its own ε."""
    event = Repeated(Sampled(Gaussian(2.0), by=Poisson(0.5)), 10)
    stated = epsilon(event, 1e-5, unit=unit)
    assert Bound(event, unit, stated).delta(stated.epsilon.upper) <= stated.delta


def test_chords_over_steep_places() -> None:
    """Fails when points that are far apart end in an overflow, or a δ that rises again is believed."""
    chords = Chords([(0.0, 1.0), (2000.0, 1e-3), (2001.0, 1e-5), (5000.0, 1e-4)])
    assert chords(1999.0) == 1.0
    assert chords(2000.0) == pytest.approx(1e-3)
    assert 1e-5 < chords(2000.5) < 1e-3
    assert chords(6000.0) == 1e-5
