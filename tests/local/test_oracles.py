"""Frequency oracles: what they draw is ε-DP, and what they estimate is right, by exact enumeration."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from privet.accounting import epsilon as priced
from privet.core.errors import InvalidInput
from privet.core.event import Pure
from privet.core.random import SeededRng
from privet.core.unit import Trust
from privet.local import (
    ORACLES,
    FrequencyOracle,
    GeneralizedRandomizedResponse,
    HadamardResponse,
    LocalHashing,
    OptimizedUnary,
    PureOracle,
    Rappor,
    SymmetricUnary,
    best_oracle,
    collect_reports,
)
from privet.mechanisms.coins import cost, growth, threshold
from privet.mechanisms.randomized_response import RandomizedResponseMechanism as OneResponse
from tests.local.branches import largest_odds
from tests.local.laws import as_reports, law_of

SMALL_RAPPOR = {"bits": 3, "hashes": 1, "cohorts": 2, "p": 0.25, "q": 0.75}


def made(name: str, domain: int, epsilon: float) -> FrequencyOracle:
    return Rappor(domain, epsilon, **SMALL_RAPPOR) if name == "rappor" else ORACLES[name](domain, epsilon)  # type: ignore[arg-type]


PURE = [name for name, kind in ORACLES.items() if issubclass(kind, PureOracle)]
SIZES = {"rappor": (2,), "local-hashing": (2, 3, 7)}


def cases(names: list[str]) -> list[Any]:
    dear = {"local-hashing": 2.0}  # at 3 it has 23 bins, and 23³ reports to go through
    return [(name, d, e) for name in names for d in SIZES.get(name, (2, 3, 5)) for e in (0.1, 1.0, dear.get(name, 3.0))]


@pytest.mark.parametrize(("name", "domain", "epsilon"), cases(list(ORACLES)))
def test_no_report_is_worth_more_than_epsilon(
    name: str, domain: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when any report is more than e^ε times as likely for one value as for another, by however little; and, but
    for RAPPOR, whose single report is worth less, when ε is not reached."""
    oracle = made(name, domain, epsilon)
    laws = [law_of(oracle, value, monkeypatch) for value in range(domain)]
    assert all(sum(law.values()) == 1 for law in laws)
    odds = largest_odds(laws)
    assert odds <= growth(epsilon)
    if isinstance(oracle, Rappor):
        assert cost(odds) <= oracle.once.epsilon < epsilon
    else:
        assert math.log(odds) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(("name", "domain", "epsilon"), cases(PURE))
def test_estimates_are_unbiased_and_vary_as_stated(
    name: str, domain: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when an estimator divides by the wrong thing, or the variance formula is another law's: both are summed
    over all reports."""
    oracle = made(name, domain, epsilon)
    assert isinstance(oracle, PureOracle)
    for value in range(domain):
        law = law_of(oracle, value, monkeypatch)
        weights = np.array([float(each) for each in law.values()])
        found = np.array([oracle.estimate(oracle.aggregate(as_reports(oracle, each))).estimate for each in law])
        truth = np.eye(domain)[value]
        mean = weights @ found
        scale = np.sqrt(oracle.variance(0.0)) + 1
        assert mean == pytest.approx(truth, abs=1e-9 * scale)
        spread = weights @ (found - truth) ** 2
        assert spread == pytest.approx([oracle.variance(float(share)) for share in truth], rel=1e-6)


@pytest.mark.parametrize("shares", [(1.0, 0.0), (0.3, 0.7)])
def test_rappor_is_unbiased_and_varies_as_stated(shares: tuple[float, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the least squares, the cohorts' weights or the variance of bits in one report are wrong."""
    oracle = made("rappor", 2, 3.0)
    mean, square = np.zeros(2), np.zeros(2)
    for value, share in enumerate(shares):
        for each, weight in law_of(oracle, value, monkeypatch).items():
            found = oracle.estimate(oracle.aggregate(as_reports(oracle, each))).estimate
            mean += share * float(weight) * found
            square += share * float(weight) * (found - np.eye(2)[value]) ** 2
    assert mean == pytest.approx(shares, abs=1e-9)
    assert isinstance(oracle, Rappor)
    # The formula's moment is about the true shares of all; the sum above is about each sender's own value.
    assert oracle._variance(np.array(shares)) == pytest.approx(square, rel=1e-9)


@pytest.mark.parametrize("domain", [2, 10, 100])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_randomized_response_has_the_textbook_error(domain: int, epsilon: float, share: float) -> None:
    """Fails when the variance of K-ary randomised response is not [h·e^ε(K-1) + (1-h)(K-2+e^ε)]/(e^ε-1)²."""
    e = math.exp(epsilon)
    book = (share * e * (domain - 1) + (1 - share) * (domain - 2 + e)) / (e - 1) ** 2
    assert GeneralizedRandomizedResponse(domain, epsilon).variance(share) == pytest.approx(book, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "responses", "optimal", "symmetric", "hadamard"),
    [
        (0.5, (3.918, 22.93, 236.8, 2432.0), 15.671, 15.917, 16.671),
        (1.0, (0.921, 3.630, 34.11, 347.1), 3.6827, 3.9177, 4.6827),
        (2.0, (0.181, 0.377, 2.582, 25.22), 0.7241, 0.9207, 1.7241),
        (4.0, (0.019, 0.022, 0.053, 0.375), 0.0760, 0.1810, 1.0760),
    ],
)
def test_variances_are_the_published_ones(
    epsilon: float, responses: tuple[float, ...], optimal: float, symmetric: float, hadamard: float
) -> None:
    """Fails when an oracle has other probabilities than in its paper, such as a keep that draws from all K answers."""
    for domain, expected in zip((2, 10, 100, 1024), responses, strict=True):
        assert GeneralizedRandomizedResponse(domain, epsilon).variance(0.0) == pytest.approx(
            expected, rel=1e-3, abs=6e-4
        )
    assert OptimizedUnary(1024, epsilon).variance(0.0) == pytest.approx(optimal, rel=1e-3)
    assert SymmetricUnary(1024, epsilon).variance(0.0) == pytest.approx(symmetric, rel=1e-3)
    assert HadamardResponse(1024, epsilon).variance(0.0) == pytest.approx(hadamard, rel=1e-3)
    assert optimal * 0.999 <= LocalHashing(1024, epsilon).variance(0.0) <= 1.03 * optimal


def test_rappor_costs_what_its_paper_says() -> None:
    """Fails when the lifetime ε forgets that two values differ in 2h bits, or the single report's ε a factor."""
    paper = Rappor(100, 4 * math.log(3))
    assert float(paper.flip) == pytest.approx(0.5, rel=1e-9)
    assert paper.once.epsilon == pytest.approx(1.0743, abs=5e-5)
    assert paper.event == Pure(4 * math.log(3), paper.unit.neighbours)


@pytest.mark.parametrize("name", ORACLES)
def test_the_drawn_law_is_the_exact_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the real generator's reports have another law than the branches; χ², one false alarm in 10^6 and the
    seed is fixed."""
    domain = 2 if name == "rappor" else 5
    oracle = made(name, domain, 1.2)
    drawn = oracle.randomize(np.full(100_000, domain - 1), SeededRng(11))
    seen = Counter(tuple(row) for row in drawn.tolist()) if drawn.ndim == 2 else Counter(drawn.tolist())
    law = law_of(oracle, domain - 1, monkeypatch)
    assert set(seen) <= set(law)
    expected = np.array([float(weight) * len(drawn) for weight in law.values()])
    counts = np.array([seen[outcome] for outcome in law])
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(1e-6, len(law) - 1)


@pytest.mark.parametrize("name", ORACLES)
def test_many_reports_give_the_shares_and_their_intervals(name: str) -> None:
    """Fails when a tally mixes up values, or intervals do not cover; 40 values, each within 4.5 deviations (a false
    alarm in 3,600 runs) and at least 33 of 40 intervals of 95 % (in 2,000), and the seed is fixed."""
    oracle = Rappor(40, 4.0) if name == "rappor" else ORACLES[name](40, 2.0)
    truth = np.arange(1, 41) / np.arange(1, 41).sum()
    values = np.repeat(np.arange(40), np.round(truth * 60_000).astype(int))
    truth = np.bincount(values) / values.size
    found = oracle.estimate(collect_reports(oracle, values, SeededRng(21), at_once=7_000))
    assert np.abs(found.estimate - truth).max() < 4.5 * np.sqrt(found.variance(truth).max())
    low, high = found.interval(0.95)
    assert ((low <= truth) & (truth <= high)).sum() >= 33
    assert found.consistent().sum() == pytest.approx(1.0)
    assert found.consistent().min() >= 0


@pytest.mark.parametrize("name", ORACLES)
def test_tallies_merge_and_stay_small(name: str) -> None:
    """Fails when the parts of a stream do not add up to the whole, or a tally grows with the reports."""
    oracle = made(name, 2, 1.0)
    reports = oracle.randomize([0, 1] * 500, SeededRng(1))
    whole = oracle.aggregate(reports)
    parts = oracle.aggregate(reports[:300]) + oracle.aggregate(reports[300:], oracle.empty())
    assert (parts.reports, parts.counts.tolist()) == (1000, whole.counts.tolist())
    assert whole.counts.size == oracle.slots == oracle.empty().counts.size
    with pytest.raises(InvalidInput, match="another oracle"):
        oracle.empty() + made(name, 2, 2.0).empty()
    with pytest.raises(InvalidInput, match="no reports"):
        oracle.estimate(oracle.empty())


@pytest.mark.parametrize("name", ORACLES)
def test_what_cannot_be_is_refused(name: str) -> None:
    """Fails when an answer outside of the domain, or a report that nobody can send, is taken; answers are not shown."""
    oracle = made(name, 2, 1.0)
    for bad in ([7], [-1], [0.5], ["yes"], [[0]]):
        with pytest.raises(InvalidInput, match="values") as refused:
            oracle.randomize(bad, SeededRng(1))
        assert "7" not in str(refused.value)
    for bad in ([10**6], [-1], [0.5], [[0, 0, 0]]):
        with pytest.raises(InvalidInput, match="reports"):
            oracle.aggregate(np.array(bad))
    wide = np.full((1, 2 if name == "rappor" else 1), 2**63, dtype=np.uint64)
    with pytest.raises(InvalidInput, match="reports"):
        oracle.aggregate(wide)


@pytest.mark.parametrize("name", ORACLES)
def test_a_release_is_priced_at_epsilon_under_local_trust(name: str) -> None:
    """Fails when an accountant does not know what a report is, or prices it for a trusted collector."""
    oracle = made(name, 2, 1.0)
    release = oracle.release([0, 1], rng=SeededRng(1))
    assert release.unit.trust is Trust.LOCAL
    assert priced(release.event, 0.0, unit=release.unit).epsilon.upper == pytest.approx(1.0)
    assert release.tainted


def test_the_best_oracle_changes_with_the_domain() -> None:
    """Fails when the choice ignores the domain, ε, or the length of a report."""
    assert isinstance(best_oracle(2, 1.0), GeneralizedRandomizedResponse)
    assert isinstance(best_oracle(1024, 1.0), LocalHashing)
    assert isinstance(best_oracle(100, 4.0), GeneralizedRandomizedResponse)
    for domain in (2, 9, 12, 40, 3000):
        for epsilon in (0.3, 1.0, 2.5):
            best = best_oracle(domain, epsilon)
            rivals = (GeneralizedRandomizedResponse(domain, epsilon), OptimizedUnary(domain, epsilon))
            assert best.variance(0.0) <= 1.05 * min(rival.variance(0.0) for rival in rivals)
    assert isinstance(best_oracle(3_000_000, 1.0), HadamardResponse | LocalHashing)


class _Halved(GeneralizedRandomizedResponse):
    @property
    def response(self) -> OneResponse:
        return OneResponse(2 * self.epsilon, self.domain)


class _WithoutTheHalf(SymmetricUnary):
    @property
    def limits(self) -> tuple[int, int]:
        own = threshold(growth(self.epsilon))
        return own, 2**64 - own


class _OneMore(OneResponse):
    @property
    def threshold(self) -> int:
        return OneResponse(self.epsilon, self.categories).threshold + 1


class _RoundedUp(GeneralizedRandomizedResponse):
    @property
    def response(self) -> OneResponse:
        return _OneMore(self.epsilon, self.domain)


@pytest.mark.parametrize("mistake", [_Halved, _WithoutTheHalf, _RoundedUp])
def test_a_planted_mistake_is_seen(mistake: type[PureOracle], monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the enumeration could not see half the noise, a forgotten half, or one unit in 2^64 too much."""
    oracle = mistake(3, 1.0)
    assert largest_odds(law_of(oracle, value, monkeypatch) for value in range(3)) > growth(1.0)


def test_collisions_are_exactly_one_in_g() -> None:
    """Fails when two values share more or fewer hashes than 1/g of them, which would bias every share."""
    oracle = LocalHashing(9, 1.0)
    hashes = np.arange(oracle.hashes)
    for first in range(9):
        for second in range(first):
            same = oracle._hashed(hashes, np.full(hashes.size, first)) == oracle._hashed(
                hashes, np.full(hashes.size, second)
            )
            assert Fraction(int(same.sum()), oracle.hashes) == oracle.other
