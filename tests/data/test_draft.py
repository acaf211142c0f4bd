"""Drafts: a schema that a person can confirm, marked as read from private data."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from privet.data import Category, Identifier, Number, Schema, draft, read
from privet.data.draft import _rounded


def test_what_is_suggested(tmp_path: Path) -> None:
    """Fails when a kind is misjudged, a count is shown, or the warning is not the first thing to read."""
    lines = ["patient,age,ward,note,score,year,well"]
    lines += [
        f"{n + 7000},{20 + n % 61},{'north' if n % 3 else 'south'},note {n},{n / 7:.3f},{2011 + n % 14},{n % 2}"
        for n in range(600)
    ]
    (tmp_path / "t.csv").write_text("\n".join([*lines, "8888,?,north,note x,bad,2020,1"]))
    found = draft(tmp_path / "t.csv", "well")
    assert found.schema.columns == (
        Identifier("patient"),
        Number("age", 20, 80),
        Category("ward", ("north", "south")),
        Identifier("note"),
        Number("score", 0, 100),
        Number("year", 2010, 2025),
        Category("well", ("0", "1")),
    )
    assert found.schema.rows is None
    text = found.to_toml()
    assert text.startswith("# This draft was read from private data")
    assert "# - 'patient' looks like an identifier" in text
    assert "# - 'score' has cells that are no numbers" in text
    assert "600" not in text
    assert Schema.from_toml(text) == found.schema
    assert len(read(tmp_path / "t.csv", found.schema)) == 601


def test_a_target_of_many_numbers_is_a_number(tmp_path: Path) -> None:
    """Fails when a regression is taken for a classification of many classes."""
    (tmp_path / "t.csv").write_text("x;y\n" + "\n".join(f"{n % 9};{n * 1.5}" for n in range(50)))
    schema = draft(tmp_path / "t.csv", "y").schema
    assert isinstance(schema.label, Number)
    assert schema.separator == ";"


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_rounded_bounds_are_bounds(one: float, other: float) -> None:
    """Fails when rounding gives bounds that a schema refuses, or that cut values off by more than rounding does."""
    low, high = min(one, other), max(one, other)
    if abs(low) < 1e300 and abs(high) < 1e300:
        number = Number("x", *_rounded(low, high))
        slack = 1e-9 * max(abs(low), abs(high), 1e-90)
        assert number.low - slack <= low <= high <= number.high + slack
