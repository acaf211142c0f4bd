"""A replay on neighbours: no error, shape, branch or number of draws depends on a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privet.core.random import SeededRng
from privet.data import Schema
from privet.query import QueryPlan, plan
from tests.query.tables import BY_USER, NASTY, QUESTIONS, SCHEMA, frame

ADDED = [text for text in QUESTIONS if not text.startswith(("median", "quantile", "min", "max", "top"))]
"""Those that are answered by noise alone, whose draws can be counted to the last byte; a choice by score is drawn by
proposals, as many as it takes."""


def neighbours(schema: Schema) -> Iterator[pl.DataFrame]:
    """The nasty table, without each of its units, and with one more of each; and a table without rows."""
    yield frame(NASTY)
    yield frame([])
    for row in NASTY:
        yield frame([each for each in NASTY if (each["id"] != row["id"] if schema.user else each is not row)])
        yield frame([*NASTY, row | {"id": "new"}])


class Counting(SeededRng):
    """Remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(7)
        self.asked: list[tuple[str, Any]] = []

    def bits(self, n: int) -> bytes:
        self.asked.append(("bits", n))
        return super().bits(n)

    def words(self, n: int) -> Any:
        self.asked.append(("words", n))
        return super().words(n)

    def below(self, bound: Any, size: Any = None) -> Any:
        self.asked.append(("below", size))
        return super().below(bound, size)


def seen(made: QueryPlan, table: pl.DataFrame | Path, rng: SeededRng) -> tuple[Any, ...]:
    """All that an analyst sees beside the numbers: how many, of which groups, with which notes, by which draws."""
    release = made.answer(table, rng=rng)
    shapes = tuple(
        (replace(answer, rows=()), tuple((row.low is None, row.high is None) for row in answer.rows))
        for answer in release.value
    )
    labels = tuple(
        tuple(row.group for row in answer.rows) for answer in release.value if not answer.question.startswith("top")
    )
    assert all(np.isfinite(row.value) for answer in release.value for row in answer.rows)
    return shapes, labels, tuple(draw.event for draw in release.draws), release.guarantee


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("schema", [SCHEMA, BY_USER], ids=["example", "user"])
def test_nothing_but_the_numbers_depends_on_a_row(schema: Schema, delta: float) -> None:
    """Fails when a row raises, adds or drops a group, changes a note, or changes what is drawn."""
    made = plan(QUESTIONS, schema, epsilon=1.0, delta=delta)
    replays = {seen(made, table, SeededRng(1)) for table in neighbours(schema)}
    assert len(replays) == 1


UNREAD = ("1,2", "1,2,north,0,Bath,a,9", '"1,2,north,0,Bath,a', 'x"y",2,north,0,Bath,a', "1\0,2,north,0,Bath,a")


@pytest.mark.parametrize("schema", [SCHEMA, BY_USER], ids=["example", "user"])
def test_records_that_cannot_be_read_are_rows_like_others(schema: Schema, tmp_path: Path) -> None:
    """Fails when one raises, changes anything but numbers, or counts as more or less than one row without a cell."""
    made, loud = plan(QUESTIONS, schema, epsilon=1.0), plan("count", schema, epsilon=1e5)
    lines = frame(NASTY).write_csv(quote_style="always").splitlines(keepends=True)
    path, replays = tmp_path / "t.csv", set()

    def count(rows: list[str]) -> float:
        path.write_text("".join(rows), encoding="utf-8")
        replays.add(seen(made, path, SeededRng(1)))
        return loud.answer(path, rng=SeededRng(1)).value[0].value

    usual = count(lines)
    for row in UNREAD:
        for place in (1, 3, len(lines)):
            assert count([*lines[:place], f"{row}\n", *lines[place:]]) == usual + (schema.user is None)
    assert len(replays) == 1


@pytest.mark.parametrize("schema", [SCHEMA, BY_USER], ids=["example", "user"])
def test_the_same_bits_are_drawn(schema: Schema) -> None:
    """Fails when a row decides how much randomness is used, or when."""
    made = plan(ADDED, schema, epsilon=1.0)
    asked = set()
    for table in neighbours(schema):
        rng = Counting()
        made.answer(table, rng=rng)
        assert rng.asked
        asked.add((tuple(rng.asked), rng.bits(8)))
    assert len(asked) == 1


@pytest.mark.parametrize(
    "texts", [["count by town"], ["mean(age) by town, ward", "top(town, 2)", "median(age) by town"]]
)
@pytest.mark.parametrize("schema", [SCHEMA, BY_USER], ids=["example", "user"])
def test_private_groups_raise_nothing(texts: list[str], schema: Schema) -> None:
    """Fails when a missing key, no key at all or a single one raises, or changes the events."""
    made = plan(texts, schema, epsilon=1.0, delta=1e-6)
    events = set()
    for table in neighbours(schema):
        release = made.answer(table, rng=SeededRng(1))
        assert all(answer.rows == () for answer in release.value)  # nobody is in a crowd here
        events.add(tuple(draw.event for draw in release.draws))
    assert len(events) == 1


def test_a_branch_on_a_row_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the replay is blind: a reader that leaves out groups without rows must be seen."""
    from privet.query.methods import QuestionMethod, ReleasedValues

    usual = QuestionMethod.release

    def shortened(self: QuestionMethod, totals: Any, *, rng: Any, source: str) -> Any:
        kept = [place for place, sums in enumerate(totals.public) if sums.sum() > 0]
        return usual(self, totals, rng=rng, source=source).map(
            lambda drawn: ReleasedValues(tuple(drawn.groups[place] for place in kept), drawn.values[kept])
        )

    made = plan("sum(age) by ward", SCHEMA, epsilon=1.0)
    monkeypatch.setattr(QuestionMethod, "release", shortened)
    assert len({seen(made, table, SeededRng(1)) for table in neighbours(SCHEMA)}) > 1
