"""A guarantee in words promises neither too much nor too little."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from privet.accounting import Accountant, epsilon
from privet.core.event import Gaussian, Poisson, Repeated, Sampled
from privet.core.unit import Unit, Whose
from privet.report import curves_of, page, price_run
from privet.report.account import guarantee_warnings
from privet.report.words import headline, is_open

RUN = Repeated(Sampled(Gaussian(0.3), by=Poisson(0.5)), 30)
GROUP = Unit(Whose.USER, records=30)


def test_a_bound_that_was_not_found_is_not_said_to_be_infinite() -> None:
    """Fails when "ε = ∞: no guarantee" stands for a method that gave up, or "not found" for no noise at all."""
    gave_up = epsilon(RUN, 1e-5, unit=GROUP, accountant=Accountant.PLD)
    assert math.isinf(gave_up.epsilon.upper)
    assert is_open(gave_up)
    assert headline(gave_up) == (
        "no finite ε was found at δ = 1e-05 for one user with at most 30 records, added or removed"
    )
    nothing = epsilon(Gaussian(0.0), 1e-5, unit=GROUP)
    assert headline(nothing).startswith("ε = ∞ at δ = 1e-05: no guarantee for one user")
    assert headline(epsilon(RUN, 0.0, unit=GROUP)).startswith("ε = ∞ at δ = 0: no guarantee for one user")
    assert headline(replace(gave_up, unit=Unit())).startswith("ε = ∞ at δ = 1e-05: no guarantee for one example")
    assert headline(epsilon(Gaussian(4.0), 1e-5, unit=GROUP)).startswith("ε ≤ ")


def test_the_warning_fits_the_headline() -> None:
    """Fails when the warning denies what the headline leaves open, or the other way round."""
    endless = replace(epsilon(Gaussian(0.0), 1e-5), assumptions=())
    assert guarantee_warnings(endless, None) == ("no guarantee: ε has no finite bound",)
    (said,) = guarantee_warnings(replace(endless, unit=GROUP), None)
    assert said.startswith("group privacy found no finite ε: allow fewer records")
    assert guarantee_warnings(epsilon(Gaussian(0.0), 1e-5, unit=GROUP), None) == (
        "no guarantee: Gaussian without noise",
    )


@pytest.mark.parametrize("accountant", [Accountant.PLD, Accountant.RENYI])
def test_the_page_says_it_too(accountant: Accountant) -> None:
    """Fails when the page shows ε = ∞ where the command says that none was found."""
    card = price_run(RUN, 1e-5, unit=GROUP, accountant=accountant)
    text = page(card, curves_of(card)).split("<footer>")[0]
    is_found = accountant is Accountant.RENYI
    assert ("<h1 class=none>no finite ε was found <small>at δ = 1e-05</small></h1>" in text) is not is_found
    assert ("No finite ε was found for this run." in text) is not is_found
    assert "ε = ∞" not in text


def test_delta_is_not_rounded_down() -> None:
    """Fails when a line promises a δ that is smaller than the one that was priced."""
    delta = 1.2345634e-5
    card = price_run(Gaussian(4.0), delta, unit=Unit())
    assert "at δ = 1.2345634e-05 for" in headline(card.guarantee.value)
    assert "1.23456e-05" not in page(card, curves_of(card)).split("<footer>")[0]
    assert "at δ = 1e-05 for" in headline(epsilon(Gaussian(4.0), 1e-5))
