"""Damaged files and files that do not fit: one clear line, and nothing of what is in them."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from privet.core.errors import InvalidInput
from privet.data import Schema, Source, draft, read

SECRET = "zanzibar"
GOOD = f"person,age,ward,well\nann,20,{SECRET},yes\nbob,30,north,no\n".encode()
MANY = GOOD + b"".join(b"p%d,%d,north,yes\n" % (n, n * n) for n in range(3000))


def parquet(path: Path) -> bytes:
    pl.DataFrame({"person": [SECRET] * 999, "age": 1, "ward": "north", "well": "yes"}).write_parquet(path)
    return path.read_bytes()


def zeroed(path: Path) -> bytes:
    """A page in the middle is gone; header and footer are whole."""
    ages = [n % 97 * 1.25 for n in range(3000)]
    frame = pl.DataFrame({"person": ["ann"] * 3000, "age": ages, "ward": "north", "well": "yes"})
    frame.write_parquet(path)
    whole = path.read_bytes()
    return whole[:200] + bytes(700) + whole[900:]


BAD: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "empty": (lambda path: b"", "is empty"),
    "blank": (lambda path: b"\xef\xbb\xbf\n\n", "is empty"),
    "gzip cut in half": (lambda path: gzip.compress(MANY)[:-4000], "compressed data are cut off or changed"),
    "gzip with a changed byte": (
        lambda path: (g := gzip.compress(MANY))[:-9] + bytes([g[-9] ^ 255]) + g[-8:],
        "compressed data are cut off or changed",
    ),
    "UTF-16": (lambda path: GOOD.decode().encode("utf-16"), "is not UTF-8 text"),
    "no header": (lambda path: GOOD.split(b"\n", 1)[1], "has no column 'person', which is in the schema"),
    "a column too many": (
        lambda path: b"person,age,ward,well,extra\na,1,north,yes,2\n",
        "has a column 'extra', which the schema lacks",
    ),
    "a column too few": (lambda path: b"person,age,ward\n", "has no column 'well'"),
    "a column twice": (lambda path: b"person,age,ward,well,age\n", "has two columns 'age'"),
    "a spreadsheet": (lambda path: b"PK\x03\x04" + SECRET.encode(), "is an archive or a spreadsheet"),
    "Parquet cut in half": (lambda path: parquet(path)[: len(parquet(path)) // 2], "is damaged, or no such table"),
    "Parquet with a page of zeros": (zeroed, "is damaged, or no such table"),
    "Parquet with a changed footer": (lambda path: parquet(path)[:-40] + b"\xff" * 32 + b"PAR1", "is damaged"),
}


@pytest.mark.parametrize("kind", BAD)
def test_one_clear_line_and_no_content(kind: str, clinic: Schema, tmp_path: Path) -> None:
    """Fails when a damaged file is taken for a table, raises something else, or has its cells quoted."""
    make, said = BAD[kind]
    path = tmp_path / "table"
    path.write_bytes(make(path))
    with pytest.raises(InvalidInput) as caught:
        read(path, clinic)
    text = str(caught.value)
    assert said in text
    assert "\n" not in text
    assert SECRET not in text
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


UNREAD = {
    "not UTF-8": SECRET.encode() + b"\xe9,1,north,yes\n",
    "too many cells": f"{SECRET},1,north,yes,5\n".encode(),
    "too few cells": f"{SECRET},1\n".encode(),
    "an open quote": f'"{SECRET},1,north,yes\n'.encode(),
    "an open quote at the end": f'{SECRET},1,north,"yes\n'.encode(),
    "a quote inside": f'a"{SECRET},1,no"rth,yes\n'.encode(),
    "something after a quote": f'"a"{SECRET},1,north,yes\n'.encode(),
    "bytes that no text has": b"a\0,1,north,yes\n",
    "too many cells over two lines": b'a,1,"north\nsouth",yes,5\n',
    "too long": b"a" * 300 + b",1,north,yes\n",
}
RECORDS = [b"ann,20,south,yes\n", b'"bo""b",30,"north",no\r\n', b'"c,\nd",,"",yes\n', b'"",40,north,no\n']


@pytest.mark.parametrize("kind", UNREAD)
@pytest.mark.parametrize("piece", [201, 1 << 24])
def test_a_record_that_cannot_be_read_is_empty(
    kind: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when such a record raises, which would tell of a row; is left out or read; or changes another record.

    With line ends in cells, where one bad record alone still harms no other: test_lines.py has all else. It is put
    between all others, in files that are read at once and in small pieces.
    """
    monkeypatch.setattr("privet.data.csv_file._PIECE", piece)
    monkeypatch.setattr("privet.data.csv_file._HEADER", 50)
    monkeypatch.setattr("privet.data.csv_file._LONGEST", 200)
    header, path = b"person,age,ward,well\n", tmp_path / "t.csv"

    def rows(records: list[bytes]) -> list[tuple[str | None, ...]]:
        path.write_bytes(header + b"".join(records))
        source = Source.of(path, lines_in_cells=True)
        return [row for batch in source.batches(source.header) for row in batch.iter_rows()]

    good = rows(RECORDS)
    assert good[1:3] == [('bo"b', "30", "north", "no"), ("c,\nd", "", "", "yes")]
    for place in range(len(RECORDS) + 1):
        found = rows([*RECORDS[:place], UNREAD[kind], *RECORDS[place:]])
        assert found == [*good[:place], (None,) * 4, *good[place:]]


def test_records_that_balance(tmp_path: Path) -> None:
    """Fails when a cell too few in one record makes up for one too many in the next."""
    (tmp_path / "t.csv").write_bytes(GOOD + b"a,1,north\nb,2,north,no,9\n")
    source = Source.of(tmp_path / "t.csv")
    assert [row[0] for batch in source.batches(source.header) for row in batch.iter_rows()] == [
        "ann",
        "bob",
        None,
        None,
    ]


def test_the_owner_is_told(tmp_path: Path) -> None:
    """Fails when the one who may look at the rows does not learn that some cannot be read."""
    (tmp_path / "t.csv").write_bytes(GOOD + UNREAD["too few cells"] + UNREAD["an open quote"])
    assert any(warning.startswith("2 lines are no records") for warning in draft(tmp_path / "t.csv", "well").warnings)


def test_the_good_files_are_good(clinic: Schema, tmp_path: Path) -> None:
    """Fails when the files above would be refused for another reason than their damage."""
    for content in (MANY, gzip.compress(MANY), parquet(tmp_path / "t")):
        (tmp_path / "t").write_bytes(content)
        assert len(read(tmp_path / "t", clinic)) > 900


def test_paths_that_are_no_files(clinic: Schema, tmp_path: Path) -> None:
    """Fails when an absent file or a folder ends in a traceback."""
    with pytest.raises(InvalidInput, match="cannot be read: no such file"):
        read(tmp_path / "absent.csv", clinic)
    with pytest.raises(InvalidInput, match="cannot be read: is a directory"):
        read(tmp_path, clinic)


def test_a_target_that_is_not_there(tmp_path: Path) -> None:
    """Fails when the first line is quoted before it is known to be a header."""
    (tmp_path / "t.csv").write_text(f"{SECRET},5,5\n1,2,3\n")
    with pytest.raises(InvalidInput, match="has no column 'y', which is the target") as caught:
        draft(tmp_path / "t.csv", "y")
    assert SECRET not in str(caught.value)


def test_parquet_rows_that_end_early_are_refused(
    clinic: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when fewer rows than the footer states are taken for the table, as where a reader skips a damaged page."""
    path = tmp_path / "t.parquet"
    parquet(path)
    whole = pl.LazyFrame.collect_batches
    monkeypatch.setattr(pl.LazyFrame, "collect_batches", lambda self, **how: (b[:-1] for b in whole(self, **how)))
    with pytest.raises(InvalidInput, match="is damaged"):
        list(Source.of(path).batches(["age"]))
