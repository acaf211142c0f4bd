"""What is released has the law that is charged for. Seeded; each test fails by chance once in a million seeds."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from privet.core.bounded import Bounded
from privet.core.errors import BudgetExceeded, InvalidInput
from privet.core.random import SeededRng
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
    Norm,
    Partitions,
    Peeling,
    PermuteAndFlip,
    Quantile,
    Reach,
    ReportNoisyMax,
    RunningSums,
    SmoothMedian,
    SparseVector,
    ThresholdedCounts,
    TopK,
    VectorSum,
    tree,
)
from privet.mechanisms.partitions import keeping
from privet.mechanisms.selection import random_order
from tests.mechanisms.examples import REPLACE
from tests.mechanisms.laws import (
    above_threshold_law,
    exponential_law,
    gaussian_mass,
    laplace_mass,
    noisy_max_law,
    permute_and_flip_law,
)

RARE = 1e-6


def follows(drawn: list[Any], law: dict[Any, float]) -> bool:
    """Pearson's test of what was drawn against a law, with everything rare in one cell."""
    counts, size = Counter(drawn), len(drawn)
    common = {key: chance * size for key, chance in law.items() if chance * size >= 6}
    observed = [counts.get(key, 0) for key in common]
    expected = list(common.values())
    rest = size - sum(expected)
    if rest > 1:
        observed.append(size - sum(observed))
        expected.append(rest)
    elif size - sum(observed) > 12:
        return False
    scaled = np.array(expected) * (sum(observed) / sum(expected))
    return len(expected) < 2 or bool(stats.chisquare(observed, scaled).pvalue > RARE)


def released(mechanism: Any, query: Bounded[Any], draws: int, seed: int) -> list[Any]:
    rng = SeededRng(seed)
    return [mechanism.release(query, rng=rng).value for _ in range(draws)]


WIDE = np.arange(-400, 401)
MANY = Reach(l0=1, linf=1.0, dimension=6000, whole=True)
REPLACED = Reach(REPLACE, l0=1, linf=1.0, dimension=6000, whole=True)
ADDITIVE: list[tuple[Any, Callable[[Any], Any], float]] = [
    (LaplaceMechanism.for_epsilon(0.8, MANY), lambda m: laplace_mass(m.scale, WIDE - 7), 1.0),
    (LaplaceMechanism.for_epsilon(0.8, REPLACED), lambda m: laplace_mass(2 * m.scale, WIDE - 14), 0.5),
    (DiscreteLaplaceMechanism.for_epsilon(0.8, MANY), lambda m: laplace_mass(m.scale, WIDE - 7), 1.0),
    (DiscreteGaussianMechanism.for_epsilon(0.8, 1e-3, MANY), lambda m: gaussian_mass(m.sigma, WIDE - 7), 1.0),
    (GaussianMechanism.for_epsilon(0.8, 1e-3, MANY), lambda m: gaussian_mass(m.sigma, WIDE - 7), 1.0),
    (GaussianMechanism.for_epsilon(0.8, 1e-3, REPLACED), lambda m: gaussian_mass(2 * m.sigma, WIDE - 14), 0.5),
    (Binomial.for_epsilon(0.8, 1e-3, MANY), lambda m: binom(m.coins, WIDE - 7 + m.coins // 2), 1.0),
]


def binom(coins: int, x: Any) -> Any:
    return stats.binom.pmf(x, coins, 0.5)


@pytest.mark.parametrize(("mechanism", "law", "step"), ADDITIVE, ids=lambda value: type(value).__name__)
def test_noise_has_its_law(mechanism: Any, law: Any, step: float) -> None:
    """Catches a scale that is halved or in the wrong unit on its way to the sampler, and an answer that is lost."""
    chances = dict(zip((WIDE * step).tolist(), law(mechanism), strict=True))
    value = mechanism.release(mechanism.reach.of(np.full(6000, 7)), rng=SeededRng(1)).value
    assert value.shape == (6000,)
    assert follows([float(x) for x in value], chances)


def test_noise_on_a_sum_has_its_law() -> None:
    """The same on a fine grid, by the distribution function; the answer is the clamped sum. A halved scale fails."""
    of = BoundedSum(0, 100)
    mechanism, query = LaplaceMechanism.for_epsilon(1.0, of), of([10.25, 500, -3, 7])
    drawn = np.array(released(mechanism, query, 800, 2))
    assert not (drawn % mechanism.grid.step).any()
    assert stats.kstest(drawn + mechanism.grid.step / 2, stats.laplace(117.25, mechanism.scale).cdf).pvalue > RARE
    assert stats.kstest(drawn, stats.laplace(117.25, mechanism.scale / 2).cdf).pvalue < RARE


def test_coordinates_have_noise_of_their_own() -> None:
    """Catches one draw that is added to every coordinate: differences of two would then have no noise."""
    of = Histogram(Cells(0, 3, 3))
    drawn = np.array(released(DiscreteLaplaceMechanism.for_epsilon(0.5, of), of([0, 1, 1]), 1000, 3))
    correlations = np.corrcoef(drawn.T)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 5 / math.sqrt(1000)
    assert np.abs(drawn.mean(0) - [1, 2, 0]).max() < 5 * 2 * math.sqrt(2) / math.sqrt(1000)


SCORES = (5, 3, 3, 0)
CHOICES: list[tuple[Any, Callable[[float], Any]]] = [
    (ExponentialMechanism, lambda rate: exponential_law(SCORES, rate)),
    (PermuteAndFlip, lambda rate: permute_and_flip_law(SCORES, rate)),
    (ReportNoisyMax, lambda rate: noisy_max_law(SCORES, 1 / rate)),
]


@pytest.mark.parametrize(("kind", "law"), CHOICES, ids=lambda value: getattr(value, "__name__", "law"))
@pytest.mark.parametrize("one_way", [False, True], ids=["any", "monotone"])
def test_choices_have_their_law(kind: Any, law: Any, one_way: bool) -> None:
    """Catches a rate without its 2, ties that fall to the wrong one, and an order that favours some places."""
    reach = Reach(linf=1.0, dimension=4, whole=True, monotone=one_way)
    mechanism = kind.for_epsilon(0.9, reach)
    drawn = released(mechanism, reach.of(np.array(SCORES)), 1500, 4)
    rate = 0.9 if one_way else 0.45
    assert follows(drawn, dict(enumerate(law(rate))))
    assert not follows(drawn, dict(enumerate(law(2 * rate))))


def test_orders_are_equally_likely() -> None:
    """Catches a shuffle that is not one: all 24 orders of four."""
    rng = SeededRng(5)
    drawn = [tuple(random_order(4, rng).tolist()) for _ in range(3000)]
    assert follows(drawn, dict.fromkeys(itertools.permutations(range(4)), 1 / 24))


def test_the_best_few_have_their_law() -> None:
    """Catches a second choice that forgets the first, or that starts from it again."""
    reach = Reach(linf=1.0, dimension=3, whole=True)
    law = {}
    for first, second in itertools.permutations(range(3), 2):
        scores = (4, 2, 1)
        left = [i for i in range(3) if i != first]
        law[first, second] = (
            exponential_law(scores, 0.25)[first] * exponential_law([scores[i] for i in left], 0.25)[left.index(second)]
        )
    drawn = released(TopK.for_epsilon(1.0, reach, k=2), reach.of(np.array([4, 2, 1])), 1500, 6)
    assert follows(drawn, law)


def test_quantiles_have_their_law() -> None:
    """Catches ranks that are off by one: the score of a cell is the number of rows between it and the quantile."""
    of = Histogram(Cells(0, 5, 5))
    rows = [0.5, 1.5, 1.6, 1.7, 4.5, 4.6]
    for share, gaps in ((0.5, [2, 0, 1, 1, 1]), (0.25, [0.5, 0, 2.5, 2.5, 2.5])):
        mechanism = Quantile.for_epsilon(1.0, of, share)
        law = exponential_law([-gap for gap in gaps], 1.0 / (2 * max(share, 1 - share)))
        drawn = released(mechanism, of(rows), 1500, 7)
        assert follows(drawn, dict(zip([0.5, 1.5, 2.5, 3.5, 4.5], law, strict=True)))


def test_first_yes_has_its_law() -> None:
    """Catches a threshold without noise, answers whose noise is shared, and one noise for both."""
    reach = Reach(linf=1.0, dimension=3, whole=True)
    mechanism = SparseVector.for_epsilon(2.0, reach, threshold=4)
    scale, noise = (float(value) for value in mechanism.scales)
    assert [scale, noise] == pytest.approx([1.0, 2.0])
    drawn = [
        answers.index(True) if True in answers else 3
        for answers in released(mechanism, reach.of(np.array([2, 5, 3])), 1500, 8)
    ]
    assert follows(drawn, dict(enumerate(above_threshold_law((2, 5, 3), 4, scale, noise))))


def test_questions_one_by_one_are_one_draw() -> None:
    """Catches a session that answers more often than was paid for, or whose answers are charged one by one."""
    plan = SparseVector.for_epsilon(50.0, Count(), threshold=10, answers=2)
    session = plan.start(rng=SeededRng(9))
    answers = [session.ask(Count()([True] * n)) for n in (1, 30, 2, 40)]
    assert [answer.value for answer in answers] == [False, True, False, True]
    assert len({answer.draws for answer in answers}) == 1
    with pytest.raises(BudgetExceeded, match="2 times"):
        session.ask(Count()([True]))
    with pytest.raises(InvalidInput, match="may move by"):
        plan.start(rng=SeededRng(9)).ask(BoundedSum(0, 5)([1]))


def test_smooth_medians_have_their_law() -> None:
    """Catches noise that is scaled by the local sensitivity, or twice by ε: cells 0 to 7, clamped at both ends."""
    of = Histogram(Cells(0, 8, 8, missing=0.0), REPLACE)
    mechanism = SmoothMedian(2.0, 0.1, of)
    data = [1.5, 3.5, 3.6, 6.5, 7.5]
    internal = mechanism.sensitivities(of(data))
    assert (internal.largest, internal.local) == (7.0, 3.0)
    assert 3.0 <= internal.smooth <= 7.0
    assert "3.0" not in repr(internal)
    mass = laplace_mass(internal.smooth, WIDE - 3)
    law = {cell + 0.5: float(mass[cell == WIDE].sum()) for cell in range(1, 7)}
    law |= {0.5: float(mass[WIDE <= 0].sum()), 7.5: float(mass[WIDE >= 7].sum())}
    assert follows(released(mechanism, of(data), 1500, 10), law)


def test_keys_are_kept_as_often_as_stated() -> None:
    """Catches a comparison that is off by one, and a key that nobody has."""
    keys = Keys()
    mechanism = Partitions.for_epsilon(1.0, 0.05, keys)
    rows = [name for name, count in (("a", 1), ("b", 3), ("c", 5)) for _ in range(count)]
    drawn = released(mechanism, keys(rows), 1500, 11)
    chances = keeping(mechanism.epsilon, mechanism.delta)
    for name, count in (("a", 1), ("b", 3), ("c", 5)):
        kept = sum(name in found for found in drawn)
        assert stats.binomtest(kept, 1500, chances[min(count, len(chances) - 1)] / 2**64).pvalue > RARE
    assert all(tuple(sorted(found)) == found and set(found) <= set("abc") for found in drawn)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_thresholded_counts_have_their_law(kind: str) -> None:
    """Catches a threshold on the true count, and a count without noise."""
    keys = Keys()
    mechanism = getattr(ThresholdedCounts, kind)(1.0, 0.05, keys)
    drawn = [found.get("a", 0) for found in released(mechanism, keys(["a"] * 5), 1500, 12)]
    noise = mechanism.noise
    mass = laplace_mass(noise.scale, WIDE - 5) if kind == "laplace" else gaussian_mass(noise.sigma, WIDE - 5)
    law = {int(x): float(p) for x, p in zip(WIDE, mass, strict=True) if x >= mechanism.threshold}
    assert follows(drawn, law | {0: float(mass[mechanism.threshold > WIDE].sum())})


def test_running_sums_without_noise_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a partial sum that is lost, counted twice or not carried; and each step is in as many as are paid for."""
    parts = Counter[int]()

    def silent(sigma: float, size: None, rng: Any) -> int:
        return 0

    monkeypatch.setattr(tree, "discrete_gaussian", silent)
    for steps in (1, 2, 3, 7, 8, 13):
        of = Histogram(Cells(0, steps, steps))
        plan = RunningSums(3.0, of)
        rows = [i + 0.5 for i in range(steps) for _ in range(i + 1)]
        assert plan.release(of(rows), rng=SeededRng(1)).value.tolist() == np.cumsum(range(1, steps + 1)).tolist()
        for moved in range(steps):
            parts[moved] = touched(plan, moved)
            assert parts[moved] <= plan.levels
        assert max(parts[moved] for moved in range(steps)) == plan.levels


def touched(plan: RunningSums, moved: int) -> int:
    """How many noisy partial sums change when one step does."""
    seen = []
    for value in (0, 1):
        session = plan.start(rng=SeededRng(1))
        nodes = []
        for time in range(plan.reach.dimension):
            session._next(value if time == moved else 0)
            level = (session.time & -session.time).bit_length() - 1
            nodes.append(session._exact[level])
        seen.append(nodes)
    return sum(one != other for one, other in zip(*seen, strict=True))


def test_running_sums_have_the_noise_that_is_paid_for() -> None:
    """The variance of the sum after t steps is σ² for each one in t's binary digits. False alarm below 1e-6."""
    of = Histogram(Cells(0, 7, 7))
    plan = RunningSums(5.0, of)
    drawn = np.array(released(plan, of([0.5, 3.5]), 800, 13))
    ones = np.array([t.bit_count() for t in range(1, 8)])
    ratio = drawn.var(0) / (25 * ones)
    assert np.abs(ratio - 1).max() < 5.2 * math.sqrt(2 / 800)
    assert np.abs(drawn.mean(0) - [1, 1, 1, 2, 2, 2, 2]).max() < 5.2 * 5 * math.sqrt(3 / 800)


def test_running_sums_step_by_step() -> None:
    """Catches a stream that differs from the vector, and one step more than was planned."""
    of = Histogram(Cells(0, 3, 3))
    plan = RunningSums(2.0, of)
    session = plan.start(rng=SeededRng(14))
    sums = [session.add(Count()([True] * n)) for n in (1, 0, 2)]
    together = plan.release(of([0.5, 2.5, 2.5]), rng=SeededRng(14))
    assert [each.value for each in sums] == together.value.tolist()
    assert len({each.draws for each in sums}) == 1
    with pytest.raises(InvalidInput, match="one more than the 3"):
        session.add(Count()([]))


def test_peeling_chooses_by_size_and_adds_fresh_noise() -> None:
    """The law of the choice is that of noisy max over sizes, and the number's noise is Laplace noise of its own."""
    of = VectorSum(3, 1.0, Norm.LINF)
    mechanism = Peeling(1.0, of.reach, 1)
    query = of([[1.0, -1.0, 0.0]] * 2 + [[0.0, -1.0, 0.5]])
    drawn = np.array(released(mechanism, query, 1500, 15))
    places = np.abs(drawn).argmax(1)
    kept = drawn[np.arange(len(drawn)), places]
    steps = [round(size / mechanism.grid.step) for size in (2, 3, 0.5)]
    law = noisy_max_law(steps, 2 / mechanism.grid.step)
    assert follows(places[kept != 0].tolist(), dict(enumerate(law)))
    second = kept[(places == 1) & (kept != 0)]
    assert stats.kstest(second, stats.laplace(-3, 1).cdf).pvalue > RARE
    assert (np.count_nonzero(drawn, axis=1) <= 1).all()
