"""Poisson sampling when a row is replaced: the pairs are the worst there are, and other ways lead to the same price."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr

from privet import accounting
from privet.accounting import pld
from privet.accounting.canonical import canonical
from privet.accounting.laws import (
    Law,
    ReplacedGaussian,
    ReplacedLaplace,
    replaced_discrete_gaussian,
    replaced_discrete_laplace,
    two_steps,
)
from privet.accounting.laws.law import law_delta
from privet.core.event import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Laplace,
    Leaf,
    NoisyMax,
    Poisson,
    Pure,
    Repeated,
    Sampled,
)
from privet.core.unit import Neighbours, Unit
from tests.accounting.test_pld import enumerated_delta

Array = npt.NDArray[np.float64]
REPLACE = Unit(neighbours=Neighbours.REPLACE)
LOSSES = (-2.0, -0.5, -0.01, 0.0, 0.003, 0.1, 0.7, 2.0, 4.0)
"""log α: below 0 too, since composition needs the whole profile."""


def run(leaf: Leaf, rate: float, steps: int) -> Event:
    return Repeated(Sampled(leaf, by=Poisson(rate)), steps)


def hockey_stick(p: Array, q: Array, loss: float) -> float:
    return float(np.sum(np.maximum(p - math.exp(loss) * q, 0.0)))


def mixed(still: Array, moved: Array, rate: float) -> Array:
    return (1 - rate) * still + rate * moved


@pytest.mark.parametrize("sigma", [0.4, 1.1, 4.0])
@pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
def test_opposite_contributions_are_the_worst_for_gaussian_noise(sigma: float, rate: float) -> None:
    """Integrals in the plane: no pair of contributions of norm ≤ 1, in any directions, has a larger H_α at any α."""
    law = ReplacedGaussian(1 / sigma, rate)
    rng = np.random.default_rng(11)
    width = (2 + 16 * sigma) / 600
    axis = np.arange(-1 - 8 * sigma, 1 + 8 * sigma, width)
    x, y = np.meshgrid(axis, axis)

    def normal(centre: Array) -> Array:
        squares = (x - centre[0]) ** 2 + (y - centre[1]) ** 2
        return np.asarray(np.exp(-squares / (2 * sigma**2)) * width**2 / (2 * math.pi * sigma**2))

    still = normal(np.zeros(2))
    pairs = [(np.array([1.0, 0.0]), np.array([-1.0, 0.0])), (np.array([1.0, 0.0]), np.array([0.0, 1.0]))]
    for _ in range(6):
        angles, sizes = rng.uniform(0, 2 * math.pi, 2), rng.uniform(0.3, 1.0, 2)
        u, v = (r * np.array([math.cos(a), math.sin(a)]) for r, a in zip(sizes, angles, strict=True))
        pairs.append((u, v))
    for number, (u, v) in enumerate(pairs):
        p, q = mixed(still, normal(u), rate), mixed(still, normal(v), rate)
        for loss in LOSSES:
            worst = law_delta(law, loss, 1)
            found = hockey_stick(p, q, loss)
            assert found <= worst * (1 + 1e-3) + 1e-7, (u, v, loss)
            if number == 0:
                assert found == pytest.approx(worst, rel=1e-3, abs=1e-7)


@pytest.mark.parametrize("rate", [0.02, 0.5, 1.0])
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
def test_opposite_contributions_are_the_worst_for_integer_noise(name: str, rate: float) -> None:
    """All pairs of whole contributions up to the bound, summed out: the law has the largest H_α, and attains it."""
    bound, x = 3, np.arange(-200, 201, dtype=np.float64)
    if name == "laplace":
        law, log_weight = replaced_discrete_laplace(2.0, bound, rate), -np.abs(x[:, None] - x[None, :]) / 2.0
    else:
        law, log_weight = replaced_discrete_gaussian(1.7, bound, rate), -((x[:, None] - x[None, :]) ** 2) / (2 * 1.7**2)
    assert law is not None
    at = np.exp(log_weight[200 - bound : 201 + bound])
    at /= at[bound].sum()
    for loss in LOSSES:
        found = {
            (u, v): hockey_stick(mixed(at[bound], at[bound + u], rate), mixed(at[bound], at[bound + v], rate), loss)
            for u in range(-bound, bound + 1)
            for v in range(-bound, bound + 1)
        }
        worst = law_delta(law, loss, 1)
        assert max(found.values()) <= worst * (1 + 1e-9) + 1e-13
        assert found[bound, -bound] == pytest.approx(worst, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("rate", [0.02, 0.5, 1.0])
def test_opposite_contributions_are_the_worst_for_laplace_noise(scale: float, rate: float) -> None:
    """Integrals over a fine grid; would fail for a wrong preimage of a loss, or a lost atom at either end."""
    law = ReplacedLaplace(scale, rate)
    edges = np.linspace(-1 - 25 * scale, 1 + 25 * scale, 400_001)

    def masses(centre: float) -> Array:
        tail = np.exp(-np.abs(edges - centre) / scale) / 2
        return np.diff(np.where(edges < centre, tail, 1 - tail))

    still = masses(0.0)
    for u, v in ((1.0, -1.0), (1.0, 0.0), (1.0, 0.4), (0.5, 1.0), (0.3, -0.8), (-1.0, 1.0)):
        p, q = mixed(still, masses(u), rate), mixed(still, masses(v), rate)
        for loss in LOSSES:
            found, worst = hockey_stick(p, q, loss), law_delta(law, loss, 1)
            assert found <= worst * (1 + 1e-6) + 1e-9, (u, v, loss)
            if abs(u - v) == 2:
                assert found == pytest.approx(worst, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("rate", [0.05, 0.6, 1.0])
def test_two_steps_dominate_whatever_is_private(rate: float) -> None:
    """Random M₀, M₁, M₂ on few outcomes, with the δ they have at a given ε: their H_α never exceeds the law's."""
    rng = np.random.default_rng(5)
    for _ in range(300):
        size = int(rng.integers(2, 6))
        laws = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])), 3)
        epsilon = float(rng.choice([0.0, 0.2, 1.0, 3.0]))
        pairs = [(0, 1), (1, 0), (0, 2), (2, 0)]
        delta = max(hockey_stick(laws[i], laws[j], epsilon) for i, j in pairs)
        law = two_steps(epsilon, delta, rate)
        assert law is not None
        p, q = (mixed(laws[0], laws[k], rate) for k in (1, 2))
        for loss in LOSSES:
            assert hockey_stick(p, q, loss) <= law_delta(law, loss, 1) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 40.0])
@pytest.mark.parametrize("delta", [0.0, 1e-9, 0.1, 0.7])
@pytest.mark.parametrize("rate", [0.01, 1.0])
def test_two_steps_are_attained(epsilon: float, delta: float, rate: float) -> None:
    """P and Q are distributions, mirror images, (2ε, δ(1 + e^ε))-DP at rate 1 and no better: nothing is given away."""
    law = two_steps(epsilon, delta, rate)
    assert law is not None
    assert float(law.p.sum()) + law.infinite == pytest.approx(1.0, abs=1e-12)
    assert float(law.q.sum()) + law.minus == pytest.approx(1.0, abs=1e-12)
    assert law.infinite >= rate * delta * (1 - 1e-12)
    if rate == 1:
        whole = min(1.0, delta * (1 + math.exp(epsilon)))
        assert law_delta(law, 2 * epsilon, 1) == pytest.approx(whole, rel=1e-9, abs=1e-12)
    filled = (law.p > 0) & (law.q > 0)
    assert np.allclose(np.log(law.p[filled] / law.q[filled]), law.losses[filled], rtol=1e-9, atol=1e-12)


def gaussian_two_steps(epsilon: float, sigma: float, rate: float) -> float:
    """δ of two steps by integration; the loss is inverted by root finding, and nothing is taken from the engine."""

    def loss(x: float) -> float:
        up, down = (math.log1p(rate * math.expm1((sign * 2 * x - 1) / (2 * sigma**2))) for sign in (1, -1))
        return up - down

    def one(left: float) -> float:
        span = 60 * sigma + 60
        if abs(left) >= loss(span):
            return max(0.0, 1 - math.exp(left)) if left < 0 else 0.0
        t = float(brentq(lambda x: loss(x) - left, -span, span, xtol=1e-13))
        p, q = ((1 - rate) * float(ndtr(-t / sigma)) + rate * float(ndtr((s - t) / sigma)) for s in (1, -1))
        return p - math.exp(left) * q

    def inner(x: float) -> float:
        densities = (math.exp(-((x - c) ** 2) / (2 * sigma**2)) / (math.sqrt(2 * math.pi) * sigma) for c in (0, 1))
        still, moved = densities
        return ((1 - rate) * still + rate * moved) * one(epsilon - loss(x))

    return float(quad(inner, -12 * sigma, 1 + 12 * sigma, points=[0.0, 1.0], limit=400, epsabs=1e-14, epsrel=1e-9)[0])


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("rate", [1e-3, 0.05, 0.6])
def test_two_sampled_steps_by_integration(sigma: float, rate: float) -> None:
    """An independent truth lies within both ends: would fail for a wrong pair, direction or rounding."""
    for epsilon in (0.05, 0.4, 1.5):
        exact = gaussian_two_steps(epsilon, sigma, rate)
        found = accounting.delta(run(Gaussian(sigma), rate, 2), epsilon, unit=REPLACE)
        assert found.lower <= exact * (1 + 1e-7) + 1e-13
        assert exact <= found.upper * (1 + 1e-7) + 1e-13
        assert found.upper - found.lower <= 0.01 * exact + 1e-9


@pytest.mark.parametrize("leaf", [Pure(0.7), Exponential(0.7), NoisyMax(0.7), Approximate(0.7, 1e-3)], ids=str)
@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_blocks_by_enumeration(leaf: Leaf, rate: float) -> None:
    """Five steps of few outcomes, all multisets: the composed price is that of the law, atom by atom."""
    law = two_steps(0.7, getattr(leaf, "delta", 0.0), rate)
    assert law is not None
    steps = 5
    hidden = 1 - (1 - law.infinite) ** steps
    for epsilon in (0.1, 1.0, 2.5):
        exact = hidden + enumerated_delta(law.losses.tolist(), law.p.tolist(), steps, epsilon)
        found = pld.delta(canonical(run(leaf, rate, steps)).parts, epsilon, REPLACE).upper
        assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-2) + 1e-9


SETTINGS = [
    (1.1, 256 / 60000, 704, 1e-5),
    (1.1, 256 / 60000, 14063, 1e-5),
    (0.7, 0.02, 300, 1e-6),
    (2.0, 0.3, 40, 1e-8),
]


@pytest.mark.parametrize(("sigma", "rate", "steps", "delta"), SETTINGS)
def test_another_library_agrees(sigma: float, rate: float, steps: int, delta: float) -> None:
    """dp-accounting prices the same pair (it states no proof); the old price here was 3 to 6 times as high."""
    import dp_accounting
    from dp_accounting.pld import PLDAccountant

    theirs = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    step = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma))
    theirs.compose(dp_accounting.SelfComposedDpEvent(step, steps))
    found = accounting.epsilon(run(Gaussian(sigma), rate, steps), delta, unit=REPLACE).epsilon
    assert found.lower <= theirs.get_epsilon(delta) * (1 + 1e-6)
    assert found.upper <= theirs.get_epsilon(delta) * (1 + 1e-3) + 1e-3
    assert found.upper - found.lower <= 5e-3 * max(1.0, found.upper)


LEAVES: list[Leaf] = [
    Gaussian(1.5),
    Laplace(2.0),
    Laplace(2.0, 5),
    DiscreteLaplace(6.0, 3),
    DiscreteLaplace(6.0, 3, 4),
    DiscreteGaussian(6.0, 3),
    DiscreteGaussian(6.0, 3.0, 4),
    Exponential(0.5),
    NoisyMax(0.5),
    Pure(0.5),
    Pure(0.5, Neighbours.ZERO_OUT),
    Approximate(0.5, 1e-9),
]


@pytest.mark.parametrize("leaf", LEAVES, ids=str)
@pytest.mark.parametrize("steps", [1, 30, 2000])
def test_a_replacement_costs_no_more_than_two_steps(leaf: Leaf, steps: int) -> None:
    """A removal and an addition make a replacement, so its price is at most that of a group of two; nor below one."""
    once: Callable[[Leaf], Event] = lambda one: Repeated(one, steps)  # noqa: E731
    sampled: Callable[[Leaf], Event] = lambda one: run(one, 0.01, steps)  # noqa: E731
    zero_out = isinstance(leaf, Pure) and leaf.neighbours is Neighbours.ZERO_OUT
    for build in (once,) if zero_out else (once, sampled):
        step = Unit(neighbours=Neighbours.ZERO_OUT if zero_out else Neighbours.ADD_REMOVE)
        two = Unit(neighbours=step.neighbours, records=2)
        replaced = accounting.epsilon(build(leaf), 1e-6, unit=REPLACE).epsilon
        assert replaced.upper <= accounting.upper(build(leaf), 1e-6, unit=two) * (1 + 2e-3) + 1e-4
        assert replaced.upper >= accounting.epsilon(build(leaf), 1e-6, unit=step).epsilon.lower


def test_beyond_the_reach_of_grids_two_steps_are_a_bound() -> None:
    """10⁹ runs are too many for a grid: Rényi for a removal and an addition, where only classical rules answered."""
    event = run(Gaussian(30.0), 1e-4, 10**9)
    found = accounting.epsilon(event, 1e-5, unit=REPLACE)
    assert found.accountant == "renyi"
    assert found.epsilon.upper <= accounting.upper(event, 1e-5, unit=Unit(records=2)) * (1 + 1e-9)
    assert accounting.delta(event, found.epsilon.upper * 1.01, unit=REPLACE).upper <= 1e-5
    alone = accounting.epsilon(event, 1e-5, unit=REPLACE, accountant=accounting.Accountant.ADVANCED).epsilon.upper
    assert alone > 10 * found.epsilon.upper
    # The sum of all outputs is normal with mean ± 10⁹·10⁻⁴ and deviation √(10⁹·30² + 10⁵): that alone tells them apart.
    attained = accounting.epsilon(Gaussian(math.sqrt(9e11 + 1e5) / 2e5), 1e-5).epsilon.lower
    assert attained * (1 - 1e-3) <= found.epsilon.upper


@pytest.mark.parametrize("mu", [0.01, 1.0, 30.0, 900.0])
@pytest.mark.parametrize("rate", [1e-7, 0.1, 1 - 1e-9])
def test_extreme_pairs_stay_pairs(mu: float, rate: float) -> None:
    """Little noise and rates near 0 and 1: masses sum to one, and each cell's loss lies in the cell."""
    law: Law = ReplacedGaussian(mu, rate)
    top = mu * mu / 2 + 12 * mu + 30
    bounds = np.linspace(-top, top, 4001) + 1e-7
    p, q = law.cells(bounds)
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert q.sum() == pytest.approx(1.0, abs=1e-12)
    filled = (p[1:-1] > 1e-12) & (q[1:-1] > 1e-12)
    loss = np.log(p[1:-1][filled] / q[1:-1][filled])
    slack = 1e-9 + 1e-10 * top
    assert np.all(loss >= bounds[:-1][filled] - slack)
    assert np.all(loss <= bounds[1:][filled] + slack)
