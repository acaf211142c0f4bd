"""The schema as records and as TOML: both ways, and every mistake with its line and column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privet.core.errors import InvalidInput
from privet.data import Category, Column, Identifier, Missing, Number, Outside, Schema, Task, adult_schema

names = st.text(min_size=1, max_size=12).map(str.strip).filter(bool)
finite = st.floats(-1e9, 1e9)


@st.composite
def columns(draw: st.DrawFn, name: str) -> Column:
    kind = draw(st.sampled_from(["number", "category", "identifier"]))
    if kind == "identifier":
        return Identifier(name)
    if kind == "category":
        values = tuple(draw(st.lists(names, unique=True, max_size=4)))
        return Category(name, values, draw(st.sampled_from([None, *values])))
    low = draw(finite)
    high = low + draw(st.floats(0.001, 1e9))
    rule = draw(st.one_of(st.sampled_from(Missing), st.just(low)))
    return Number(name, low, high, rule, draw(st.sampled_from(Outside)))


@given(st.data())
def test_toml_both_ways(data: st.DataObject) -> None:
    """Fails when a field is not written, reads back as something else, or a letter in it needs an escape."""
    called = data.draw(st.lists(names, unique=True, min_size=1, max_size=5))
    listed = [Number("a feature", 0, 1), *(data.draw(columns(name)) for name in called if name != "a feature")]
    users = [column.name for column in listed if isinstance(column, Identifier)]
    user = data.draw(st.sampled_from([None, *users]))
    schema = Schema(
        tuple(listed),
        data.draw(st.sampled_from([None, *(each.name for each in listed[1:] if not isinstance(each, Identifier))])),
        data.draw(st.one_of(st.none(), st.integers(1, 10**9))),
        user,
        None if user is None else data.draw(st.one_of(st.none(), st.integers(1, 9))),
        ("no such value, surely",),
        data.draw(st.sampled_from([",", ";", "\t", "|"])),
    )
    assert Schema.from_toml(schema.to_toml("A comment\nof two lines")) == schema


HEAD = 'privet = 1\ntarget = "y"\n'
X = '[[column]]\nname = "x"\nkind = "number"\nlow = 0\nhigh = 1\n'
Y = '[[column]]\nname = "y"\nkind = "category"\nvalues = ["a", "b"]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("privet = ", "is not TOML: Invalid value"),
        (X + Y, "has no version; begin it with: privet = 1"),
        ("privet = 2\n", "has the version 2"),
        (HEAD + X + Y.replace("values", "vales"), "line 11: column 'y' has `vales`, which means nothing for kind"),
        (HEAD + X.replace("high = 1", "high = -1") + Y, "line 7: column 'x': high is -1, and low is 0"),
        (HEAD + X.replace('"number"', '"numbr"') + Y, "line 5: column 'x' has the kind 'numbr'; use one of: number"),
        (HEAD + X.replace("low = 0\n", "") + Y, "line 3: column 'x' has no `low`"),
        (HEAD + X + Y.replace('["a", "b"]', "[0, 1]"), "line 11: column 'y': values are not all texts"),
        (HEAD + X + Y.replace('["a", "b"]', '"ab"'), "line 11: column 'y': values is not a list"),
        (HEAD + X + Y.replace('"b"', '"?"'), "values of 'y' have '?', which also counts as missing"),
        (HEAD + X, "line 2: target is 'y', which is not among the columns"),
        ("privet = 1\nrow = 3\n" + X, "line 2: has `row`, which means nothing; use one of: column, target, rows"),
        ("privet = 1\nrows = 0\n" + X, "line 2: rows is 0"),
        ("privet = 1\nuser = 3\n" + X, "line 2: user is not a text"),
        ('privet = 1\nuser = "x"\n' + X, "line 2: user is 'x', which is no identifier"),
        ("privet = 1\nmost_rows_per_user = 2\n" + X, "line 2: most_rows_per_user is given without user"),
        (HEAD + X + X + Y, "columns have 'x' twice"),
        (HEAD + Y, "columns have none to learn from"),
        ('privet = 1\nseparator = "ab"\n' + X, "line 2: separator is 'ab'"),
    ],
)
def test_what_is_wrong_is_shown_where_it_stands(text: str, said: str) -> None:
    """Fails when a mistake passes, or is reported without its line and column."""
    with pytest.raises(InvalidInput) as caught:
        Schema.from_toml(text)
    assert said in str(caught.value)
    assert str(caught.value).startswith("schema ")


def test_numbers_follow_their_rules() -> None:
    """Fails when a rule for missing or outside values is mixed up with another, or a bound is off."""
    values = np.array([0.0, 5.0, 10.0, -7.0, 11.0, np.inf, np.nan])
    clamped = [-1, 0, 1, -1, 1, 1]
    for rule, last in ((Missing.LOW, -1.0), (Missing.MIDDLE, 0.0), (Missing.HIGH, 1.0), (2.5, -0.5)):
        assert Number("x", 0, 10, rule).scaled(values).tolist() == [*clamped, last]
    told = Number("x", 0, 10, outside=Outside.MISSING).scaled(values)
    assert np.isnan(told).tolist() == [False] * 3 + [True] * 4
    assert Number("x", -8e307, 8e307).scaled(np.array([1.7e308, -1.7e308])).tolist() == [
        1,
        -1,
    ]  # no overflow on the way
    assert Number("x", 0, 10).unscaled(np.array([-1.0, 0.5, 1.0])).tolist() == [0.0, 7.5, 10.0]


@given(finite, st.floats(1e-6, 1e9), st.floats(allow_nan=False))
def test_a_scaled_number_is_within_its_bounds(low: float, width: float, value: float) -> None:
    """Fails when rounding or overflow lets a scaled number leave [-1, 1], which clips and sensitivities rely on."""
    if low + width > low:
        assert -1 <= Number("x", low, low + width).scaled(np.array([value]))[0] <= 1


def test_the_schema_of_adult_is_that_of_its_documentation() -> None:
    """Fails when the packaged file is lost, or a list of values is cut."""
    schema = adult_schema()
    assert schema.task is Task.CLASSIFICATION
    assert schema.classes == ("<=50K", ">50K")
    sizes = {column.name: len(column.values) for column in schema.features if isinstance(column, Category)}
    assert sizes == {
        "workclass": 8,
        "education": 16,
        "marital-status": 7,
        "occupation": 14,
        "relationship": 6,
        "race": 5,
        "sex": 2,
        "native-country": 41,
    }
