"""The curve behind the figures is an upper bound for every unit, also where it is put together from few points."""

from __future__ import annotations

from math import exp

import pytest

from privet.accounting import delta, epsilon, price
from privet.core.event import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Poisson,
    Repeated,
    Sampled,
)
from privet.core.guarantee import Interval
from privet.core.unit import Unit
from privet.report.bound import Bound, chords_of

RUN = Repeated(Sampled(Gaussian(2.0), by=Poisson(0.01)), 100)
CASES: dict[str, tuple[Event, Unit]] = {
    "one record": (RUN, Unit()),
    "two records of a sampled run": (RUN, Unit(records=2)),
    "three records of whole steps": (Repeated(Gaussian(20.0), 2), Unit(records=3)),
    "no noise": (Gaussian(0.0), Unit()),
    "far too little noise": (Repeated(Gaussian(0.05), 10), Unit()),
}


@pytest.mark.parametrize("name", CASES)
def test_the_bound_is_never_below_a_proven_lower_bound(name: str) -> None:
    """Fails when a shortcut (group privacy, chords, the bare guarantee) promises a smaller δ than the run has."""
    event, unit = CASES[name]
    bound = Bound(event, unit, epsilon(event, 1e-5, unit=unit))
    for each in (0.0, 0.1, 0.37, 1.0, 2.9):
        assert delta(event, each, unit=unit).lower <= bound.delta(each) <= 1
        assert 0 <= bound.tail(each) <= 1


def test_the_epsilon_of_a_group_fits_its_delta() -> None:
    """Fails when the search over group privacy stops where δ is above the one asked for."""
    bound = Bound(RUN, Unit(records=2))
    found = bound.epsilon(1e-5)
    assert bound.delta(found) <= 1e-5
    # The accountant itself finds about the same by another search; both are upper bounds.
    assert found == pytest.approx(epsilon(RUN, 1e-5, unit=Unit(records=2)).epsilon.upper, rel=0.02)


def test_chords_lie_above_and_close_to_their_curve() -> None:
    """Fails when a chord cuts below the curve, which a straight line in ε would do."""
    curve = Bound(Gaussian(1.0), Unit()).delta
    chords = chords_of(curve, 8.0)
    for each in (0.0, 0.01, 0.1, 1.03, 4.4, 7.99):
        assert curve(each) <= chords(each) <= 1.1 * curve(each)
    assert chords(50.0) == pytest.approx(curve(8.0))


def test_parts_without_losses_of_their_own_are_asked_for_few_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when every point of every curve is a search of its own: a page would take many minutes."""
    bound = Bound(Composed((DiscreteGaussian(20.0, 1, 3), DiscreteLaplace(8.0, 1, 1))), Unit())
    asked: list[float] = []

    def counted(event: Event, at: float, *, unit: Unit) -> Interval:
        asked.append(at)
        return Interval(0.0, exp(-at))

    monkeypatch.setattr(price, "delta", counted)
    found = [bound.delta(each / 10) for each in range(150)]
    assert not bound.is_exact
    assert len(asked) < 60
    assert all(value >= exp(-each / 10) for each, value in enumerate(found))
