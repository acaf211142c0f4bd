"""Rényi curves of sampled leaves against integrals of the definition, in both directions, and other people's bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from privet.accounting.renyi_binomial import fixed_size_bound
from privet.accounting.renyi_chords import fixed_size_chords, poisson_chords
from privet.accounting.search import Array
from privet.core.errors import NotProven
from privet.core.event import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    IndependentBatches,
    Laplace,
    Leaf,
    NoisyMax,
    Poisson,
    Pure,
    RandomizedResponse,
    ShuffledEpoch,
    WithoutReplacement,
)
from tests.accounting.divergences import ADD, ORDERS, REPLACE, ZERO, integrated, laplace, mixed, normal, summed, value

SAMPLED = [(0.01, 0.8), (0.2, 1.0), (0.004, 4.0), (0.7, 2.0)]


@pytest.mark.parametrize(("rate", "noise"), SAMPLED)
def test_poisson_gaussian_in_both_directions(rate: float, noise: float) -> None:
    """Catches a binomial sum with a wrong exponent, a chord below the curve, and the direction that is left out."""
    p, q = normal(1, noise), normal(0, noise)
    mixture = mixed(p, q, rate)
    for order in (1.1, 1.5, 2.0, 2.5, 3.0, 7.0, 16.0):
        end = 14 * noise + order + 2
        removed = integrated(mixture, q, order, -end, end, [0, 1, order])
        added = integrated(q, mixture, order, -end, end, [0, 1, -order])
        ours = value(Gaussian(noise), ADD, order, Poisson(rate))
        assert ours >= max(removed, added) * (1 - 1e-7)
        assert ours == pytest.approx(removed, rel=1e-6 if order == int(order) else 2e-3)
        assert ours == value(Gaussian(noise), ZERO, order, Poisson(rate))


@pytest.mark.parametrize(("rate", "noise"), [(0.01, 0.7), (0.3, 2.0)])
def test_poisson_laplace_in_both_directions(rate: float, noise: float) -> None:
    """Catches sampled Laplace noise priced with Gaussian moments, or below its true divergence between whole orders."""
    p, q = laplace(1, noise), laplace(0, noise)
    mixture = mixed(p, q, rate)
    for order in (1.5, 2.0, 3.5, 6.0):
        end = 60 * noise + 1
        removed = integrated(mixture, q, order, -end, end, [0, 1])
        added = integrated(q, mixture, order, -end, end, [0, 1])
        ours = value(Laplace(noise), ADD, order, Poisson(rate))
        assert ours >= max(removed, added) * (1 - 1e-7)
        assert ours == pytest.approx(removed, rel=1e-6 if order == int(order) else 0.6)


@pytest.mark.parametrize("leaf", [Pure(1.2), NoisyMax(1.2), Exponential(1.2), DiscreteLaplace(1 / 1.2, 1)])
@pytest.mark.parametrize("rate", [1e-4, 0.1, 0.9])
def test_poisson_of_pure_leaves_in_both_directions(leaf: Leaf, rate: float) -> None:
    """Catches the amplified ε used as an unsampled one, and a forgotten direction; two atoms are enough to sum up."""
    with mpmath.workdps(40):
        likely = mpmath.exp(1.2) / (1 + mpmath.exp(1.2))
        p, q = (likely, 1 - likely), (1 - likely, likely)
        mixture = tuple(rate * x + (1 - mpmath.mpf(rate)) * y for x, y in zip(p, q, strict=True))

        def divergence(first: Sequence[mpmath.mpf], second: Sequence[mpmath.mpf], order: float) -> float:
            total = mpmath.fsum(x**order * y ** (1 - order) for x, y in zip(first, second, strict=True))
            return float(mpmath.log(total) / (order - 1))

        for order in (1.3, 2.0, 5.5, 30.0):
            exact = max(divergence(mixture, q, order), divergence(q, mixture, order))
            ours = value(leaf, ADD, order, Poisson(rate))
            if isinstance(leaf, Exponential):
                assert ours <= exact * (1 + 1e-6)
            else:
                assert ours == pytest.approx(exact, rel=1e-6)
                assert ours >= exact * (1 - 1e-9)
    assert value(leaf, ADD, math.inf, Poisson(rate)) == pytest.approx(math.log(1 + rate * (math.exp(1.2) - 1)))


@pytest.mark.parametrize(("rate", "shift"), [(0.01, 0.5), (0.2, 2.0), (0.001, 0.02)])
def test_chords_are_above_the_integral_and_close(rate: float, shift: float) -> None:
    """Catches a chord that cuts below the function, a tail that is dropped, and a symmetric profile that is not."""
    for order in (1.2, 2.0, 5.0, 10.0):

        def ratio(z: float) -> float:
            return rate * math.expm1(z * shift - shift * shift / 2)

        def density(z: float) -> float:
            return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

        def one_sided(z: float, power: float) -> float:
            return (math.expm1(power * math.log1p(ratio(z))) - power * ratio(z)) * density(z)

        end = order * shift + 14
        pieces = [(-14, shift / 2), (shift / 2, 4), (4, end)]
        plain = math.fsum(quad(one_sided, a, b, args=(order,), epsabs=0, limit=200)[0] for a, b in pieces)
        exact = math.log1p(plain) / (order - 1)
        ours = float(poisson_chords(np.array([order]), rate, shift)[0])
        assert exact * (1 - 1e-6) <= ours <= exact * 1.002
        both = math.fsum(
            quad(one_sided, a, b, args=(power,), epsabs=0, limit=200)[0]
            for a, b in pieces[1:]
            for power in (order, 1 - order)
        )
        exact = math.log1p(both) / (order - 1)
        ours = float(fixed_size_chords(np.array([order]), rate, shift)[0])
        assert exact * (1 - 1e-6) <= ours <= exact * 1.002


@pytest.mark.parametrize(("noise", "batch"), [(1.0, 10), (4.0, 100), (2.0, 500)])
def test_fixed_size_gaussian_covers_real_replacements(noise: float, batch: int) -> None:
    """Catches the add/remove leaf (1C) under replace-one, and a bound that real neighbours break.

    The row goes from +1 to −1, and the row that takes its place in other batches is at 0, or at −1 like the new one.
    """
    rate = batch / 1000
    for order in (1.5, 2.0, 4.0, 8.0):
        worst = 0.0
        for others in (0.0, -1.0):
            p = mixed(normal(1, noise), normal(others, noise), rate)
            q = mixed(normal(-1, noise), normal(others, noise), rate)
            end = 14 * noise + 2 * order + 2
            exact = integrated(p, q, order, -end, end, [-1, 0, 1]), integrated(q, p, order, -end, end, [-1, 0, 1])
            worst = max(worst, *exact)
        ours = value(Gaussian(noise), REPLACE, order, WithoutReplacement(batch, 1000))
        assert worst * (1 - 1e-9) <= ours < 1.6 * worst
        blanked = value(Gaussian(noise), ZERO, order, WithoutReplacement(batch, 1000))
        assert blanked == pytest.approx(min(ours, order / (2 * noise**2)))


def test_fixed_size_theorem_agrees_with_dp_accounting() -> None:
    """Catches a wrong constant in Wang, Balle & Kasiviswanathan's theorem; our own Gaussian may only be tighter."""
    dp = pytest.importorskip("dp_accounting")
    rdp = pytest.importorskip("dp_accounting.rdp")
    orders = [2, 3, 5, 8, 16, 32]
    for noise, batch in ((2.0, 10), (8.0, 100)):
        accountant = rdp.RdpAccountant(orders, dp.NeighboringRelation.REPLACE_ONE)
        # its Gaussian event ignores that a replacement moves the sum by two clips: hand it half the noise
        accountant.compose(dp.SampledWithoutReplacementDpEvent(1000, batch, dp.GaussianDpEvent(noise / 2)))

        def moments(k: Array, noise: float = noise) -> Array:
            found: Array = (k - 1) * k * 2 / noise**2
            return found

        theorem = fixed_size_bound(tuple(orders), batch / 1000, moments)
        assert theorem[0] == pytest.approx(accountant._rdp[0], rel=1e-9)  # from order 3 on it has a sharper form
        assert np.all(theorem >= accountant._rdp * (1 - 1e-9))
        for order, theirs, bound in zip(orders, accountant._rdp, theorem, strict=True):
            ours = value(Gaussian(noise), REPLACE, float(order), WithoutReplacement(batch, 1000))
            assert ours <= theirs * (1 + 1e-9)
            discrete = value(DiscreteGaussian(noise, 1.0), REPLACE, float(order), WithoutReplacement(batch, 1000))
            assert discrete == pytest.approx(min(bound, 2 * order / noise**2))


def test_fixed_size_pure_leaves_cover_real_replacements() -> None:
    """Catches q·ε instead of ln(1 + q(e^ε − 1)), and add/remove ε where a replacement takes two steps."""
    rate, epsilon = 0.2, 1.5
    keep = math.exp(epsilon) / (math.exp(epsilon) + 2)
    rest = (1 - keep) / 2
    answers = np.array([[keep, rest, rest], [rest, keep, rest], [rest, rest, keep]])
    p = np.log(rate * answers[0] + (1 - rate) * answers[2])
    q = np.log(rate * answers[1] + (1 - rate) * answers[2])
    for order in ORDERS:
        exact = max(summed(p, q, order), summed(q, p, order))
        ours = value(RandomizedResponse(epsilon, 3), REPLACE, order, WithoutReplacement(20, 100))
        assert exact <= ours < 3.5 * exact
        assert ours == value(Pure(epsilon / 2), REPLACE, order, WithoutReplacement(20, 100))
    top = value(Pure(epsilon / 2), REPLACE, math.inf, WithoutReplacement(20, 100))
    assert top == pytest.approx(math.log(1 + rate * (math.exp(epsilon) - 1)))


def test_passes_are_not_amplified() -> None:
    """Catches amplification by shuffling, which nobody proved, and one Gaussian for each batch instead of each pass."""
    for sampling in (ShuffledEpoch(100), IndependentBatches(100)):
        assert value(Gaussian(2.0), ZERO, 3.0, sampling) == pytest.approx(3 / 8)
        assert value(Gaussian(2.0), REPLACE, 3.0, sampling, 5) == pytest.approx(5 * 3 / 2)
    with pytest.raises(NotProven, match="shuffled epoch"):
        value(Gaussian(2.0), ADD, 3.0, ShuffledEpoch(100))
