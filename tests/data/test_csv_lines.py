"""A record is a line, always: no line changes how another is read, in files of any damage and blocks of any size."""

from __future__ import annotations

import random
import re
from itertools import combinations_with_replacement
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.data import Category, Number, Schema, Source, draft, learning, read

Row = tuple[str | None, ...]

BOM = b"\xef\xbb\xbf"
LONGEST = 200
HEADER = b"age,ward,note\n"
WELL = [
    b"40,x,fine\n",
    b'"41","x","well"\r\n',
    b'42,"a, b","he said ""no"""\n',
    b",,\n",
    b'"","",""\n',
    BOM + b"43,x,\n",
    "44,é,µ\n".encode(),
    b' 45 ,\t,"\r"\r\n',
    b'46,"two\nlines",x\n',  # with line ends in cells off, two lines that are no records
    b'47,x,"\n\nhello\n"\n',
]
NASTY = {
    "an open quote": b'40,x,"tall\n',
    "an open quote at the end": b'50,x,"\n',
    "an open quote at the beginning": b'"50,x,1\n',
    "a lone quote": b'"\n',
    "two lone quotes": b'"\n"\n',
    "three quotes": b'"""\n',
    "a quote and a separator": b'",\n',
    "a separator and a quote": b',"\n',
    "quotes around a separator": b'40","x,1\n',
    "a quote inside": b'40,x"y,1\n',
    "quotes inside": b'4"0",x,1\n',
    "something after a quote": b'40,"x"y,1\n',
    "a return after a quote": b'40,"x"\ry,1\n',
    "an open quote before Windows' line end": b'40,x,"1\r\n',
    "a cell of several lines": b'40,"\nhello\n",1\n',
    "a cell of blank lines": b'40,"\n\n\r\n",1\n',
    "a cell like records": b'40,", see file\nother,",1\n',
    "too few cells": b"40,x\n",
    "too many cells": b"40,x,1,2\n",
    "one cell": b"40\n",
    "blanks": b"   \n",
    "a return": b"\r\r\n",
    "a return inside": b"40,x\r,1\n",
    "a blank line": b"\n",
    "a blank line of Windows": b"\r\n",
    "a byte that no text has": b"40,\0,1\n",
    "not UTF-8": b"40,\xe9,1\n",
    "cut UTF-8 and a quote": b'40,x,"\xe2\x82\n',
    "a mark of order": BOM + b"\n",
    "a mark of order and a quote": BOM + b'"40",x,1\n',
    "too long": b"40," + b"x" * LONGEST + b",1\n",
    "too long, with quotes": b'40,"' + b'""\n' * (LONGEST // 2),
}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records cannot be long, and the header is small, so that blocks can be small."""
    monkeypatch.setattr("privet.data.csv_file._LONGEST", LONGEST)
    monkeypatch.setattr("privet.data.csv_file._HEADER", len(HEADER))


def rows(path: Path, text: bytes, piece: int, lines_in_cells: bool = False) -> list[Row]:
    """What is read of a file by blocks of that size."""
    path.write_bytes(HEADER + text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privet.data.csv_file._PIECE", piece)
        source = Source.of(path, ",", lines_in_cells=lines_in_cells)
        return [row for batch in source.batches(source.header) for row in batch.iter_rows()]


def expected(line: bytes) -> list[Row]:
    """One line by itself: the rule in its shortest form, and slow. A return at the end of a bare cell is left out."""
    body = line.removesuffix(b"\n")
    if body in (b"", b"\r"):
        return []
    cell = r'"(?:[^"]|"")*"|[^",]*'
    text = body.decode("utf-8", errors="replace")
    valid = text.encode() == body and "\0" not in text and len(line) <= LONGEST
    if not valid or not re.fullmatch(rf"(?:{cell})(?:,(?:{cell})){{2}}\r?", text):
        return [(None, None, None)]
    cells = [found.group()[1:] for found in re.finditer(rf",(?:{cell})", "," + text)]
    return [tuple(each[1:-1].replace('""', '"') if each[:1] == '"' else each.removesuffix("\r") for each in cells)]


def by_itself(text: bytes) -> list[Row]:
    """Each line of a text."""
    return [row for line in text.removesuffix(b"\n").split(b"\n") for row in expected(line + b"\n")]


def test_no_two_bad_lines_change_another(small: None, tmp_path: Path) -> None:
    """Fails when one or two lines of any damage, at any places, change how others are read, are not rows of their own,
    or are read otherwise at the border of a block: what one row can change would have no bound."""
    path, drawn = tmp_path / "t.csv", random.Random(0)
    for one, other in combinations_with_replacement(NASTY.values(), 2):
        good = drawn.choices(WELL, k=8)
        places = sorted(drawn.choices(range(len(good) + 1), k=2))
        parts = [*good[: places[0]], one, *good[places[0] : places[1]], other, *good[places[1] :]]
        added = {places[0], places[1] + 1}
        mine = [by_itself(part) for part in parts]
        found = rows(path, b"".join(parts), drawn.choice([5, 30, 150, 1 << 24]))
        assert found == [row for each in mine for row in each]
        without = rows(path, b"".join(good), drawn.choice([30, 1 << 24]))
        assert without == [row for place, each in enumerate(mine) if place not in added for row in each]


tokens = st.sampled_from([b'"', b'""', b",", b"\n", b"\r", b"a", b" ", b"\0", b"\xe9", "é".encode(), BOM])
cell = st.lists(tokens, max_size=4).map(b"".join)
quoted = st.lists(st.sampled_from([b'""', b",", b"\r", b"a", b" ", "é".encode()]), max_size=4).map(
    lambda parts: b'"' + b"".join(parts) + b'"'
)
line = st.lists(cell | quoted, min_size=3, max_size=3).map(b",".join)
soup = st.lists(st.tuples(line | cell, st.sampled_from([b"\n", b"\r\n"])).map(b"".join), max_size=12).map(b"".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=soup, piece=st.sampled_from([1, 4, 17, 1 << 24]))
def test_each_line_is_read_by_itself(text: bytes, piece: int, small: None, tmp_path: Path) -> None:
    """Fails when any bytes at all make a line be read in another way than alone, or raise."""
    assert rows(tmp_path / "t.csv", text, piece) == by_itself(text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=soup, piece=st.sampled_from([1, 4, 17, 1 << 24]))
def test_both_ways_through_the_grammar(text: bytes, piece: int, small: None, tmp_path: Path) -> None:
    """Fails when, with line ends in cells, the quick way of reading well-formed records differs from the slow one, or
    blocks of another size give other rows, or never end."""
    found = rows(tmp_path / "t.csv", text, piece, lines_in_cells=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privet.data.grammar._well_formed", lambda text, shape: None)
        assert rows(tmp_path / "t.csv", text, 1 << 24, lines_in_cells=True) == found


def test_the_longest_line(small: None, tmp_path: Path) -> None:
    """Fails when a line that is too long can be read because it was cut where a block ends, or changes the next one."""
    for letters in range(LONGEST - 12, LONGEST + 12):
        text = b"40,x," + b"x" * (letters - 5) + b"\n41,x,\n"
        for piece in (1, 5, 64):
            assert rows(tmp_path / "t.csv", text, piece) == by_itself(text)


def test_many_lines_are_read_alike(small: None, tmp_path: Path) -> None:
    """Fails when the parser, which takes a block in several parts, reads the first record of a part otherwise, or when
    one bad line makes other lines of its block be read otherwise."""
    text = b"".join(WELL)
    alike = by_itself(text)
    path = tmp_path / "t.csv"
    for bad in (b"", *NASTY.values()):
        found = rows(path, bad + text * (500 if bad else 5000), 1 << 24)
        assert found[-len(alike) :] == alike
        own = by_itself(bad)
        assert found == own + alike * (500 if bad else 5000)


def test_line_ends_in_cells_are_an_assumption(tmp_path: Path) -> None:
    """Fails when cells of several lines can be read without the schema saying so, or without stating the condition."""
    columns = (Number("age", 0, 100), Category("ward", ("x",)), Category("note", ("a\nb",)))
    lines, cells = Schema(columns), Schema(columns, lines_in_cells=True)
    (tmp_path / "t.csv").write_bytes(HEADER + b'50,x,"a\nb"\n50,x,fine\n')
    assert [len(read(tmp_path / "t.csv", each)) for each in (lines, cells)] == [3, 2]
    assert read(tmp_path / "t.csv", cells).x.tolist() == [[0, 0, 0], [0, 0, 1]]
    assert lines.assumptions == ()
    assert len(cells.assumptions) == 1
    assert "without malformed records" in cells.assumptions[0]
    assert "lines_in_cells = true\n" in cells.to_toml()
    assert "lines_in_cells" not in lines.to_toml()
    assert Schema.from_toml(cells.to_toml()) == cells
    with pytest.raises(InvalidInput, match="line 2: lines_in_cells is neither true nor false"):
        Schema.from_toml('privet = 1\nlines_in_cells = "yes"\n[[column]]\nname="a"\nkind="number"\nlow=0\nhigh=1\n')


def test_learning_is_line_by_line(tmp_path: Path) -> None:
    """Fails when a schema is learned from records that can change each other, and nobody assumed that they do not."""
    (tmp_path / "t.csv").write_bytes(HEADER + b'50,x,"a\nb"\n')
    plan = learning(Source.of(tmp_path / "t.csv"), "ward", epsilon=1.0, delta=1e-6)
    source = Source.of(tmp_path / "t.csv", lines_in_cells=True)
    with pytest.raises(InvalidInput, match="one record can change others"):
        learning(source, "ward", epsilon=1.0, delta=1e-6)
    with pytest.raises(InvalidInput, match="one record can change others"):
        plan.release(source, rng=SeededRng(0))


def test_the_owner_is_told_of_line_ends_in_cells(tmp_path: Path) -> None:
    """Fails when a draft loses records of several lines, sets the rule without saying what it costs, or sets it for
    quotes that were never closed, which would make one row of many."""
    path, good = tmp_path / "t.csv", b"".join(b"%d,%s,fine\n" % (n % 7, b"xy"[n % 2 :][:1]) for n in range(100))
    path.write_bytes(HEADER + good + b'3,x,"one\ntwo"\n' * 3)
    found = draft(path, "ward")
    assert found.schema.lines_in_cells
    assert found.warnings[0].startswith("some cells hold line ends")
    assert Schema.from_toml(found.to_toml()) == found.schema
    assert len(read(path, found.schema)) == 103
    path.write_bytes(HEADER + b'3,x,"tall\n' + good + b'3,x,"\n')
    found = draft(path, "ward")
    assert not found.schema.lines_in_cells
    assert found.warnings[0].startswith("2 lines are no records by themselves")
    assert len(read(path, found.schema)) == 100
