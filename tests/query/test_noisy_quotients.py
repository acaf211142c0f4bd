"""Means, variances and covariances are quotients of noisy sums: no exact count, and no exact sum, is in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from privet.core.random import SeededRng
from privet.query import moments, plan
from privet.query.plan import QueryPlan
from tests.query.tables import BY_USER, NASTY, SCHEMA, clinic, frame

QUESTIONS = ("mean(age)", "mean(bmi) by ward", "variance(age)", "covariance(age, bmi) where sick = 1", "sum(age)")
ESTIMATES = {"mean": moments.mean, "variance": moments.variance, "covariance": moments.covariance}


def drawn(made: QueryPlan, table: pl.DataFrame, seed: int) -> list[Any]:
    """What the mechanisms gave, before any of it was read: for each question noisy sums by group."""
    rng = SeededRng(seed)
    totals = made.tally(made.open(table))
    return [
        method.release(total, rng=rng, source="t").value for method, total in zip(made.methods, totals, strict=True)
    ]


def tables(schema: Any) -> list[pl.DataFrame]:
    """A table, its neighbors, and one without rows."""
    without = [frame(NASTY[:place] + NASTY[place + 1 :]) for place in range(len(NASTY))]
    return [frame(NASTY), *without, frame([]), clinic(60) if schema is SCHEMA else frame(NASTY[:1])]


@pytest.mark.parametrize("schema", [SCHEMA, BY_USER], ids=["rows", "users"])
@pytest.mark.parametrize("text", QUESTIONS)
def test_noisy_sums_are_the_sums_and_noise_that_no_row_moves(text: str, schema: Any) -> None:
    """Replayed with the same randomness, what is drawn from a table less what is drawn from an empty one is the exact
    sums, in every coordinate. Fails when one of them is computed from an exact count, or from another coordinate."""
    made = plan(text, schema, epsilon=0.7)
    (method,) = made.methods
    noise: Any = method.additive
    (nothing,) = drawn(made, frame([]), 5)
    for table in tables(schema):
        (found,) = drawn(made, table, 5)
        (total,) = made.tally(made.open(table))
        exact = total.public.astype(np.float64) * method.spec.step
        assert found.groups == nothing.groups
        # Both are on the mechanism's grid, so that sums are rounded by half a step at most.
        assert np.abs(found.values - nothing.values - exact).max() <= noise.grid.step


@pytest.mark.parametrize("schema", [SCHEMA, BY_USER], ids=["rows", "users"])
@pytest.mark.parametrize("text", QUESTIONS[:4])
def test_mean_divides_by_a_noisy_number_of_rows(text: str, schema: Any) -> None:
    """Fails when the answer is not a function of the noisy sums alone: a mean over the exact number of rows, say."""
    made = plan(text, schema, epsilon=0.7)
    (method,) = made.methods
    name, columns = text.partition("(")[0], method.spec.question.measure.columns
    numbers: list[Any] = [schema.find(column) for column in columns]
    scale = np.prod([each.high - each.low for each in (numbers * 2 if name == "variance" else numbers)])
    shift = numbers[0].low if name == "mean" else 0.0
    for table in tables(schema):
        for seed in (1, 2):
            (found,) = drawn(made, table, seed)
            (answer,) = made.answer(table, rng=SeededRng(seed)).value
            for row, sums in zip(answer.rows, found.values.tolist(), strict=True):
                wanted = ESTIMATES[name](sums, method.joint_width(made.confidence))
                assert row.value == pytest.approx(shift + scale * wanted.value, rel=1e-12)
                assert row.low is not None
                assert row.low <= shift + scale * wanted.low + 1e-9
                assert row.high is not None
                assert row.high >= shift + scale * wanted.high - 1e-9


def test_mean_denominator_moves_with_the_noise() -> None:
    """On tables of one size and one value the mean would be the same number up to the numerator's noise alone; with a
    noisy denominator the two sums are noised independently. Fails when they add up to the exact number of rows.

    The sums of 200 draws add up to the same number twice by chance only: grids have more than 2^20 steps.
    """
    made = plan("mean(age)", SCHEMA, epsilon=0.5)
    totals = [round(float(drawn(made, clinic(50), seed)[0].values.sum()), 6) for seed in range(40)]
    assert len(set(totals)) == 40
    assert np.std(totals) > 1  # each of two sums has a deviation of √2/ε = 2.8
