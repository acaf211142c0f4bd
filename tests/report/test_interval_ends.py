"""The ends of intervals, exactly: half of the error for each end, for each draw, and for noise and sampling."""

from __future__ import annotations

from dataclasses import replace
from math import log, sqrt
from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy.stats import binom
from torch import nn

from privet.cli.query import _show
from privet.core.bounded import Bounded
from privet.core.disclosure import Internal, Public
from privet.core.errors import InvalidInput
from privet.core.event import Laplace as LaplaceEvent
from privet.core.random import Rng, SeededRng
from privet.core.release import Release
from privet.core.unit import Unit, Whose
from privet.data import Number
from privet.mechanisms import DiscreteLaplaceMechanism, LaplaceMechanism
from privet.query import Answer, Reply, Row
from privet.report import Score, answers_page
from privet.report.figures.epochs import measure_by_epoch
from privet.report.origin import format_interval, short_interval
from privet.report.ranking import verdict_on
from privet.report.score_intervals import (
    NOISE,
    NOISE_AND_SAMPLING,
    SAMPLING,
    mean_interval,
    noisy_parts,
    noisy_share,
    share_interval,
)
from privet.report.training_card import shareable
from privet.report.training_price import price_lines
from privet.report.training_records import Measure
from privet.runs.scoring import LabeledRows, PrivateScoring, accuracy_margin, score_exactly
from tests.report.trained import trained

ERROR, HALF, QUARTER = 0.05, 0.025, 0.0125
BY_USER = Unit(whose=Whose.USER)


@pytest.mark.parametrize(("total", "count"), [(50.0, 100), (3.5, 40), (39.0, 40)])
def test_mean_interval_has_half_of_the_error_at_each_end(total: float, count: float) -> None:
    """Chernoff's bound is not tight, so that counting misses does not show a forgotten half. Fails when an end has all
    of the error: there n · kl(mean, end) is log(1/error) and not log(2/error)."""
    mean = total / count
    for end in mean_interval(total, count, ERROR):
        entropy = mean * log(mean / end) + (1 - mean) * log((1 - mean) / (1 - end))
        assert count * entropy == pytest.approx(log(2 / ERROR), rel=1e-6)


def test_mean_of_users_with_many_rows_is_wider() -> None:
    """Fails when ten rows of one user are taken as ten independent ones in the interval of an error."""
    low, high = noisy_parts(400.0, 600.0, 10.0, HALF, rows_per_unit=10)
    reach = sqrt(log(2 / HALF) * 10 / (2 * 980))
    assert (low, high) == pytest.approx((390 / 1000 - reach, 410 / 1000 + reach))


def drawn_instead(monkeypatch: pytest.MonkeyPatch, *values: Any) -> None:
    """Let every draw of both mechanisms have these values, one after the other, whatever the data are."""
    left = iter(values * 2)

    def release(self: Any, query: Bounded[Any], *, rng: Rng, source: str = "data") -> Release[Any]:
        return Release.of(next(left), self.event, unit=query.unit, source=source, randomness=rng.kind)

    monkeypatch.setattr(DiscreteLaplaceMechanism, "release", release)
    monkeypatch.setattr(LaplaceMechanism, "release", release)


def table(rows: int, classes: int) -> LabeledRows:
    """Rows of which all are right, and none of which is off."""
    if classes:
        return LabeledRows(torch.tensor([[0.0, 1.0]]).repeat(rows, 1), torch.ones(rows, dtype=torch.long), None)
    return LabeledRows(torch.zeros(rows), torch.zeros(rows), Number("age", 0.0, 50.0))


@pytest.mark.parametrize("most", [1, 5])
def test_private_accuracy_interval_follows_from_noisy_counts_alone(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Two tables, one answer of the mechanism: one score. Fails when the exact number of rows is used beside the noisy
    counts, when noise or sampling has all of the error, when a draw has that of both, or when users count as rows."""
    drawn_instead(monkeypatch, np.array([700, 300]))
    unit = Unit() if most == 1 else BY_USER
    scoring = PrivateScoring(1.0, unit, most, 2)
    found = []
    for rows in (60, 500):
        own = table(rows, 2)
        own = own if most == 1 else LabeledRows(own.x, own.y, None, np.arange(rows) // most)
        found.append(scoring.release(nn.Identity(), own, rng=SeededRng(1), source="t", on="held").value)
    assert found[0] == found[1]
    reach = scoring.mechanism.noise.interval(1 - QUARTER)
    assert scoring.mechanism.reach == pytest.approx(reach)
    assert found[0].value == 0.7
    assert (found[0].lower, found[0].upper) == pytest.approx(noisy_share(700.0, 300.0, reach, HALF, most))
    assert (found[0].confidence, found[0].covers) == (0.95, NOISE_AND_SAMPLING)


@pytest.mark.parametrize("most", [1, 5])
def test_private_error_interval_follows_from_noisy_sums_alone(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """As above, for numbers: fails when the mean error is over the exact number of rows."""
    drawn_instead(monkeypatch, np.array([600.0, 200.0]))
    scoring = PrivateScoring(1.0, Unit() if most == 1 else BY_USER, most, 0)
    found = []
    for rows in (60, 500):
        own = table(rows, 0)
        own = own if most == 1 else LabeledRows(own.x, own.y, own.label, np.arange(rows) // most)
        found.append(scoring.release(nn.Identity(), own, rng=SeededRng(1), source="t", on="held").value)
    assert found[0] == found[1]
    low, high = noisy_parts(200.0, 600.0, scoring.mechanism.noise.interval(1 - QUARTER), HALF, most)
    assert found[0].value == 50 * 0.25
    assert (found[0].lower, found[0].upper) == pytest.approx((50 * low, 50 * high))


def test_public_accuracy_interval_has_all_of_the_error() -> None:
    """Fails when the interval of a score without noise is that of half of the error, or of one end."""
    outputs = torch.tensor([[0.0, 1.0]] * 40 + [[1.0, 0.0]] * 20)
    score = score_exactly(nn.Identity(), LabeledRows(outputs, torch.ones(60, dtype=torch.long), None), 3, "rows")[0]
    assert (score.lower, score.upper) == pytest.approx(share_interval(40, 20, ERROR))
    assert accuracy_margin(100) == pytest.approx(sqrt(log(2 / ERROR) / 200))  # Hoeffding 1963, Thm 2


@pytest.mark.parametrize(
    ("name", "best"), [("accuracy", "b"), ("AUC", "b"), ("mean absolute error", "a"), ("root mean squared error", "a")]
)
def test_compare_knows_which_end_of_each_measure_is_better(name: str, best: str) -> None:
    """Fails when the run with the largest error, or with the smallest share of right answers, is called best."""
    scores = {
        run: Score(name, low + 0.05, "the test file", False, low, low + 0.1, 0.95, SAMPLING, "0" * 64)
        for run, low in (("a", 0.5), ("b", 0.8))
    }
    assert f"{best} is best" in verdict_on(name, scores)


@pytest.mark.parametrize("covers", ["the noise", NOISE, SAMPLING, NOISE_AND_SAMPLING])
def test_interval_is_labelled_with_what_it_covers(covers: str) -> None:
    """Fails when an interval of the noise alone is said to cover the sampling, too, or the other way round."""
    score = Score("accuracy", 0.9, "held-out rows", True, 0.8, 0.95, 0.95, covers)
    expected = NOISE if covers == "the noise" else covers
    assert format_interval(score) == f"80.00 % to 95.00 % with 95 % confidence, covers {expected}"
    short = {NOISE: "noise alone", SAMPLING: "sampling", NOISE_AND_SAMPLING: "noise + sampling"}[expected]
    assert short_interval(score) == f"80.00 % to 95.00 % ({short})"


def test_query_intervals_are_labelled_with_the_noise_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Fails when an interval of an answer does not say what it covers, on the terminal or on the page, or an answer
    without an interval does."""
    words = "intervals cover the noise alone"
    for row, labelled in ((Row((), 5.0, 3.0, 7.0), True), (Row((), 5.0), False)):
        answers: tuple[Answer, ...] = (Answer("mean(age)", (), "mean(age)", (row,), 0.95),)
        release = Release.of(answers, LaplaceEvent(1.0), unit=Unit(), source="t", randomness=SeededRng(1).kind)
        _show(Reply(release, (False,), None, ""), None)
        assert (words in " ".join(capsys.readouterr().out.lower().split())) == labelled
        assert (words in answers_page(release, "t").lower()) == labelled


def test_accuracy_curve_is_labelled_with_the_current_weights() -> None:
    """Fails when the end of the accuracy curve may be taken for the score of the released model, whose weights are
    averaged; the loss of the training steps has no such score."""
    history = shareable(trained()).history
    curve, loss = measure_by_epoch(Measure.ACCURACY, history), measure_by_epoch(Measure.LOSS, trained().history)
    assert curve is not None
    assert loss is not None
    assert "The curve is of the current weights" in curve.alternative
    assert "current weights" not in loss.alternative


def test_price_rests_on_its_noise_and_on_the_sources() -> None:
    """Fails when assumptions about the data are left out, or replace those about the noise."""
    from privet.core.event import Gaussian

    lines = [("all", Gaussian(2.0))]
    plain, _ = price_lines(lines, 1e-5, unit=Unit())
    whole, _ = price_lines(lines, 1e-5, unit=Unit(), rests_on=("a codebook",))
    own, _ = price_lines(lines, 1e-5, unit=Unit(), assumptions=("a grid",), rests_on=("a codebook",))
    assert plain.guarantee.value.assumptions
    assert whole.guarantee.value.assumptions == (*plain.guarantee.value.assumptions, "a codebook")
    assert own.guarantee.value.assumptions == ("a grid", "a codebook")


def test_remarks_on_private_facts_must_be_internal() -> None:
    """Fails when a remark that depends on private rows may be wrapped as public, and so stand on a page that is
    shared."""
    card, public = trained(), cast(Any, Public("δ is large"))
    replace(card, internal_remarks=(Internal("δ is large"),))
    with pytest.raises(InvalidInput, match="internal_remarks"):
        replace(card, internal_remarks=(public,))
    assert shareable(replace(card, internal_remarks=(Internal("δ is large"),))).internal_remarks == ()


@pytest.mark.parametrize(("right", "wrong"), [(9, 1), (30, 30), (3, 97)])
def test_share_interval_ends_miss_with_half_of_the_error(right: int, wrong: int) -> None:
    """At the lower end, so many right answers or more have a probability of half of the error; at the upper end, so
    many or fewer (Clopper & Pearson). Fails when an end is off by one trial, which few cases of coverage show."""
    low, high = share_interval(right, wrong, ERROR)
    assert float(binom.sf(right - 1, right + wrong, low)) == pytest.approx(HALF)
    assert float(binom.cdf(right, right + wrong, high)) == pytest.approx(HALF)
