"""How far one unit moves what is counted: enumerated on small tables, in whole numbers, against the stated reach."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from privet.data import Category, Identifier, Number, Schema
from privet.query import parse
from privet.query.question_spec import GRAIN, QuestionSpec
from privet.query.table_source import TableSource
from privet.query.tally import Totals, tally_rows
from tests.data.sources import sourced
from tests.query.tables import BY_USER, NASTY, QUESTIONS, SCHEMA, frame

CELLS = ["-9", "-1", "0", "1/3", "1", "7", ""]
SMALL = sourced(Schema((Number("x", 0, 1), Number("y", -2, 3), Category("g", ("a", "b")))))
MIRRORED = sourced(Schema((Number("x", 0, 1), Number("y", -3, 2), Category("g", ("a", "b")))))
"""The bound that is larger is below 0: a row moves a sum furthest down."""


def totals(spec: QuestionSpec, table: pl.DataFrame) -> Totals:
    source = TableSource.of(table, spec.schema, table.columns)
    return tally_rows([spec], source)[0]


def distances(spec: QuestionSpec, one: Totals, other: Totals) -> dict[str, Fraction]:
    """How far two lists of sums are apart, in the units of the reach, exactly."""
    gap = [
        abs(Fraction(int(a) - int(b))) * Fraction(spec.step)
        for a, b in zip(one.public.flat, other.public.flat, strict=True)
    ]
    squares = sum(each * each for each in gap)
    return {
        "l0": Fraction(sum(each > 0 for each in gap)),
        "l1": Fraction(sum(gap)),
        "squared": Fraction(squares),
        "linf": max(gap),
    }


def require_within(spec: QuestionSpec, moved: dict[str, Fraction]) -> None:
    reach = spec.histogram.reach if spec.ranked else spec.reach(len(spec.groups or ()))
    for norm in ("l1", "linf"):
        assert moved[norm] <= reach.distance(norm), (norm, moved)
    assert moved["squared"] <= reach.distance("l2") ** 2
    if not spec.ranked:
        assert moved["l0"] <= reach.distance("l0")


MOMENTS = ("mean(x)", "variance(x)", "covariance(x, y)", "sum(y)", "mean(y) by g", "count by g")


@pytest.mark.parametrize(
    ("text", "schema"),
    [*((text, SMALL) for text in MOMENTS), ("sum(y)", MIRRORED)],
    ids=[*MOMENTS, "sum(y), mirrored"],
)
def test_one_record_moves_it_no_further_than_stated(text: str, schema: Schema) -> None:
    """Fails when a mean, variance, covariance or sum moves further than its reach when one record goes, or the reach is
    more than a record can do, whichever bound is the larger: every table of two records over seven cells, in both
    columns."""
    spec = QuestionSpec(parse(text, schema), schema)
    rows = [{"x": x, "y": y, "g": g} for x, y, g in itertools.product(CELLS, CELLS, ["a", "c"])]
    types = {"x": pl.String, "y": pl.String, "g": pl.String}
    alone = {place: totals(spec, pl.DataFrame([row], schema=types)) for place, row in enumerate(rows)}
    none = totals(spec, pl.DataFrame([], schema=types))
    furthest = Fraction(0)
    for one in alone.values():
        moved = distances(spec, one, none)
        require_within(spec, moved)
        furthest = max(furthest, moved["l1"])
    assert furthest == spec.reach(len(spec.groups or ())).distance("l1")  # no noise is wasted
    for first, second in itertools.product(range(0, len(rows), 5), range(0, len(rows), 7)):
        both = totals(spec, pl.DataFrame([rows[first], rows[second]], schema=types))
        np.testing.assert_array_equal(both.public, alone[first].public + alone[second].public)  # rows only ever add


@pytest.mark.parametrize("schema", [SCHEMA, BY_USER], ids=["example", "user"])
@pytest.mark.parametrize("text", QUESTIONS)
def test_one_unit_of_a_nasty_table(text: str, schema: Schema) -> None:
    """Fails when some cell (infinite, huge, missing, of another kind), or a user with more rows than are used, moves
    anything further than stated."""
    spec = QuestionSpec(parse(text, schema), schema)
    whole = totals(spec, frame(NASTY))
    for name in {row["id"] for row in NASTY} if schema.user else range(len(NASTY)):
        rest = [row for place, row in enumerate(NASTY) if name not in ((row["id"],) if schema.user else (place,))]
        require_within(spec, distances(spec, whole, totals(spec, frame(rest))))
        doubled = totals(spec, frame([*NASTY, *NASTY])) if schema.user else None
        if doubled is not None:
            others = totals(spec, frame([*rest, *rest]))
            require_within(spec, distances(spec, doubled, others))


@pytest.mark.parametrize("text", ["mean(x)", "variance(x)", "covariance(x, y)"])
def test_polynomials_add_up_to_one_for_every_row(text: str) -> None:
    """Fails when the sums of a row do not add up to exactly one, or one is negative: then the L1 bound is wrong."""
    spec = QuestionSpec(parse(text, SMALL), SMALL)
    for x, y in itertools.product(["0", "0.1", "0.7", "1", "5"], ["-2", "0.3", "3"]):
        row = totals(spec, pl.DataFrame([{"x": x, "y": y, "g": "a"}])).public
        assert row.sum() == 1 << GRAIN
        assert (row >= 0).all()


def test_a_forgotten_factor_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the checks above would let pass a reach of half of what a user's rows move."""
    spec = QuestionSpec(parse("mean(age)", BY_USER), BY_USER)
    moved = distances(
        spec,
        totals(spec, frame(NASTY)),
        totals(spec, frame([row for row in NASTY if row["id"] != "a"])),
    )
    require_within(spec, moved)
    monkeypatch.setattr(QuestionSpec, "bound", property(lambda self: 1 << (GRAIN - 1)))
    with pytest.raises(AssertionError):
        require_within(spec, moved)


def test_users_are_limited_across_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a user's rows are limited in each piece of a table and not in all of it, or rows of nobody count."""
    schema = sourced(Schema((Number("x", 0, 1), Identifier("id")), user="id", most_rows_per_user=3))
    table = pl.DataFrame({"x": [1.0] * 60, "id": ["a", "b", ""] * 20})
    monkeypatch.setattr("privet.query.table_source._SLICE", 7)
    assert totals(QuestionSpec(parse("count", schema), schema), table).public.tolist() == [[6]]
