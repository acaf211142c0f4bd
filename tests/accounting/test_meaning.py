"""What a guarantee means: limits on attacks and beliefs, against attacks and beliefs that are known exactly."""

from __future__ import annotations

import math

import pytest
from scipy.stats import norm

from privet.accounting.conversions import gdp_to_delta, gdp_to_epsilon
from privet.accounting.meaning import (
    Meaning,
    belief,
    best_true_positive_rate,
    loss_within,
    meaning,
    posterior,
    tail_of,
)
from privet.core.errors import InvalidInput


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_no_attack_beats_the_limit_and_the_best_one_reaches_it(mu: float) -> None:
    """Catches a limit below the likelihood-ratio attack on Gaussian noise, and a limit that is far above it."""
    for rate in (0.001, 0.01, 0.1):
        attack = norm.sf(norm.isf(rate) - mu)
        limit = best_true_positive_rate(lambda epsilon: gdp_to_delta(mu, epsilon), rate)
        assert attack <= limit <= attack * 1.001


def test_pure_epsilon_limits_by_its_factor() -> None:
    """Catches e^ε used as a difference: at small rates the true-positive rate is at most e^ε times the false one."""

    def curve(epsilon: float) -> float:
        return 0.0 if epsilon >= 1.0 else 1.0

    assert best_true_positive_rate(curve, 0.001) == pytest.approx(math.exp(1) * 0.001, rel=0.02)
    assert best_true_positive_rate(curve, 0.001) >= math.exp(1) * 0.001
    assert best_true_positive_rate(lambda _: 1.0, 0.01) == 1.0
    assert best_true_positive_rate(lambda _: 0.0, 0.01) == pytest.approx(0.01)


def test_tail_of_a_bare_pair_covers_a_real_loss() -> None:
    """Catches "the loss exceeds ε with probability at most δ", which is false, as Gaussian noise shows."""
    mu, delta = 1.0, 1e-5
    epsilon = gdp_to_epsilon(mu, delta)
    tail = tail_of(epsilon, delta)

    def truth(loss: float) -> float:
        return float(norm.sf((loss - mu * mu / 2) / mu))

    assert truth(epsilon) > delta  # the folklore
    for extra in (1e-6, 0.01, 0.1, 1.0, 5.0):
        assert truth(epsilon + extra) <= tail(epsilon + extra)
    assert tail(epsilon + math.log(2)) == pytest.approx(2 * delta, rel=1e-9)
    assert tail(epsilon) == 1.0
    assert tail_of(1.0, 0.0)(1.0) == 0.0
    assert tail_of(1.0, 0.0)(0.99) == 1.0


def test_bayes() -> None:
    """Catches odds and probabilities mixed up."""
    assert posterior(0.5, math.log(3)) == pytest.approx(0.75)
    assert posterior(0.01, math.log(99)) == pytest.approx(0.5)
    assert posterior(0.2, 0.0) == pytest.approx(0.2)
    assert posterior(0.2, 1e6) == 1.0
    assert posterior(0.2, -1e6) == 0.0
    assert posterior(0.5, math.inf) == 1.0


def test_belief_from_the_loss_itself() -> None:
    """Catches a belief at the wrong quantile: the loss of Gaussian noise is normal, so its quantiles are known."""
    mu, chance = 1.0, 0.01
    row = belief(0.1, lambda loss: float(norm.sf((loss - mu * mu / 2) / mu)), chance)
    quantile = mu * mu / 2 + mu * norm.isf(chance)
    assert row.posterior == pytest.approx(posterior(0.1, quantile), rel=1e-9)
    assert row.exceeding <= chance
    assert row.exceeding == pytest.approx(chance, rel=1e-6)


def test_belief_from_a_bare_pair() -> None:
    """Catches δ treated as the chance of exceeding ε, and a chance below δ that is promised all the same."""
    row = belief(0.5, tail_of(1.0, 1e-5), 0.001)
    extra = -math.log(1 - 1e-5 / 0.001)
    assert row.posterior == pytest.approx(posterior(0.5, 1.0 + extra), rel=1e-9)
    row = belief(0.5, tail_of(1.0, 0.01), 0.001)
    assert row.exceeding == pytest.approx(0.02, rel=1e-6)
    assert row.posterior == pytest.approx(posterior(0.5, 1.0 + math.log(2)), rel=1e-6)
    assert belief(0.5, tail_of(1.0, 0.0)) == belief(0.5, tail_of(1.0, 0.0), 0.0)
    assert belief(0.5, lambda _: 1.0).posterior == 1.0
    assert loss_within(lambda _: 1.0, 0.5) == math.inf


def test_meaning_is_complete_and_can_be_stored() -> None:
    """Catches a missing row, a sentence that rounds a limit down, and a record without JSON."""
    found = meaning(lambda epsilon: gdp_to_delta(0.5, epsilon), tail_of(gdp_to_epsilon(0.5, 1e-5), 1e-5))
    assert [row.false_positive_rate for row in found.attacks] == [0.001, 0.01, 0.1]
    assert [row.prior for row in found.beliefs] == [0.01, 0.1, 0.5]
    assert len(found.sentences) == 6
    attack = norm.sf(norm.isf(0.001) - 0.5)
    assert "At a 0.1 % false-positive rate" in found.sentences[0]
    assert "true-positive rate of at most 0.48 %." in found.sentences[0]
    assert 0.0047 < attack < 0.0048
    assert Meaning.from_json(found.to_json()) == found
    nothing = meaning(lambda _: 1.0, lambda _: 1.0)
    assert "at most 100 %." in nothing.sentences[0]
    assert "may rise to certainty" in nothing.sentences[3]
    with pytest.raises(InvalidInput, match="chance"):
        belief(0.5, tail_of(1.0, 0.0), 1.0)
