"""Files become tables by the schema alone: every dialect alike, each row by itself, nothing by what rows hold."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privet import query
from privet.core.errors import InvalidInput
from privet.core.random import default_rng
from privet.data import Category, Identifier, Missing, Number, Schema, Source, Table, csv_file, read, source
from privet.data.read import _Growing
from tests.data.sources import sourced

ROWS: list[tuple[str, ...]] = [
    ("ann", "20", "north", "yes"),
    ("bob", "x", "south, new", "no"),
    ("ann", "1e9", "elsewhere", "yes"),
    ("cy", "?", "north", "perhaps"),
    ("", "50", "north", "yes"),
    ("bob", "100", "south, new", "no"),
]
HEADER = ("person", "age", "ward", "well")
X = [[-0.6, 0.0], [np.nan, 1.0], [1.0, 2.0], [1.0, 1.0]]


def written(
    rows: list[tuple[str, ...]], separator: str = ",", end: str = "\n", quoting: Any = csv.QUOTE_MINIMAL
) -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator=end, quoting=quoting).writerows([HEADER, *rows])
    return out.getvalue().encode()


def same(table: Table, x: list[list[float]], y: list[int], users: list[int]) -> None:
    np.testing.assert_allclose(table.x, x, atol=1e-6)
    assert table.x.dtype == np.float32
    assert table.y is not None
    assert table.y.tolist() == y
    assert table.users is not None
    assert table.users.tolist() == users


PLAIN = written(ROWS)
FORMS = {
    "plain": PLAIN,
    "no last line end": PLAIN.removesuffix(b"\n"),
    "Windows": written(ROWS, end="\r\n"),
    "a mark of order": b"\xef\xbb\xbf" + PLAIN,
    "all quoted": written(ROWS, quoting=csv.QUOTE_ALL),
    "blank lines": PLAIN.replace(b"\n", b"\n\n\r\n"),
    "blanks": PLAIN.replace(b"ann,20", b" ann ,\t20 ").replace(b",yes", b", yes "),
    "gzip": gzip.compress(PLAIN),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_dialect_is_the_same_table(form: str, clinic: Schema, tmp_path: Path) -> None:
    """Fails when a dialect shifts a row or a cell, or a rule of the schema is not followed."""
    (tmp_path / "t.csv").write_bytes(FORMS[form])
    same(read(tmp_path / "t.csv", clinic), X, [1, 0, 1, 0], [0, 1, 0, 1])


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators(separator: str, clinic: Schema, tmp_path: Path) -> None:
    """Fails when the schema's separator is not the one that is used, or not found from the header."""
    (tmp_path / "t.csv").write_bytes(written(ROWS, separator))
    same(read(tmp_path / "t.csv", replace(clinic, separator=separator)), X, [1, 0, 1, 0], [0, 1, 0, 1])
    assert Source.of(tmp_path / "t.csv").header == HEADER


def test_columns_in_any_order(clinic: Schema, tmp_path: Path) -> None:
    """Fails when columns are taken by their place and not by their name."""
    turned = "\n".join(f'{well},"{ward}",{age},{person}' for person, age, ward, well in [HEADER, *ROWS])
    (tmp_path / "t.csv").write_text(turned)
    same(read(tmp_path / "t.csv", clinic), X, [1, 0, 1, 0], [0, 1, 0, 1])


def test_parquet_with_its_own_types(clinic: Schema, tmp_path: Path) -> None:
    """Fails when numbers, texts, categoricals or nulls of Parquet mean something else than the cells of a CSV."""
    frame = pl.DataFrame(
        {
            "well": ["yes", "no", "yes", "perhaps", "yes", "no"],
            "person": [1, 2, 1, 3, None, 2],
            "age": [20.0, None, 1e9, float("nan"), 50.0, 100.0],
            "ward": pl.Series(["north", "south, new", "elsewhere", None, "north", "south, new"], dtype=pl.Categorical),
        }
    )
    frame.write_parquet(tmp_path / "t.parquet")
    same(read(tmp_path / "t.parquet", clinic), X, [1, 0, 1, 0], [0, 1, 0, 1])
    frame.with_columns(age=pl.date(2020, 1, 1)).write_parquet(tmp_path / "dates.parquet")
    with pytest.raises(InvalidInput, match="has Date in 'age'"):
        read(tmp_path / "dates.parquet", clinic)


def test_rows_of_one_user_are_limited(clinic: Schema, tmp_path: Path) -> None:
    """Fails when more than the stated rows of a user are read, or other than the first ones that count."""
    (tmp_path / "t.csv").write_bytes(PLAIN)
    limited = read(tmp_path / "t.csv", replace(clinic, most_rows_per_user=1))
    same(limited, X[:2], [1, 0], [0, 1])


def test_predictions_need_no_target(clinic: Schema, tmp_path: Path) -> None:
    """Fails when rows are left out of a prediction, or a target or a user is asked for."""
    (tmp_path / "t.csv").write_bytes(PLAIN)
    every = read(tmp_path / "t.csv", clinic, labelled=False)
    (tmp_path / "bare.csv").write_text("\n".join(f'{age},"{ward}"' for _, age, ward, _ in [HEADER, *ROWS]))
    bare = read(tmp_path / "bare.csv", clinic, labelled=False)
    np.testing.assert_array_equal(every.x, bare.x)
    assert (len(every), every.y, every.users) == (6, None, None)


def test_rules_for_missing_cells(tmp_path: Path) -> None:
    """Fails when a missing target, or a rule that names a value or a number, is not obeyed; -99 is declared missing."""
    columns = (Number("a", 0, 10, Missing.MIDDLE), Category("b", ("u", "v"), missing="v"), Number("y", 0, 1, 0.5))
    schema = Schema(columns, target="y", missing=("", "-99"))
    (tmp_path / "t.csv").write_text("a,b,y\n-99,,1\n5,w,\n10,u,-99.0\n")
    table = read(tmp_path / "t.csv", schema)
    assert table.x.tolist() == [[0, 1], [0, 2], [1, 0]]
    assert table.y is not None
    assert table.y.tolist() == [1, 0, 0]
    left_out = read(tmp_path / "t.csv", replace(schema, columns=(*columns[:2], Number("y", 0, 1))))
    assert left_out.x.tolist() == [[0, 1]]


def test_small_blocks_are_the_same_table(clinic: Schema, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a record, a quoted line end or a letter of several bytes is cut between two blocks."""
    rows: list[tuple[str, ...]] = [("é" * n, str(n), "south, new", "yes" if n % 3 else 'n"o\n') for n in range(200)]
    (tmp_path / "t.csv").write_bytes(written(rows))
    schema = replace(clinic, lines_in_cells=True)
    whole = read(tmp_path / "t.csv", schema)
    monkeypatch.setattr(csv_file, "_PIECE", 37)
    monkeypatch.setattr(csv_file, "_HEADER", 37)
    pieces = read(tmp_path / "t.csv", schema)
    np.testing.assert_array_equal(whole.x, pieces.x)
    assert len(whole) == sum(n % 3 > 0 for n in range(200))


cells = st.text(st.sampled_from('abc019.,;"\n\r \t-e?é\x1c'), max_size=6)
RULES = Schema(
    (Number("n", -1, 1), Category("c", ("a", "b")), Number("y", 0, 9, Missing.LOW)), "y", lines_in_cells=True
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(cells, cells, cells), max_size=12), data=st.data())
def test_no_row_raises_or_moves_another(rows: list[tuple[str, ...]], data: st.DataObject, tmp_path: Path) -> None:
    """Fails when what one row holds raises, or changes what another row becomes: the ground of every sensitivity.

    For what a CSV writer writes, line ends in cells included; test_lines.py has all other files.
    """

    def table(kept: list[tuple[str, ...]]) -> np.ndarray[Any, Any]:
        out = io.StringIO()
        csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("n", "c", "y"), *kept])
        (tmp_path / "t.csv").write_bytes(out.getvalue().encode())
        found = read(tmp_path / "t.csv", RULES)
        assert found.y is not None
        return np.column_stack([found.x, found.y])

    whole = table(rows)
    assert len(whole) == len(rows)
    if rows:
        gone = data.draw(st.integers(0, len(rows) - 1))
        np.testing.assert_array_equal(np.delete(whole, gone, axis=0), table(rows[:gone] + rows[gone + 1 :]))


def test_a_growing_array_keeps_what_was_written() -> None:
    """Fails when growing, keeping or ending loses or repeats rows."""
    grown = _Growing(np.zeros((0, 2), dtype=np.int64))
    for n in range(50):
        grown.more(n)[:] = n
    every = np.repeat(np.arange(50), np.arange(50))
    grown.keep(every % 2 == 1)
    assert grown.done()[:, 1].tolist() == every[every % 2 == 1].tolist()


def test_an_empty_table_is_a_table(clinic: Schema, tmp_path: Path) -> None:
    """Fails when a header without rows raises, which would tell that there are none."""
    (tmp_path / "t.csv").write_text("person,age,ward,well\n")
    table = read(tmp_path / "t.csv", replace(clinic, most_rows_per_user=2))
    assert (table.x.shape, len(table)) == ((0, 2), 0)
    assert Identifier("person") in table.schema.columns
    assert source.Source.of(tmp_path / "t.csv").header == HEADER


def test_one_cell_does_not_change_how_others_are_read(tmp_path: Path) -> None:
    """Fails when a cell that is no listed value makes the whole batch be read in another way, in which a number
    that is none is a value, or is not."""
    schema = Schema((Category("dose", ("1", "NaN")), Category("ill", ("no", "yes"))), target="ill")
    found = []
    for extra in ([], [7.0]):
        doses = [1.0, float("nan"), float("nan"), *extra]
        pl.DataFrame({"dose": doses, "ill": ["no"] * len(doses)}).write_parquet(tmp_path / "t.parquet")
        found.append(read(tmp_path / "t.parquet", schema).x[:3].tolist())
    assert found[0] == found[1] == [[0.0], [2.0], [2.0]]


def test_whole_numbers_are_read_alike_beside_a_missing_cell(tmp_path: Path) -> None:
    """A column becomes floats in some programs when one cell is missing: fails when that moves the other rows' people,
    categories or answers, as 1 and 1.0 would."""
    wards = Category("ward", ("1", "2", "-3"))
    schema = sourced(Schema((Identifier("who"), wards, Number("age", 0, 9)), user="who", most_rows_per_user=5))
    plain = pl.DataFrame({"who": [7, 8, 2**52, 7], "ward": [1, 2, -3, 1], "age": [1, 2, 3, 4]})
    more = pl.concat([plain, pl.DataFrame({"who": [None], "ward": [None], "age": [None]}, schema=plain.schema)])
    read_so, counted = [], []
    for frame in (plain, more.cast(pl.Float64), more.cast(pl.Float64).fill_null(float("nan"))):
        frame.write_parquet(tmp_path / "t.parquet")
        found = read(tmp_path / "t.parquet", schema)
        assert found.user_keys is not None
        read_so.append((found.x[:4].tolist(), found.user_keys[:4].tolist()))
        made = query.plan(["count by ward", "count where ward = 1"], schema, epsilon=1e6)
        for data in (frame, tmp_path / "t.parquet"):
            values = [[row.value for row in each.rows] for each in made.answer(data, rng=default_rng()).value]
            counted.append((values[0][:3], values[1]))
    assert read_so[0] == read_so[1] == read_so[2]
    assert counted == [([2, 1, 1], [2])] * 6
