"""`privet link`: what it counts, where it goes, and what it refuses in one line."""

from __future__ import annotations

import datetime as dt
import json
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
        ("nobody.csv", "zip,patient\n1,p1\n2,\n"),
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
        "what is known is right, of the 3 of them in both tables 100.00 % (29.24 % to 100.00 %)",
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
    assert found["record"]["inside"] == 0.9
    assert found["internal"] is True


def test_the_confidence_and_the_words_for_missing_reach_the_work(tables: Run) -> None:
    """Fails when intervals are those of another confidence than the one that is written beside them, or a word that is
    called missing is taken for a value."""
    words = "link visits.csv --with voters.csv --on zip,birth,sex --id patient --json"
    wide, narrow = (done(tables(f"{words} --confidence {share}")).json["record"]["right"] for share in (0.99, 0.5))
    assert wide["lower"] == pytest.approx(0.005)
    assert narrow["lower"] == pytest.approx(0.25)
    Path("withheld.csv").write_text("zip,birth\nunknown,1971\n")
    words = "link withheld.csv --with voters.csv --on zip,birth"
    assert "Column 'zip': 1 of 1 cells agree with nobody" in done(tables(words)).out
    assert done(tables(f"{words} --missing -,unknown --json")).json["record"]["claimed"] == 1


def test_a_place_that_cannot_keep_it_is_refused_before_the_work(tables: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when people are looked for and only then it turns out that the page cannot be written."""
    monkeypatch.setattr("privet.attacks.linkage.link", None)
    Path("mine").mkdir()
    Path("mine/internal.html").write_text("mine")
    words = "link visits.csv --with voters.csv --on zip --out"
    assert "--out holds 'internal.html', which is not a page" in refused(tables(f"{words} mine"))
    Path("broken").mkdir()
    Path("broken/internal.json").write_text("{}")
    assert "--out is 'broken', of which internal.json" in refused(tables(f"{words} broken"))


def test_days_of_parquet_are_texts(tables: Run) -> None:
    """Fails when a table with days as such is refused, or they differ from the same days in a CSV."""
    import polars as pl

    days = [dt.date(1980, 1, 2), dt.date(1981, 1, 2)]
    pl.DataFrame({"zip": [1, 2], "birth": days}).write_parquet("days.parquet")
    Path("days.csv").write_text("zip,birth\n1,1980-01-02\n2,1981-01-03\n")
    for on, found in (("zip,birth", 1), ("birth", 1), ("zip", 2)):
        assert done(tables(f"link days.parquet --with days.csv --on {on} --json")).json["record"]["claimed"] == found


def test_another_file_of_the_same_name_is_another(tables: Run) -> None:
    """Fails when a second look, at another column or at a file in another folder, takes the place of the first."""
    Path("b").mkdir()
    Path("b/voters.csv").write_text(VOTERS)
    for words in ("voters.csv", "b/voters.csv", "voters.csv --sensitive disease", "voters.csv"):
        done(tables(f"link visits.csv --on zip --out found --with {words}"))
    assert len(json.loads(Path("found/internal-tables.json").read_text())["record"]["linked"]) == 3


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
        ("visits.csv --with voters.csv --on zip --sensitive zip", "--on names 'zip', which is also --sensitive"),
        ("visits.csv --with voters.csv --on zip,patient --id patient", "--on names 'patient', which is also --id"),
        ("visits.csv --with nobody.csv --on zip --id patient", "--id is 'patient', which is missing in 1 rows"),
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


def test_a_file_that_is_no_text_is_refused(tables: Run) -> None:
    """Fails when a line in another encoding is left out in silence, and its person with it."""
    Path("latin.csv").write_bytes(VOTERS.replace("Ann", "Änn").encode("latin-1"))
    assert "line 2 is not UTF-8" in refused(tables("link visits.csv --with latin.csv --on zip,birth,sex"))


def test_lines_that_are_no_records_are_told(tables: Run) -> None:
    """Fails when a line with too few or too many cells is left out in silence."""
    Path("ragged.csv").write_text(VOTERS + "Fay,14850\nGay,1,2,f,p5,6\n")
    shown = done(tables("link visits.csv --with ragged.csv --on zip,birth,sex")).out
    assert "2 rows of 'ragged.csv' have none of the columns" in " ".join(shown.split())
