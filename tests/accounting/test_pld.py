"""The loss-distribution engine against closed forms, exact enumeration and independent libraries."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from privet import accounting
from privet.accounting import pld
from privet.accounting.canonical import CountedEvent
from privet.accounting.conversions import gdp_to_delta, gdp_to_epsilon
from privet.accounting.convolution import compose
from privet.accounting.directions import Side
from privet.accounting.grid import optimistic, pessimistic
from privet.accounting.laws import (
    Added,
    Atoms,
    GaussianLoss,
    LaplaceLoss,
    Law,
    Removed,
    ReplacedGaussian,
    ReplacedLaplace,
    Symmetric,
    discrete_gaussian,
    discrete_laplace,
    randomized_response,
    reach,
    replaced_discrete_gaussian,
    replaced_discrete_laplace,
    two_steps,
)
from privet.core.event import Gaussian, Laplace, Poisson, RandomizedResponse, Repeated, Sampled, WithoutReplacement
from privet.core.unit import Neighbours, Unit
from tests.accounting.contour import contour_delta
from tests.accounting.record_oracles import FILE

REPLACE = Unit(neighbours=Neighbours.REPLACE)


def run(sigma: float, rate: float, steps: int) -> Repeated:
    return Repeated(Sampled(Gaussian(sigma), by=Poisson(rate)), steps)


@pytest.mark.parametrize("mu", [0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("count", [2, 17, 400])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_grid_brackets_gaussian_closed_form(mu: float, count: int, delta: float) -> None:
    """The engine without its Gaussian shortcut: would fail if either rounding erred on the wrong side."""
    law = GaussianLoss(mu)
    exact = gdp_to_epsilon(mu * math.sqrt(count), delta)
    side = Side(((law, count),), (reach(law, delta * 1e-7 / count),))
    tilt, guess = side.tilt_for(delta)
    step = side.first_step(tilt, 1e-3 * max(guess, 0.1))
    upper = side.curve(step, tilt, worse=True).epsilon(delta, 1)
    lower = side.curve(step, tilt, worse=False).epsilon(delta, -1)
    assert lower <= exact <= upper
    assert upper - lower <= 0.01 * max(1.0, exact)


@pytest.mark.parametrize("tilt", [0.1, 1.0, 5.0, 30.0])
def test_any_tilt_is_certified(tilt: float) -> None:
    """The tilt is a matter of precision and never of truth: a wrong one only widens the interval."""
    law, count = GaussianLoss(0.3), 25
    ends = reach(law, 1e-15)
    above = compose([(pessimistic(law, 0.002, *ends), count)], tilt)
    below = compose([(optimistic(law, 0.002, *ends), count)], tilt)
    for epsilon in (0.5, 1.0, 3.0, 6.0):
        exact = gdp_to_delta(1.5, epsilon)
        assert below.delta(epsilon, -1) <= exact <= above.delta(epsilon, 1)


def enumerated_delta(losses: Sequence[float], p: Sequence[float], count: int, epsilon: float) -> float:
    """δ of `count` independent copies of a finite law, by going through all multisets."""
    total = []
    for chosen in itertools.combinations_with_replacement(range(len(losses)), count):
        ways, mass, loss = math.factorial(count), 1.0, 0.0
        for index in set(chosen):
            times = chosen.count(index)
            ways //= math.factorial(times)
            mass *= p[index] ** times
            loss += times * losses[index]
        if loss > epsilon:
            total.append(ways * mass * -math.expm1(epsilon - loss))
    return math.fsum(total)


def sampled_response(epsilon: float, rate: float, added: bool) -> tuple[list[float], list[float]]:
    """The sampled pair of binary randomised response, written out by hand."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    p, q = [keep, 1 - keep], [1 - keep, keep]
    mixed = [(1 - rate) * b + rate * a for a, b in zip(p, q, strict=True)]
    first, second = (p, [(1 - rate) * a + rate * b for a, b in zip(p, q, strict=True)]) if added else (mixed, q)
    return [math.log(a / b) for a, b in zip(first, second, strict=True)], first


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("rate", [0.05, 0.5])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("count", [2, 5, 12])
def test_sampled_atoms_by_enumeration(epsilon: float, rate: float, added: bool, count: int) -> None:
    """Both directions of sampling, exactly: would fail for a swapped direction, a lost atom or a forgotten count."""
    kind = Added if added else Removed
    law = kind(randomized_response(epsilon), rate)
    losses, masses = sampled_response(epsilon, rate, added)
    side = Side(((law, count),), (reach(law, 1e-20),))
    for target in (0.1, 0.5, 1.0):
        exact = enumerated_delta(losses, masses, count, target)
        tilt = side.tilt_at(target)
        above = side.curve(5e-5, tilt, worse=True).delta(target, 1)
        below = side.curve(5e-5, tilt, worse=False).delta(target, -1)
        assert below <= exact * (1 + 1e-12) + 1e-18
        assert exact <= above * (1 + 1e-12)
        assert above - below <= 0.02 * exact + 1e-6


@pytest.mark.parametrize("categories", [2, 3, 10])
@pytest.mark.parametrize("count", [1, 4, 10])
def test_randomised_response_is_counted(categories: int, count: int) -> None:
    """Randomised response × n by enumeration; dp-accounting 0.6 prices n of them as one."""
    epsilon = 0.4
    law = randomized_response(epsilon, categories)
    event = Repeated(RandomizedResponse(epsilon, categories), count)
    for target in (0.0, 0.2, 0.9, 1.7):
        exact = enumerated_delta(law.losses.tolist(), law.p.tolist(), count, target)
        found = accounting.delta(event, target, unit=REPLACE)
        assert found.lower <= exact * (1 + 1e-9) + 1e-15
        assert exact <= found.upper * (1 + 1e-9) + 1e-15
    pure = accounting.epsilon(event, 0.0, unit=REPLACE).epsilon
    assert pure.lower <= count * epsilon <= pure.upper <= count * epsilon * (1 + 1e-9)


@pytest.mark.parametrize(
    "law",
    [
        GaussianLoss(0.7),
        LaplaceLoss(0.8),
        discrete_laplace(2.0, 3),
        discrete_gaussian(1.5, 2),
        randomized_response(1.0, 5),
        Removed(GaussianLoss(1.3), 0.01),
        Added(GaussianLoss(1.3), 0.01),
        Removed(LaplaceLoss(0.5), 0.2),
        Added(LaplaceLoss(0.5), 0.2),
        Symmetric(Removed(GaussianLoss(2.0), 0.05)),
        Symmetric(Removed(randomized_response(1.0), 0.3)),
        ReplacedGaussian(1.3, 0.01),
        ReplacedLaplace(0.8, 0.2),
        replaced_discrete_laplace(2.0, 3, 0.3),
        replaced_discrete_gaussian(1.5, 2, 0.3),
        two_steps(1.0, 0.01, 0.3),
    ],
    ids=lambda law: f"{type(law).__name__}-{type(getattr(law, 'inner', law)).__name__}",
)
def test_laws_are_pairs(law: Law) -> None:
    """Masses sum to one under P and under Q, and a cell's P- and Q-mass differ by its own loss."""
    bounds = np.linspace(-4.0, 4.0, 1601) + 1e-4
    p, q = law.cells(bounds)
    assert p.sum() + law.infinite == pytest.approx(1.0, abs=1e-12)
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    inner_p, inner_q = p[1:-1], q[1:-1]
    filled = (inner_p > 1e-12) & (inner_q > 1e-12)
    loss = np.log(inner_p[filled] / inner_q[filled])
    assert np.all(loss >= bounds[:-1][filled] - 1e-9)
    assert np.all(loss <= bounds[1:][filled] + 1e-9)


def test_without_replacement_profile() -> None:
    """δ′(ε′) = q·δ(ε) with e^ε′ = 1 + q(e^ε − 1), for one step (Balle, Barthe & Gaboardi 2018, Thm 9), from 2C."""
    sigma, event = 2.0, Sampled(Gaussian(2.0), by=WithoutReplacement(50, 1000))
    for leaf in (0.5, 1.0, 2.0):
        amplified = math.log1p(0.05 * math.expm1(leaf))
        exact = 0.05 * gdp_to_delta(2 / sigma, leaf)
        assert accounting.delta(event, amplified, unit=REPLACE).upper == pytest.approx(exact, rel=1e-9)


def test_replacement_costs_at_least_poisson_at_twice_the_shift() -> None:
    """Replace-one neighbours are 2C apart: pricing them at C (as dp-accounting's RDP does) would be caught here."""
    for event in (Gaussian(2.0), Laplace(3.0)):
        one = accounting.epsilon(event, 1e-6).epsilon
        two = accounting.epsilon(event, 1e-6, unit=REPLACE).epsilon
        half = accounting.epsilon(type(event)(event.noise_multiplier / 2), 1e-6).epsilon
        assert two.upper == pytest.approx(half.upper, rel=1e-6)
        assert two.lower > one.upper


VECTORS = [
    (256 / 60000, 1.1, 14062, 1e-5, 2.3816),
    (256 / 60000, 1.3, 3515, 1e-5, 0.8644),
    (0.01, 4.0, 10000, 1e-5, 0.9469),
    (512 / 60000, 1.23, 4680, 1e-5, 2.3613),
    (0.01, 0.6, 100, 1e-6, 4.7512),
]


@pytest.mark.parametrize(("rate", "sigma", "steps", "delta", "expected"), VECTORS)
def test_reference_vectors(rate: float, sigma: float, steps: int, delta: float, expected: float) -> None:
    """Values computed with an independent PRV accountant (both directions), to their four digits."""
    found = accounting.epsilon(run(sigma, rate, steps), delta).epsilon
    assert found.lower - 6e-5 <= expected <= found.upper + 6e-5
    assert found.upper - found.lower <= 0.01


def load() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(FILE.read_text())["rows"]
    return rows


def refuted(row: dict[str, Any], oracle: dict[str, float]) -> bool:
    """Whether an exact contour integral shows that an oracle's ε is too small: its δ there exceeds the target.

    Only for many steps, where the integral is safe. It happens to dp-accounting where δ is near the rounding error of
    its transform.
    """
    if row["steps"] < 1000:
        return False
    found = contour_delta(row["sigma"], row["rate"], row["steps"], oracle["upper"], added=False)
    return bool(found > row["delta"] * (1 + 1e-4))


@pytest.mark.parametrize("slice_", range(10))
def test_oracles(slice_: int) -> None:
    """At least 200 settings against dp-accounting, prv-accountant and opacus, as recorded beside this file."""
    for row in load()[slice_::10]:
        sigma, rate, steps, delta = row["sigma"], row["rate"], row["steps"], row["delta"]
        found = accounting.epsilon(run(sigma, rate, steps), delta).epsilon
        setting = f"σ={sigma:.4g} q={rate:.4g} T={steps} δ={delta:.3g}: {found}"
        for name, oracle in row["oracles"].items():
            if isinstance(oracle, str):
                continue
            honest = found.lower <= oracle["upper"] * (1 + 1e-9) + 1e-9
            assert honest or refuted(row, oracle), f"{setting} above {name} {oracle}"
            assert found.upper >= oracle.get("lower", 0.0) - 1e-9, f"{setting} below {name} {oracle}"
        google = row["oracles"]["dp_accounting_pld"]
        if isinstance(google, dict):
            tight = found.upper <= max(google["upper"] * 1.005, google["upper"] + 1e-3)
            assert tight or refuted(row, google), f"{setting} against {google}"
        if found.upper <= 30 and delta >= 1e-10:
            assert found.upper - found.lower <= max(0.01, 0.01 * found.upper), setting


@pytest.mark.parametrize(
    ("sigma", "rate", "steps", "delta", "wrong"),
    [(2.091, 0.03797, 1525, 1.34e-12, 5.51408), (15.94, 0.3278, 75361, 1.04e-12, 54.60132)],
)
def test_contour_integral_is_inside(sigma: float, rate: float, steps: int, delta: float, wrong: float) -> None:
    """Where dp-accounting and this engine disagree, an exact third method sides with this one."""
    found = accounting.epsilon(run(sigma, rate, steps), delta).epsilon
    assert contour_delta(sigma, rate, steps, found.upper, added=False) <= delta * (1 + 1e-9)
    assert contour_delta(sigma, rate, steps, found.lower, added=False) >= delta * (1 - 1e-9)
    assert contour_delta(sigma, rate, steps, wrong, added=False) > delta * 1.01


def test_enough_oracles_answered() -> None:
    """The record is of at least 200 settings, and each oracle answered most of them."""
    rows = load()
    assert len(rows) >= 200
    for name in rows[0]["oracles"]:
        assert sum(isinstance(row["oracles"][name], dict) for row in rows) >= 0.5 * len(rows), name


def test_optimistic_pld_of_dp_accounting_is_no_lower_bound() -> None:
    """Two Gaussians at δ = 1e-14: dp-accounting's optimistic ε lies above the closed form; our lower end does not."""
    from dp_accounting.pld import privacy_loss_distribution

    exact = gdp_to_epsilon(math.sqrt(2), 1e-14)
    theirs = privacy_loss_distribution.from_gaussian_mechanism(
        1.0, pessimistic_estimate=False, value_discretization_interval=1e-2, use_connect_dots=False
    ).self_compose(2)
    assert theirs.get_epsilon_for_delta(1e-14) > exact * 1.0005
    law = GaussianLoss(1.0)
    side = Side(((law, 2),), (reach(law, 1e-22),))
    tilt, _guess = side.tilt_for(1e-14)
    assert exact * 0.999 < side.curve(1e-3, tilt, worse=False).epsilon(1e-14, -1) <= exact


def test_more_is_never_proven_cheaper() -> None:
    """upper(more) ≥ lower(less) for more steps, a higher rate and less noise."""
    base = accounting.epsilon(run(1.0, 0.01, 500), 1e-5).epsilon
    for worse in (run(1.0, 0.01, 501), run(1.0, 0.0101, 500), run(0.999, 0.01, 500)):
        assert accounting.epsilon(worse, 1e-5).epsilon.upper >= base.lower


def test_halved_noise_is_another_price() -> None:
    """No cache, table or shortcut may confuse two noise levels."""
    full, half = (accounting.epsilon(run(sigma, 0.01, 300), 1e-5).epsilon for sigma in (2.0, 1.0))
    assert half.lower > full.upper


def test_infinite_mass_is_kept() -> None:
    """A law that reveals the row with probability 1e-3 can never be priced at a δ of 1e-3 or less."""
    law = Atoms(np.array([0.1]), np.array([0.999]), np.array([0.9]), infinite=1e-3, minus=0.1)
    side = Side(((law, 3),), ((0.1, 0.1),))
    assert side.revealed == pytest.approx(1 - 0.999**3)
    assert side.curve(0.01, 1.0, worse=True).delta(50.0, 1) >= 1 - 0.999**3 - 1e-12


def test_parts_without_a_pair_join_as_a_block() -> None:
    """A vector of discrete Gaussians is priced by Rényi and joins a loss distribution at the stated share of δ."""
    from privet.core.event import DiscreteGaussian

    parts = [CountedEvent(DiscreteGaussian(20.0, 1.0, 8), None, 3), CountedEvent(Laplace(5.0), None, 10)]
    found = pld.epsilon(parts, 1e-5, Unit())
    laplace = pld.epsilon(parts[1:], 1e-5, Unit())
    assert found.upper > laplace.upper
    assert found.lower >= laplace.lower * 0.99
