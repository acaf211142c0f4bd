"""Bits from counts: found where answers are exact enough, and no more often than the guarantee allows where they are
private."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from privet.attacks import Fit, guess_bound, reconstruct_bits, recovered_bits
from privet.core.errors import InvalidInput
from privet.core.event import Gaussian, Laplace
from privet.core.guarantee import Guarantee, Interval
from privet.core.random import SeededRng
from privet.core.unit import Unit, Whose
from privet.mechanisms import Categories, Count, DiscreteLaplaceMechanism, Histogram


def claimed(epsilon: float, delta: float = 0.0) -> Guarantee:
    return Guarantee(Interval(epsilon, epsilon), delta, Unit(), "basic")


def asked(seed: int) -> tuple[Any, Any, Any]:
    """Bits of 80 people, 320 subsets and the true counts."""
    rng = SeededRng(seed)
    secret, subsets = rng.below(2, 80), rng.below(2, (320, 80))
    return secret, subsets, subsets @ secret


def test_a_linear_programme_bears_absurd_answers() -> None:
    """Fails when either fit does not find bits from answers within 1, or the one that should bear a fifth of absurd
    answers does not; least squares must not, or the test would show nothing."""
    secret, subsets, counts = asked(1)
    rng = SeededRng(2)
    near = counts + 2 * rng.uniform(320) - 1
    absurd = np.where(rng.uniform(320) < 0.2, 80 * rng.uniform(320), near)
    for fit in Fit:
        assert recovered_bits(secret, reconstruct_bits(subsets, near, fit)).share.value == 1.0
    assert recovered_bits(secret, reconstruct_bits(subsets, absurd, Fit.LEAST_DEVIATIONS)).share.value == 1.0
    assert recovered_bits(secret, reconstruct_bits(subsets, absurd)).share.value < 0.9


def test_what_answers_leave_open_stays_open() -> None:
    """Fails when nobody's bit is guessed from nothing: a person in no subset is at ½."""
    for fit, fitted in ((fit, reconstruct_bits([[1, 1, 0], [1, 0, 0]], [1, 1], fit)) for fit in Fit):
        assert fitted[:2].tolist() == pytest.approx([1.0, 0.0])
        if fit is Fit.LEAST_SQUARES:
            assert fitted[2] == pytest.approx(0.5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_the_limit_in_closed_form(epsilon: float, delta: float) -> None:
    """Fails when the limit is not (e^ε + δ)/(1 + e^ε) at even odds, Φ(1/2σ) of a Gaussian, or falls short of it."""
    exact = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
    assert exact <= guess_bound(claimed(epsilon, delta)) < exact + 1e-6
    gaussian = norm.cdf(epsilon / 2)
    assert gaussian <= guess_bound(Gaussian(1 / epsilon)) + 1e-9 < gaussian + 1e-4
    # Bayes: beyond these odds, no answer makes the rarer value the likelier one, and the limit is the prior itself.
    rare = 0.9 / (1 + math.exp(epsilon))
    assert guess_bound(claimed(epsilon), prior=rare) == pytest.approx(1 - rare)
    assert guess_bound(claimed(epsilon), prior=1 - rare) == pytest.approx(1 - rare)


def test_limits_of_nothing_and_of_everything() -> None:
    """Fails when an infinite ε limits anything, a certain bit can be mistaken, or a larger prior lowers the limit."""
    assert guess_bound(claimed(math.inf)) == 1.0
    assert guess_bound(claimed(1.0), prior=1.0) == 1.0
    found = [guess_bound(Laplace(1.0), prior) for prior in (0.5, 0.6, 0.7, 0.9)]
    assert found == sorted(found)


def test_private_answers_keep_to_the_limit() -> None:
    """Fails when the bits behind answers of a total ε = 1 are found beyond what that allows: 320 counts share it, and
    the test is wrong with a chance of 2.5 % at most by itself; the seed is fixed."""
    secret, subsets, _ = asked(3)
    count = Count()
    noise = DiscreteLaplaceMechanism.for_epsilon(1 / 320, count)
    rng = SeededRng(4)
    answers = [noise.release(count(secret[mine == 1]), rng=rng).value for mine in subsets]
    found = recovered_bits(secret, reconstruct_bits(subsets, answers), claimed(1.0))
    assert found.limit == pytest.approx(math.e / (1 + math.e), abs=1e-6)
    assert not found.exceeds


@pytest.mark.parametrize(("scale", "over"), [(1.0, False), (0.5, True)])
def test_the_limit_is_reached_and_half_of_the_noise_exceeds_it(scale: float, over: bool) -> None:
    """Fails when the limit is too low for noise that just keeps to it, or so high that half of the noise passes.

    Each of 4,000 people has a cell of a histogram, where a bit of 1 counts, so that ε = 1 is for one number each.
    Geometric noise reaches e/(1 + e) exactly: the share lies within 5 deviations of it but for a chance of 1e-6, and a
    confidence of 0.99999 alarms wrongly with a chance of 5e-6; the seed is fixed.
    """
    rng = SeededRng(6)
    secret = rng.below(2, 4000)
    cells = Histogram(Categories(tuple(range(4000))))
    noise = DiscreteLaplaceMechanism.for_epsilon(1 / scale, cells)
    answers = noise.release(cells(np.flatnonzero(secret)), rng=rng).value
    found = recovered_bits(secret, answers, claimed(1.0), confidence=0.99999)
    assert found.exceeds is over
    if not over:
        spread = math.sqrt(0.731 * 0.269 / 4000)
        assert abs(found.share.value - math.e / (1 + math.e)) < 5 * spread


def test_luck_does_not_exceed_the_limit() -> None:
    """Fails when nine bits of ten, above 73 %, are taken for proof: ten coins of that chance do it once in five."""
    nine = recovered_bits([1] * 5 + [0] * 5, [1.0] * 6 + [0.0] * 4, claimed(1.0))
    assert nine.limit is not None
    assert nine.share.value == 0.9 > nine.limit
    assert not nine.exceeds


def test_guessing_the_commoner_value_is_no_alarm() -> None:
    """Fails when skewed bits, which anybody guesses beyond the limit of a coin, accuse the guarantee; or when finding
    all of them, which takes the answers, no longer does."""
    skewed = [1] * 180 + [0] * 20
    guessed = recovered_bits(skewed, [1.0] * 200, claimed(1.0))
    assert guessed.limit is not None
    assert guessed.share.lower > guessed.limit
    assert not guessed.exceeds
    assert recovered_bits(skewed, skewed, claimed(1.0)).exceeds


def test_the_unit_of_the_claim_is_kept() -> None:
    """Fails when the limit is for one record where it was asked for people with two: ε is 2 for them, not 1."""
    pairs = Unit(whose=Whose.USER, records=2)
    assert guess_bound(Laplace(1.0), unit=pairs) > guess_bound(Laplace(1.0)) + 0.05
    found = recovered_bits([0, 1], [0, 1], Laplace(1.0), unit=pairs)
    assert found.limit == guess_bound(Laplace(1.0), unit=pairs)


@pytest.mark.parametrize(
    ("subsets", "answers", "complaint"),
    [
        ([1, 0], [1], "subsets have the shape"),
        (np.zeros((0, 3)), [], "subsets have the shape"),
        ([[1, 2]], [1], "subsets hold something else"),
        ([[1, 0]], [1, 2], "answers have the shape"),
        ([[1, 0]], [math.nan], "answers hold NaN"),
    ],
    ids=str,
)
def test_bad_input_is_refused(subsets: Any, answers: Any, complaint: str) -> None:
    """Fails when numbers that are no subsets or no answers are fitted."""
    with pytest.raises(InvalidInput) as caught:
        reconstruct_bits(subsets, answers)
    assert complaint in str(caught.value)


def test_bits_that_are_none_are_refused() -> None:
    """Fails when a secret that is no bit, or a guess that is no number, is counted."""
    with pytest.raises(InvalidInput, match="secret"):
        recovered_bits([0, 2], [0.1, 0.9])
    with pytest.raises(InvalidInput, match="fitted"):
        recovered_bits([0, 1], [0.1])
    with pytest.raises(InvalidInput, match="fitted"):
        recovered_bits([0, 1], [0.1, math.nan])
