"""What a guarantee says about sources: every column that was read, the right person, the right kind."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest

from privet import query
from privet.core.errors import InvalidInput
from privet.data import BoundsSource, Category, Number, Schema, SourceKind, is_vouched, require_vouched
from privet.data.bounds_source import assumptions_of

DAY = date(2026, 11, 18)
STATEMENTS = {
    SourceKind.CODEBOOK: "come from a codebook and not from the private rows",
    SourceKind.DOMAIN_LIMIT: "are limits of the domain and were not read from the private rows",
    SourceKind.PUBLIC_DATA: "were read from public data and not from the private rows",
    SourceKind.LEARNED: "were learned under the budget of these rows; the cost of learning them is part of this ε only "
    "if the same run learned them",
}


def named(kind: SourceKind, by: str = "Ada") -> BoundsSource:
    return BoundsSource(kind, by, DAY)


@pytest.mark.parametrize("kind", SourceKind)
def test_source_of_a_file_needs_a_name(kind: SourceKind) -> None:
    """Fails when nobody needs to vouch for some kind of source: also "learned under the budget" is only a claim."""
    schema = Schema((Number("age", 0, 9, source=BoundsSource(kind)),))
    with pytest.raises(InvalidInput, match="names nobody who vouches for the source of 'age'"):
        require_vouched(schema, "s.toml")
    require_vouched(Schema((Number("age", 0, 9, source=named(kind)),)), "s.toml")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_source_missing_in_one_column_is_enough_to_refuse(place: int) -> None:
    """Fails when a column without a source, or without a name, passes because others have one."""
    for bad, problem in ((None, "has no source"), (BoundsSource(SourceKind.CODEBOOK), "names nobody")):
        sources = [bad if each == place else named(SourceKind.CODEBOOK) for each in range(3)]
        columns = tuple(Number(f"n{each}", 0, 1, source=source) for each, source in enumerate(sources))
        with pytest.raises(InvalidInput, match=rf"{problem} .*'n{place}'"):
            require_vouched(Schema(columns), "s.toml")


@pytest.mark.parametrize("without", ["age", "ward", "sick"])
def test_source_is_needed_for_every_column_that_a_question_reads(without: str) -> None:
    """Fails when the column of a condition or of groups may lack a source that the averaged one has."""
    sources = {name: None if name == without else "codebook" for name in ("age", "ward", "sick")}
    schema = Schema(
        (
            Number("age", 0, 100, source=sources["age"]),
            Category("ward", ("a", "b"), source=sources["ward"]),
            Category("sick", ("0", "1"), source=sources["sick"]),
        )
    )
    with pytest.raises(InvalidInput, match=f"no source for the bounds or values of '{without}'"):
        query.plan("mean(age) by ward where sick = 1", schema, epsilon=1.0)


def test_source_of_one_person_is_not_stated_for_another() -> None:
    """Fails when columns of one kind are put together under the person, or the date, of the first."""
    columns = [
        ("a", named(SourceKind.CODEBOOK)),
        ("b", named(SourceKind.CODEBOOK, "Bo")),
        ("c", named(SourceKind.CODEBOOK)),
        ("d", BoundsSource(SourceKind.CODEBOOK, "Ada", date(2025, 1, 1))),
    ]
    said = assumptions_of(columns)
    codebook = STATEMENTS[SourceKind.CODEBOOK]
    assert said == (
        f"the bounds or values of 'a', 'c' {codebook} (Ada vouched for this on 2026-11-18)",
        f"the bounds or values of 'b' {codebook} (Bo vouched for this on 2026-11-18)",
        f"the bounds or values of 'd' {codebook} (Ada vouched for this on 2025-01-01)",
    )


@pytest.mark.parametrize("kind", SourceKind)
def test_source_is_stated_as_what_it_is(kind: SourceKind) -> None:
    """Fails when a guarantee leaves out a source for which nobody is named, or states another kind."""
    (said,) = assumptions_of([("age", BoundsSource(kind))])
    assert said == f"the bounds or values of 'age' {STATEMENTS[kind]} (as stated; nobody is named)"


def test_source_of_many_columns_says_how_many() -> None:
    """Fails when a guarantee rests on columns that it does not mention."""
    columns = [(f"n{place}", named(SourceKind.CODEBOOK)) for place in range(11)]
    (said,) = assumptions_of(columns)
    assert "'n7' and 3 more columns" in said
    assert "more" not in assumptions_of(columns[:8])[0]


def test_source_learned_and_vouched_for_says_that_its_cost_is_elsewhere() -> None:
    """Fails when a guarantee lets its readers believe that ε pays for bounds that a file says were learned."""
    (said,) = assumptions_of([("age", named(SourceKind.LEARNED))])
    assert said == (
        "the bounds or values of 'age' were learned under the budget of these rows; the cost of learning them is not "
        "part of this ε (Ada vouched for this on 2026-11-18)"
    )


def test_source_with_a_date_in_the_future_is_refused() -> None:
    """Fails when somebody vouches on a day that has not come in any time zone, or tomorrow is refused in UTC."""
    today = datetime.now(UTC).date()
    for days in (0, 1):
        source = BoundsSource(SourceKind.CODEBOOK, "Ada", today + timedelta(days=days))
        require_vouched(Schema((Number("age", 0, 9, source=source),)), "s.toml")
    late = Number("age", 0, 9, source=BoundsSource(SourceKind.CODEBOOK, "Ada", today + timedelta(days=2)))
    with pytest.raises(InvalidInput, match="date in the future for the source of 'age'"):
        require_vouched(Schema((late,)), "s.toml")
    assert not is_vouched(late)


def test_source_refusal_shows_a_line_that_is_accepted() -> None:
    """Fails when whoever writes by hand what a refusal shows is refused again."""
    text = 'privet = 1\n[[column]]\nname = "age"\nkind = "number"\nlow = 0\nhigh = 9\n'
    for more in ("", 'source = "codebook"\n'):
        with pytest.raises(InvalidInput) as refusal:
            require_vouched(Schema.from_toml(text + more), "s.toml")
        (line,) = re.findall(r"source = \{.*\}", str(refusal.value))
        require_vouched(Schema.from_toml(text + line), "s.toml")
