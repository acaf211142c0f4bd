"""The language: what it understands, and where it points when it does not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privet.core.errors import InvalidInput
from privet.data import Category, Number, Schema
from privet.query import (
    All,
    AnyOf,
    CellComparison,
    CountMeasure,
    CovarianceMeasure,
    HistogramMeasure,
    IsMissing,
    MalformedQuestion,
    MaximumMeasure,
    MeanMeasure,
    MinimumMeasure,
    Not,
    OneOf,
    Op,
    QuantileMeasure,
    Question,
    SumMeasure,
    TopKMeasure,
    VarianceMeasure,
    parse,
    plan,
)
from privet.query.tokens import suggestion
from tests.query.tables import SCHEMA

GOOD = {
    "count": Question(CountMeasure()),
    "COUNT(*)": Question(CountMeasure()),
    "sum(age)": Question(SumMeasure("age")),
    "mean(age) by ward, sick": Question(MeanMeasure("age"), by=("ward", "sick")),
    "variance(bmi) weight 2.5": Question(VarianceMeasure("bmi"), weight=2.5),
    "histogram(age, 5)": Question(HistogramMeasure("age", 5)),
    "histogram(ward)": Question(HistogramMeasure("ward")),
    "median(age)": Question(QuantileMeasure("age", 0.5)),
    "quantile(age, 0.9)": Question(QuantileMeasure("age", 0.9)),
    "min(age)": Question(MinimumMeasure("age")),
    "max(age)": Question(MaximumMeasure("age")),
    "top(ward, 2)": Question(TopKMeasure("ward", 2)),
    "covariance(age, bmi)": Question(CovarianceMeasure("age", "bmi")),
    "count by ward where age >= 65": Question(CountMeasure(), CellComparison("age", Op.AT_LEAST, "65"), ("ward",)),
    "count where ward = 'north'": Question(CountMeasure(), CellComparison("ward", Op.EQUAL, "north")),
    "count where age > 1 and bmi < 20 or sick <> 1": Question(
        CountMeasure(),
        AnyOf(
            (
                All((CellComparison("age", Op.MORE, "1"), CellComparison("bmi", Op.LESS, "20"))),
                CellComparison("sick", Op.UNEQUAL, "1"),
            )
        ),
    ),
    "count where not (age = 1 or age is missing)": Question(
        CountMeasure(), Not(AnyOf((CellComparison("age", Op.EQUAL, "1"), IsMissing("age"))))
    ),
    'count where ward not in (north, "south")': Question(CountMeasure(), Not(OneOf("ward", ("north", "south")))),
    "count where age > -1.5e1": Question(CountMeasure(), CellComparison("age", Op.MORE, "-1.5e1")),
}


@pytest.mark.parametrize("text", GOOD)
def test_a_question_means_what_it_says(text: str) -> None:
    """Fails when `and` does not bind before `or`, a clause is lost, or the written form would mean something else."""
    found = parse(text, SCHEMA)
    assert found == GOOD[text]
    again = parse(str(found), SCHEMA)
    assert str(again) == str(found)
    assert (again.measure, again.by) == (found.measure, found.by)


BAD = {
    "": (1, "", "use one of: count"),
    "average(age)": (1, "average", "write mean"),
    "cont": (1, "cont", "did you mean count?"),
    "mean age": (6, "age", "as in mean(age)"),
    "count where ward = NORTH": (20, "NORTH", "did you mean north?"),
    "count where age >= 101": (20, "101", "compare it with a number between"),
    "count where age > 100": (19, "100", "compare it with a number between"),
    "count where not age < 0": (23, "0", "compare it with a number between"),
    "count where age in (5, 200)": (24, "200", "compare it with a number between"),
    "mean(agee)": (6, "agee", "did you mean age?"),
    "mean(age": (9, "", "expected `)`"),
    "mean(age))": (10, ")", "expected where, by, weight or the end"),
    "mean(ward)": (6, "ward", "low and high"),
    "mean(id)": (6, "id", "identifier"),
    "mean(where)": (6, "where", "the name of a column"),
    "count(age)": (7, "age", "is not missing"),
    "count wher age > 1": (7, "wher", "expected where"),
    "count where": (12, "", "the name of a column"),
    "count where age": (16, "", "=, !="),
    "count where age >": (18, "", "a number or a text"),
    "count where age > old": (19, "old", "compare it with a number"),
    "count where ward = west": (20, "west", "use one of: north, south"),
    "count where ward > north": (13, "ward", "use = or !="),
    "count where age > 1 by ward where sick = 1": (29, "where", "once"),
    "count where (age > 1": (21, "", "expected `)`"),
    "count where not not age > 1": (13, "not", "one is enough"),
    "count where ward = 'north": (20, "'north", "end it with '"),
    "count where age = 18-25": (21, "-25", "expected where"),
    "count # all": (7, "#", "in quotes"),
    "count by age": (10, "age", "histogram(age, 10)"),
    "count by ward, ward": (16, "ward", "once"),
    "mean(age) by age": (14, "age", "histogram(age, 10)"),
    "count where ward = north and ward > 3": (30, "ward", "use = or !="),
    "count where age = 5 and ward = 5": (32, "5", "use one of: north, south"),
    "count where ward = ward": (20, "ward", "use one of: north, south"),
    "count where age > 5 and not age in (7, 500)": (40, "500", "compare it with a number between"),
    "top(ward, 3e0)": (11, "3e0", "fewer"),
    "count weight 0": (14, "0", "above 0"),
    "count weight heavy": (14, "heavy", "such as 2"),
    "quantile(age, 1)": (15, "1", "between 0 and 1"),
    "quantile(age)": (13, ")", "quantile(age, 0.25)"),
    "histogram(age, 2.5)": (16, "2.5", "such as 5"),
    "histogram(ward, 3)": (11, "ward", "leave them out"),
    "top(age, 2)": (5, "age", "histogram"),
    "top(ward, 3)": (11, "3", "fewer"),
    "top(ward, 1) by sick": (17, "sick", "no groups"),
    "covariance(age)": (15, ")", "a second column"),
}


@pytest.mark.parametrize("text", BAD)
def test_an_error_points_at_the_word(text: str) -> None:
    """Fails when an error names the wrong word or place, gives no advice, or takes more than one line."""
    position, word, advice = BAD[text]
    with pytest.raises(MalformedQuestion) as caught:
        parse(text, SCHEMA)
    assert (caught.value.position, caught.value.word) == (position, word)
    assert advice in str(caught.value)
    assert "\n" not in str(caught.value)
    assert f"»{word}«" in str(caught.value)


@pytest.mark.parametrize("text", BAD)
def test_a_plan_refuses_it_too(text: str) -> None:
    """Fails when a bad question becomes a plan, which could be charged."""
    with pytest.raises(InvalidInput):
        plan(text, SCHEMA, epsilon=1.0)


def test_a_record_is_checked_like_a_text() -> None:
    """Fails when a typed question escapes the checks of the parser."""
    for question in (
        Question(MeanMeasure("agee")),
        Question(MeanMeasure("ward")),
        Question(CountMeasure(), by=("age",)),
    ):
        with pytest.raises(InvalidInput):
            plan(question, SCHEMA, epsilon=1.0)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from([*"(),=<>'\"#", " ", "count", "mean", "age", "where", "by", "not", "in", "1", "é"]), max_size=9
    )
)
def test_no_text_surprises_the_parser(words: list[str]) -> None:
    """Fails when some text ends in anything but a question or an error of ours."""
    text, position = " ".join(words), 1
    try:
        parse(text, SCHEMA)
    except MalformedQuestion as error:
        position = error.position
    assert 1 <= position <= len(text) + 1


def test_names_with_other_signs_are_quoted() -> None:
    """Fails when a column or value that is no plain word cannot be asked for."""
    schema = Schema((Number("hours per week", 0, 100), Category("by", ("18-25", "it's"))))
    question = parse('mean("hours per week") where `by` in ("18-25", "it\'s") by "by"', schema)
    assert question == Question(MeanMeasure("hours per week"), OneOf("by", ("18-25", "it's")), ("by",))
    assert parse(str(question), schema) == question


def test_a_suggestion_does_not_depend_on_capitals() -> None:
    """Fails when male is taken for Female, with which it shares more letters than with Male."""
    assert suggestion("male", ("Female", "Male")).startswith("did you mean Male?")
