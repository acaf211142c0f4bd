"""A sanitised ε: smooth over neighbours, priced in full, and too low no more often than it says."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import binom, chi2, norm

from privet.accounting import price
from privet.core.errors import InvalidInput, NotProven
from privet.core.event import Approximate, DiscreteGaussian
from privet.core.random import SeededRng
from privet.core.unit import Neighbours, Unit
from privet.pate import Confident, GNMax, Gnss, Interactive, LNMax, Plan, SmoothCeiling, Votes
from privet.pate.data_dependent import data_dependent, question_cost
from privet.pate.gnss import gnss_rdp, smooth_sensitivity
from privet.pate.sanitization import ceiling_of, cost_table
from tests.pate.reference import rows_of

ALARM = 1e-7
PLAN = Plan(Confident(200, 150.0, 40.0), 300, 250, 10)


def consensus(seed: int, questions: int = 300) -> Votes:
    """Votes of 250 teachers who mostly agree."""
    rng = np.random.default_rng(seed)
    shares = rng.beta(6, 0.3, questions)
    return Votes([rng.multinomial(250, [p, *[(1 - p) / 9] * 9]) for p in shares], teachers=250)


@pytest.mark.parametrize("aggregator", [GNMax(2.0), LNMax(1.5), Confident(7, 3.0, 2.0)], ids=repr)
@pytest.mark.parametrize("labels", [2, 3, 4])
def test_the_table_is_never_below_the_questions_own_price(aggregator: GNMax | LNMax | Confident, labels: int) -> None:
    """Fails when some split of the other votes is worse than the one that the table takes for the worst."""
    rows = np.array(list(rows_of(11, labels)))
    plan = Plan(aggregator, 1, 11, labels)
    for order in (2.0, 4.0, 12.0):
        table = cost_table(plan, order)
        assert (table[rows.max(axis=1)] >= question_cost(plan, rows, order) - 1e-12).all()


def test_neighbours_are_no_further_than_promised() -> None:
    """Fails when ceiling or smooth sensitivity changes by more than e^β, or a sum by more than its sensitivity."""
    rng = np.random.default_rng(9)
    table = cost_table(Plan(Confident(20, 5.0, 3.0), 1, 30, 3), 6.0)
    for beta in (0.01, 0.1, 0.5):
        for _ in range(200):
            largest = rng.integers(10, 31, 8)
            other = np.clip(largest + rng.integers(-1, 2, 8), 0, 30)
            here, there = (ceiling_of(table, each, beta) for each in (largest, other))
            assert here >= table[largest].sum()
            assert abs(math.log(here / there)) <= beta * (1 + 1e-9)
            smooth, smooth_there = (smooth_sensitivity(table, each, beta) for each in (largest, other))
            assert abs(math.log(smooth / smooth_there)) <= beta * (1 + 1e-9)
            assert abs(table[largest].sum() - table[other].sum()) <= min(smooth, smooth_there)


@pytest.mark.parametrize(("order", "beta", "sigma"), [(2.0, 0.1, 1.0), (8.0, 0.03, 2.0), (20.0, 0.02, 7.0)])
def test_the_price_of_smooth_noise_is_the_worst_of_all_ratios(order: float, beta: float, sigma: float) -> None:
    """Fails when a ratio of smooth sensitivities other than e^-β costs more, by integrals of the two densities."""

    def cost(ratio: float) -> float:
        moved = min(1.0, ratio)

        def density(x: float) -> float:
            p = -(x**2) / (2 * sigma**2) - math.log(sigma)
            q = -((x - moved) ** 2) / (2 * (ratio * sigma) ** 2) - math.log(ratio * sigma)
            return math.exp(order * p + (1 - order) * q) / math.sqrt(2 * math.pi)

        whole = quad(density, -60 * sigma, 60 * sigma, limit=800, points=[0.0, moved])[0]
        return math.log(whole) / (order - 1)

    found = gnss_rdp(order, beta, sigma)
    costs = [cost(math.exp(beta * step)) for step in np.linspace(-1, 1, 9)]
    assert max(costs) == pytest.approx(found, rel=1e-6)
    assert costs[0] == max(costs)
    assert math.isinf(gnss_rdp(1 / (1 - math.exp(-2 * beta)) + 1e-9, beta, sigma))


@pytest.mark.parametrize("kind", [SmoothCeiling, Gnss])
def test_the_limit_fails_as_seldom_as_it_says(kind: type[SmoothCeiling] | type[Gnss]) -> None:
    """Fails when the limit lies below the true price more often than its failure probability (false alarm 1e-7)."""
    votes = consensus(1)
    sanitiser = kind(PLAN, delta=1e-5, failure=0.1)
    true = float(question_cost(PLAN, votes.counts, sanitiser.order).sum())
    released = [sanitiser.release(votes, rng=SeededRng(seed)).value for seed in range(500)]
    low = sum(each.rdp < true for each in released)
    assert low <= binom.isf(ALARM, 500, 0.1)


def test_the_ceilings_noise_is_the_noise_of_its_event() -> None:
    """Fails when the noise is halved, or another than the event says (variance of 500 draws, false alarm 2e-7)."""
    sanitiser = SmoothCeiling(PLAN, delta=1e-5, noise_multiplier=2.0)
    votes = consensus(2)
    found = np.log([sanitiser.release(votes, rng=SeededRng(seed)).value.rdp for seed in range(500)])
    expected = sanitiser.smooth * sanitiser.event.sigma / sanitiser.event.bound
    ratio = 499 * found.var(ddof=1) / expected**2
    assert chi2.ppf(ALARM, 499) < ratio < chi2.isf(ALARM, 499)


def test_the_release_has_its_own_price_in_it() -> None:
    """Fails when the price of the release itself is not in the ε that it states, or not in the event."""
    votes = consensus(3)
    ceiling, smooth = SmoothCeiling(PLAN, delta=1e-5), Gnss(PLAN, delta=1e-5)
    for release in (ceiling.release(votes, rng=SeededRng(1)), smooth.release(votes, rng=SeededRng(1))):
        value = release.value
        bare = value.rdp + math.log1p(-1 / value.order) - math.log(1e-5 * value.order) / (value.order - 1)
        assert value.epsilon == pytest.approx(bare + value.own_rdp, rel=1e-9)
        assert release.tainted
    assert ceiling.own_rdp == pytest.approx(ceiling.order / (2 * ceiling.noise_multiplier**2))
    assert ceiling.event == DiscreteGaussian(5.0 * 128, 128)
    assert smooth.own_rdp > smooth.order / (2 * smooth.width_multiplier**2)
    assert isinstance(smooth.event, Approximate)
    assert 0 < price.upper(smooth.event, 1e-5) < 10


def test_agreement_makes_it_cheaper_than_any_votes() -> None:
    """Fails when the limit is useless: on votes that agree it must be below the data-independent price."""
    votes = consensus(4)
    limit = SmoothCeiling(PLAN, delta=1e-5).release(votes, rng=SeededRng(1)).value
    assert limit.epsilon < 0.75 * PLAN.guarantee(1e-5).epsilon.upper
    assert limit.epsilon < Gnss(PLAN, delta=1e-5).release(votes, rng=SeededRng(1)).value.epsilon


@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_a_good_guess_suits_the_release(delta: float) -> None:
    """Fails when the search keeps a worse choice, or forgets the noise or the release's own price: guessed from other
    votes of the same kind, the limit is below that of the usual order, and above the true price."""
    votes, guess = consensus(5), consensus(6).counts.max(axis=1)
    chosen = SmoothCeiling.suited(PLAN, delta, guess.tolist())
    limit, usual = (
        np.median([way.release(votes, rng=SeededRng(seed)).value.epsilon for seed in range(9)])
        for way in (chosen, SmoothCeiling(PLAN, delta))
    )
    assert data_dependent(PLAN, votes, delta).epsilon < limit <= usual
    assert limit < 0.9 * usual or delta > 1e-8
    assert chosen.failure == 1e-3


@pytest.mark.parametrize("guess", [[], [250] * 299, [251] * 300, [-1] * 300, [0.5] * 300])
def test_a_guess_is_one_count_a_question(guess: list[Any]) -> None:
    """Fails when a guess that no votes can have is taken."""
    with pytest.raises(InvalidInput, match="guess"):
        SmoothCeiling.suited(PLAN, 1e-5, guess)


def test_the_ceiling_stops_only_where_nothing_can_be_more() -> None:
    """Fails when the search over distances stops early: by a plain loop over all of them, for several β."""
    table = cost_table(PLAN, 12.0)
    largest = consensus(7).counts.max(axis=1)
    for beta in (0.001, 0.01, 0.04, 0.2):
        within = [
            sum(table[max(0, v - d) : v + d + 1].max() for v in largest) * math.exp(-beta * d) for d in range(251)
        ]
        assert ceiling_of(table, largest, beta) == pytest.approx(max(within), rel=1e-9)


def test_what_cannot_be_sanitised() -> None:
    """Fails when an unproven aggregator or unit, or a meaningless number, is let through."""
    interactive = replace(PLAN, aggregator=Interactive(200, 150.0, 40.0, np.full((300, 10), 0.1)))
    for plan in (interactive, replace(PLAN, unit=Unit(neighbours=Neighbours.REPLACE))):
        for kind in (SmoothCeiling, Gnss):
            with pytest.raises(NotProven):
                kind(plan, delta=1e-5)
    for bad in ({"failure": 0.5}, {"failure": 0.0}, {"order": 1.0}, {"delta": 0.0}, {"beta": 0.0}):
        with pytest.raises(InvalidInput, match=next(iter(bad))):
            SmoothCeiling(PLAN, **{"delta": 1e-5, **bad})
    with pytest.raises(InvalidInput, match="stay below 1/"):
        Gnss(PLAN, delta=1e-5, order=10.0, beta=0.2)


class Given(SeededRng):
    """A generator whose normal draws are given beforehand."""

    def __init__(self, *draws: float) -> None:
        super().__init__(1)
        self.draws = draws

    def normal(self, size: object, *, dtype: object = np.float64) -> Any:
        """What was given."""
        return np.array(self.draws)


def test_smooth_noise_is_the_noise_that_is_priced() -> None:
    """Fails when either noise of Gnss is halved or left out: one deviation moves the limit by what it must."""
    votes, sanitiser = consensus(5), Gnss(PLAN, delta=1e-5, failure=0.3, sigma=0.5)
    smooth = smooth_sensitivity(sanitiser.table, votes.counts.max(axis=1), sanitiser.smooth * (1 - 1e-9))
    zero, first, second = (sanitiser.release(votes, rng=Given(*at)).value.rdp for at in ((0, 0), (1, 0), (0, 1)))
    assert first - zero == pytest.approx(sanitiser.sigma * smooth, abs=2e-6)
    true = float(sanitiser.table[votes.counts.max(axis=1)].sum())
    grown = math.exp(sanitiser.smooth * sanitiser.width_multiplier)
    assert second - true == pytest.approx((zero - true) * grown, abs=3e-6)


@pytest.mark.parametrize("aggregator", [GNMax(30.0), Confident(200, 150.0, 40.0), LNMax(20.0)], ids=repr)
def test_what_the_noise_is_added_to_moves_as_far_as_the_event_says(
    aggregator: GNMax | LNMax | Confident, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when the ceiling is discounted by another β than the grid's step is taken from (twice β: 256 steps), or is
    not discounted: the number before noise, on votes that all move by one, by all whole counts above half."""
    before: list[float] = []
    monkeypatch.setattr("privet.pate.sanitization.discrete_gaussian", lambda sigma, size, rng: 0)
    limit = SmoothCeiling._limit

    def noted(self: SmoothCeiling, noisy: float) -> Any:
        before.append(noisy)
        return limit(self, noisy)

    monkeypatch.setattr(SmoothCeiling, "_limit", noted)
    way = SmoothCeiling(Plan(aggregator, 50, 250, 3), 1e-5)
    for most in range(130, 251):
        way.release(Votes([[most, 250 - most, 0]] * 50, teachers=250), rng=SeededRng(1))
    assert len(before) == 121
    assert np.abs(np.diff(before)).max() == way.event.bound == 128


@pytest.mark.parametrize("failure", [0.3, 0.01, 1e-4])
def test_both_noises_together_fail_as_seldom_as_it_says(failure: float) -> None:
    """Fails when `failure` is not halved between the two noises of Gnss, so that one of them leaves its limits with
    twice that probability; or when it is halved again. How far the limits are is read from a release without noise."""
    votes, sanitiser = consensus(5), Gnss(PLAN, delta=1e-5, failure=failure, sigma=0.5, width_multiplier=1.0)
    largest = votes.counts.max(axis=1)
    scale = sanitiser.sigma * smooth_sensitivity(sanitiser.table, largest, sanitiser.smooth * (1 - 1e-9))
    above = sanitiser.release(votes, rng=Given(0, 0)).value.rdp - float(sanitiser.table[largest].sum())
    growth = sanitiser.smooth * sanitiser.width_multiplier
    far = brentq(lambda far: scale * far * math.exp(growth * far) - above, 0.0, 20.0)
    assert 2 * norm.sf(far) == pytest.approx(failure, rel=1e-3)


@pytest.mark.parametrize("failure", [0.3, 0.01, 1e-4])
@pytest.mark.parametrize("multiplier", [0.25, 5.0])
def test_the_ceilings_limit_fails_with_its_stated_chance(failure: float, multiplier: float) -> None:
    """Catches a width for another failure probability, such as twice the stated one: by the noise's exact law.

    How far the limit is above the noisy logarithm is read from the limit itself, in steps of the grid.
    """
    way = SmoothCeiling(PLAN, delta=1e-5, failure=failure, noise_multiplier=multiplier)
    noisy = -20_000  # so low that the data-independent price does not cut the limit
    width = math.log(way._limit(noisy).rdp) / way._step - noisy
    whole = round(width)
    assert width == pytest.approx(whole, abs=1e-6)
    weights = np.exp(-(np.arange(-40_000, 40_001) ** 2) / (2 * way.event.sigma**2))
    below = np.cumsum(weights) / weights.sum()  # P(noise ≤ n) at n + 40,000
    # The limit is too low exactly where the noise is below -width.
    assert below[40_000 - whole - 1] <= failure
    assert below[40_000 - whole - 1] > failure / 1.5


def test_the_ceilings_logarithm_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a ceiling that is rounded down to the grid, so that the limit is below the price without bad luck."""
    monkeypatch.setattr("privet.pate.sanitization.discrete_gaussian", lambda sigma, size, rng: 0)
    monkeypatch.setattr("privet.pate.sanitization.gaussian_width", lambda sigma, failure: 0)
    for seed in range(5):
        votes, way = consensus(seed), SmoothCeiling(PLAN, delta=1e-5, beta=20.0)  # steps that are wide, to be seen
        ceiling = ceiling_of(way.table, votes.counts.max(axis=1), way.smooth * (1 - 1e-9))
        rdp = way.release(votes, rng=SeededRng(1)).value.rdp
        assert ceiling * (1 - 1e-12) <= rdp <= ceiling * math.exp(way._step)


@pytest.mark.parametrize("draws", [(0.0, 0.0), (0.3, -0.4), (-1.1, 0.2), (0.7, 0.9)])
def test_the_limit_of_gnss_is_rounded_up(draws: tuple[float, float]) -> None:
    """Catches a limit that is rounded down to its grid: it then fails where both noises are within their limits."""
    votes, way = consensus(5), Gnss(PLAN, delta=1e-5, failure=0.3, sigma=0.5)
    largest = votes.counts.max(axis=1)
    smooth = smooth_sensitivity(way.table, largest, way.smooth * (1 - 1e-9))
    far, growth = float(norm.isf(0.15)), way.smooth * way.width_multiplier
    exact = float(way.table[largest].sum()) + way.sigma * smooth * (
        draws[0] + far * math.exp(growth * (draws[1] + far))
    )
    rdp = way.release(votes, rng=Given(*draws)).value.rdp
    assert rdp * 2**20 == int(rdp * 2**20)
    assert exact - 1e-9 <= rdp <= exact + 2**-20 + 1e-9
