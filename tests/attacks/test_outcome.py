"""The confidence band of an attack's curve, the limit of a guarantee beside it, and who may be compared with whom."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import beta, binom, norm

from privet.accounting import epsilon
from privet.attacks import Outcome, Pool, blind_baseline, limit_of, overlapping_rows
from privet.audit import guess_membership, one_run
from privet.core.errors import InvalidInput
from privet.core.event import Gaussian, Laplace
from privet.core.guarantee import Guarantee, Interval
from privet.core.unit import Unit


@pytest.mark.parametrize("rounded", [False, True])
def test_the_band_holds_at_all_points_at_once(rounded: bool) -> None:
    """Fails when an interval is taken from the wrong end: of 200 bands with an error of 20 % no more may cross the true
    curve than 99.9 % of binomial draws with that chance, and most must be above a curve that is far too low (seeded;
    ties are made by rounding, which lowers the true curve below that of normal numbers)."""
    drawn = np.random.default_rng(0)
    crossed, noticed = 0, 0
    for _ in range(200):
        members, outsiders = drawn.normal(1, 1, 150), drawn.normal(0, 1, 200)
        if rounded:
            members, outsiders = members.round(), outsiders.round()
        band = Outcome("x", members, outsiders).band(0.2)
        crossed += band.above(lambda alarms: float(norm.cdf(1 + norm.ppf(alarms))))
        noticed += band.above(lambda alarms: alarms)
    assert crossed <= binom.ppf(0.999, 200, 0.2)
    assert noticed > 180


def test_the_band_is_made_of_exact_limits() -> None:
    """Fails when ranks are off by one, or the error is not shared among all points and both sides: of 5 outsiders the
    ranks are 1, 2, 4 and 5, and each of the 8 limits has an eighth of the error (Clopper & Pearson by hand)."""
    members, outsiders = np.array([0.5, 2.5, 3.5, 9.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    band = Outcome("x", members, outsiders).band(0.4)
    np.testing.assert_allclose(band.alarms, [beta.ppf(0.95, k, 6 - k) for k in (1, 2, 4, 5)])
    np.testing.assert_allclose(band.hits, [beta.ppf(0.05, c, 5 - c) for c in (1, 1, 3, 3)])
    with pytest.raises(InvalidInput, match="error is 1"):
        Outcome("x", members, outsiders).band(1)


def test_a_limit_that_is_broken_is_seen_and_one_that_holds_is_not() -> None:
    """Fails when the limit is another mechanism's, or the band is so low that it never says anything. The scores are
    those of runs of their own; the false alarm has a chance of 5 % at most and is seeded."""
    drawn = np.random.default_rng(1)
    honest = Outcome("x", drawn.normal(1, 1, 4000), drawn.normal(0, 1, 4000))
    assert not honest.exceeds(Gaussian(1.0))
    assert honest.exceeds(Gaussian(2.0))
    assert not honest.exceeds(epsilon(Gaussian(1.0), 1e-5))
    assert honest.exceeds(epsilon(Laplace(2.0), 0.0))
    assert limit_of(epsilon(Laplace(1.0), 0.0))(0.01) == pytest.approx(np.e / 100)
    assert limit_of(Gaussian(1.0))(0.01) == pytest.approx(norm.cdf(1 + norm.ppf(0.01)), abs=1e-4)


def test_both_ends_of_the_curve_are_looked_at() -> None:
    """Fails when only high scores are: here a tenth of the outsiders is surely known, and no member is."""
    drawn = np.random.default_rng(2)
    outsiders = np.where(np.arange(3000) % 10 == 0, -9.0, drawn.normal(size=3000))
    assert Outcome("x", drawn.normal(size=3000), outsiders).exceeds(epsilon(Laplace(1.0), 0.0))


def test_one_model_is_audited_by_coins() -> None:
    """Fails when `coins` loses who was in, or lets ties tell it. A run that tells everything with a chance of 1/2 is
    (0, 1/2)-private, and this is such a run: its band is above the limit, as it would be in every second run however
    small the error, since members of one run are not independent. The one-run test is right to refute pure privacy,
    and right to say nothing against δ = 1/2."""
    drawn = np.random.default_rng(3)
    inside = drawn.random(1000) < 0.5
    scores = inside + drawn.normal(0, 0.3, 1000)
    told = Outcome("x", scores[inside], scores[~inside])
    assert told.exceeds(lambda alarms: min(1.0, 0.5 + alarms), error=1e-6)
    assert one_run(1000, *guess_membership(*told.coins(), guesses=200), delta=0.5).epsilon == 0
    assert one_run(1000, *guess_membership(*told.coins(), guesses=200)).epsilon > 2
    tied = Outcome("x", np.zeros(500), np.zeros(500))
    assert 60 < guess_membership(*tied.coins(), guesses=200)[1] < 140


AUC_ERROR = 0.025
"""Of each end of the usual interval."""


@pytest.mark.parametrize("shift", [0.0, 2.5])
@pytest.mark.parametrize("sizes", [(4, 4), (12, 4), (20, 5), (200, 50), (1000, 20)])
def test_each_end_of_an_auc_is_wrong_no_more_often_than_stated(sizes: tuple[int, int], shift: float) -> None:
    """Fails when the interval rests on a normal law that few scores do not follow, or has no width where all are told
    apart: DeLong's is too high in 70 % of the draws of 4 and 4 from normals that are 2.5 apart. Of 100 draws no more
    may miss than 99.9 % of binomial ones with the stated chance (0.1 % of false alarms; seeded)."""
    drawn, true = np.random.default_rng(sum(sizes)), float(norm.cdf(shift / np.sqrt(2)))
    found = [Outcome("x", drawn.normal(shift, 1, sizes[0]), drawn.normal(0, 1, sizes[1])).auc() for _ in range(100)]
    most = binom.ppf(0.999, 100, AUC_ERROR)
    assert sum(each.lower > true for each in found) <= most
    assert sum(each.upper < true for each in found) <= most
    assert all(each.lower <= each.value <= each.upper for each in found)
    assert min(each.upper - each.lower for each in found) > 1 / min(sizes)


@pytest.mark.parametrize("true", [0.04, 0.5, 0.96])
@pytest.mark.parametrize("outsiders", [4, 20])
def test_each_end_of_an_auc_holds_for_the_widest_law(outsiders: int, true: float) -> None:
    """Fails when the variance is taken for smaller than it can be, or the law for normal: outsiders that lie below all
    members or above them make the value binomial (Wilson's interval then misses in 15 % for 4). Every outcome is
    counted, so that there is no false alarm; the error must also be used, for the larger of them."""
    missed = np.zeros(2)
    for below in range(outsiders + 1):
        found = Outcome("x", np.linspace(1, 2, 30), np.where(np.arange(outsiders) < below, 0.0, 3.0)).auc()
        missed += binom.pmf(below, outsiders, true) * np.array([found.lower > true, found.upper < true])
    assert missed.max() <= AUC_ERROR
    assert missed.max() > 0.002 or outsiders == 4


@pytest.mark.parametrize("confidence", [0.95, 0.5])
@pytest.mark.parametrize("count", [2, 4, 9])
def test_each_end_of_an_auc_has_half_of_the_error(count: int, confidence: float) -> None:
    """Catches an end that takes the whole error. Where all are told apart, every one of the k independent comparisons
    is won, which has the chance p^k: the lower end is the k-th root of half of the error, and the upper end is 1."""
    error = (1 - confidence) / 2
    won = Outcome("x", np.ones(9), np.zeros(count)).auc(confidence)
    assert won.lower == pytest.approx(error ** (1 / count), rel=1e-6)
    assert won.upper == 1.0
    lost = Outcome("x", np.zeros(count), np.ones(9)).auc(confidence)
    assert lost.lower == 0.0
    assert lost.upper == pytest.approx(1 - error ** (1 / count), rel=1e-6)


def test_a_limit_is_that_of_the_upper_end() -> None:
    """Catches a limit at the lower end of ε, which would accuse a guarantee that holds."""
    stated = Guarantee(Interval(0.5, 1.0), 0.0, Unit(), "pld")
    assert limit_of(stated)(0.01) == pytest.approx(np.e / 100)
    unbounded = Guarantee(Interval(0.5, np.inf), 0.0, Unit(), "pld")
    assert limit_of(unbounded)(0.01) == 1.0


def test_rows_on_both_sides_are_refused_in_one_line() -> None:
    """Fails when an outsider that is a member slips through, or −0 or a type makes a difference, or a label none."""
    rows, names = torch.arange(20.0).reshape(10, 2) - 4, torch.arange(10) % 3
    with pytest.raises(InvalidInput, match=r"outsiders hold 2 of 4 that are members, too; leave them out"):
        Pool.of((rows[:8], names[:8]), (rows[6:], names[6:]))
    zero = rows.clone()
    zero[zero == 0] = -0.0
    assert overlapping_rows((rows, names), (zero.double(), names)).all()
    assert not overlapping_rows((rows, names), (rows, (names + 1) % 3)).any()
    pool = Pool.of((rows[:8], names[:8]), (rows[8:], names[8:]))
    with pytest.raises(InvalidInput, match="scores are 3 for 10 rows"):
        pool.outcome("x", np.zeros(3))
    with pytest.raises(InvalidInput, match="scores hold NaN"):
        pool.outcome("x", np.full(10, np.nan))
    with pytest.raises(InvalidInput, match="outsiders are 1; an attack needs 2"):
        Pool.of((rows[:8], names[:8]), (rows[9:], names[9:]))
    with pytest.raises(InvalidInput, match="not finite"):
        Pool.of((rows[:8] / 0, names[:8]), (rows[8:], names[8:]))
    with pytest.raises(InvalidInput, match="prepare both in the same way"):
        Pool.of((rows[:8], names[:8]), (rows[8:, :1], names[8:]))


def blinded(shift: float, spread: float, seed: int, count: int = 120) -> Outcome:
    drawn = torch.Generator().manual_seed(seed)
    members = torch.randn(count, 3, generator=drawn) * spread + shift
    outsiders = torch.randn(count, 3, generator=drawn)
    names = torch.randint(0, 2, (2 * count,), generator=drawn)
    return blind_baseline(Pool.of((members, names[:count]), (outsiders, names[count:])))


def test_the_blind_baseline_sees_a_shift_and_nothing_else() -> None:
    """Fails when the classifier is scored on rows that it learned from (it would see something everywhere), or sees
    means alone. Of 100 pairs without a difference, no more intervals may lie above 0.5 than 99.9 % of binomial draws
    with a chance of 2.5 %, which is what the interval promises on that side (seeded)."""
    wrong = sum(blinded(0.0, 1.0, seed).auc().lower > 0.5 for seed in range(100))
    assert wrong <= binom.ppf(0.999, 100, 0.025)
    assert blinded(0.7, 1.0, 0).auc().lower > 0.5
    assert blinded(0.0, 2.5, 0).auc().lower > 0.5
    few = Pool.of((torch.zeros(3, 2), torch.zeros(3).long()), (torch.ones(9, 2), torch.zeros(9).long()))
    with pytest.raises(InvalidInput, match="pool has 3 members or outsiders"):
        blind_baseline(few)
