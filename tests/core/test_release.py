"""Releases: what they cost travels with them, and a draw is known by its id."""

from __future__ import annotations

import json
from typing import Any

import pytest

from privet.core import Draw, Guarantee, Interval, InvalidInput, Randomness, Release, Unit, Whose
from privet.core.event import Composed, Gaussian, Laplace

UNIT = Unit()
PRICE = Guarantee(Interval(0.9, 1.0), 0.0, UNIT, "pld")


def priced(value: float) -> Release[float]:
    return Release.of(value, Laplace(1.0), unit=UNIT, source="clinic", randomness=Randomness.SECURE, guarantee=PRICE)


def test_post_processing_keeps_the_guarantee() -> None:
    """Catches a map that loses the price, or that would ask for another one."""
    release = priced(2.0)
    assert release.guarantee == PRICE
    assert release.map(str).map(len).guarantee == PRICE


def test_a_join_has_no_guarantee_of_its_own() -> None:
    """Catches a join that carries the price of one side for both."""
    first, second = priced(1.0), priced(2.0)
    bare = Release.of(3.0, Laplace(1.0), unit=UNIT, source="clinic", randomness=Randomness.SECURE)
    for one, other in ((first, second), (first, bare), (bare, first)):
        assert Release.join(one, other).guarantee is None
        assert Release.join(one, other).map(str).guarantee is None


def test_a_guarantee_for_another_unit_is_refused() -> None:
    """Catches a price for examples on a release that is said to protect users; and a number for a guarantee."""
    make: Any = Release.of
    for unit, guarantee in ((Unit(Whose.USER), PRICE), (Unit(records=2), PRICE), (UNIT, 1.0), (UNIT, Interval(0, 1))):
        with pytest.raises(InvalidInput, match="guarantee"):
            make(1.0, Laplace(1.0), unit=unit, source="x", randomness=Randomness.SECURE, guarantee=guarantee)


def test_the_guarantee_is_in_the_json() -> None:
    """Catches a release that is written without its price, or with its value."""
    record = json.loads(priced(987654.25).to_json())["record"]
    assert Guarantee.from_json(json.dumps({"privet": 1, "record": record["guarantee"]})) == PRICE
    assert "987654" not in json.dumps(record)
    bare = Release.of(1.0, Laplace(1.0), unit=UNIT, source="clinic", randomness=Randomness.SECURE)
    assert json.loads(bare.to_json())["record"]["guarantee"] is None


@pytest.mark.parametrize(
    "other", [Draw("clinic", Gaussian(0.01), "same"), Draw("archive", Laplace(1.0), "same")], ids=["event", "source"]
)
def test_one_id_is_one_draw(other: Draw) -> None:
    """Catches a join that goes by the id alone, and so leaves a costly draw or a second data set off the bill."""
    first = Release(1.0, (Draw("clinic", Laplace(1.0), "same"),), UNIT, Randomness.SECURE)
    second = Release(2.0, (other,), UNIT, Randomness.SECURE)
    for one, two in ((first, second), (second, first)):
        with pytest.raises(InvalidInput, match="same"):
            Release.join(one, two)
    with pytest.raises(InvalidInput, match="same"):
        Release(1.0, (*first.draws, other), UNIT, Randomness.SECURE)


def test_equal_draws_are_counted_once() -> None:
    """Catches a join that compares draws by identity: one that was read back from JSON is still the same draw."""
    draw = Draw("clinic", Laplace(1.0), "same")
    first = Release(1.0, (draw,), UNIT, Randomness.SECURE)
    second = Release(
        2.0, (Draw.from_json(draw.to_json()), Draw("clinic", Laplace(1.0), "new")), UNIT, Randomness.SECURE
    )
    assert Release.join(first, second).event == Composed((Laplace(1.0), Laplace(1.0)))
