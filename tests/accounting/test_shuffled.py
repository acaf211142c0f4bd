"""Shuffled reports: the price against exact laws of what is seen, published numbers, and what no price may do."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import reduce
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
import pytest
from scipy.stats import binom

from privet import accounting
from privet.accounting import Accountant
from privet.accounting.laws import crowd, crowd_below
from privet.accounting.laws.law import law_delta, law_epsilon
from privet.accounting.shuffling import blanket_epsilon, clones_closed_form, clones_epsilon
from privet.core.errors import InvalidInput, NotProven
from privet.core.event import (
    Approximate,
    Composed,
    Event,
    Gaussian,
    NonPrivate,
    Poisson,
    Pure,
    RandomizedResponse,
    Repeated,
    Sampled,
    Shuffled,
)
from privet.core.unit import Neighbours, Trust, Unit, Whose
from privet.ledger.scaling import noisier, parameter_of

SHUFFLED = Unit(Whose.USER, Neighbours.REPLACE, Trust.SHUFFLED)
GRID = (0.0, 0.2, 0.5, 1.5)
Law = dict[tuple[int, ...], float]
Channel = list[list[float]]
"""For each answer the chance of each report."""


def response(epsilon: float, k: int) -> Channel:
    total = math.exp(epsilon) + k - 1
    return [[(math.exp(epsilon) if report == answer else 1.0) / total for report in range(k)] for answer in range(k)]


def counted(rows: list[list[float]]) -> Law:
    """The exact law of how often each report is seen, one independent row for each sender."""
    size = len(rows[0])

    def sent(so_far: Law, row: list[float]) -> Law:
        found: defaultdict[tuple[int, ...], float] = defaultdict(float)
        for counts, chance in so_far.items():
            for report in range(size):
                after = tuple(n + (i == report) for i, n in enumerate(counts))
                found[after] += chance * row[report]
        return dict(found)

    return reduce(sent, rows, {(0,) * size: 1.0})


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    return math.fsum(max(0.0, chance - math.exp(epsilon) * q.get(seen, 0.0)) for seen, chance in p.items())


def neighbours(channel: Channel, reports: int) -> Iterator[tuple[Law, Law]]:
    """The laws for two answers of one sender, for all answers of the others."""
    for others in combinations_with_replacement(range(len(channel)), reports - 1):
        rows = [channel[answer] for answer in others]
        laws = [counted([*rows, row]) for row in channel]
        for first, second in product(range(len(channel)), repeat=2):
            if first != second:
                yield laws[first], laws[second]


def exact(channel: Channel, reports: int, epsilon: float) -> float:
    return max(hockey_stick(p, q, epsilon) for p, q in neighbours(channel, reports))


CHANNELS: dict[str, tuple[float, Channel, Event]] = {
    "coin": (1.0, response(1.0, 2), RandomizedResponse(1.0)),
    "strong coin": (2.0, response(2.0, 2), RandomizedResponse(2.0)),
    "three answers": (1.0, response(1.0, 3), RandomizedResponse(1.0, 3)),
    "four answers": (2.0, response(2.0, 4), RandomizedResponse(2.0, 4)),
    # no randomised response, and ratios of e^1 at most: a rare report that one answer makes likelier
    "rare report": (1.0, [[0.9, 0.1], [1 - 0.1 / math.e, 0.1 / math.e]], Pure(1.0, Neighbours.REPLACE)),
    # two answers share a report that a third seldom makes: clones of binary randomised response cannot stand for it
    "shared report": (
        1.0,
        [
            [0.1 * math.e, 0.1, 0.14 * math.e, 0.9 - 0.24 * math.e],
            [0.1, 0.1 * math.e, 0.14 * math.e, 0.9 - 0.24 * math.e],
            [0.1, 0.1, 0.14, 0.66],
        ],
        Pure(1.0, Neighbours.REPLACE),
    ),
}


def test_the_channels_are_what_they_say() -> None:
    """Fails when an example is no randomiser of its ε₀, which would make the next test say nothing."""
    for epsilon, channel, _event in CHANNELS.values():
        columns = list(zip(*channel, strict=True))
        assert all(sum(row) == pytest.approx(1.0) for row in channel)
        worst = max(math.log(max(column) / min(column)) for column in columns)
        assert 0.95 * epsilon <= worst <= epsilon + 1e-9


@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("reports", [2, 6])
def test_what_is_seen_is_never_above_the_price(name: str, reports: int) -> None:
    """Catches one clone too many, e^ε₀ for e^ε₀ + 1, K − 1 for K: the exact δ(ε) of counts, for all data of others."""
    _, channel, event = CHANNELS[name]
    for epsilon in GRID:
        found = accounting.delta(Shuffled(event, reports), epsilon, unit=SHUFFLED)
        truth = exact(channel, reports, epsilon)
        assert truth <= found.upper * (1 + 1e-9) + 1e-15
        assert found.lower <= truth * (1 + 1e-9) + 1e-15


@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 2), (2.0, 2), (1.0, 3), (2.0, 8)])
def test_the_law_is_the_blanket(epsilon: float, k: int) -> None:
    """Catches a law that is needlessly loose or too good: E[(Z₁ + … + Z_n)₊]/n, summed from its definition."""
    reports, p = 40, math.exp(epsilon)
    chances = np.array([1.0, 1.0, k - 2.0, p - 1.0]) / (p + k - 1)
    logs = [math.lgamma(n + 1) for n in range(reports + 1)]
    for found in (0.02, 0.1, 0.3, 0.8):
        e, total = math.exp(found), 0.0
        for one, two in product(range(reports + 1), repeat=2):
            for rest in range(reports + 1 - one - two if k > 2 else 1):
                value = (p - e) * one + (1 - p * e) * two + (1 - e) * rest
                if one + two <= reports and value > 0:
                    left = reports - one - two - rest
                    ways = logs[reports] - logs[one] - logs[two] - logs[rest] - logs[left]
                    powers = sum(n * math.log(c) for n, c in zip((one, two, rest, left), chances, strict=True) if n)
                    total += value * math.exp(ways + powers) / reports
        assert total <= law_delta(crowd(epsilon, k, reports, 1e-20), found, 1) <= total * 1.01 + 1e-12


def test_merged_rows_stay_above_the_blanket() -> None:
    """Catches rows merged the wrong way, here five numbers of reports and seven of answers at a time: the same sum."""
    epsilon, k, reports = 1.0, 20, 1500
    p = math.exp(epsilon)
    size = np.arange(reports + 1)[:, None, None]
    size = size[binom.pmf(size, reports, k / (p + k - 1)) > 1e-20][:, None, None]
    one, two = np.arange(140)[None, :, None], np.arange(140)[None, None, :]
    chance = binom.pmf(size, reports, k / (p + k - 1)) * binom.pmf(one, size, 1 / k)
    chance = chance * binom.pmf(two, size - one, 1 / (k - 1))
    for found in (0.01, 0.02, 0.04):
        e = math.exp(found)
        total = float((chance * np.maximum((p - 1) * (one - e * two) - (e - 1) * size, 0.0)).sum()) / reports
        assert total <= law_delta(crowd(epsilon, k, reports, 1e-20), found, 1) <= total * 1.05


def test_published_numbers() -> None:
    """Catches a wrong constant in the bounds of Feldman, McMillan & Talwar 2021: their code's numbers at δ = 1e-6.

    Their numeric interval for n = 10⁵ and ε₀ = 4 is [0.16754, 0.17279], and their closed form 0.5378.
    """
    assert 0.16754 <= clones_epsilon(4.0, 10**5, 1e-6) <= 0.17279
    assert clones_closed_form(4.0, 10**5, 1e-6) == pytest.approx(0.5378, abs=5e-5)
    numeric = {10**4: (0.0204, 0.0530, 0.1551, 0.6009), 10**5: (0.00581, 0.01528, 0.04503, 0.16977)}
    coins = {10**4: (0.0181, 0.0432, 0.1144, 0.4108), 10**5: (0.00515, 0.01243, 0.03319, 0.11815)}
    closed = {10**4: (0.1047, 0.2333, 0.5236, 4.0), 10**5: (0.0319, 0.0753, 0.1906, 0.5378)}
    for reports, at in product(numeric, range(4)):
        epsilon = (0.5, 1.0, 2.0, 4.0)[at]
        assert clones_epsilon(epsilon, reports, 1e-6) == pytest.approx(numeric[reports][at], rel=3e-3)
        assert clones_closed_form(epsilon, reports, 1e-6) == pytest.approx(closed[reports][at], rel=2e-3)
        price = accounting.upper(Shuffled(Pure(epsilon, Neighbours.REPLACE), reports), 1e-6, unit=SHUFFLED)
        assert price == pytest.approx(coins[reports][at], rel=2e-3)


@pytest.mark.parametrize("reports", [2, 300, 10**5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_price_is_below_every_published_bound(epsilon: float, reports: int) -> None:
    """Catches a bound that is not valid, or a price that lost its theorem: numeric ≤ blanket, clones ≤ closed form."""
    for delta in (1e-4, 1e-9):
        price = accounting.upper(Shuffled(Pure(epsilon, Neighbours.REPLACE), reports), delta, unit=SHUFFLED)
        clones = clones_epsilon(epsilon, reports, delta)
        assert price <= clones * (1 + 1e-9) <= clones_closed_form(epsilon, reports, delta) * (1 + 2e-9) <= epsilon * 1.1
        assert price <= blanket_epsilon(epsilon, reports, delta) * (1 + 1e-9)
        several = accounting.upper(Shuffled(RandomizedResponse(epsilon, 20), reports), delta, unit=SHUFFLED)
        assert several <= min(price * 1.001, blanket_epsilon(epsilon, reports, delta, categories=20) * 1.001)


def test_more_reports_hide_more_and_a_larger_epsilon_less() -> None:
    """Catches n and ε₀ the wrong way round, and merged rows that break the order by more than they may (0.5 %)."""
    for k in (2, 10):
        by_reports = [law_epsilon(crowd(1.0, k, n, 1e-20), 1e-6, 1) for n in (1, 2, 5, 30, 300, 301, 10**4, 10**8)]
        assert all(more <= fewer * 1.005 for fewer, more in pairwise(by_reports))
        assert by_reports[0] > 20 * by_reports[-2] > 50 * by_reports[-1]
        by_epsilon = [law_epsilon(crowd(e, k, 1000, 1e-20), 1e-6, 1) for e in (0.01, 0.5, 1.0, 2.0, 4.0, 29.0, 31.0)]
        assert all(small <= large * 1.005 for small, large in pairwise(by_epsilon))


def test_without_a_crowd_each_report_still_has_its_own_price() -> None:
    """Catches a price above ε₀, or below it where nobody hides anybody: no δ, one report, an ε₀ that is too large."""
    for event, delta in (
        (Shuffled(RandomizedResponse(1.0), 10**6), 0.0),
        (Shuffled(RandomizedResponse(1.0), 1), 1e-9),
        (Shuffled(Pure(1.0, Neighbours.REPLACE), 1), 1e-9),
    ):
        assert accounting.epsilon(event, delta, unit=SHUFFLED).epsilon.upper == pytest.approx(1.0, abs=1e-8)
        assert accounting.upper(event, delta, unit=SHUFFLED) <= 1.0
    assert accounting.upper(Shuffled(RandomizedResponse(35.0), 10**6), 1e-9, unit=SHUFFLED) == pytest.approx(35.0)


@pytest.mark.parametrize("epsilon", [1e-11, 1e-13, 1e-17, 1e-300, 5e-324])
@pytest.mark.parametrize("reports", [1, 2, 1000])
def test_an_epsilon_of_next_to_nothing(epsilon: float, reports: int) -> None:
    """Catches a division by 0 where e^ε₀ rounds to 1, and a price above ε₀."""
    for event in (Shuffled(RandomizedResponse(epsilon), reports), Shuffled(RandomizedResponse(epsilon, 5), reports)):
        for delta in (0.0, 1e-9):
            found = accounting.epsilon(event, delta, unit=SHUFFLED).epsilon
            assert 0 <= found.lower <= found.upper <= epsilon
    for bound in (blanket_epsilon, clones_epsilon, clones_closed_form):
        assert 0 <= bound(epsilon, reports, 1e-9) <= epsilon


@pytest.mark.parametrize("accountant", [Accountant.PLD, Accountant.RENYI, Accountant.ADVANCED, Accountant.BASIC])
def test_two_batches_cost_what_their_exact_product_says(accountant: Accountant) -> None:
    """Catches a count that is lost between a batch and its accountant: the exact δ of two batches, same data."""
    event = Repeated(Shuffled(RandomizedResponse(1.0), 5), 2)
    pairs = list(neighbours(response(1.0, 2), 5))
    for delta in (0.1, 0.01):
        epsilon = accounting.epsilon(event, delta, unit=SHUFFLED, accountant=accountant).epsilon.upper
        for p, q in pairs:
            both = [{(*a, *b): x * y for (a, x), (b, y) in product(law.items(), repeat=2)} for law in (p, q)]
            assert hockey_stick(both[0], both[1], epsilon) <= delta * (1 + 1e-9)
    once = accounting.upper(Shuffled(RandomizedResponse(1.0), 5), 0.01, unit=SHUFFLED)
    assert accounting.epsilon(event, 0.01, unit=SHUFFLED, accountant=accountant).epsilon.upper > 1.2 * once
    large = Shuffled(RandomizedResponse(1.0), 10**4)
    assert accounting.epsilon(large, 1e-6, unit=SHUFFLED, accountant=accountant).epsilon.upper < 0.05


def test_the_lower_end_is_a_real_pair() -> None:
    """Catches a lower end above the truth, or one that says nothing: 30 reports, the others all alike."""
    for k in (2, 3, 7):
        channel = response(1.0, k)
        merged = [[channel[answer][0], 1 - channel[answer][0]] for answer in (0, 1, k - 1)]
        laws = [counted([merged[2]] * 29 + [merged[answer]]) for answer in (0, 1)]
        below = crowd_below(1.0, k, 30)
        assert below is not None
        for epsilon in (0.05, 0.2):
            for law, (p, q) in zip(below, (laws, laws[::-1]), strict=True):
                truth = hockey_stick(p, q, epsilon)
                assert truth * (1 - 1e-6) <= law_delta(law, epsilon, -1) <= truth * (1 + 1e-9)
    found = accounting.epsilon(Shuffled(RandomizedResponse(1.0), 10**4), 1e-6, unit=SHUFFLED).epsilon
    assert 0.8 * found.upper < found.lower <= found.upper


def test_a_report_of_several_answers_is_priced_by_their_sum() -> None:
    """Catches a report priced by one of its answers; binary coins of ½ each are a block of 1."""
    several = Composed((RandomizedResponse(0.5, 4), Repeated(Pure(0.25, Neighbours.REPLACE), 2)))
    block = Shuffled(Pure(1.0, Neighbours.REPLACE), 1000)
    assert accounting.upper(Shuffled(several, 1000), 1e-6, unit=SHUFFLED) == pytest.approx(
        accounting.upper(block, 1e-6, unit=SHUFFLED)
    )


def test_several_reports_of_one_person() -> None:
    """Catches group privacy that is forgotten: three reports of one person, and never above three times ε₀."""
    three = Unit(Whose.USER, Neighbours.REPLACE, Trust.SHUFFLED, records=3)
    event = Shuffled(RandomizedResponse(1.0), 1000)
    one = accounting.epsilon(event, 1e-6, unit=SHUFFLED).epsilon
    assert 2 * one.upper < accounting.upper(event, 1e-6, unit=three) <= 3.0
    assert accounting.upper(Shuffled(RandomizedResponse(1.0), 1), 1e-6, unit=three) == pytest.approx(3.0, rel=1e-3)


@pytest.mark.parametrize(
    "event",
    [
        Shuffled(Gaussian(1.0), 100),
        Shuffled(Approximate(1.0, 1e-6, Neighbours.REPLACE), 100),
        Shuffled(Sampled(Pure(1.0), by=Poisson(0.5)), 100),
        Shuffled(Composed(()), 100),
        Shuffled(Shuffled(RandomizedResponse(1.0), 10), 100),
        Sampled(Shuffled(RandomizedResponse(1.0), 10), by=Poisson(0.5)),
        Gaussian(1.0),
    ],
    ids=str,
)
def test_what_is_not_proven_is_refused(event: Event) -> None:
    """Catches amplification of something that is no ε₀-DP report, and a curator's noise under shuffled trust."""
    with pytest.raises(NotProven):
        accounting.epsilon(event, 1e-6, unit=SHUFFLED)


def test_trust_and_neighbours() -> None:
    """Catches a crowd that counts where nobody is trusted, or for neighbours that have no report."""
    event = Shuffled(RandomizedResponse(1.0), 1000)
    with pytest.raises(NotProven, match="local trust"):
        accounting.epsilon(event, 1e-6, unit=Unit(Whose.USER, Neighbours.REPLACE, Trust.LOCAL))
    with pytest.raises(NotProven, match="add/remove"):
        accounting.epsilon(event, 1e-6, unit=Unit(Whose.USER, Neighbours.ADD_REMOVE, Trust.SHUFFLED))
    alone = accounting.epsilon(RandomizedResponse(1.0), 1e-6, unit=SHUFFLED)
    assert alone.epsilon.upper == pytest.approx(1.0, abs=1e-4)
    assert math.isinf(accounting.upper(Shuffled(NonPrivate("the answer itself"), 1000), 1e-6, unit=SHUFFLED))


def test_the_assumptions_are_stated() -> None:
    """Catches a guarantee that does not say on whom it rests: how many honest reports, the servers, cryptography."""
    event = Composed((Shuffled(RandomizedResponse(1.0), 1000), Shuffled(RandomizedResponse(0.5), 1200)))
    said = accounting.epsilon(event, 1e-6, unit=SHUFFLED).assumptions
    assert "computational" in said
    assert any("1,000 reports" in words and "honest" in words for words in said)
    assert any("do not all collude" in words for words in said)
    central = accounting.epsilon(event, 1e-6, unit=Unit(neighbours=Neighbours.REPLACE)).assumptions
    assert "computational" not in central


def test_the_record() -> None:
    """Catches an event that does not survive JSON, takes no crowd at all, or cannot be made noisier."""
    event = Shuffled(RandomizedResponse(1.0, 4), 1000)
    assert Event.from_json(event.to_json()) == event
    assert noisier(event, 2.0) == Shuffled(RandomizedResponse(0.5, 4), 1000)
    assert parameter_of(event) == ("epsilon", 1.0)
    with pytest.raises(InvalidInput, match="reports"):
        Shuffled(RandomizedResponse(1.0), 0)
    with pytest.raises(InvalidInput, match="event"):
        Shuffled("a report", 10)  # type: ignore[arg-type]


def test_the_literature_is_asked_for_sense() -> None:
    """Catches a published bound that answers to no reports, a δ of 1 or a negative ε₀, or amplifies at δ = 0."""
    for bound in (clones_epsilon, clones_closed_form, blanket_epsilon):
        assert bound(1.0, 10**6, 0.0) == 1.0
        assert bound(1.0, 1, 1e-6) == pytest.approx(1.0, rel=1e-5)
        assert bound(0.0, 100, 1e-6) == 0.0
        for bad in ((-1.0, 10, 1e-6), (1.0, 0, 1e-6), (1.0, 10, 1.0)):
            with pytest.raises(InvalidInput):
                bound(*bad)
