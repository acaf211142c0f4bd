"""`privet link`: what it counts, where it goes, and what it refuses in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.test_train import done, refused

pytest.importorskip("torch")
pytest.importorskip("polars")

VISITS = "zip,birth,sex,disease,patient\n130**,1980-1989,f,flu,p1\n130**,1980-1989,f,flu,p2\n14850,1971,f,asthma,p4\n"
VOTERS = "name,zip,birth,sex,patient\nAnn,13053,1984,f,p1\nBea,13068,1988,f,p2\nDora,14850,1971,f,p4\nEve,9,1990,f,p9\n"


@pytest.fixture
def tables(privet: Run) -> Run:
    """`privet`, in a folder with two tables, one without rows, one with two, and one with other columns."""
    for name, text in (
        ("visits.csv", VISITS),
        ("voters.csv", VOTERS),
        ("empty.csv", VOTERS.partition("\n")[0] + "\n"),
        ("other.csv", "town,street\nx,y\n"),
        ("twice.csv", "zip,patient\n1,p1\n2,p1\n"),
    ):
        Path(name).write_text(text)
    return privet


def test_people_are_found_and_the_page_is_internal(tables: Run) -> None:
    """Fails when a number is wrong, a name is shown, or the page can be read by others."""
    words = "link visits.csv --with voters.csv --on zip,birth,sex --sensitive disease --id patient --out found"
    shown = done(tables(words)).out
    assert shown.startswith("INTERNAL: counted on real people; do not share.")
    lines = {" ".join(line.split()) for line in shown.splitlines()}
    for line in (
        "rows published 3",
        "with one candidate 1 (25.00 %)",
        "claimed: this row is theirs 1 (25.00 %)",
        "people who are in both tables 3 (75.00 %)",
        "claims that are right 100.00 % (2.50 % to 100.00 %)",
        "if each claim were any row 33.3 %",
        "whose 'disease' is known, as all candidates agree 3 (75.00 %)",
        "of them, with several candidates 2 (50.00 %)",
    ):
        assert line in lines
    page = Path("found/internal.html")
    assert page.stat().st_mode & 0o077 == 0
    text = page.read_text(encoding="utf-8")
    assert "INTERNAL" in text
    for secret in ("Dora", "14850", "asthma", "p4"):
        assert secret not in text.partition("<script")[0] + shown


def test_numbers_for_programs(tables: Run) -> None:
    """Fails when JSON is not all that is printed, or a score is taken for agreement."""
    found = done(tables("link visits.csv --with voters.csv --on zip,birth,sex --scored --inside 0.9 --json")).json
    assert found["record"]["scored"] is True
    assert found["record"]["people"] == 4
    assert found["record"]["right"] is None


def test_a_table_with_itself_is_told_so(tables: Run) -> None:
    """Fails when the result for the same file twice looks like one about two."""
    assert "Both are the same file" in done(tables("link voters.csv --with voters.csv --on zip")).out
    assert "Both are the same file" not in done(tables("link visits.csv --with voters.csv --on sex")).out


def test_nobody_is_told_apart_by_one_column(tables: Run) -> None:
    """Fails when the sentence for a table in which nobody was found promises that nobody can be."""
    shown = done(tables("link visits.csv --with voters.csv --on sex")).out
    assert "That proves nothing of other tables and columns." in shown


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("visits.csv --with voters.csv", "--on is missing; both tables have: zip,birth,sex,patient"),
        ("visits.csv --with other.csv", "no column in common"),
        ("visits.csv --with voters.csv --on town", "published 'visits.csv' has no column 'town'"),
        ("visits.csv --with voters.csv --on disease", "--with 'voters.csv' has no column 'disease'"),
        ("visits.csv --with voters.csv --on zip --sensitive no", "has no column 'no'"),
        ("visits.csv --with empty.csv --on zip", "--with is 'empty.csv', which has no rows"),
        ("visits.csv --with nowhere.csv --on zip", "--with is 'nowhere.csv', which is no file"),
        (". --with voters.csv --on zip", "published is '.', which is a folder"),
        ("visits.csv --with twice.csv --on zip --id patient", "--id is 'patient', which is not unique"),
        ("visits.csv --with voters.csv --on zip --sensitive zip", "--on names 'zip', which is also sensitive"),
        ("visits.csv --with voters.csv --on zip --inside 0.9", "--inside is for scores"),
        ("visits.csv --with voters.csv --on zip --scored --inside 2", "--inside is 2"),
        ("visits.csv --with voters.csv --on zip --confidence 2", "--confidence"),
        ("visits.csv --with voters.csv --on zip --out voters.csv", "--out is 'voters.csv', which cannot be made"),
        ("visits.csv", "missing: --with"),
    ],
    ids=str,
)
def test_bad_input_is_one_line(tables: Run, words: str, complaint: str) -> None:
    """Fails when something that cannot be linked ends in a traceback, or the line does not name what was typed."""
    assert complaint in refused(tables(f"link {words}"))
