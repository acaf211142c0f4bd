"""Sampled (ε, δ) blocks, against exact enumeration of their atoms; and whom a price trusts."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from mpmath import exp, mp, mpf

from privet.accounting import epsilon
from privet.core.errors import NotProven
from privet.core.event import (
    Approximate,
    Event,
    Gaussian,
    Poisson,
    Pure,
    RandomizedResponse,
    Repeated,
    Sampled,
    WithoutReplacement,
)
from privet.core.unit import Neighbours, Trust, Unit

Atom = tuple[mpf, mpf]


def removed_block(block_epsilon: float, block_delta: float, rate: float) -> list[Atom]:
    """(P, Q) of each answer: randomised response, revealed outright with probability δ, under Poisson sampling."""
    e, d, q = exp(mpf(block_epsilon)), mpf(block_delta), mpf(rate)
    keep, flip = (1 - d) * e / (1 + e), (1 - d) / (1 + e)
    pairs = [(d, mpf(0)), (keep, flip), (flip, keep), (mpf(0), d)]
    return [((1 - q) * b + q * a, b) for a, b in pairs]


def true_delta(atoms: list[Atom], steps: int, at: float) -> mpf:
    """Σ (P − e^ε Q)⁺ over all sequences of answers, grouped by how often each answer occurs."""
    total = mpf(0)
    for counts in product(range(steps + 1), repeat=len(atoms) - 1):
        last = steps - sum(counts)
        if last < 0:
            continue
        every = (*counts, last)
        ways = mp.factorial(steps) / prod(mp.factorial(count) for count in every)
        p = prod((atom[0] ** count for atom, count in zip(atoms, every, strict=True)), start=mpf(1))
        q = prod((atom[1] ** count for atom, count in zip(atoms, every, strict=True)), start=mpf(1))
        total += ways * max(mpf(0), p - exp(mpf(at)) * q)
    return total


@pytest.mark.parametrize("delta", [0.9997849322545356, 0.9999, 0.999999])
@pytest.mark.parametrize("block_delta", [0.6, 0.9])
@pytest.mark.parametrize("block_epsilon", [2.0, 15.0])
def test_upper_is_not_below_the_truth(block_epsilon: float, block_delta: float, delta: float) -> None:
    """Catches the answers that only the other data set can give, whose loss is log(1 − q) after sampling, being rounded
    down with what lies below."""
    event = Repeated(Sampled(Approximate(block_epsilon, block_delta), by=Poisson(0.9)), 6)
    upper = epsilon(event, delta).epsilon.upper
    if upper < float("inf"):
        assert true_delta(removed_block(block_epsilon, block_delta, 0.9), 6, upper) <= mpf(delta) * (1 + mpf(10) ** -12)


LOCAL, SHUFFLED, DISTRIBUTED = (
    Unit(neighbours=Neighbours.REPLACE, trust=trust) for trust in (Trust.LOCAL, Trust.SHUFFLED, Trust.DISTRIBUTED)
)


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(1.0),
        Sampled(RandomizedResponse(4.0), by=WithoutReplacement(1, 100)),
        Repeated(Sampled(Gaussian(1.0), by=Poisson(0.01)), 100),
    ],
    ids=str,
)
@pytest.mark.parametrize("unit", [LOCAL, SHUFFLED], ids=lambda unit: unit.trust.value)
def test_a_curators_noise_is_not_local(event: Event, unit: Unit) -> None:
    """Catches amplification by a sample that the collector sees, and central noise sold as local."""
    with pytest.raises(NotProven, match="trust"):
        epsilon(event, 1e-5, unit=unit)


def test_a_report_is_local() -> None:
    """A report's own randomness costs the same, whoever collects it."""
    for event in (RandomizedResponse(4.0), Repeated(RandomizedResponse(0.5), 8), Pure(4.0, Neighbours.REPLACE)):
        upper = epsilon(event, 0.0, unit=LOCAL).epsilon.upper
        assert upper == pytest.approx(4.0)
    block = epsilon(Approximate(2.0, 1e-6, Neighbours.REPLACE), 1e-6, unit=LOCAL).epsilon.upper
    assert block == pytest.approx(2.0)


def test_distributed_trust_rests_on_cryptography() -> None:
    """Catches a guarantee that hides that it holds against bounded adversaries only."""
    assert "computational" in epsilon(Gaussian(1.0), 1e-5, unit=DISTRIBUTED).assumptions
