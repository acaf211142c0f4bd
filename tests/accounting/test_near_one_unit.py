"""A δ near 1 over the number of units promises nothing, and is known as such."""

from __future__ import annotations

import pytest

from privet.accounting.default_delta import default_delta, is_near_one_unit


@pytest.mark.parametrize("units", [100, 600, 5_000, 10**6])
def test_delta_above_a_tenth_of_one_over_n_is_near_one_unit(units: int) -> None:
    """Fails when only a δ above 1/n is remarked on: at 1/(2 n) a unit is published with a chance of a half."""
    assert is_near_one_unit(0.5 / units, units)
    assert is_near_one_unit(0.11 / units, units)
    assert not is_near_one_unit(0.09 / units, units)
    assert not is_near_one_unit(default_delta(units), units)


@pytest.mark.parametrize("units", [1, 2, 10, 50, 99, 100])
def test_default_delta_of_few_units_is_no_likely_failure(units: int) -> None:
    """Fails when the default follows 1/(10 n) up to 0.1, where nothing is promised for one run of ten."""
    assert default_delta(units) == 1e-3
