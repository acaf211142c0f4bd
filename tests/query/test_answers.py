"""Answers: the truth where there is next to no noise, intervals that hold, and counts that agree."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.data import Category, Identifier, Missing, Number, Schema
from privet.query import Answer, moments, plan
from privet.query.consistency import agreed, projected
from tests.data.sources import sourced
from tests.query.tables import BY_USER, SCHEMA, clinic

ROWS = 3000
LOUD = 1e5
"""An ε with which the noise is next to nothing."""
TABLE = clinic(ROWS)


def answers(
    texts: list[str], table: pl.DataFrame | Path = TABLE, schema: Schema = SCHEMA, **budget: float
) -> tuple[Answer, ...]:
    made = plan(texts, schema, epsilon=budget.get("epsilon", LOUD), delta=budget.get("delta", 0.0))
    return made.answer(table, rng=SeededRng(3)).value


def test_without_noise_it_is_the_truth() -> None:
    """Fails when a filter, a group, a rule, a scale or a polynomial is wrong: compared with NumPy and Polars."""
    found = answers(
        [
            "count where sick = 1 and age > 40",
            "sum(bmi)",
            "mean(age)",
            "variance(age)",
            "covariance(age, bmi)",
            "histogram(age, 4)",
            "count by ward",
            "mean(bmi) by ward",
            "median(age)",
            "quantile(bmi, 0.9)",
            "top(ward, 2)",
        ]
    )
    age, bmi = TABLE["age"].to_numpy(), TABLE["bmi"].to_numpy()
    value = [answer.rows[0].value for answer in found]
    assert value[0] == len(TABLE.filter((pl.col("sick") == 1) & (pl.col("age") > 40)))
    assert value[1] == pytest.approx(bmi.sum(), abs=0.5)
    assert value[2] == pytest.approx(age.mean(), abs=1e-3)
    assert value[3] == pytest.approx(age.var(), abs=0.1)
    assert value[4] == pytest.approx(np.cov(age, bmi, bias=True)[0, 1], abs=0.1)
    edges = [(age < 25).sum(), ((age >= 25) & (age < 50)).sum(), ((age >= 50) & (age < 75)).sum(), (age >= 75).sum(), 0]
    assert [row.value for row in found[5].rows] == pytest.approx(edges, abs=1e-6)
    assert [row.group for row in found[5].rows][::4] == [("0 to 25",), ("(missing)",)]
    wards = dict(TABLE.group_by("ward").len().iter_rows())
    assert {row.group[0]: row.value for row in found[6].rows} == pytest.approx(
        {"north": wards["north"], "south": wards["south"], "(other)": wards.get("west", 0)}, abs=1e-6
    )
    means = dict(TABLE.group_by("ward").agg(pl.col("bmi").mean()).iter_rows())
    assert found[7].rows[0].value == pytest.approx(means["north"], abs=1e-2)
    assert value[8] == pytest.approx(np.median(age), abs=0.2)
    assert value[9] == pytest.approx(np.quantile(bmi, 0.9), abs=0.2)
    assert found[10].rows[0].group == (max(("north", "south"), key=lambda ward: wards.get(ward, 0)),)


def test_files_and_frames_answer_alike(tmp_path: Path) -> None:
    """Fails when CSV, Parquet and a frame of the same rows give different sums, with users limited or not."""
    TABLE.write_csv(tmp_path / "t.csv")
    TABLE.write_parquet(tmp_path / "t.parquet", row_group_size=700)
    texts = ["count by ward", "mean(age) by sick", "sum(bmi) where town = Bath", "variance(bmi)", "median(age)"]
    for schema in (SCHEMA, BY_USER):
        wanted = answers(texts, TABLE, schema)
        assert answers(texts, tmp_path / "t.csv", schema) == wanted
        assert answers(texts, tmp_path / "t.parquet", schema) == wanted
    assert answers(["count"], tmp_path / "t.csv", BY_USER)[0].value == ROWS / 2  # two of each user's four rows


def test_private_groups_are_found() -> None:
    """Fails when large private groups are not shown, or their numbers are of other groups."""
    found = answers(["count by town", "mean(age) by town", "top(town, 2)"], epsilon=100.0, delta=1e-6)
    assert [row.group for row in found[0].rows] == [("Bath",), ("Ely",), ("York",)]
    assert [row.value for row in found[0].rows] == pytest.approx([1000] * 3, abs=5)
    mean = TABLE.filter(pl.col("town") == "Ely")["age"].mean()
    assert found[1].rows[1].value == pytest.approx(mean, abs=1.0)
    assert len(found[2].rows) == 2
    users = answers(["count by town", "mean(age) by town"], TABLE, BY_USER, epsilon=100.0, delta=1e-6)
    assert len(users[0].rows) == len(users[1].rows) == 3


@pytest.mark.parametrize("schema", [SCHEMA, BY_USER])
def test_rows_without_a_private_value_are_a_group(schema: Schema) -> None:
    """Fails when rows without a town are in no group, or nobody is told: the groups would not be all rows."""
    table = TABLE.with_columns(town=pl.when(pl.col("age") < 50).then(pl.lit("?")).otherwise(pl.col("town")))
    texts = ["count by town", "mean(age) by town, ward", "top(town, 3)"]
    count, mean, top = answers(texts, table, schema, epsilon=200.0, delta=1e-6)
    assert {row.group[0] for row in count.rows} == {"(missing)", "Bath", "Ely", "York"}
    kept = table.group_by("id", maintain_order=True).head(2) if schema.user else table
    without = kept.filter(pl.col("town") == "?")
    found = {row.group: row.value for row in count.rows}
    assert found["(missing)",] == pytest.approx(len(without), abs=5)
    assert sum(found.values()) == pytest.approx(len(kept), abs=10)
    ages = {row.group: row.value for row in mean.rows}
    truth = without.filter(pl.col("ward") == "north")["age"].mean()
    assert ages["(missing)", "north"] == pytest.approx(truth, abs=1.0)
    assert all("rows without a value of town are in the group (missing)" in each.notes for each in (count, mean))
    assert {row.group[0] for row in top.rows} == {"Bath", "Ely", "York"}
    assert "rows without a value of town are not counted" in top.notes
    assert any("values are ranked by their counts, each off by at most" in note for note in top.notes)


def test_a_number_that_noise_took_below_zero_may_be_larger() -> None:
    """Fails when the interval beside a 0 is "from 0 to 0", though the noise is wide: of an empty group, every upper end
    is as far up as the noise goes, for counts, sums and means."""
    table, texts = TABLE.filter(pl.col("ward") == "north"), ["count by ward", "sum(age) by ward", "mean(age) by ward"]
    made = plan(texts, SCHEMA, epsilon=0.5)
    totals, rng = made.tally(made.open(table)), SeededRng(8)
    widths = [method.width(0.95) for method in made.methods]
    below = 0
    for _ in range(200):
        drawn = made.draw(totals, rng=rng).value
        for answer, width in zip(drawn[:2], widths, strict=False):
            for row in answer.rows[1:]:
                assert row.high is not None
                assert row.high >= width
                below += row.value == 0
        for row in drawn[2].rows[1:]:  # no rows: nothing is known of their mean but its bounds
            assert (row.low, row.high) == pytest.approx((0, 100), abs=60)
            assert row.high > row.low  # type: ignore[operator]
    assert below > 200
    (found,) = answers(["sum(x)"], pl.DataFrame({"x": [-1.0]}), sourced(Schema((Number("x", -9, 0),))), epsilon=0.01)
    assert found.rows[0].low < -1000  # type: ignore[operator]


def test_no_moment_is_sure_of_an_end() -> None:
    """Fails when a sum that noise took far below 0 counts as exactly 0: the mean would be its bound, for certain."""
    found = moments.mean([50.0, -40.0], 10.0)
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(10 / 50)
    assert moments.variance([50.0, -40.0, -40.0], 10.0).high > 0


def test_what_can_be_counted_with() -> None:
    """Fails when an ε or a weight that leaves next to nothing is an error about something that nobody typed, or comes
    after the charge."""
    for texts, budget, said in (
        (["count"], (1e-320, 0.0), "epsilon is 1e-320"),
        (["median(age)", "count"], (1e-320, 1e-6), "epsilon is 1e-320"),
        (["count weight 1e-300", "mean(age)"], (1.0, 0.0), "weight is 1e-300 for 'count', which leaves it ε = 1e-300"),
        (["count weight 1e-300", "mean(age)"], (1.0, 1e-6), "weight is 1e-300 for 'count'"),
        (["count"], (1.0, 5e-324), "delta is 5e-324"),
    ):
        with pytest.raises(InvalidInput) as caught:
            plan(texts, SCHEMA, epsilon=budget[0], delta=budget[1])
        assert str(caught.value).startswith(said)
    for text in ("count", "mean(age) by ward", "median(age)", "top(ward, 2)", "covariance(age, bmi)", "sum(bmi)"):
        for delta in (0.0, 1e-6):
            (found,) = plan(text, SCHEMA, epsilon=1e-6, delta=delta).answer(TABLE, rng=SeededRng(1)).value
            assert all(math.isfinite(row.value) for row in found.rows)


def test_a_question_twice_is_one() -> None:
    """Fails when repeats are drawn apart: two answers, each with a part of ε."""
    made = plan(["count", "median(age)", "quantile(age, 0.5)", "count weight 3"], SCHEMA, epsilon=1.0)
    assert [(str(each), each.weight) for each in made.questions] == [("count", 4.0), ("median(age)", 2.0)]
    assert len(made.event.events) == 2
    (found,) = answers(["covariance(age, age)"])
    assert len(found.notes) == len(set(found.notes)) == 1


def test_the_rule_for_missing_values_is_kept() -> None:
    """Fails when what is missing counts as 0, or a rule of the schema is ignored."""
    table = pl.DataFrame({"x": [10.0, None, math.nan, 30.0] * 500})
    for rule, mean, total in ((Missing.INDICATOR, 20.0, 20_000), (Missing.HIGH, 60.0, 120_000), (5.0, 12.5, 25_000)):
        schema = sourced(Schema((Number("x", 0, 100, missing=rule),)))
        found = answers(["mean(x)", "sum(x)"], table, schema)
        assert found[0].value == pytest.approx(mean, abs=0.1)
        assert found[1].value == pytest.approx(total, abs=1)


def test_no_rows_no_error() -> None:
    """Fails when an all-missing column or an empty group gives an error, or a number outside of the bounds."""
    table = pl.DataFrame({"x": [None] * 50, "g": ["b"] * 50}, schema={"x": pl.Float64, "g": pl.String})
    schema = sourced(Schema((Number("x", 20, 40), Category("g", ("a", "b")))))
    for answer in answers(["mean(x) by g", "variance(x)", "median(x)", "max(x)", "sum(x)"], table, schema, epsilon=1.0):
        for row in answer.rows:
            assert math.isfinite(row.value)
            if answer.measure == "mean(x)":
                assert 20 <= row.low <= row.value <= row.high <= 40  # type: ignore[operator]


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_intervals_hold(delta: float) -> None:
    """Fails when an interval is too short. 200 draws of 6 intervals of 95 %: of each, fewer than 178 hold with a chance
    below 2e-4 (binomial), so that a right interval is accused less than once in 800 runs; the seeds are fixed."""
    texts = ["count", "sum(bmi)", "mean(age)", "variance(age)", "covariance(age, bmi)", "mean(bmi) where sick = 1"]
    age, bmi = TABLE["age"].to_numpy(), TABLE["bmi"].to_numpy()
    sick = TABLE["sick"].to_numpy() == 1
    truth = [ROWS, bmi.sum(), age.mean(), age.var(), np.cov(age, bmi, bias=True)[0, 1], bmi[sick].mean()]
    made = plan(texts, SCHEMA, epsilon=1.0, delta=delta)
    totals, held = made.tally(made.open(TABLE)), np.zeros(len(texts))
    rng = SeededRng(11)
    for _ in range(200):
        found = made.draw(totals, rng=rng).value
        held += [row.low <= true <= row.high for (row,), true in zip([each.rows for each in found], truth, strict=True)]
    assert (held >= 178).all(), held


def test_an_interval_is_not_wide_for_nothing() -> None:
    """Fails when the interval of a mean is more than three times what the noise of its two sums makes of it."""
    (answer,) = answers(["mean(age)"], epsilon=1.0)
    row = answer.rows[0]
    assert row.low is not None
    assert row.high is not None
    assert 0 < row.high - row.low < 3 * 2 * 100 * 4.0 / ROWS


def test_clamping_is_said_separately() -> None:
    """Fails when an answer about clamped numbers does not say that its interval is without their bias."""
    (mean, count) = answers(["mean(age)", "count"])
    assert any("that bias is not in the interval" in note for note in mean.notes)
    assert count.notes == ()
    (low,) = answers(["min(age)"])
    assert any("1 % quantile" in note for note in low.notes)
    (low,) = answers(["min(age)"], TABLE, sourced(Schema(SCHEMA.columns, rows=ROWS)), epsilon=1.0)
    assert any("this is the 0.8 % quantile" in note for note in low.notes)


@pytest.mark.parametrize(
    ("text", "epsilon", "rows", "wanted"),
    [
        ("min(age)", 1.0, 10_000, 0.002),
        ("min(age)", 0.1, 10_000, 0.023),
        ("max(age)", 0.1, 10_000, 0.977),
        ("max(age) by ward", 0.1, 10_000, 0.931),
        ("min(age)", 1e-3, 10_000, 0.25),
        ("min(age)", 1.0, 10**8, 0.001),
        ("min(age)", 0.1, None, 0.01),
        ("quantile(age, 0.3)", 1e-3, 10_000, 0.3),
    ],
)
def test_an_extreme_is_as_far_out_as_its_epsilon_allows(
    text: str, epsilon: float, rows: int | None, wanted: float
) -> None:
    """Fails when the quantile that stands for an extreme does not follow the rule: 2·ln(1024/0.01)/ε rows beyond it."""
    made = plan(text, sourced(Schema(SCHEMA.columns, rows=rows)), epsilon=epsilon)
    assert made.methods[0].quantile == pytest.approx(wanted)


def test_an_extreme_with_little_epsilon_is_not_noise() -> None:
    """Fails when the largest of many values comes out of an empty end of the bounds: ages end at 60 of 1,000, where the
    quantile beyond which 30 rows lie would be lost at ε = 0.05 in nearly every draw.

    One draw in 100 may go astray; more than 4 of 60 do once in 3,000 runs; seeded."""
    table = pl.DataFrame({"age": [20 + n % 41 for n in range(50_000)]})
    made = plan("max(age)", sourced(Schema((Number("age", 0, 1000),), rows=50_000)), epsilon=0.05)
    totals, rng = made.tally(made.open(table)), SeededRng(4)
    found = [made.draw(totals, rng=rng).value[0].value for _ in range(60)]
    assert sum(value > 62 for value in found) <= 4
    assert min(found) > 50


def test_counts_agree() -> None:
    """Fails when groups of the same rows add up to different numbers, or a count is negative."""
    total, wards, ages, sick = answers(
        ["count", "count by ward", "histogram(age, 50)", "count where sick = 1"], epsilon=0.05
    )
    assert sum(row.value for row in wards.rows) == pytest.approx(total.value)
    assert sum(row.value for row in ages.rows) == pytest.approx(total.value)
    assert all(row.value >= 0 for answer in (total, wards, ages, sick) for row in answer.rows)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_agreement_leaves_no_value_outside_of_its_interval(delta: float) -> None:
    """Fails when a count that was made to agree lies outside of the interval beside it, or the interval holds the truth
    less often. 300 draws: of each of 6 right intervals of 95 %, fewer than 270 hold once in 8,000 runs; seeded."""
    texts = ["count", "count by ward", "histogram(sick)", "histogram(age, 40)", *(["count by sick"] if delta else [])]
    made = plan(texts, SCHEMA, epsilon=0.3, delta=delta)
    totals, rng = made.tally(made.open(TABLE)), SeededRng(6)
    sick = int(TABLE["sick"].sum())
    wards = [len(TABLE.filter(pl.col("ward") == ward)) for ward in ("north", "south", "west")]
    truth = [ROWS, *wards, ROWS - sick, sick]
    held = np.zeros(len(truth))
    for _ in range(300):
        found = made.draw(totals, rng=rng).value
        for answer in found:
            assert all(row.low <= row.value <= row.high for row in answer.rows)  # type: ignore[operator]
        rows = [found[0].rows[0], *found[1].rows, *found[2].rows[:2]]
        held += [row.low <= true <= row.high for row, true in zip(rows, truth, strict=True)]  # type: ignore[operator]
    assert (held >= 270).all(), held


def test_agreement_makes_the_total_better() -> None:
    """Fails when estimates are not weighed by their variances: then the error of the total would not fall."""
    rng = np.random.default_rng(5)
    raw, best = [], []
    for _ in range(400):
        total = np.array([1000 + rng.normal(0, 10)])
        parts = np.array([300.0, 700.0]) + rng.normal(0, 3, 2)
        raw.append(total[0] - 1000)
        best.append(agreed([total, parts], [100.0, 9.0])[0][0] - 1000)
    assert np.std(best) < 0.5 * np.std(raw)
    assert np.std(best) == pytest.approx(math.sqrt(1 / (1 / 100 + 1 / 18)), rel=0.15)


def test_projection_is_the_nearest() -> None:
    """Fails when another point of the simplex is nearer than the one that was found."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        values, total = rng.normal(0, 5, 4), 6.0
        found = projected(values, total)
        assert found.sum() == pytest.approx(total)
        others = rng.dirichlet(np.ones(4), 200) * total
        assert (np.linalg.norm(values - others, axis=1) >= np.linalg.norm(values - found) - 1e-9).all()
    assert projected(np.array([1.0, 2.0]), 0.0).tolist() == [0.0, 0.0]


def test_moments_are_exact_without_noise() -> None:
    """Fails when a polynomial or a centre is wrong: sums of a known sample give its moments."""
    u, w = np.array([0.0, 0.25, 0.5, 1.0]), np.array([1.0, 0.5, 0.75, 0.0])
    assert moments.mean([(1 - u).sum(), u.sum()], 0.0).value == pytest.approx(u.mean())
    found = moments.variance([((1 - u) ** 2).sum(), (2 * u * (1 - u)).sum(), (u * u).sum()], 0.0)
    assert (found.value, found.low, found.high) == pytest.approx((u.var(),) * 3)
    sums = [((1 - u) * (1 - w)).sum(), ((1 - u) * w).sum(), (u * (1 - w)).sum(), (u * w).sum()]
    assert moments.covariance(sums, 0.0).value == pytest.approx(np.cov(u, w, bias=True)[0, 1])


def test_corners_bound_the_box() -> None:
    """Fails when some true sums within the box have a mean, variance or covariance outside of the interval."""
    rng = np.random.default_rng(9)
    for estimate, count in ((moments.mean, 2), (moments.variance, 3), (moments.covariance, 4)):
        for _ in range(60):
            sums, width = rng.uniform(0, 40, count), rng.uniform(0.1, 30)
            found = estimate(sums.tolist(), width)
            for _ in range(40):
                true = np.maximum(sums + rng.uniform(-width, width, count), 1e-9)
                assert found.low - 1e-9 <= estimate(true.tolist(), 0.0).value <= found.high + 1e-9


def test_a_user_needs_a_limit() -> None:
    """Fails when users without a limit on their rows could be asked about: nothing would bound them."""
    schema = sourced(Schema((Number("x", 0, 1), Identifier("id")), user="id"))
    with pytest.raises(InvalidInput, match="most_rows_per_user is missing"):
        plan("count", schema, epsilon=1.0)


@pytest.mark.parametrize("bounds", [(0.0, 5e-324), (0.0, 1e-310), (-5e-324, 5e-324), (0.0, 1e308)], ids=str)
@pytest.mark.parametrize(
    "text", ["mean(x)", "sum(x)", "variance(x)", "covariance(x, x)", "median(x)", "min(x)", "histogram(x, 4)"]
)
def test_bounds_that_float64_cannot_count_between(text: str, bounds: tuple[float, float]) -> None:
    """Fails when such bounds divide by zero, or are found out by a row: NaN is no whole number."""
    schema = sourced(Schema((Number("x", *bounds), Category("g", ("a",)))))
    with pytest.raises(InvalidInput, match="out of float64's reach; use another unit of measure"):
        plan(text, schema, epsilon=1.0)
    table = pl.DataFrame({"x": [0.0, 1.0, None, math.inf], "g": "a"})
    assert len(answers([f"count where x < {bounds[1]!r}"], table, schema)) == 1


def test_a_table_without_a_column_is_refused(tmp_path: Path) -> None:
    """Fails when a table that lacks a column, has one that the schema lacks, or has dates in it, is only refused after
    it was charged."""
    made = plan("mean(age)", SCHEMA, epsilon=1.0)
    with pytest.raises(InvalidInput, match="have no column 'age'"):
        made.open(TABLE.drop("age"))
    more = TABLE.with_columns(patient=1)
    more.write_csv(tmp_path / "t.csv")
    more.write_parquet(tmp_path / "t.parquet")
    for table in (more, tmp_path / "t.csv", tmp_path / "t.parquet"):
        with pytest.raises(InvalidInput, match="have a column 'patient', which the schema lacks"):
            made.open(table)
    with pytest.raises(InvalidInput, match="have Date in 'age'"):
        made.open(TABLE.with_columns(age=pl.lit("2020-01-01").str.to_date()))


def test_a_box_has_the_confidence_of_all_its_sides() -> None:
    """Fails when each of several noisy sums gets the confidence that all of them together should have."""
    method = plan("variance(age)", SCHEMA, epsilon=1.0).methods[0]
    assert method.joint_width(0.95) == method.additive.interval(1 - 0.05 / 3) > method.width(0.95)


def test_rounding_is_in_the_interval_of_a_variance() -> None:
    """Fails when numbers are rounded to a grid and the interval does not say so: with two million rows, whose values
    were chosen to be rounded apart, the noise is less than that."""
    low, high = (3277 - 0.51 + 1) / 32768 * 100, (29491 + 0.51) / 32768 * 100
    x = np.where(np.arange(2_000_000) % 2 == 0, low, high)
    made = plan(
        ["variance(x)", "covariance(x, w)"], sourced(Schema((Number("x", 0, 100), Number("w", 0, 100)))), epsilon=1.0
    )
    answers = made.answer(pl.DataFrame({"x": x, "w": x}), rng=SeededRng(1)).value
    for answer in answers:
        (row,) = answer.rows
        assert row.low is not None
        assert row.high is not None
        assert row.low <= x.var() <= row.high
        assert row.high - row.low < 0.01 * row.value
