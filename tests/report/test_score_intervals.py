"""Intervals of scores hold as often as they say, for the noise and for the sampling of the rows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import binom
from torch import nn

from privet.core.random import SeededRng
from privet.core.unit import Unit, Whose
from privet.data import Number
from privet.mechanisms import Cells, DiscreteLaplaceMechanism, Histogram
from privet.report.origin import format_interval
from privet.report.ranking import verdict_on
from privet.report.score_intervals import (
    EXACT,
    NOISE_AND_SAMPLING,
    SAMPLING,
    hoeffding,
    mean_interval,
    noisy_parts,
    noisy_share,
    share_interval,
)
from privet.runs.scoring import (
    LabeledRows,
    PrivateScoring,
    accuracy_margin,
    expected_interval,
    score_advice,
    score_exactly,
)

HALF = 0.025


def _laplace(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The values of discrete Laplace noise and their probabilities, but for 1e-9 of it."""
    far = math.ceil(21 * scale)
    values = np.arange(-far, far + 1)
    base = math.exp(-1 / scale)
    return values, (1 - base) / (1 + base) * base ** np.abs(values)


def _coverage(rows: int, chance: float, scale: float, ends: Callable[[float, float], tuple[float, float]]) -> float:
    """The exact probability that an interval from two noisy counts holds the chance of being right."""
    noise, weights = _laplace(scale)
    known: dict[tuple[int, int], bool] = {}
    total = 0.0
    for right in range(rows + 1):
        own = binom.pmf(right, rows, chance)
        if own < 1e-9:
            continue
        for a, weight in zip(noise, weights, strict=True):
            for b, other in zip(noise, weights, strict=True):
                pair = (max(right + int(a), -99), max(rows - right + int(b), -99))
                if pair not in known:
                    low, high = ends(float(pair[0]), float(pair[1]))
                    known[pair] = low <= chance <= high
                total += own * weight * other * known[pair]
    return total


@pytest.mark.parametrize("chance", [0.5, 0.8, 0.97, 1.0])
def test_private_accuracy_interval_covers_noise_and_sampling(chance: float) -> None:
    """Exact enumeration of binomial × noise: fails when the interval covers the noise alone, or uses the true count."""
    mechanism = DiscreteLaplaceMechanism.for_epsilon(1.0, Histogram(Cells(0.0, 1.0, 2), Unit(), 1))
    reach = mechanism.interval(1 - HALF / 2)
    assert mechanism.scale == 1.0
    assert _coverage(40, chance, 1.0, lambda right, wrong: noisy_share(right, wrong, reach, HALF)) >= 0.95


def test_noise_alone_would_not_cover_the_sampling() -> None:
    """The check above can fail: the interval of earlier versions holds the true accuracy far less often than 95 %."""

    def noise_alone(right: float, wrong: float) -> tuple[float, float]:
        reach = 4.0  # of Laplace noise of scale 1, at 97.5 %
        low, high = max(right - reach, 0.0), max(right + reach, 0.0)
        less, more = max(wrong - reach, 0.0), max(wrong + reach, 0.0)
        return low / max(low + more, 1.0), high / max(high + less, 1.0)

    assert _coverage(400, 0.5, 1.0, noise_alone) < 0.8


@pytest.mark.parametrize(("rows", "chance"), [(5, 0.5), (30, 0.1), (30, 0.9), (200, 0.97)])
def test_sampling_intervals_cover_by_enumeration(rows: int, chance: float) -> None:
    """Fails when an end is one-sided, swapped or off by one: the exact coverage of a share and of a mean."""
    shares = [share_interval(k, rows - k, 0.05) for k in range(rows + 1)]
    means = [mean_interval(k, rows, 0.05) for k in range(rows + 1)]
    for ends in (shares, means):
        inside = [k for k, (low, high) in enumerate(ends) if low <= chance <= high]
        assert sum(float(binom.pmf(k, rows, chance)) for k in inside) >= 0.95


def test_corners_hold_every_count_within_reach() -> None:
    """Fails when an end of a noisy interval is not the extreme over all true counts within the noise's reach."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        right, wrong, reach = (int(rng.integers(0, end)) for end in (60, 60, 9))
        low, high = noisy_share(float(right), float(wrong), reach, HALF)
        first, last = noisy_parts(float(right), float(wrong), reach, HALF)
        for _ in range(20):
            true, false = (max(each + int(rng.integers(-reach, reach + 1)), 0) for each in (right, wrong))
            inner = share_interval(float(true), float(false), HALF)
            assert low <= inner[0] + 1e-12
            assert inner[1] <= high + 1e-12
            inner = mean_interval(float(true), float(true + false), HALF)
            assert first <= inner[0] + 1e-9
            assert inner[1] <= last + 1e-9


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_public_score_where_users_are_named_says_that_rows_are_taken_as_independent(classes: int) -> None:
    """Fails when a score on rows of users claims to cover their sampling without a condition: no interval here does.

    Of 100 users 1 % have 100 rows, and all of these are wrong: users' observed sizes tell too little, and an interval
    from them held the truth in 64 % of simulated tables. The interval is that of independent rows, and says so; no
    best is named by it.
    """
    users = np.repeat(np.arange(100), [100] + [1] * 99)
    right = users > 0
    good = torch.tensor(right).double()
    outputs = torch.stack([1 - good, good, *[good * 0] * (classes - 2)], 1) if classes else 1 - good
    y = torch.ones(len(users), dtype=torch.long) if classes else torch.zeros(len(users))
    clustered, alone = (
        score_exactly(
            nn.Identity(), LabeledRows(outputs, y, None, some, by_user=some is not None), classes, "the test file"
        )
        for some in (users, None)
    )
    assert [each.name for each in clustered] == [each.name for each in alone]
    for one, other in zip(clustered, alone, strict=True):
        assert (one.lower, one.upper) == (other.lower, other.upper)
        assert one.covers.startswith("the sampling of the test rows, taken as independent of each other")
        assert other.covers.startswith(SAMPLING)
        assert "independent" not in other.covers
        named = {
            run: replace(one, value=0.5, rows="0" * 64, lower=low, upper=low + 0.1)
            for run, low in (("a", 0.1), ("b", 0.8))
        }
        assert "no best is named: the interval of a covers the sampling of the test rows, taken" in verdict_on(
            "", named
        )
    if classes:
        assert (clustered[0].lower, clustered[0].upper) == share_interval(99, 100, 0.05)


def test_user_level_private_score_allows_for_clustered_rows() -> None:
    """Fails when ten rows of one user are taken as ten independent ones in a private score."""
    alone = noisy_share(700.0, 300.0, 10.0, HALF)
    users = noisy_share(700.0, 300.0, 10.0, HALF, rows_per_unit=10)
    assert users[1] - users[0] > 2 * (alone[1] - alone[0])
    reach = math.sqrt(math.log(2 / HALF) * 10 / (2 * 980))
    assert users == pytest.approx((690 / 1000 - reach, 710 / 1000 + reach))
    assert hoeffding((0.5, 0.5), 0, 0.05) == (0.0, 1.0)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_every_score_has_an_interval_that_says_what_it_covers(classes: int) -> None:
    """Fails when a score stands without an interval, or the interval does not say what it covers."""
    drawn = torch.Generator().manual_seed(2)
    outputs = torch.rand(90, classes, generator=drawn) if classes else torch.rand(90, generator=drawn)
    y = torch.randint(0, max(classes, 2), (90,), generator=drawn)
    rows = LabeledRows(outputs, y if classes else y.float(), None if classes else Number("age", 0.0, 100.0))
    for score in score_exactly(nn.Identity(), rows, classes, "the test file"):
        assert score.has_interval
        assert (score.lower or 0.0) < (score.value or 0.0) < (score.upper or 0.0)
        assert SAMPLING in format_interval(score)
        assert "noise" not in score.covers
    for score in score_exactly(nn.Identity(), rows, classes, "training rows", seen=True):
        assert score.covers == EXACT
        assert format_interval(score).startswith("exact for these rows")
    private = PrivateScoring(1.0, Unit(), 1, classes).release(
        nn.Identity(), rows, rng=SeededRng(1), source="t", on="held"
    )
    assert private.value.covers == NOISE_AND_SAMPLING
    assert NOISE_AND_SAMPLING in format_interval(private.value)


@pytest.mark.parametrize("classes", [0, 2])
def test_expected_width_is_known_before_the_draw(classes: int) -> None:
    """Fails when the announced width is not about that of the interval that is drawn, for a model of the widest case.

    60 seeded draws; the mean width differs from the announced one by at most 10 %, which no draw comes near to break.
    """
    scoring, rows = PrivateScoring(0.5, Unit(), 1, classes), 400
    if classes:
        outputs = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).repeat(rows // 2, 1)
        table = LabeledRows(outputs, torch.ones(rows, dtype=torch.long), None)
    else:
        table = LabeledRows(torch.ones(rows), torch.zeros(rows), None)  # an error of half of the range
    widths = []
    for seed in range(60):
        score = scoring.release(nn.Identity(), table, rng=SeededRng(seed), source="t", on="held").value
        widths.append(((score.upper or 0.0) - (score.lower or 0.0)) / 2)
    assert scoring.mechanism.half_width(rows) == pytest.approx(float(np.mean(widths)), rel=0.1)


def test_expected_width_uses_public_numbers_alone() -> None:
    """Fails when a plan states a width although the number of rows is private, or none although it is public."""
    scoring = PrivateScoring(0.5, Unit(whose=Whose.EXAMPLE), 1, 2)
    known = expected_interval(scoring, 2000, 0.2)
    assert known.value == f"± {100 * scoring.mechanism.half_width(400):.2f} % at most"
    assert "noise and sampling of about 400 rows" in known.why
    unknown = expected_interval(scoring, None, 0.2)
    assert "%" not in unknown.value
    assert "private number of rows" in unknown.why
    errors = expected_interval(PrivateScoring(0.5, Unit(), 1, 0), 2000, 0.2, Number("age", 0.0, 50.0))
    assert errors.value == f"± {50 * PrivateScoring(0.5, Unit(), 1, 0).mechanism.half_width(400):.4g} at most"


def test_margin_of_the_epoch_table_holds_for_tiny_test_files() -> None:
    """Fails when ± margin around an observed accuracy holds the truth less than 95 % of the time: exact, by the
    binomial law, for 0 to 60 rows. Half the width of the interval of Clopper & Pearson does, down to never at one row.
    """
    assert accuracy_margin(0) == accuracy_margin(1) == 1.0
    for rows in (*range(1, 31), 60):
        margin, counts = accuracy_margin(rows), np.arange(rows + 1)
        for chance in np.linspace(0.0, 1.0, 41):
            inside = np.abs(counts / rows - chance) <= margin + 1e-12
            assert binom.pmf(counts[inside], rows, chance).sum() >= 0.95 - 1e-9, (rows, chance)
    assert accuracy_margin(1000) == pytest.approx(math.sqrt(math.log(40) / 2000))


@pytest.mark.parametrize("classes", [0, 2])
def test_score_advice_is_given_where_the_interval_would_be_wide(classes: int) -> None:
    """Fails when a score that says little is bought without a word, when a useful one is advised against, when the
    edge for a private number of rows is another one, or when --tune is told to do without the score it chooses by."""
    scoring = PrivateScoring(0.05, Unit(), 1, classes)
    said = score_advice(scoring, 600, 0.2)
    assert "would say little" in said
    assert "--score-share 0" in said
    assert "--test FILE" in said
    assert "--score-share" not in score_advice(scoring, 600, 0.2, needed=True)
    private = score_advice(scoring, None, 0.2)
    whole, held = (
        int(number.replace(",", ""))
        for number in re.findall(r"([\d,]+) (?:rows|are held)", private.replace("rows, ", "rows "))
    )
    assert private.endswith(said.split("Advice")[1])
    assert scoring.mechanism.half_width(held) <= 0.1 < scoring.mechanism.half_width(held - 1)
    assert whole == math.ceil(held / 0.2)
    assert score_advice(scoring, whole, 0.2) == ""
    assert score_advice(scoring, whole - 10, 0.2) != ""


@pytest.mark.parametrize("classes", [0, 2])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("rows", [1, 3])
def test_draws_of_a_private_score_stay_within_reach(classes: int, epsilon: float, rows: int) -> None:
    """Fails when the chance that any of the two draws is off by more than its reach is above the 2.5 % for the noise:
    exact, by the law of the sampler, P(|noise| > r) = 2 bʳ⁺¹ / (1 + b) for b = e^(-1/scale) in steps of the grid."""
    scoring = PrivateScoring(epsilon, Unit() if rows == 1 else Unit(whose=Whose.USER), rows, classes)
    noise = scoring.mechanism.noise
    base, far = math.exp(-noise.grid.step / noise.scale), math.floor(scoring.mechanism.reach / noise.grid.step)
    within = (1 - 2 * base ** (far + 1) / (1 + base)) ** 2
    assert 1 - within <= HALF + 1e-12
    assert 1 - within > HALF / 20  # and no draw has far more room than it needs
