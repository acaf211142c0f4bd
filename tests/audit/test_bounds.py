"""Counting, one run and many: published numbers, exact laws, and refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, norm

from privet.accounting import price
from privet.attacks import at_least, at_most
from privet.audit import (
    audit_draws,
    epsilon_of,
    gaussian_steps,
    guess_membership,
    many_runs,
    mu_of,
    noise_at_most,
    one_run,
    one_run_p_value,
)
from privet.audit.canary_observations import CanaryObservations, plan_guesses
from privet.core.errors import InvalidInput
from privet.core.event import Event, Gaussian, Poisson, Repeated
from privet.core.guarantee import Guarantee, Interval
from privet.core.unit import Unit


@pytest.mark.parametrize(
    ("trials", "error", "cap"),
    [(500, 0.05, 4.906), (500, 0.01, 4.542), (1000, 0.05, 5.601), (5000, 0.05, 7.212), (10000, 0.05, 7.905)],
)
def test_a_perfect_attack_proves_no_more_than_its_trials_allow(trials: int, error: float, cap: float) -> None:
    """Fails when the error is shared out otherwise than half to each world, or the limits are not Clopper and
    Pearson's: the caps are those of Jagielski et al. 2020 and were computed independently."""
    assert epsilon_of(trials, trials, 0, trials, delta=0.0, error=error) == pytest.approx(cap, abs=5e-4)


@pytest.mark.parametrize("trials", [1, 7, 40])
def test_limits_are_exact(trials: int) -> None:
    """Fails when a limit is wrong for any count: at the limit, so extreme a count must have probability `error`."""
    for hits in range(trials + 1):
        low, high = at_least(hits, trials, 0.03), at_most(hits, trials, 0.03)
        assert low <= hits / trials <= high
        if hits:
            assert binom.sf(hits - 1, trials, low) == pytest.approx(0.03)
        if hits < trials:
            assert binom.cdf(hits, trials, high) == pytest.approx(0.03)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (1.0, 0.01), (2.0, 0.1)])
def test_an_epsilon_is_never_above_that_of_the_worst_mechanism(epsilon: float, delta: float) -> None:
    """Fails when the bound exceeds the truth with more than the stated probability. All outcomes of 12 trials in each
    world are enumerated for the mechanism that (ε, δ) allows most to (Kairouz et al. 2015), with the best test of it,
    so that there is no false alarm by chance."""
    trials, error = 12, 0.1
    share = (1 - delta) / (1 + math.exp(epsilon))
    alarm, hit = share, 1 - share
    wrong = sum(
        binom.pmf(hits, trials, hit) * binom.pmf(alarms, trials, alarm)
        for hits, alarms in product(range(trials + 1), repeat=2)
        if epsilon_of(hits, trials, alarms, trials, delta=delta, error=error) > epsilon + 1e-12
    )
    assert wrong <= error


@pytest.mark.parametrize(
    ("canaries", "guesses", "right", "delta", "found"),
    [(1000, 1000, 731, 1e-5, 0.8803), (1000, 100, 100, 1e-5, 3.4654), (1000, 100, 100, 0.0, 3.493)],
)
def test_one_run_has_the_published_numbers(canaries: int, guesses: int, right: int, delta: float, found: float) -> None:
    """Fails when the p-value of Steinke et al. 2023 lacks the term of δ, its factor 2m, or its best i."""
    assert one_run(canaries, guesses, right, delta=delta).epsilon == pytest.approx(found, abs=1e-3)


def test_one_run_of_randomized_response_is_exact() -> None:
    """Fails when the number of right guesses is held against another law than its own: for randomised response of every
    coin it is binomial, and the chance of a bound above ε is at most the stated error, summed over all outcomes."""
    canaries, epsilon, error = 60, 1.0, 0.05
    chance = 1 / (1 + math.exp(-epsilon))
    bounds = [one_run(canaries, canaries, right, confidence=1 - error).epsilon for right in range(canaries + 1)]
    wrong = sum(binom.pmf(right, canaries, chance) for right, bound in enumerate(bounds) if bound > epsilon + 1e-9)
    assert 0 < wrong <= error
    assert bounds[canaries // 2] == 0
    assert one_run_p_value(10, 10, 0, 5.0, 1e-3) == 1


def test_one_run_pays_for_delta() -> None:
    """Fails when δ is forgotten: a run that shows all coins with probability p, and else nothing, is (0, p)-private
    and guesses every one of them right with probability p or more, so that the p-value at δ = p must be at least p."""
    for canaries, share in ((20, 0.01), (100, 0.001), (5, 0.2)):
        assert one_run_p_value(canaries, canaries, canaries, 0.0, share) >= share


def test_gaussian_limits_agree_with_the_trade_off_of_normals() -> None:
    """Fails when μ is read off the wrong side: for exact rates of two normals, many trials come
    close to μ from below."""
    for mu in (0.3, 1.0, 2.5):
        alarm, hit, trials = float(norm.sf(mu / 2)), float(norm.cdf(mu / 2)), 10**7
        found = mu_of(round(hit * trials), trials, round(alarm * trials), trials, error=0.05)
        assert mu - 0.01 < found < mu
    assert mu_of(0, 10, 10, 10, error=0.05) == 0


def test_steps_say_what_they_assume_and_cannot_refute() -> None:
    """Fails when evidence that presumes Gaussian steps may refute a guarantee, or is above what that noise costs."""
    drawn = np.random.default_rng(3)
    present, absent = drawn.normal(1, 1.1, 20000), drawn.normal(0, 1.1, 20000)
    found = gaussian_steps(present, absent, steps=1000, sampling=Poisson(0.01), delta=1e-5, threshold=0.5)
    from privet.accounting import epsilon
    from privet.core.event import Gaussian, Repeated, Sampled

    true = epsilon(Repeated(Sampled(Gaussian(1.1), Poisson(0.01)), 1000), 1e-5)
    assert 0.7 * true.epsilon.upper < found.epsilon < true.epsilon.upper
    assert found.assumptions
    claimed = epsilon(Repeated(Sampled(Gaussian(5.0), Poisson(0.01)), 1000), 1e-5)
    assert isinstance(claimed, Guarantee)
    assert found.epsilon > claimed.epsilon.upper
    assert not found.refutes(claimed)
    assert noise_at_most([0.0] * 50, [0.0] * 50) == math.inf


def test_guesses_are_fixed_beforehand() -> None:
    """Fails when the highest are not said to be in, the lowest out, or more is guessed than was said."""
    scores, inside = np.arange(10.0), np.arange(10) >= 5
    assert guess_membership(scores, inside, guesses=4) == (4, 4)
    assert guess_membership(scores, ~inside, guesses=4) == (4, 0)
    assert guess_membership(scores, inside, guesses=3) == (3, 3)


def observed(coins: int) -> CanaryObservations:
    """Four steps of Gaussian noise, with a canary in all of them or in none."""
    drawn = np.random.default_rng(coins)
    inside = drawn.random(400) < 0.5
    took_part = np.tile(inside, (4, 1))
    seen = (took_part + drawn.normal(0, 2.0, took_part.shape)).astype(np.float32)
    return CanaryObservations(seen, took_part, inside, 2.0, 1.0, lambda noise: Repeated(Gaussian(noise), 4), Unit())


def test_the_number_of_guesses_follows_from_the_plan_alone() -> None:
    """Fails when the number of guesses is chosen by what the coins or the scores were, such as the number that finds
    most. Of 3 runs of one plan, and as many with coins that have nothing to do with it, each must make the guesses of
    the plan; that the best number in hindsight is another for some of them shows that it would be seen (it is the same
    seeds each time, so that there is no false alarm)."""
    asked = plan_guesses(400, 4, 2.0, 1.0, delta=1e-5)
    hindsight = set()
    for coins in range(3):
        run = observed(coins)
        permuted = replace(run, inside=np.random.default_rng(99 + coins).permutation(run.inside))
        for each in (run, permuted):
            found = {
                number: one_run(400, *guess_membership(each.scores, each.inside, guesses=number), delta=1e-5).epsilon
                for number in (4, 8, 20, 40, 80, 160, 280, 400)
            }
            assert each.by_coins(delta=1e-5).epsilon == found[asked]
            if max(found.values()) > found[asked]:
                hindsight.add(max(found, key=lambda number: found[number]))
    assert len(hindsight) > 1
    surer = plan_guesses(400, 4, 2.0, 1.0, delta=1e-5, confidence=0.9975)
    wanted = one_run(400, *guess_membership(run.scores, run.inside, guesses=surer), delta=1e-5, confidence=0.9975)
    assert run.by_coins(delta=1e-5, confidence=0.9975) == replace(wanted, attack="gradient canaries, one run")
    assert surer > asked  # being surer takes more of them


def test_steps_are_priced_at_the_lower_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when what a run costs at least is read off the upper end of its price, which is only what it costs at
    most."""

    def wide(event: Event, delta: float, *, unit: Unit | None = None) -> Guarantee:
        return Guarantee(Interval(0.25, 9.0), delta, unit or Unit(), "wide")

    monkeypatch.setattr(price, "epsilon", wide)
    run = observed(0)
    assert run.by_steps(delta=1e-5).epsilon == 0.25
    present, absent = run.seen[run.took_part], run.seen[~run.took_part]
    assert gaussian_steps(present, absent, steps=4, delta=1e-5, threshold=0.5).epsilon == 0.25


def test_what_cannot_be_counted_is_refused() -> None:
    """Fails when NaN, too few trials, more right guesses than guesses or outputs of different kinds give an ε."""
    with pytest.raises(InvalidInput, match="present hold NaN"):
        many_runs([1.0, math.nan, 2.0, 3.0], [1.0] * 4, unit=Unit())
    with pytest.raises(InvalidInput, match="absent are 3"):
        many_runs([1.0] * 4, [1.0] * 3, unit=Unit())
    with pytest.raises(InvalidInput, match=r"confidence is 1, .* use 0\.95 for 95 %"):
        one_run(10, 5, 5, confidence=1.0)
    with pytest.raises(InvalidInput, match="right is 9 of 8 guesses"):
        one_run(10, 8, 9)
    with pytest.raises(InvalidInput, match="successes is 5 of 4"):
        at_least(5, 4, 0.1)
    with pytest.raises(InvalidInput, match="outputs of another kind"):
        audit_draws(["a"] * 99, [0.5] * 99, unit=Unit())
    with pytest.raises(InvalidInput, match="64 outputs or more"):
        audit_draws([1.0] * 9, [0.5] * 9, unit=Unit())
    with pytest.raises(InvalidInput, match="guesses is 5, of 4 canaries"):
        guess_membership([1.0] * 4, np.array([True] * 4), guesses=5)


@pytest.mark.parametrize("turned", [False, True])
def test_what_delta_allows_is_no_evidence(turned: bool) -> None:
    """Fails when δ is left out of one of the two inequalities: a record that is published outright with probability δ
    would count against ε. A rate that may be δ or less proves nothing, and one above it what is left of it."""
    few = (40, 1000, 0, 1000) if not turned else (1000, 1000, 960, 1000)
    assert epsilon_of(*few, delta=0.06, error=0.05) == 0.0
    assert epsilon_of(*few, delta=0.0, error=0.05) > 1.0
    many = (500, 1000, 0, 1000) if not turned else (1000, 1000, 500, 1000)
    hit, alarm = at_least(500, 1000, 0.025), at_most(0, 1000, 0.025)
    assert epsilon_of(*many, delta=0.1, error=0.05) == pytest.approx(math.log((hit - 0.1) / alarm), rel=1e-9)
