"""The best of a random number of runs: its price against exact output laws, closed forms and another accountant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from privet import accounting
from privet.accounting import Accountant, renyi
from privet.accounting.canonical import CountedEvent, canonical
from privet.accounting.search import Array
from privet.core.errors import BudgetExceeded, InvalidInput, NotProven
from privet.core.event import (
    Approximate,
    Composed,
    Event,
    Gaussian,
    Laplace,
    NonPrivate,
    Poisson,
    Pure,
    RandomizedResponse,
    Repeated,
    Sampled,
    Selected,
    WithReplacement,
)
from privet.core.trials import Trials
from privet.core.unit import Neighbours, Unit
from privet.ledger import Form, Ledger
from privet.ledger.scaling import noisier, parameter_of
from tests.accounting.divergences import ADD, REPLACE, summed

LAWS = [Trials(0.02, 1.0), Trials(0.3, 1.0), Trials(0.05), Trials(0.01, -0.5), Trials(0.2, 2.5), Trials(0.9, 0.3)]
ORDERS = (1.1, 1.5, 2.0, 3.0, 8.0, 30.0, math.inf)
RUN = Composed((Repeated(Sampled(Gaussian(1.1), by=Poisson(256 / 60000)), 14063), Gaussian(20.0)))


@dataclass(frozen=True)
class Instance:
    """An event, and the laws of one run's output on two neighbours, from the worst output to the best."""

    event: Event
    unit: Unit
    p: Array
    q: Array


def best(law: Array, trials: Trials) -> Array:
    """The exact law of the best output: P(best ≤ y) = f(P(y' ≤ y)), where f is the generating function of K.

    f(x) = ((1 − (1 − γ)x)^(−η) − 1)/(γ^(−η) − 1), or log(1 − (1 − γ)x)/log γ for η = 0 (Papernot & Steinke 2022,
    Definition 1); its differences are written so that nothing cancels.
    """
    gamma, shape = trials.gamma, trials.shape
    below = gamma + (1 - gamma) * np.cumsum(law[::-1])[::-1]  # 1 − (1 − γ)x, where x leaves this output out
    steps = np.log1p(-(1 - gamma) * law / below)
    if shape == 0:
        return np.asarray(steps / math.log(gamma))
    return np.asarray(below**-shape * np.expm1(-shape * steps) / (gamma**-shape - 1))


def divergence(p: Array, q: Array, order: float) -> float:
    """D_a from its definition, for laws without a mass of 0."""
    logs = np.log(p), np.log(q)
    return float(np.max(logs[0] - logs[1])) if math.isinf(order) else summed(*logs, order)


def hockey_stick(p: Array, q: Array, epsilon: float) -> float:
    """δ(ε) from its definition."""
    return float(np.sum(np.maximum(p - math.exp(epsilon) * q, 0.0)))


def response(epsilon: float, categories: int, answer: int) -> Array:
    masses = np.full(categories, 1.0)
    masses[answer] = math.exp(epsilon)
    return np.asarray(masses / masses.sum())


def cells(edges: Array, mean: float, sigma: float) -> Array:
    """The masses of a normal variable between the edges, precise in both tails."""
    from_left, from_right = np.diff(norm.cdf(edges, mean, sigma)), -np.diff(norm.sf(edges, mean, sigma))
    return np.asarray(np.where(edges[1:] <= mean, from_left, from_right))


def instances() -> Iterator[Instance]:
    """Randomised response with any answer as the best, two answers together, a rounded Gaussian, an (ε, δ) block."""
    for epsilon, k in product((0.2, 1.0, 3.0), (2, 4)):
        for first, second in permutations(range(k), 2):
            one = RandomizedResponse(epsilon, k)
            yield Instance(one, REPLACE, response(epsilon, k, first), response(epsilon, k, second))
    p = np.outer(response(0.7, 2, 0), response(0.4, 2, 0)).reshape(-1)
    q = np.outer(response(0.7, 2, 1), response(0.4, 2, 1)).reshape(-1)
    for order in permutations(range(4)):
        two = Composed((RandomizedResponse(0.7), RandomizedResponse(0.4)))
        yield Instance(two, REPLACE, p[list(order)], q[list(order)])
    edges = np.array([-math.inf, *np.linspace(-5.0, 6.0, 56), math.inf])
    for sigma in (1.0, 4.0):
        p, q = (cells(edges * sigma, mean, sigma) for mean in (0.0, 1.0))
        for place in (np.arange(57), np.arange(57)[::-1], np.argsort(np.abs(np.arange(57) - 30)), np.argsort(q % 1e-3)):
            yield Instance(Gaussian(sigma), ADD, p[place], q[place])
    outside = 0.01
    inside = (1 - outside) * response(0.5, 2, 0)
    p, q = np.array([outside, *inside, 0.0]), np.array([0.0, *inside[::-1], outside])
    for order in permutations(range(4)):
        yield Instance(Approximate(0.5, outside), ADD, p[list(order)], q[list(order)])


def price(event: Event, unit: Unit, orders: tuple[float, ...]) -> Array:
    return np.array(renyi.total(canonical(event).parts, unit, orders).values)


@pytest.mark.parametrize("trials", LAWS, ids=str)
def test_exact_output_laws_are_never_above_the_price(trials: Trials) -> None:
    """Catches any lost term of the theorem: E[K], 1 + η, log(1/γ), a wrong sign; Rényi, pure ε and δ alike."""
    forgotten = 0
    for one in instances():
        event, p, q = Selected(one.event, trials), best(one.p, trials), best(one.q, trials)
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        for epsilon in (0.0, 0.3, 1.0, 3.0):
            allowed = accounting.delta(event, epsilon, unit=one.unit).upper
            assert max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) <= allowed + 1e-12
        if isinstance(one.event, Approximate):
            continue  # infinite at every order, and the curve holds outside of a failure
        curve, once = price(event, one.unit, ORDERS), price(one.event, one.unit, ORDERS)
        for a, value, single in zip(ORDERS, curve, once, strict=True):
            exact = max(divergence(p, q, a), divergence(q, p, a))
            assert exact <= value * (1 + 1e-9) + 1e-10
            forgotten += exact > single * (1 + 1e-6)
    assert forgotten > 20  # the price of one run would not have done


@pytest.mark.parametrize("shape", [-0.5, 0.0, 1.0, 3.0])
def test_the_pure_price_is_attained(shape: float) -> None:
    """Catches a price of (1 + η)ε, or 2ε whatever the shape: here the loss is within 1 % of (2 + η)ε.

    A rare output, e^ε times as likely on the first data set, has only one above it, e^ε times as likely on the other.
    """
    epsilon, top, rare, trials = 0.5, 0.1, 1e-7, Trials(1e-5, shape)
    p = np.array([0.0, rare * math.exp(epsilon), top * math.exp(-epsilon)])
    q = np.array([0.0, rare, top])
    p[0], q[0] = 1 - p.sum(), 1 - q.sum()
    assert abs(math.log(p[0] / q[0])) <= epsilon
    selected = Selected(Pure(epsilon), trials)
    found = divergence(best(p, trials), best(q, trials), math.inf)
    allowed = accounting.upper(selected, 0.0)
    assert allowed == (2 + shape) * epsilon
    assert 0.99 * allowed <= found <= allowed


def test_the_best_of_a_fixed_number_is_another_matter() -> None:
    """Shows why no event has a fixed number of runs: ten of them cost 10ε, and a random number of mean ten 3ε or 2ε."""
    epsilon, runs = 0.5, 10
    p, q = response(epsilon, 2, 0), response(epsilon, 2, 1)  # all ten runs gave the worse answer
    assert math.log(p[0] ** runs / q[0] ** runs) == pytest.approx(runs * epsilon)
    for shape in (0.0, 1.0):
        trials = Trials.with_mean(runs, shape)
        allowed = accounting.upper(Selected(Pure(epsilon), trials), 0.0)
        assert divergence(best(p, trials), best(q, trials), math.inf) <= allowed <= 3 * epsilon * (1 + 1e-12)
    with pytest.raises(InvalidInput, match="trials"):
        Selected(Pure(epsilon), runs)  # type: ignore[arg-type]


@pytest.mark.parametrize("trials", LAWS, ids=str)
def test_the_law_is_its_definition(trials: Trials) -> None:
    """Catches a wrong mean or normaliser: chances from the definition are summed one by one."""
    log, shape = math.log(trials.gamma), trials.shape
    scale = 1 / -log if shape == 0 else 1 / math.expm1(-shape * log)
    # η/1 · (η + 1)/2 · …; for η = 0 the first factor, 0, is left out: its limit is in the normaliser
    chances, chance = [], scale * (1 - trials.gamma) * (1 if shape == 0 else shape)
    for k in range(1, 20_000):
        chances.append(chance)
        chance *= (1 - trials.gamma) * (k + shape) / (k + 1)
    ks = np.arange(1, 20_000)
    assert math.fsum(chances) == pytest.approx(1.0, rel=1e-9)
    assert math.fsum(ks * chances) == pytest.approx(trials.mean, rel=1e-9)
    assert [trials.chance(k) for k in (1, 2, 3, 10, 100)] == pytest.approx([chances[k - 1] for k in (1, 2, 3, 10, 100)])
    middle = trials.quantile(0.5)
    assert math.fsum(chances[:middle]) >= 0.5 > math.fsum(chances[: middle - 1])
    again = Trials.with_mean(trials.mean, shape)
    assert again.gamma == pytest.approx(trials.gamma, rel=1e-9)
    assert again.mean <= trials.mean


@pytest.mark.parametrize("mean", [1 + 1e-9, 1.5, 10.0, 1e6])
def test_shapes_near_zero_are_continuous(mean: float) -> None:
    """Catches a formula that breaks down next to the logarithmic law, or at the ends of the means."""
    found = [Trials.with_mean(mean, shape).gamma for shape in (-1e-9, -1e-300, 0.0, 1e-300, 1e-9)]
    assert found == pytest.approx([found[2]] * 5, rel=1e-6)
    assert Trials.with_mean(mean).mean == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("noise", [1e-3, 0.3, 1.0, 10.0, 1e5])
def test_the_best_second_order(noise: float) -> None:
    """Catches a search over λ̂ that ends at its grid: for zCDP the least is 2√(ρ·log(1/γ)) − ρ, or log(1/γ) at λ̂ = 1."""
    rho = 1 / (2 * noise * noise)
    for trials in LAWS:
        log = -math.log(trials.gamma)
        least = 2 * math.sqrt(rho * log) - rho if log > rho else log
        for order in (1.5, 6.0, 100.0):
            lowest = max(order, 1 + math.sqrt(math.log(trials.mean) / rho))  # D_a rises, and so may its bound
            exact = rho * lowest + (1 + trials.shape) * least + math.log(trials.mean) / (lowest - 1)
            found = price(Selected(Gaussian(noise), trials), ADD, (order,))[0]
            assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-3)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0])
def test_another_accountant_agrees(shape: float) -> None:
    """dp-accounting has the same theorem, for shapes from 0 on: the same curve of one run gives the same of all."""
    theirs = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    orders = tuple(1 + x / 10 for x in range(1, 200)) + tuple(float(a) for a in range(22, 400))
    once = price(RUN, ADD, orders)
    expected = theirs._compute_rdp_repeat_and_select(orders, once, 10.0, shape)
    found = price(Selected(RUN, Trials.with_mean(10.0, shape)), ADD, orders)
    assert found == pytest.approx(np.asarray(expected), rel=1e-3)


def test_prices_move_the_right_way() -> None:
    """Catches a price that ignores mean or shape, falls below that of one run, or jumps next to a single run."""
    once = accounting.epsilon(RUN, 1e-5, accountant=Accountant.RENYI).epsilon.upper
    means = [1 + 1e-6, 2.0, 10.0, 100.0]
    found = [accounting.upper(Selected(RUN, Trials.with_mean(mean)), 1e-5) for mean in means]
    assert found == sorted(found)
    assert once <= found[0] <= once * 1.001
    assert found[2] < 2 * once
    shapes = [accounting.upper(Selected(RUN, Trials.with_mean(10.0, shape)), 1e-5) for shape in (-0.5, 0.0, 1.0, 4.0)]
    assert shapes == sorted(shapes)
    assert accounting.upper(Selected(Composed(()), Trials(0.1)), 0.0) == 0


def test_front_door() -> None:
    """Catches a price by an accountant without a theorem, lost assumptions, and an ε and a δ that disagree."""
    selected = Selected(RUN, Trials.with_mean(10.0))
    guarantee = accounting.epsilon(selected, 1e-5)
    assert guarantee.accountant == "renyi"
    assert guarantee.epsilon.lower == 0
    assert guarantee.assumptions == (
        "the number of runs, and every run but the best, stay hidden",
        "continuous (floating-point) noise",
    )
    epsilon = guarantee.epsilon.upper
    assert accounting.upper(selected, 1e-5) == epsilon
    assert accounting.delta(selected, epsilon).upper == pytest.approx(1e-5, rel=1e-6)
    profile = accounting.Profile(selected)
    assert profile.delta(epsilon) == pytest.approx(1e-5, rel=1e-6)
    assert profile.tail(epsilon + 1) < 1e-5
    answers = {rung.accountant for rung in accounting.ladder(selected, 1e-5) if rung.guarantee is not None}
    assert answers == {Accountant.RENYI}


def test_composition() -> None:
    """Catches counts or parts that a selection loses when it stands beside others, in another, or twice."""
    selected = Selected(RUN, Trials.with_mean(10.0))
    one, (two,) = canonical(selected), canonical(Composed((selected, Repeated(selected, 2)))).parts
    assert one.parts == (CountedEvent(selected, None, 1),)
    assert two == CountedEvent(selected, None, 3)
    orders = (2.0, 9.0)
    both = price(Composed((selected, Gaussian(3.0))), ADD, orders)
    assert both == pytest.approx(price(selected, ADD, orders) + price(Gaussian(3.0), ADD, orders), rel=1e-12)
    twice = Selected(selected, Trials.with_mean(2.0))
    assert accounting.upper(twice, 1e-5) > accounting.upper(selected, 1e-5)
    assert Event.from_json(twice.to_json()) == twice
    hidden = Selected(Composed((Gaussian(1.0), NonPrivate("an accuracy as it is"))), Trials(0.5))
    assert accounting.epsilon(hidden, 1e-5).epsilon.upper == math.inf
    assert accounting.upper(Selected(Gaussian(0.0), Trials(0.5)), 1e-5) == math.inf


def test_blocks_fail_as_often_as_they_are_tried() -> None:
    """Catches a δ inside the runs that is counted once: with ten runs on average it counts ten times."""
    trials = Trials.with_mean(10.0, 1.0)
    found = renyi.total(canonical(Selected(Approximate(0.1, 1e-6), trials)).parts, ADD, (2.0,))
    assert found.delta == pytest.approx(1e-5, rel=1e-6)
    assert accounting.upper(Selected(Approximate(0.1, 1e-6), trials), 9e-6) == math.inf
    assert accounting.upper(Selected(Approximate(0.1, 1e-6), trials), 1.1e-5) < 1


def test_other_units() -> None:
    """Catches neighbours or records that stop at the door of a selection."""
    plain = Selected(Gaussian(4.0), Trials(0.1))
    assert accounting.upper(plain, 1e-5, unit=REPLACE) == accounting.upper(Selected(Gaussian(2.0), Trials(0.1)), 1e-5)
    two = Unit(records=2)
    assert accounting.upper(plain, 1e-5, unit=two) == accounting.upper(Selected(Gaussian(2.0), Trials(0.1)), 1e-5)
    sampled = Selected(RUN, Trials(0.1))
    one, both = accounting.upper(sampled, 1e-5), accounting.upper(sampled, 1e-5, unit=two)
    assert 2 * one < both < math.inf
    few = Selected(Repeated(Sampled(Gaussian(9.0), by=Poisson(0.9)), 3), Trials(0.1))
    every = Selected(Repeated(Gaussian(9.0 / 20), 3), Trials(0.1))
    assert accounting.upper(few, 1e-5, unit=Unit(records=20)) == pytest.approx(accounting.upper(every, 1e-5))
    block = Selected(Pure(1.0, Neighbours.REPLACE), Trials(0.1))
    assert accounting.upper(block, 0.0, unit=REPLACE) == 2.0
    assert accounting.delta(sampled, both, unit=two).upper <= 1.02e-5


def test_refusals() -> None:
    """Catches a selection that is priced although one of its runs has no Rényi curve for the unit."""
    for event, unit, words in (
        (Selected(RUN, Trials(0.1)), REPLACE, "Gaussian sampled by Poisson has none"),
        (Selected(Sampled(Gaussian(1.0), by=WithReplacement(2, 9)), Trials(0.1)), REPLACE, "WithReplacement has none"),
        (Selected(Pure(1.0, Neighbours.REPLACE), Trials(0.1)), ADD, "Pure has none"),
        (Sampled(Selected(Gaussian(1.0), Trials(0.1)), by=Poisson(0.1)), ADD, "no theorem"),
    ):
        with pytest.raises(NotProven, match=words):
            accounting.epsilon(event, 1e-5, unit=unit)
    for bad in (-1.0, -2.0, math.nan, math.inf, "1", None):
        with pytest.raises(InvalidInput, match="shape"):
            Trials(0.5, bad)  # type: ignore[arg-type]
    for bad in (0.0, 1.0, -0.1, 1e-320, math.nan, True):
        with pytest.raises(InvalidInput, match="gamma"):
            Trials(bad)
    for mean, shape in ((1.0, 0.0), (0.0, 0.0), (math.inf, 0.0), (10.0, -0.9999)):
        with pytest.raises(InvalidInput, match="mean"):
            Trials.with_mean(mean, shape)


def test_calibration() -> None:
    """Catches a search that does not see through a selection: the answer fits, and 0.1 % less noise does not."""
    trials = Trials.with_mean(10.0)

    def event(noise: float) -> Event:
        return Selected(Composed((Repeated(Sampled(Gaussian(noise), by=Poisson(0.1)), 100), Gaussian(50.0))), trials)

    noise = accounting.least(event, epsilon=2.0, delta=1e-5)
    assert accounting.upper(event(noise), 1e-5) <= 2.0 < accounting.upper(event(noise * 0.999), 1e-5)


def test_a_budget_takes_a_selection(tmp_path: Path) -> None:
    """Catches a ledger that cannot store, price or scale a selection, or takes one for the price of its run."""
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("clinic", epsilon=3.0, delta=1e-5)
    event = Selected(Gaussian(12.0), Trials.with_mean(10.0))
    charge = ledger.reserve("clinic", event)
    charge.draw()
    charge.commit()
    entry = ledger.entry(charge.id)
    assert entry.form is Form.CURVE
    assert entry.event == event
    assert ledger.verify("clinic")
    assert ledger.budget("clinic").epsilon_left < 3.0 - accounting.upper(Gaussian(12.0), 1e-5)
    with pytest.raises(BudgetExceeded, match="noise_multiplier"):
        ledger.reserve("clinic", Selected(Gaussian(1.0), Trials.with_mean(10.0)))
    assert noisier(event, 2.0) == Selected(Gaussian(24.0), event.trials)
    assert parameter_of(event) == ("noise_multiplier", 12.0)


def test_laplace_runs_need_no_delta() -> None:
    """Catches an order ∞ that is lost inside a selection, or that takes (2 + η)ε where the law allows for less."""
    run = Composed((Repeated(Laplace(8.0), 3), Pure(0.125)))
    assert accounting.upper(Selected(run, Trials(1e-9, 1.0)), 0.0) == 1.5
    assert 1.0 < accounting.upper(Selected(run, Trials(0.1, 1.0)), 0.0) < 1.5
    nearly_one = Trials(0.99, 1.0)
    assert accounting.upper(Selected(run, nearly_one), 0.0) == pytest.approx(0.5 - 2 * math.log(0.99))
