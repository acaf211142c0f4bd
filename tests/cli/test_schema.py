"""`privet schema`: drafts that warn and overwrite nothing, and checks that say of rows only what was asked for."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from privet.data import Category, Number, Schema
from tests.cli.conftest import Run
from tests.data.sources import vouched

CSV = """\
patient,age,ward,well
p1,41,north,no
p2,?,south,yes
p3,230,east,no
p4,fifty,north,maybe
p1,17,,no
"""
SCHEMA = vouched("""\
privet = 1
target = "well"
user = "patient"
rows = 100
[[column]]
name = "patient"
kind = "identifier"
[[column]]
name = "age"
kind = "number"
low = 0
high = 100
[[column]]
name = "ward"
kind = "category"
values = ["north", "south"]
[[column]]
name = "well"
kind = "category"
values = ["no", "yes"]
""")
MARK = "INTERNAL: read from private rows without noise; do not share"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "clinic.csv").write_text(CSV)
    (tmp_path / "clinic.toml").write_text(SCHEMA)
    return tmp_path


def test_a_draft_warns_and_is_private(privet: Run, files: Path) -> None:
    """Fails when the draft is not a schema, others can read it, or the warning is absent or on stdout, where a pipe
    would swallow it."""
    done = privet("schema draft clinic.csv --target well")
    place = files / "clinic.schema.toml"
    assert done.code == 0
    assert done.out.startswith("clinic.schema.toml: 4 columns to confirm")
    assert done.err.startswith("This draft was read from private data")
    assert len(done.err.splitlines()) == 1
    assert Schema.from_toml(place.read_text()).target == "well"
    assert place.read_text().startswith("# This draft was read from private data")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_messy_column_of_numbers_is_a_number(privet: Run, tmp_path: Path) -> None:
    """Fails when a fifth of odd cells makes a list of every number in the rows, or a warning is not at the top.

    Few values of which some are numbers are codes, and stay a category; that is said, too."""
    odd = ("", "?", "NA", "fifty", "1e999", "-inf")
    rows = [f"{odd[n % 6] if n % 5 == 0 else 20 + n % 61},{'G' if n % 3 == 0 else n % 3},{n % 2}" for n in range(300)]
    (tmp_path / "messy.csv").write_text("\n".join(["age,floor,well", *rows]))
    assert privet("schema draft messy.csv --target well").code == 0
    text = (tmp_path / "messy.schema.toml").read_text()
    age, floor, _ = Schema.from_toml(text).columns
    assert age == Number("age", 20, 80)
    assert floor == Category("floor", ("1", "2", "G"))
    top = text[: text.index("[[column]]")]
    assert "# - 'age' has cells that are no numbers, or infinite; they would count as missing" in top
    assert "# - 'floor' has numbers and other texts; each would be a value of a category" in top


def test_the_warning_is_red(privet: Run, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the warning would not be in the colour of alarm on a terminal."""
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda stream=None, color=None: False)
    assert privet("schema draft clinic.csv").err.startswith("\x1b[31m\x1b[1mThis draft")


def test_nothing_is_written_over(privet: Run, files: Path) -> None:
    """Fails when a schema that a person has confirmed, or the table itself, is lost to a draft."""
    before = (files / "clinic.toml").read_text()
    done = privet("schema draft clinic.csv --out clinic.toml")
    assert (done.code, (files / "clinic.toml").read_text()) == (2, before)
    assert done.err == "privet: --out is 'clinic.toml', which exists; name another, or write over it with --force\n"
    assert privet("schema draft clinic.csv --out clinic.csv --force").code == 2
    assert (files / "clinic.csv").read_text() == CSV
    assert privet("schema draft clinic.csv --out clinic.toml --force").code == 0
    assert (files / "clinic.toml").read_text() != before


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("schema draft nowhere.csv", "file 'nowhere.csv' cannot be read"),
        ("schema draft clinic.csv --target sick", "no column 'sick'"),
        ("schema draft clinic.csv --out .", "--out is '.', which is a folder"),
        ("schema draft clinic.csv --out no/where.toml", "--out cannot be written: no such file or directory"),
        ("schema draft", "missing: FILE; see privet schema draft --help, or try: privet schema draft patients.csv"),
        ("schema check nowhere.toml", "schema is 'nowhere.toml', which cannot be read"),
        ("schema check clinic.csv", "schema is not TOML"),
        ("schema check wrong.toml", "line 4: column 'age' has the kind 'numbre'"),
        ("schema check clinic.toml --internal", "--internal is given without a file"),
        ("schema check clinic.toml clinic.csv --batch-size 9", "--batch-size is given without --internal"),
        ("schema check clinic.toml empty.csv", "'empty.csv' is empty"),
    ],
)
def test_bad_input_is_one_line(privet: Run, files: Path, line: str, words: str) -> None:
    """Fails when something that cannot be done ends in another way than one line and exit code 2."""
    (files / "wrong.toml").write_text('privet = 1\n[[column]]\nname = "age"\nkind = "numbre"\n')
    (files / "empty.csv").write_text("")
    done = privet(line)
    assert done.code == 2
    assert words in done.err
    assert len(done.err.splitlines()) == 1


def test_the_owner_learns_of_records_that_cannot_be_read(privet: Run, files: Path) -> None:
    """Fails when a record with too few cells is read without a word to the one who may know of it."""
    (files / "ragged.csv").write_text(CSV + "p9,1\n")
    assert "1 of them cannot be read" in privet("schema check clinic.toml ragged.csv --internal").out
    assert "cannot be read" not in privet("schema check clinic.toml clinic.csv --internal").out


def test_a_check_reads_the_header_alone(privet: Run, files: Path) -> None:
    """Fails when a check that was not asked for rows says anything of them: two files that differ only in rows, of
    which one is damaged, must be told apart by nothing."""
    one = privet("schema check clinic.toml clinic.csv")
    (files / "clinic.csv").write_text(CSV.splitlines()[0] + "\np7,1\n\n,,,,,")
    other = privet("schema check clinic.toml clinic.csv")
    assert one == other
    assert one.code == 0
    assert "INTERNAL" not in one.out
    assert "Of the file only the header was read." in one.out
    assert "age       number       0 to 100" in one.out


def test_every_column_that_does_not_fit_is_named(privet: Run, files: Path) -> None:
    """Fails when a file that does not fit passes, or when a first line that is no header is shown: it may be a row."""
    (files / "more.csv").write_text("well,ward,age,patient,city,age\n")
    done = privet("schema check clinic.toml more.csv")
    assert done.code == 1
    assert "'city' is in the file, and not in the schema" in done.out
    assert "'age' is in the file twice" in done.out
    (files / "headless.csv").write_text("Ada Lovelace,36,north,yes\n")
    done = privet("schema check clinic.toml headless.csv")
    assert done.code == 1
    assert done.out.count("is in the schema, and not in the file") == 4
    assert "Lovelace" not in done.out + done.err


def test_the_owner_may_look_at_rows(privet: Run, files: Path) -> None:
    """Fails when a count is wrong, the output is not marked at both ends, or what the rows hold changes the exit
    code."""
    done = privet("schema check clinic.toml clinic.csv --internal --batch-size 64")
    assert done.code == 0
    shown = done.out[done.out.index(MARK) :].splitlines()
    assert (shown[0], shown[-1]) == (MARK, MARK)
    cells = {line.split()[0]: line.split()[1:] for line in shown[3:7]}
    assert cells == {
        "patient": ["identifier", "0"],
        "age": ["number", "1", "1", "1"],
        "ward": ["category", "1", "1"],
        "well": ["category", "0", "1"],
    }
    remarks = "\n".join(shown[7:-1])
    for words in (
        "5 rows, of which 4 can be learned from",
        "The schema says 100 rows",
        "Fewer rows than a batch of 64",
        "3 users, of whom one has 2 rows",
        "State most_rows_per_user",
    ):
        assert words in remarks


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("", "0 rows, of which 0 can be learned from"),
        ("p1,1,north,no\n" * 3, "All rows are of one class, 'no'"),
        ("p1,1,north,sick\n" * 3, "3 rows, of which 0 can be learned from"),
    ],
)
def test_rows_that_nothing_can_be_learned_from(privet: Run, files: Path, rows: str, words: str) -> None:
    """Fails when rows of one class, or none at all, end the owner's check with an error."""
    (files / "clinic.csv").write_text(CSV.splitlines()[0] + "\n" + rows)
    done = privet("schema check clinic.toml clinic.csv --internal")
    assert done.code == 0
    assert words in done.out


@pytest.mark.parametrize(
    ("pattern", "text", "reason"),
    [
        (r"source = .*\n", "", "'age' has no source."),
        (r"source = .*", 'source = "codebook"', "'age' names nobody who vouches for its source."),
        (r"on = 2026-11-18", 'on = 2026-11-18, seal = "000000000000"', "'age' was changed after somebody vouched"),
        (r"on = 2026-11-18", "on = 2999-01-01", "'age' is vouched for on 2999-01-01, which is in the future."),
    ],
    ids=["source", "name", "seal", "date"],
)
def test_check_names_columns_that_no_command_accepts(
    privet: Run, files: Path, pattern: str, text: str, reason: str
) -> None:
    """Fails when a schema passes the check that train and query refuse."""
    (files / "my clinic.toml").write_text(re.sub(pattern, text, SCHEMA, count=1))
    for line in ("schema check 'my clinic.toml'", "schema check 'my clinic.toml' clinic.csv --internal"):
        done = privet(line)
        assert done.code == 1
        assert reason in done.out
        assert "'ward' " not in done.out
        assert "run: privet schema confirm 'my clinic.toml'" in done.out
    assert privet("schema check clinic.toml").code == 0
