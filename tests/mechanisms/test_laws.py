"""Every mechanism against its own exact law, on neighbouring answers: what the accountant says is never exceeded.

No test here draws anything; `test_samplers` shows that what is drawn has these laws. Each statement comes with the same
statement for half of the noise, which must fail.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from privet import accounting
from privet.core.unit import Neighbours, Unit, Whose
from privet.mechanisms import (
    Binomial,
    BoundedSum,
    Cells,
    Count,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    Histogram,
    Keys,
    LaplaceMechanism,
    Partitions,
    Peeling,
    PermuteAndFlip,
    Quantile,
    Reach,
    ReportNoisyMax,
    SmoothMedian,
    SparseVector,
    ThresholdedCounts,
)
from privet.mechanisms.binomial import binomial_delta
from privet.mechanisms.partitions import keeping
from privet.mechanisms.sums import Norm, VectorSum
from tests.mechanisms.examples import ADD, GROUP, REPLACE
from tests.mechanisms.laws import (
    above_threshold_law,
    exponential_law,
    gaussian_mass,
    hockey_stick,
    laplace_mass,
    laplace_upper,
    largest_loss,
    noisy_max_law,
    permute_and_flip_law,
)

TIGHT = 1e-9
UNITS = [ADD, REPLACE, GROUP]


def price(event: Any, unit: Unit, delta: float = 0.0) -> float:
    return accounting.epsilon(event, delta, unit=unit).epsilon.upper


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("clip", [Count, lambda unit: BoundedSum(-2, 5, unit)], ids=["count", "sum"])
def test_laplace_loses_what_is_stated(clip: Any, unit: Unit) -> None:
    """The largest loss between two answers that are as far apart as the clipper says *is* ε; with half of the noise it
    is 2ε. Catches a halved scale, a distance for the wrong neighbours, and a group that is forgotten.
    """
    of = clip(unit)
    mechanism = LaplaceMechanism.for_epsilon(0.7, of)
    moved = round(of.reach.linf / mechanism.grid.step)
    x = np.arange(-50, 50 + moved)

    def loss(scale: float) -> float:
        steps = scale / mechanism.grid.step
        return largest_loss(laplace_mass(steps, x), laplace_mass(steps, x - moved))

    assert price(mechanism.event, unit) <= 0.7
    assert loss(mechanism.scale) == pytest.approx(0.7, rel=TIGHT)
    assert loss(mechanism.scale / 2) == pytest.approx(1.4, rel=TIGHT)


def test_discrete_laplace_on_a_histogram() -> None:
    """One row that is replaced moves two counts by 1 each: the loss of both together is ε, not 2ε and not ε/2."""
    of = Histogram(Cells(0, 3, 3), REPLACE)
    mechanism = DiscreteLaplaceMechanism.for_epsilon(1.0, of)
    x = np.arange(-20, 21)
    one = largest_loss(laplace_mass(mechanism.scale, x), laplace_mass(mechanism.scale, x - 1))
    assert 2 * one == pytest.approx(1.0, rel=TIGHT)
    assert price(mechanism.event, REPLACE) == pytest.approx(1.0)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("kind", [GaussianMechanism, DiscreteGaussianMechanism])
def test_gaussian_loses_what_is_stated(kind: Any, unit: Unit) -> None:
    """δ at ε, summed over the masses, is at most δ and not far below; with half of the noise it is far above."""
    of, delta = Count(unit), 1e-4
    mechanism = kind.for_epsilon(1.0, delta, of)
    moved, step = round(of.reach.linf / mechanism.grid.step), mechanism.grid.step

    def spent(sigma: float) -> float:
        x = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + moved + 1)
        return hockey_stick(gaussian_mass(sigma, x - moved), gaussian_mass(sigma, x), 1.0)

    assert spent(mechanism.sigma / step) <= delta
    assert spent(mechanism.sigma / step) > (0.95 if kind is GaussianMechanism else 0.1) * delta
    assert spent(mechanism.sigma / step / 2) > 10 * delta


def test_gaussian_on_a_histogram_of_replaced_rows() -> None:
    """Two counts move by 1: the product of two laws stays within (ε, δ), and not with √2 times less noise."""
    of, delta = Histogram(Cells(0, 3, 3), REPLACE), 1e-3
    mechanism = GaussianMechanism.for_epsilon(1.0, delta, of)

    def spent(sigma: float) -> float:
        x = np.arange(-math.ceil(8 * sigma), math.ceil(8 * sigma) + 3)
        here, there = gaussian_mass(sigma, x), gaussian_mass(sigma, x - 2)  # two steps of one half
        return hockey_stick(np.outer(there, here).ravel(), np.outer(here, there).ravel(), 1.0)

    steps = mechanism.sigma / mechanism.grid.step
    assert mechanism.grid.step == 0.5
    assert 0.9 * delta < spent(steps) <= delta
    assert spent(steps / math.sqrt(2)) > 3 * delta


@given(st.integers(1, 12), st.integers(1, 4), st.floats(0.05, 3))
def test_binomial_delta_is_exact(half: int, distance: int, epsilon: float) -> None:
    """The δ that is charged is that of the mass function, summed in fractions, and at most 1e-6 of itself above it."""
    coins = 2 * half
    mass = {x: Fraction(math.comb(coins, x), 2**coins) for x in range(-5, coins + 6) if 0 <= x <= coins}
    grown = Fraction(math.exp(epsilon))
    exact = sum(
        (max(Fraction(0), mass.get(x, Fraction(0)) - grown * mass.get(x - distance, Fraction(0))))
        for x in range(-5, coins + 6)
    )
    charged = binomial_delta(coins, distance, epsilon)
    assert float(exact) * (1 - 1e-12) <= charged <= float(exact) * (1 + 1e-6) + 1e-15


@pytest.mark.parametrize(("coins", "epsilon"), [(4096, 0.05), (4096, 0.2), (16384, 0.05)])
def test_binomial_delta_is_exact_for_many_coins(coins: int, epsilon: float) -> None:
    """The same where the masses are too small to be added up one by one: Σ of whole numbers, divided once."""
    grown, total = Fraction(math.exp(epsilon)), 0
    here, below = 1, 0  # C(coins, x) and C(coins, x - 1)
    for x in range(coins + 2):
        total += max(0, here * grown.denominator - below * grown.numerator)
        here, below = here * (coins - x) // (x + 1), here
    exact = float(Fraction(total, grown.denominator << coins))
    assert exact * (1 - 1e-12) <= binomial_delta(coins, 1, epsilon) <= exact * (1 + 1e-4)


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=str)
def test_binomial_needs_all_its_coins(unit: Unit) -> None:
    """A quarter of the coins, which is half of the deviation, would cost far more than δ."""
    mechanism = Binomial.for_epsilon(1.0, 1e-6, Count(unit))
    assert binomial_delta(mechanism.coins, 1, 1.0) <= 1e-6
    assert binomial_delta(mechanism.coins - 16, 1, 1.0) > 1e-6 * (1 - 1e-6)
    assert binomial_delta(16 * round(mechanism.coins / 64), 1, 1.0) > 1e-4


SCORES = list(itertools.product(range(4), repeat=3))


def selection_pairs(*, one_way: bool) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All scores in {0..3}³ whose coordinates differ by at most 1, all of them upwards where they move one way."""
    moves = itertools.product((0, 1) if one_way else (-1, 0, 1), repeat=3)
    return [(s, tuple(a + b for a, b in zip(s, move, strict=True))) for move in moves for s in SCORES]


@pytest.mark.parametrize("one_way", [False, True], ids=["any", "monotone"])
@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (ExponentialMechanism, exponential_law),
        (PermuteAndFlip, permute_and_flip_law),
        (ReportNoisyMax, lambda scores, rate: noisy_max_law(scores, 1 / rate)),
    ],
    ids=["exponential", "permute-and-flip", "noisy-max"],
)
def test_choices_lose_what_is_stated(kind: Any, law: Any, one_way: bool) -> None:
    """Over all neighbouring scores the loss never exceeds ε, and half of the noise exceeds it.

    Catches the factor of 2 that may be dropped for counts dropped elsewhere, and a rate that is doubled.
    """
    reach = Reach(linf=1.0, dimension=3, whole=True, monotone=one_way)
    mechanism = kind.for_epsilon(1.0, reach)
    rate = 1.0 if one_way else 0.5

    def worst(rate: float) -> float:
        laws = {s: law(s, rate) for s in {s for pair in selection_pairs(one_way=one_way) for s in pair}}
        return max(largest_loss(laws[one], laws[other]) for one, other in selection_pairs(one_way=one_way))

    assert mechanism.event.epsilon == 1.0
    assert 0.5 < worst(rate) <= 1.0 + TIGHT
    assert worst(2 * rate) > 1.0 + TIGHT


def test_exponential_has_a_bounded_range() -> None:
    """What zCDP charges rests on it: the losses of one pair span at most ε (Durfee & Rogers 2019)."""
    spread = max(
        float(np.ptp(np.log(exponential_law(one, 0.5)) - np.log(exponential_law(other, 0.5))))
        for one, other in selection_pairs(one_way=False)
    )
    assert 0.9 < spread <= 1.0 + TIGHT


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9])
def test_quantiles_lose_what_is_stated(unit: Unit, share: float) -> None:
    """All data sets of up to five rows in each of three cells: no neighbour's law differs by more than ε.

    Catches a score that one row moves further than is said, for every quantile and kind of neighbours.
    """
    of = Histogram(Cells(0, 3, 3), unit)
    mechanism = Quantile.for_epsilon(1.0, of, share)
    sets = [np.array(counts) for counts in itertools.product(range(6), repeat=3)]

    def worst(rate: Fraction) -> float:
        laws = {tuple(s): exponential_law((-mechanism._gaps(s)).tolist(), float(rate)) for s in sets}
        return max(
            largest_loss(laws[tuple(one)], laws[tuple(other)])
            for one in sets
            for other in sets
            if near(one, other, unit)
        )

    rate = mechanism.rate / mechanism.share.denominator
    assert price(mechanism.event, unit) <= 1.0 + TIGHT
    assert worst(rate) <= 1.0 + TIGHT
    # the ends lose least: there, one row moves all scores one way, or few of them
    assert worst((2 if 0 < share < 0.9 and unit is not GROUP else 3) * rate) > 1.0 + TIGHT


def near(one: Any, other: Any, unit: Unit) -> bool:
    """Whether two histograms are of neighbouring data sets."""
    change = other - one
    if unit.neighbours is Neighbours.REPLACE:
        return int(change.sum()) == 0 and int(np.abs(change).sum()) == 2
    return 0 < int(np.abs(change).sum()) <= unit.records and abs(int(change.sum())) == int(np.abs(change).sum())


@pytest.mark.parametrize("one_way", [False, True], ids=["any", "monotone"])
def test_sparse_vector_loses_what_is_stated(one_way: bool) -> None:
    """Which answer is the first "yes", over all neighbouring runs of three answers around the threshold.

    Catches noise on the answers that is as small as that on the threshold, and an ε that is not shared by the two.
    """
    reach = Reach(linf=1.0, dimension=3, whole=True, monotone=one_way)
    mechanism = SparseVector.for_epsilon(1.0, reach, threshold=2)
    scale, noise = (float(value) for value in mechanism.scales)

    def worst(shrink: float) -> float:
        return max(
            largest_loss(
                above_threshold_law(one, 2, scale / shrink, noise / shrink),
                above_threshold_law(other, 2, scale / shrink, noise / shrink),
            )
            for one, other in selection_pairs(one_way=one_way)
        )

    assert price(mechanism.event, ADD) <= 1.0
    assert 0.5 < worst(1.0) <= 1.0 + TIGHT
    assert worst(2.0) > 1.0 + TIGHT


def test_sparse_vector_pays_for_every_yes() -> None:
    """Two answers cost two runs; the noise of each is twice as large for the same ε."""
    one = SparseVector.for_epsilon(1.0, Count(), threshold=2)
    two = SparseVector.for_epsilon(1.0, Count(), threshold=2, answers=2)
    assert price(two.event, ADD) == pytest.approx(1.0)
    assert [float(s) for s in two.scales] == pytest.approx([2 * float(s) for s in one.scales])
    assert replace(two, answers=1).event != two.event


@given(st.floats(0.01, 5), st.floats(1e-12, 0.3))
def test_kept_keys_obey_the_definition(epsilon: float, delta: float) -> None:
    """Between n and n + 1 units all four inequalities of (ε, δ) hold exactly, in fractions; one of the two that bind is
    within rounding of equality, so that no key could be kept more often.
    """
    one, chances = 1 << 64, keeping(epsilon, delta)
    share, grown = Fraction(delta) * one, Fraction(math.exp(epsilon))
    assert chances[0] == 0
    assert chances[-1] == one
    for now, then in itertools.pairwise(chances):
        for p, q in ((now, then), (then, now), (one - now, one - then), (one - then, one - now)):
            assert p <= grown * q + share
        slack = min(grown * now + share - then, grown * (one - then) + share - (one - now))
        assert then == one or slack <= 3 + grown + grown * one * Fraction(1, 2**51)


def test_twice_the_epsilon_would_break_the_definition() -> None:
    """The inequalities above can fail."""
    assert any(then > math.e * now + 1e-6 * 2**64 for now, then in itertools.pairwise(keeping(2.0, 1e-6)))


@pytest.mark.parametrize("unit", [ADD, REPLACE], ids=str)
def test_partitions_are_within_their_price(unit: Unit) -> None:
    """A replaced row leaves one key and enters another: over all pairs of counts of both, δ at ε is what was asked."""
    epsilon, delta = 1.0, 1e-2
    mechanism = Partitions.for_epsilon(epsilon, delta, Keys(unit))
    assert accounting.delta(mechanism.event, epsilon, unit=unit).upper <= delta * (1 + 1e-9)
    chances = [chance / 2**64 for chance in keeping(mechanism.epsilon, mechanism.delta)] + [1.0]

    def law(n: int, m: int) -> Any:
        a, b = chances[min(n, len(chances) - 1)], chances[min(m, len(chances) - 1)]
        return np.array([a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)])

    step = (1, -1) if unit.neighbours is Neighbours.REPLACE else (1, 0)
    spent = max(
        max(
            hockey_stick(law(n, m), law(n + step[0], m + step[1]), epsilon),
            hockey_stick(law(n + step[0], m + step[1]), law(n, m), epsilon),
        )
        for n in range(len(chances))
        for m in range(1, len(chances))
    )
    assert 0.3 * delta < spent <= delta * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_thresholds_hide_a_lonely_key(kind: str) -> None:
    """A key of one unit is shown with probability at most δ; a threshold that is one or two lower would show it.

    And over all n, the law of a noisy count or of nothing stays within (ε, δ).
    """
    epsilon, delta = 1.0, 1e-3
    mechanism = getattr(ThresholdedCounts, kind)(epsilon, delta, Keys())
    x = np.arange(mechanism.threshold, 200)
    noise = mechanism.noise

    def law(n: int) -> Any:
        if n == 0:
            return np.concatenate([[1.0], np.zeros(len(x))])
        mass = laplace_mass(noise.scale, x - n) if kind == "laplace" else gaussian_mass(noise.sigma, x - n)
        return np.concatenate([[1 - mass.sum()], mass])

    shown = law(1)[1:].sum()
    assert shown <= mechanism.delta <= delta
    assert mechanism.delta < 1.5 * shown or kind == "gaussian"
    lower = replace(mechanism, threshold=mechanism.threshold - 2)
    assert lower.delta > (delta if kind == "laplace" else delta / 2)
    for n in range(40):
        assert hockey_stick(law(n), law(n + 1), epsilon) <= delta
        assert hockey_stick(law(n + 1), law(n), epsilon) <= delta
    assert accounting.delta(mechanism.event, epsilon).upper <= delta * (1 + 1e-9)
    # Much noise, so that thresholds are close to what δ allows: noise and threshold together must keep it.
    wide = getattr(ThresholdedCounts, kind)(0.05, delta, Keys())
    assert accounting.delta(wide.event, 0.05).upper <= delta * (1 + 1e-9)


@pytest.mark.parametrize("keys", [1, 3, 20])
def test_thresholds_count_every_key_of_a_user(keys: int) -> None:
    """Fails when δ is the chance of one key: that any of a user's keys is shown, by the noise's own law."""
    of = Keys(Unit(whose=Whose.USER), keys)
    mechanism = ThresholdedCounts.laplace(1.0, 1e-3, of)
    scale = DiscreteLaplaceMechanism.for_epsilon(1.0, of).scale
    one = laplace_mass(scale, np.arange(mechanism.threshold - 1, 3000)).sum()
    shown = 1 - (1 - one) ** keys
    assert shown <= mechanism.delta <= shown * (1 + 1e-6)
    assert mechanism.delta <= 1e-3


def test_smooth_medians_lose_what_is_stated() -> None:
    """All data sets of three to five rows in seven cells, and all that differ in one row: δ at ε is at most δ.

    Catches a smooth sensitivity that is only local (the noise of a neighbour may then differ by any factor), and noise
    of a quarter of the scale.
    """
    epsilon, delta, cells = 1.0, 1e-3, 7
    mechanism = SmoothMedian(epsilon, delta, Histogram(Cells(0, cells, cells, missing=0.0), REPLACE))
    x = np.arange(-400, 400 + cells)

    def worst(rows: int, shrink: float, *, only_local: bool = False) -> float:
        found: dict[tuple[int, ...], Any] = {}
        for data in itertools.combinations_with_replacement(range(cells), rows):
            place, local, smooth = mechanism._measure(np.bincount(data, minlength=cells))
            found[data] = laplace_mass(2 / epsilon * (max(local, 0.25) if only_local else smooth) / shrink, x - place)
        spent = 0.0
        for data, law in found.items():
            for i, new in itertools.product(range(rows), range(cells)):
                other = tuple(sorted((*data[:i], new, *data[i + 1 :])))
                spent = max(spent, hockey_stick(law, found[other], epsilon))
        return spent

    for rows in (3, 4, 5):
        assert worst(rows, 1.0) <= delta
    assert worst(4, 4.0) > delta
    assert worst(5, 1.0, only_local=True) > delta


def test_smooth_sensitivity_is_smooth_and_above_the_local_one() -> None:
    """Over all neighbours of up to six rows: it changes by a factor of at most e^β, and one row moves
    the median by at most that much. The local one is what the best replacement does, found by trying them all.
    """
    cells = 5
    mechanism = SmoothMedian(1.0, 1e-3, Histogram(Cells(0, cells, cells, missing=0.0), REPLACE))
    for rows in (1, 2, 5, 6):
        found = {
            data: mechanism._measure(np.bincount(data, minlength=cells))
            for data in itertools.combinations_with_replacement(range(cells), rows)
        }
        for data, (place, local, smooth) in found.items():
            assert place == sorted(data)[(rows + 1) // 2 - 1]
            around = [
                found[tuple(sorted((*data[:i], new, *data[i + 1 :])))] for i in range(rows) for new in range(cells)
            ]
            assert local == max(abs(place - other) for other, _, _ in around)
            assert max(local, 1) <= smooth <= cells - 1
            assert all(smooth <= math.exp(mechanism.beta) * other * (1 + 1e-12) for _, _, other in around)


def test_tails_are_the_sums_of_masses() -> None:
    """The laws above are right themselves: masses add up to 1 and tails to sums of masses."""
    x = np.arange(-300, 301)
    for scale in (0.3, 1.0, 7.5):
        mass = laplace_mass(scale, x)
        assert mass.sum() == pytest.approx(1)
        assert laplace_upper(scale, x) == pytest.approx(mass[::-1].cumsum()[::-1], abs=1e-12)
    assert noisy_max_law((3, 1, 1), 2.0).sum() == pytest.approx(1)
    assert permute_and_flip_law((3, 1, 1), 0.5).sum() == pytest.approx(1)
    assert above_threshold_law((1, 2, 3), 2, 2.0, 4.0).sum() == pytest.approx(1)


def test_binomial_pays_for_every_coordinate_that_a_unit_moves() -> None:
    """Fails when one coordinate is charged: both cells of a replaced row, enumerated over all pairs of outputs."""
    mechanism = Binomial.for_epsilon(1.0, 1e-3, Histogram(Cells(0, 3, 3), REPLACE))
    k = np.arange(-1, mechanism.coins + 2)
    here, up, down = (binom.pmf(k - shift, mechanism.coins, 0.5) for shift in (0, 1, -1))
    for epsilon in (mechanism.epsilon, 1.5 * mechanism.epsilon, 1.0):
        exact = hockey_stick(np.outer(here, here).ravel(), np.outer(up, down).ravel(), epsilon)
        assert exact <= accounting.delta(mechanism.event, epsilon, unit=REPLACE).upper * (1 + 1e-9)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_peeling_pays_for_every_choice_and_every_number(k: int) -> None:
    """Fails when a choice or a number is left out: at δ = 0 the price is that of 2k releases of ε each."""
    mechanism = Peeling(0.25, VectorSum(8, 1.0, Norm.LINF), k)
    assert accounting.upper(mechanism.event, 0.0) == pytest.approx(2 * k * 0.25, rel=1e-6)
