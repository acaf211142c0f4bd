"""The end of a Parquet file: the same columns and rows as Polars finds, or nothing."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from privet.core.random import default_rng
from privet.data import Category, Number, Schema
from privet.data.footer import Footer, footer_of
from privet.query import plan

TABLES = {
    "one column": pl.DataFrame({"age": [1, 2, 3]}),
    "no rows": pl.DataFrame({"age": pl.Series([], dtype=pl.Int64), "ward": pl.Series([], dtype=pl.String)}),
    "every kind": pl.DataFrame(
        {
            "a": [1.5, None],
            "b": [True, False],
            "č – 名": ["x", None],
            "d": pl.Series([1, 2], dtype=pl.UInt8),
            "e": pl.Series(["u", "v"], dtype=pl.Categorical),
            "f": pl.Series([1, 2]).cast(pl.Datetime("us", "UTC")),
            "g": pl.Series(["1.50", "2.25"]).cast(pl.Decimal(10, 2)),
            "h": pl.Series([b"\0\1", b""]),
        }
    ),
    "many columns": pl.DataFrame({f"column {place}": [place] * 5 for place in range(300)}),
    "many row groups": pl.DataFrame({"age": range(5000)}),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("compression", ["zstd", "uncompressed"])
def test_it_says_what_polars_says(tmp_path: Path, name: str, compression: str) -> None:
    """A field that is skipped wrongly, or a number without its sign's bit, would give other rows or names."""
    table, path = TABLES[name], tmp_path / "t.parquet"
    table.write_parquet(path, compression=compression, row_group_size=64)  # type: ignore[arg-type]
    assert footer_of(path) == Footer(tuple(table.columns), len(table))


def test_what_is_nested_is_left_to_polars(tmp_path: Path) -> None:
    """The parts of a nested column are no columns."""
    path = tmp_path / "t.parquet"
    pl.DataFrame({"a": [{"x": 1, "y": 2}], "b": [[1, 2]]}).write_parquet(path)
    assert footer_of(path) is None


def test_damage_raises_nothing(tmp_path: Path) -> None:
    """Cut anywhere, or with any byte of the footer changed: an answer or none, and no exception."""
    path, drawn = tmp_path / "t.parquet", random.Random(3)
    TABLES["every kind"].write_parquet(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert footer_of(path) is None
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    for _ in range(400):
        place = drawn.randrange(start, len(whole))
        path.write_bytes(whole[:place] + bytes([drawn.randrange(256)]) + whole[place + 1 :])
        footer_of(path)
    assert footer_of(tmp_path / "nowhere") is None
    deep, many = b"\x2c" * 50_000, b"\x29\x2c\x48\x01s\x15\x00\x00\x16" + b"\xff" * 9 + b"\x01"
    for footer in (b"\x15\x02\x1c" + deep, b"\x15\x02" + many):
        path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
        assert footer_of(path) is None


def test_a_bare_count_is_all_rows_whatever_they_hold(tmp_path: Path) -> None:
    """The count of the footer is the count that Polars makes for CSV and frames; and it is not printed."""
    schema = Schema((Number("age", 0, 100), Category("ward", ("north", "south"))))
    table = pl.DataFrame({"age": [1.0, None, float("nan"), 1e300] * 100, "ward": ["north", "x", None, ""] * 100})
    table.write_parquet(tmp_path / "t.parquet")
    made = plan("count", schema, epsilon=1e6)
    found = [made.answer(each, rng=default_rng()).value[0].rows for each in (tmp_path / "t.parquet", table)]
    assert found[0] == found[1]
    assert found[0][0].value == 400
    assert "400" not in repr(made.open(tmp_path / "t.parquet")) + repr(footer_of(tmp_path / "t.parquet"))
