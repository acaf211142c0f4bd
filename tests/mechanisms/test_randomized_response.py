"""Randomised response: the exact law of what the code draws, and estimates that undo it."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from privet.accounting import epsilon as price
from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.core.unit import Neighbours, Trust, Unit
from privet.mechanisms.randomized_response import RandomizedResponseMechanism

CASES = [(0.1, 2), (1.0, 2), (1.0, 5), (3.0, 40), (1e-12, 1000), (45.0, 3), (700.0, 2)]


def law(response: RandomizedResponseMechanism) -> list[list[Fraction]]:
    """Row by row, the chances of every report for every truth, from the threshold by which words are compared."""
    kept = Fraction(response.threshold, 2**64)
    others = (1 - kept) / (response.categories - 1)
    size = range(response.categories)
    return [[kept if said == true else others for said in size] for true in size]


def largest(response: RandomizedResponseMechanism) -> mpmath.mpf:
    """The largest log-ratio over all reports and all pairs of truths, to 100 digits."""
    rows = law(response)
    ratio = max(first[said] / second[said] for first in rows for second in rows for said in range(len(rows)))
    with mpmath.workdps(100):
        return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


@pytest.mark.parametrize(("epsilon", "categories"), [case for case in CASES if case[1] <= 40])
def test_no_report_tells_truths_apart_by_more_than_epsilon(epsilon: float, categories: int) -> None:
    """Catches a threshold that is rounded up, and noise halved: with twice ε the same enumeration goes beyond ε."""
    response = RandomizedResponseMechanism(epsilon, categories)
    assert all(sum(row) == 1 for row in law(response))
    assert largest(response) <= epsilon
    if epsilon <= 20:  # beyond, 64 bits are coarser than e^-ε, and what is drawn is more private than asked for
        assert largest(response) > epsilon * (1 - 1e-9)
        assert largest(RandomizedResponseMechanism(2 * epsilon, categories)) > epsilon
        above = (response.threshold + 2) * (categories - 1) / Fraction(2**64 - response.threshold - 2)
        with mpmath.workdps(100):
            assert mpmath.log(mpmath.mpf(above.numerator) / above.denominator) > epsilon


@pytest.mark.parametrize(("epsilon", "categories"), CASES)
def test_the_truth_is_never_less_likely_than_a_lie(epsilon: float, categories: int) -> None:
    """Catches a tiny ε whose rounding turns the law around, by more than ε."""
    response = RandomizedResponseMechanism(epsilon, categories)
    assert response.keep >= response.lie > 0


def test_the_event_is_priced_at_epsilon_for_local_trust() -> None:
    """Catches an event that says less than what was done."""
    unit = Unit(neighbours=Neighbours.REPLACE, trust=Trust.LOCAL)
    assert price(RandomizedResponseMechanism(1.5, 7).event, 0.0, unit=unit).epsilon.upper == 1.5


def statistic(drawn: RandomizedResponseMechanism, stated: RandomizedResponseMechanism, count: int) -> float:
    """χ² of reports for every truth against the stated law."""
    found = 0.0
    size = stated.categories
    for true in range(size):
        reports = drawn.randomize(np.full(count, true), rng=SeededRng(true))
        seen = np.bincount(reports, minlength=size)
        expected = count * np.array([float(chance) for chance in law(stated)[true]])
        found += float(((seen - expected) ** 2 / expected).sum())
    return found


def test_what_is_drawn_has_the_law() -> None:
    """Catches lies that favour a neighbour, or a truth told too often; false alarms 1e-6, and 2ε is far beyond."""
    stated = RandomizedResponseMechanism(1.0, 5)
    limit = float(chi2.isf(1e-6, 5 * 4))
    assert statistic(stated, stated, 40_000) < limit
    assert statistic(RandomizedResponseMechanism(1.1, 5), stated, 40_000) > limit


def test_a_report_depends_on_its_own_truth_alone() -> None:
    """Catches randomness that is used up by some values and not by others."""
    response = RandomizedResponseMechanism(1.0, 5)
    truth = np.arange(200) % 5
    other = truth.copy()
    other[17] = 4 - other[17] + (other[17] == 2)
    first, second = (response.randomize(each, rng=SeededRng(3)) for each in (truth, other))
    assert set(np.flatnonzero(first != second)) <= {17}


def test_values_that_are_none_do_not_raise() -> None:
    reports = RandomizedResponseMechanism(1.0, 3).randomize(np.array([-5, 99]), rng=SeededRng(1))
    assert set(reports.tolist()) <= {0, 1, 2}


def test_counts_are_unbiased() -> None:
    """Catches a wrong keep or lie in the estimate: the expected counts give the truth back."""
    response = RandomizedResponseMechanism(0.7, 4)
    truth = np.array([50.0, 30.0, 20.0, 0.0])
    expected = np.array([[float(chance) for chance in row] for row in law(response)]).T @ truth
    found = (expected - expected.sum() * float(response.lie)) / float(response.keep - response.lie)
    assert found == pytest.approx(truth, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_likeliest_shares_are_likelier_than_others(seed: int) -> None:
    """Catches a wrong set of positive shares: no step towards any other shares raises the likelihood."""
    response = RandomizedResponseMechanism(0.5, 6)
    drawn = np.random.default_rng(seed)
    counts = drawn.integers(0, 30, size=6)
    best = response.likeliest(counts)
    assert best.sum() == pytest.approx(1.0)
    assert best.min() >= 0.0

    def likelihood(shares: np.ndarray) -> float:
        lie, apart = float(response.lie), float(response.keep - response.lie)
        return float(counts @ np.log(lie + apart * shares))

    for other in [*np.eye(6), *drawn.dirichlet(np.ones(6), size=20)]:
        assert likelihood(0.99 * best + 0.01 * other) <= likelihood(best) + 1e-12
    assert response.likeliest(np.zeros(6)) == pytest.approx(1 / 6)


@pytest.mark.parametrize(("epsilon", "categories"), [(0.0, 2), (-1.0, 2), (701.0, 2), (1e-21, 3), (1.0, 1)])
def test_what_cannot_be_drawn_is_refused(epsilon: float, categories: int) -> None:
    with pytest.raises(InvalidInput):
        RandomizedResponseMechanism(epsilon, categories)


def test_random_bits_used_do_not_depend_on_the_truths() -> None:
    """Fails when the next reader of a shared stream could tell from its own bits what was answered before."""
    after = set()
    for truth in (np.zeros(50, dtype=np.int64), np.full(50, 4), np.arange(50) % 5):
        rng = SeededRng(3)
        RandomizedResponseMechanism(1.0, 5).randomize(truth, rng=rng)
        after.add(rng.bits(16))
    assert len(after) == 1
