"""Counts of private groups: intervals hold for what is shown, although only upward noise gets over a threshold."""

from __future__ import annotations

import math

import polars as pl
import pytest
from scipy.stats import binom

from privet.core.random import SeededRng
from privet.data import Category, Schema
from privet.query import plan
from privet.query.threshold_intervals import thresholded_interval
from tests.data.sources import sourced


def tail(least: int, scale: float) -> float:
    """P(noise ≥ least)."""
    return math.exp(-least / scale) / (1 + math.exp(-1 / scale)) if least >= 1 else 1 - tail(1 - least, scale)


@pytest.mark.parametrize(("scale", "threshold", "confidence"), [(1.0, 15, 0.95), (2.5, 30, 0.8), (10.0, 120, 0.99)])
def test_the_coverage_of_what_is_shown(scale: float, threshold: int, confidence: float) -> None:
    """Fails when an end is off by one, or is that of noise which may go either way: the exact chance, by summing."""
    most = threshold + int(8 * scale)
    ends = {
        y: thresholded_interval(y, scale, threshold, confidence) for y in range(threshold, most + math.ceil(40 * scale))
    }
    found = []
    for n in range(1, most):
        law = {y: tail(y - n, scale) - tail(y + 1 - n, scale) for y in ends}
        held = sum(chance for y, chance in law.items() if ends[y][0] <= n <= ends[y][1])
        found.append(held / tail(threshold - n, scale))
    assert min(found) >= confidence - 1e-9
    assert min(found) < confidence + (1 - confidence) * 0.6  # and it is not simply everything
    for y in (threshold, threshold + 1):  # next to the threshold the upper end lies lower than the usual one
        miss = (1 - confidence) / 2
        likely = [n for n in range(y, most) if 1 - tail(y + 1 - n, scale) / tail(threshold - n, scale) > miss]
        assert ends[y][1] == max(likely, default=y)
    far = 10**6
    width = far - thresholded_interval(far, scale, threshold, confidence)[0]
    assert tail(width + 1, scale) <= (1 - confidence) / 2 < tail(width, scale)  # the usual one, where nothing is cut


def test_hardly_any_noise() -> None:
    """Fails when tails that are 0 in floating point make an interval empty, or leave out what is as likely."""
    assert thresholded_interval(10**12, 1e-3, 2, 0.95) == (10**12, 10**12)
    assert thresholded_interval(2, 1e-3, 2, 0.95) == (1, 2)
    low, high = thresholded_interval(1400, 100.0, 1400, 0.95)  # unlikely under every count
    assert low == 1
    assert high >= 1400


def test_small_groups_that_are_seen() -> None:
    """Fails when the intervals of groups below the threshold miss the truth: 4,000 groups of 9, through a whole plan.

    A right interval is called wrong once in a million runs at most; seeded. The usual interval holds for none of them.
    """
    towns = [f"town {n}" for n in range(4000) for _ in range(9)] + ["Bath"] * 500
    schema = sourced(Schema((Category("town", ()),)))
    made = plan("count by town", schema, epsilon=1.0, delta=1e-5)
    (answer,) = made.answer(pl.DataFrame({"town": towns}), rng=SeededRng(8)).value
    threshold = made.methods[0].threshold
    assert threshold is not None
    assert threshold > 12
    small = [row for row in answer.rows if row.group != ("Bath",)]
    assert len(small) > 20
    held = sum(row.low is not None and row.high is not None and row.low <= 9 <= row.high for row in small)
    assert held >= binom.ppf(1e-6, len(small), 0.95)
    width = made.methods[0].width(0.95)
    assert sum(row.value - width <= 9 for row in small) < held / 2  # what this is about
    assert all(row.low is not None and row.high is not None and row.low <= row.value <= row.high for row in answer.rows)
    (bath,) = (row for row in answer.rows if row.group == ("Bath",))
    assert bath.high is not None
    assert bath.high - bath.value == pytest.approx(width, abs=1.0)
    assert any(f"reach {threshold} with their noise" in note and "overstated" in note for note in answer.notes)
