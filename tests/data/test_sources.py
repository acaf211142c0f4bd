"""Sources of bounds and values: what has none supports no guarantee, and what has one is stated with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from privet import query
from privet.core.errors import InvalidInput
from privet.data import (
    BoundsSource,
    Category,
    Identifier,
    Number,
    Schema,
    SourceKind,
    adult_schema,
    draft,
    load_schema,
    require_vouched,
    seal_of,
    with_sources,
)
from privet.training.convex import InputPerturbation
from tests.data.sources import VOUCHED, vouched

DRAFTED = """\
# my notes
privet = 1
target = "well"

[[column]]
name = "who"
kind = "identifier"

[[column]]
name = "age"  # in years
kind = "number"
low = 0
high = 120
# the next one was asked on paper
[[column]]
name = "ward"
kind = "category"
values = [
    "north",
    "south",
]

[[column]]
name = "town"
kind = "category"
values = []

[[column]]
name = "well"
kind = "category"
values = ["no", "yes"]
"""


def test_sources_survive_toml() -> None:
    """Fails when a source, its person, date or reference is lost or changed on the way to a file and back."""
    sources = (
        "domain limit",
        SourceKind.LEARNED,
        VOUCHED,
        BoundsSource(SourceKind.PUBLIC_DATA, 'Bo "B" O\'Hara', date(2025, 1, 2), "p. 12, \\ and ö"),
        None,
    )
    columns = tuple(Number(f"n{place}", 0, 1, source=each) for place, each in enumerate(sources))
    schema = Schema((*columns, Category("c", ("a",), source=VOUCHED)))
    assert Schema.from_toml(schema.to_toml()) == schema
    assert [source is None for _, source in schema.sources()] == [False, False, False, False, True, False]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('source = "the rows"', "line 6: column 'age': source is 'the rows'"),
        ("source = 3", "line 6: column 'age': source is neither a word nor a table"),
        ('source = { by = "Ada", on = 2026-11-18 }', "line 6: column 'age': source is neither a word nor a table"),
        ('source = { kind = "codebook", by = "Ada" }', "line 6: column 'age': source has `on`, which is missing"),
        ('source = { kind = "codebook", on = 2026-11-18 }', "line 6: column 'age': source has `by`, which is missing"),
        ('source = { kind = "codebook", by = "Ada", on = "today" }', "has `on`, which is not a date"),
        ('source = { kind = "codebook", by = " ", on = 2026-11-18 }', "has `by`, which is empty"),
    ],
)
def test_source_malformed_is_refused_with_its_line(line: str, problem: str) -> None:
    """Fails when a source that means nothing is accepted, or its place is not said."""
    text = f'privet = 1\n[[column]]\nname = "age"\nkind = "number"\nlow = 0\n{line}\nhigh = 9\n'
    with pytest.raises(InvalidInput) as refusal:
        Schema.from_toml(text)
    assert problem in str(refusal.value)


def test_sources_are_added_to_a_text_and_comments_stay() -> None:
    """Fails when a comment is lost, another column is changed, or a line lands in another column's table."""
    once = with_sources(DRAFTED, {"ward": VOUCHED})
    assert [source for _, source in Schema.from_toml(once).sources()] == [None, VOUCHED, None]
    whole = with_sources(once, {"age": VOUCHED, "well": VOUCHED})
    added = [line for line in whole.splitlines() if line.startswith("source")]
    assert [line for line in whole.splitlines() if not line.startswith("source")] == DRAFTED.splitlines()
    assert len(added) == 3
    other = BoundsSource(SourceKind.DOMAIN_LIMIT, "Bo", date(2026, 1, 1))
    again = with_sources(whole, {"age": other})
    assert dict(Schema.from_toml(again).sources()) == {"age": other, "ward": VOUCHED, "well": VOUCHED}
    crlf = with_sources(DRAFTED.replace("\n", "\r\n"), {"age": VOUCHED, "ward": VOUCHED, "well": VOUCHED})
    assert crlf == whole.replace("\n", "\r\n")
    inline = 'privet = 1\n# a comment\ncolumn = [{ name = "age", kind = "number", low = 0, high = 9 }]\n'
    with pytest.raises(InvalidInput, match="laid out so that no line can be added"):
        vouched(inline)


def test_draft_has_no_source_and_is_refused_by_name(tmp_path: Path) -> None:
    """Fails when bounds that were read from private rows pass for public knowledge: in a plan for answers, in input
    perturbation, or in a file that nobody vouches for."""
    path = tmp_path / "t.csv"
    path.write_text("age,ward,well\n" + "".join(f"{20 + n % 60},{'ab'[n % 2]},{n % 2}\n" for n in range(200)))
    found = draft(path, "well")
    assert [name for name, source in found.schema.sources() if source is None] == ["age", "ward", "well"]
    for question, name in (("mean(age)", "'age'"), ("count by ward", "'ward'"), ("count where well = 1", "'well'")):
        with pytest.raises(InvalidInput, match=f"no source for the bounds or values of {name};"):
            query.plan(question, found.schema, epsilon=1.0)
    assert query.plan("count", found.schema, epsilon=1.0).guarantee.epsilon.upper == pytest.approx(1.0)
    with pytest.raises(InvalidInput, match="no source for the bounds or values of 'age', 'ward', 'well';"):
        InputPerturbation(found.schema, 1.0)
    with pytest.raises(InvalidInput, match=r"no source .*confirm t\.schema\.toml"):
        require_vouched(found.schema, "t.schema.toml")
    unnamed = with_sources(
        found.to_toml(), {name: BoundsSource(SourceKind.CODEBOOK) for name, _ in found.schema.sources()}
    )
    with pytest.raises(InvalidInput, match="names nobody who vouches for the source of 'age', 'ward', 'well'"):
        require_vouched(Schema.from_toml(unnamed), "t.schema.toml")
    whole = vouched(unnamed)
    require_vouched(Schema.from_toml(whole), "t.schema.toml")
    assert "This draft was read" in unnamed
    assert "This draft was read" not in whole


def test_source_is_among_the_assumptions_of_an_answer() -> None:
    """Fails when a guarantee does not say on whose word it rests, or speaks of columns that were not read."""
    made = query.plan("mean(age)", Schema.from_toml(vouched(DRAFTED)), epsilon=1.0)
    (said,) = [each for each in made.guarantee.assumptions if "bounds or values" in each]
    assert said == (
        "the bounds or values of 'age' come from a codebook and not from the private rows "
        "(Ada Lovelace vouched for this on 2026-11-18)"
    )


def test_sources_do_not_change_how_rows_are_read() -> None:
    """Fails when schemas that differ in sources alone are two for stored answers or resumed runs, or others are one."""
    plain, named = Schema.from_toml(DRAFTED), Schema.from_toml(vouched(DRAFTED))
    assert plain != named
    assert plain.without_sources() == named.without_sources() == plain
    assert plain.without_sources() != Schema((*plain.columns[:-1], Category("well", ("no",))), "well")


def test_shipped_schema_names_its_sources() -> None:
    """Fails when Adult's schema, which commands use without asking, would itself be refused."""
    require_vouched(adult_schema(), "adult.toml")


def test_identifiers_and_empty_lists_need_no_source() -> None:
    """Fails when a column without bounds or values is asked for a source."""
    schema = Schema((Identifier("who"), Category("town", ()), Number("age", 0, 9, source="codebook")))
    assert [name for name, _ in schema.sources()] == ["age"]


def test_sealed_source_vouches_for_what_was_seen_alone() -> None:
    """Fails when bounds or values are changed after somebody vouched for them, and still pass under their name."""
    schema = Schema.from_toml(DRAFTED)
    columns = {column.name: column for column in schema.columns if isinstance(column, (Number, Category))}
    sealed = with_sources(
        DRAFTED, {name: replace(VOUCHED, seal=seal_of(columns[name])) for name, _ in schema.sources()}
    )
    require_vouched(Schema.from_toml(sealed), "s.toml")
    for before, after, name in (("high = 120", "high = 97", "age"), ('"yes"]', '"yes", "rare"]', "well")):
        edited = sealed.replace(before, after)
        with pytest.raises(InvalidInput, match=f"other bounds or values of '{name}' than were vouched for"):
            require_vouched(Schema.from_toml(edited), "s.toml")


@pytest.mark.parametrize("line", ["missing = 54.2183", 'missing = "low"', 'outside = "missing"'])
def test_seal_covers_how_missing_and_outlying_numbers_are_read(line: str) -> None:
    """Fails when a private mean can be written into a column, for its missing cells, after somebody vouched for it."""
    age = Schema.from_toml(DRAFTED).find("age")
    assert isinstance(age, Number)
    sealed = with_sources(vouched(DRAFTED), {"age": replace(VOUCHED, seal=seal_of(age))})
    require_vouched(Schema.from_toml(sealed), "s.toml")
    edited = sealed.replace("high = 120", f"high = 120\n{line}")
    with pytest.raises(InvalidInput, match="other bounds or values of 'age' than were vouched for"):
        require_vouched(Schema.from_toml(edited), "s.toml")
    again = Schema.from_toml(edited).find("age")
    assert isinstance(again, Number)
    require_vouched(Schema.from_toml(with_sources(edited, {"age": replace(VOUCHED, seal=seal_of(again))})), "s.toml")


def test_seal_covers_how_missing_categories_are_read() -> None:
    """Fails when the most frequent value can be written into a column after somebody vouched for it."""
    ward = Category("ward", ("north", "south"))
    seals = {seal_of(replace(ward, missing=missing)) for missing in (None, "north", "south")}
    assert len(seals) == 3


def test_schema_with_a_byte_order_mark_is_read_and_keeps_it(tmp_path: Path) -> None:
    """Fails when a file from an editor that writes a byte order mark is refused, or loses the mark."""
    path = tmp_path / "s.toml"
    path.write_text(DRAFTED, encoding="utf-8-sig")
    assert load_schema(path) == Schema.from_toml(DRAFTED)
    whole = vouched_text(path.read_text(encoding="utf-8"))
    assert whole == "\ufeff" + vouched(DRAFTED)


def vouched_text(text: str) -> str:
    return with_sources(text, dict.fromkeys(("age", "ward", "well"), VOUCHED))
