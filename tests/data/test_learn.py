"""Learning a schema: what is asked moves no further than it is priced for, and the schema is made of releases alone."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privet import accounting
from privet.core.bounded import Bounded
from privet.core.errors import InvalidInput
from privet.core.event import Composed
from privet.core.random import Rng, SeededRng, default_rng
from privet.core.release import Release
from privet.core.unit import Unit, Whose
from privet.data import Category, ColumnKind, Identifier, Learning, Number, Schema, Source, learn, learning, read
from privet.data.read import user_keys_of
from privet.data.schema_questions import Questions
from privet.mechanisms import DiscreteGaussianMechanism, ThresholdedCounts

HEADER = ("who", "size", "kind", "y")
Row = tuple[str, ...]
LEARNED = "learned under the budget"


def stored(path: Path, rows: list[Row]) -> Source:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([HEADER, *rows])
    path.write_bytes(out.getvalue().encode())
    return Source.of(path)


def people(count: int) -> list[Row]:
    return [(f"p{n // 2}", str(20 + n % 45), "abc"[n % 3], str(n % 2)) for n in range(count)]


def plan_for(source: Source, most: int | None = None, epsilon: float = 1.0) -> Learning:
    user = None if most is None else "who"
    kinds = {"who": ColumnKind.IDENTIFIER}
    return learning(source, "y", epsilon=epsilon, delta=1e-6, kinds=kinds, user=user, most_rows_per_user=most)


@lru_cache
def asked_of(header: Row, most: int | None) -> Questions:
    """The questions for a header, which the rows have no part in; the search for their noise is made once."""
    with TemporaryDirectory() as folder:
        source = stored(Path(folder) / "t.csv", [])
        assert source.header == header
        return plan_for(source, most).questions


def gap(one: Any, other: Any) -> list[float]:
    """How far apart two private answers are in every count."""
    if isinstance(one, dict):
        names = sorted({*one, *other})
        one, other = [one.get(name, 0) for name in names], [other.get(name, 0) for name in names]
    return [abs(float(a) - float(b)) for a, b in zip(np.ravel(one), np.ravel(other), strict=True)]


cells = st.one_of(
    st.just("a"),  # often, so that one user has one value in several rows
    st.just("a"),
    st.sampled_from(
        ["a", "b", "1", "-2.5", "0", "1e300", "inf", "nan", "?", "", " a ", "x" * 200, "\x1c", 'q"', "é\n"]
    ),
    st.text(max_size=4).filter(lambda text: "\0" not in text and "\r" not in text),
)
rows = st.lists(st.tuples(st.sampled_from(["u", "v", "w", ""]), cells, cells, cells), max_size=12)


@pytest.mark.parametrize("most", [None, 1, 3])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(table=rows, data=st.data())
def test_one_unit_moves_no_answer_further_than_is_priced(
    most: int | None, table: list[Row], data: st.DataObject, tmp_path: Path
) -> None:
    """Fails when a row counts twice, a user counts with more rows than are stated, or a row changes another's part."""
    if most is None:
        gone = data.draw(st.integers(0, max(len(table) - 1, 0)))
        fewer = table[:gone] + table[gone + 1 :]
    else:
        user = data.draw(st.sampled_from(["u", "v", ""]))
        fewer = [row for row in table if row[0] != user]
    source = stored(tmp_path / "t.csv", table)
    questions = asked_of(source.header, most)
    here = questions.asked(source)
    there = questions.asked(stored(tmp_path / "t.csv", fewer))
    for one, other in zip(here, there, strict=True):
        moved = gap(one.value, other.value)
        assert sum(each > 0 for each in moved) <= (one.l0 or 0)
        assert sum(moved) <= (one.l1 or 0)
        assert math.sqrt(sum(each**2 for each in moved)) <= (one.l2 or 0) + 1e-9
        assert max(moved, default=0.0) <= (one.linf or 0)


def replayed(monkeypatch: pytest.MonkeyPatch, values: list[Any]) -> None:
    """Every mechanism answers with what was recorded, whatever it is asked."""
    left = iter(values)

    def release(self: Any, query: Bounded[Any], *, rng: Rng, source: str = "data") -> Release[Any]:
        return Release.of(next(left), self.event, unit=query.unit, source=source, randomness=rng.kind)

    monkeypatch.setattr(DiscreteGaussianMechanism, "release", release)
    monkeypatch.setattr(ThresholdedCounts, "release", release)


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the mechanisms answer, in order."""
    found: list[Any] = []

    def kept(original: Callable[..., Release[Any]]) -> Callable[..., Release[Any]]:
        def release(self: Any, query: Bounded[Any], *, rng: Rng, source: str = "data") -> Release[Any]:
            made = original(self, query, rng=rng, source=source)
            found.append(made.value)
            return made

        return release

    for mechanism in (DiscreteGaussianMechanism, ThresholdedCounts):
        monkeypatch.setattr(mechanism, "release", kept(mechanism.release))
    return found


NEIGHBOURS: dict[str, Callable[[list[Row]], list[Row]]] = {
    "a row less": lambda table: table[1:],
    "a huge number": lambda table: [*table, ("z", "1e300", "a", "1")],
    "a text among numbers": lambda table: [*table, ("z", "large", "a", "1")],
    "a new value": lambda table: [*table, ("z", "30", "never seen", "1")],
    "a new class": lambda table: [*table, ("z", "30", "a", "17")],
    "all missing": lambda table: [*table, ("z", "?", "", "NA")],
    "a long text": lambda table: [*table, ("z", "x" * 5000, "y" * 5000, "z" * 5000)],
}


@pytest.mark.parametrize("neighbour", NEIGHBOURS)
def test_the_schema_is_made_of_releases(neighbour: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when anything of the schema, or what is drawn, comes from the rows by another way than a mechanism."""
    with monkeypatch.context() as first:
        values = recorded(first)
        source = stored(tmp_path / "t.csv", people(600))
        one = plan_for(source).release(source, rng=SeededRng(3))
    source = stored(tmp_path / "t.csv", NEIGHBOURS[neighbour](people(600)))
    replayed(monkeypatch, values)
    other = plan_for(source).release(source, rng=SeededRng(3))
    assert other.value == one.value
    assert other.event == one.event


@pytest.mark.parametrize("most", [None, 2])
def test_what_is_done_is_what_was_planned(most: int | None, tmp_path: Path) -> None:
    """Fails when a draw is missing from the bill, costs more than was allowed, or is priced for another unit."""
    source = stored(tmp_path / "t.csv", people(400))
    plan = plan_for(source, most)
    made = plan.release(source, rng=SeededRng(1), name="clinic")
    assert isinstance(plan.event, Composed)
    assert made.event == plan.event
    assert len(made.draws) == 1 + 3 + 3
    assert made.unit == (Unit() if most is None else Unit(whose=Whose.USER))
    assert made.source == ("clinic",)
    assert made.tainted
    assert made.guarantee is not None
    assert made.guarantee.epsilon.upper <= 1.0
    assert accounting.epsilon(plan.event, 1e-6, unit=plan.unit).epsilon.upper <= 1.0
    assert made.value.most_rows_per_user == most


def test_the_noise_is_as_large_as_the_plan_says(tmp_path: Path) -> None:
    """Fails when the row count has less or more noise than its event says: 300 draws, a χ² at 1e-6 on either side."""
    source = stored(tmp_path / "t.csv", people(50))
    plan = learning(
        source,
        "y",
        epsilon=1.0,
        delta=1e-6,
        kinds={"who": ColumnKind.IDENTIFIER, "size": ColumnKind.NUMBER, "kind": ColumnKind.CATEGORY},
    )
    count = plan._mechanisms(plan.noise_multiplier)[0]
    asked = plan.questions.asked(source)[0]
    rng = SeededRng(5)
    drawn = np.array([count.release(asked, rng=rng).value for _ in range(300)]) - 50
    assert 0.65 < float((drawn**2).mean()) / plan.noise_multiplier**2 < 1.43


def test_a_crowd_is_described(tmp_path: Path) -> None:
    """Fails when what thousands of rows share is not found: kinds, bounds, values, classes, and the number of rows."""
    source = stored(tmp_path / "t.csv", [*people(8000), ("z", "1e9", "rare", "7")])
    made = plan_for(source, epsilon=2.0).release(source, rng=SeededRng(2))
    assert made.value.columns == (
        Identifier("who"),
        Number("size", 16, 64, source=LEARNED),
        Category("kind", ("a", "b", "c"), source=LEARNED),
        Category("y", ("0", "1"), source=LEARNED),
    )
    assert made.value.rows is not None
    assert abs(made.value.rows - 8001) < 200
    table = read(tmp_path / "t.csv", made.value)
    assert len(table) == 8000  # the row of a class that nobody shares is left out


def test_a_crowd_of_odd_cells_is_no_error(tmp_path: Path) -> None:
    """Fails when cells that no schema can list, shared by thousands, raise or are listed; or zeros get an odd bound."""
    odd: list[Row] = [("z", "0" if n % 2 else "37", ("\x1ca", "x" * 200, "?", " b ")[n % 4], "") for n in range(8000)]
    source = stored(tmp_path / "t.csv", odd)
    schema = plan_for(source, epsilon=2.0).release(source, rng=SeededRng(4)).value
    assert schema.columns[1:] == (
        Number("size", 0, 64, source=LEARNED),
        Category("kind", ("b",), source=LEARNED),
        Category("y", (), source=LEARNED),
    )
    assert len(read(tmp_path / "t.csv", schema)) == 0


@pytest.mark.parametrize("count", [0, 1, 5])
def test_few_rows_are_no_error(count: int, tmp_path: Path) -> None:
    """Fails when a small or empty table raises, which would tell that it is, or gives a schema that cannot be read."""
    source = stored(tmp_path / "t.csv", people(count))
    for seed in range(5):
        schema = plan_for(source).release(source, rng=SeededRng(seed)).value
        assert Schema.from_toml(schema.to_toml()) == schema
        read(tmp_path / "t.csv", schema)


def test_what_is_refused_follows_from_the_header(tmp_path: Path) -> None:
    """Fails when a mistake in the question is not told before anything is drawn."""
    source = stored(tmp_path / "t.csv", people(5))
    path, rng = tmp_path / "t.csv", default_rng()
    with pytest.raises(InvalidInput, match="has no column 'z', which is named by you"):
        learn(path, "z", epsilon=1.0, delta=1e-6, rng=rng)
    with pytest.raises(InvalidInput, match="epsilon"):
        learn(path, "y", epsilon=0.0, delta=1e-6, rng=rng)
    with pytest.raises(InvalidInput, match="delta is 0"):
        learn(path, "y", epsilon=1.0, delta=0.0, rng=rng)
    with pytest.raises(InvalidInput, match="most_rows_per_user goes with user"):
        learn(path, "y", epsilon=1.0, delta=1e-6, rng=rng, user="who")
    with pytest.raises(InvalidInput, match="an identifier"):
        learn(path, "y", epsilon=1.0, delta=1e-6, rng=rng, kinds={"y": ColumnKind.IDENTIFIER})
    with pytest.raises(InvalidInput, match="has no column to learn from"):
        learning(source, "y", epsilon=1.0, delta=1e-6, kinds=dict.fromkeys(HEADER[:3], ColumnKind.IDENTIFIER))


def test_adult_is_described(data_dir: Path) -> None:
    """Fails when ε = 1 on 32,561 rows no longer finds the classes, the kinds and the common values."""
    path = data_dir / "adult" / "train.csv.gz"
    schema = learn(path, "income", epsilon=1.0, delta=1e-6, rng=SeededRng(1)).value
    assert schema.classes == ("<=50K", ">50K")
    kinds = {column.name: type(column) for column in schema.columns}
    assert kinds["age"] is kinds["capital-gain"] is Number
    assert schema.find("age") == Number("age", 16, 128, source=LEARNED)
    found = schema.find("education")
    assert isinstance(found, Category)
    assert len(found.values) >= 12


def test_thresholds_of_all_columns_spend_half_of_delta(tmp_path: Path) -> None:
    """Fails when a value that one row alone has is shown more often than δ allows, in any of the columns together."""
    plan = plan_for(stored(tmp_path / "t.csv", []))
    shown = [one for one in plan._mechanisms(plan.noise_multiplier) if isinstance(one, ThresholdedCounts)]
    assert len(shown) == 3
    assert 0 < sum(one.delta for one in shown) <= plan.delta / 2


class Batches:
    """Rows in two batches, where a source would make one of so few."""

    def batches(self, names: list[str]) -> list[pl.DataFrame]:
        first = pl.DataFrame({"who": ["p1", "p2"], "size": ["1", "2"], "kind": ["a", "a"], "y": ["0", "1"]})
        second = pl.DataFrame({"who": ["p1", "p2"], "size": ["3", "4"], "kind": ["b", "c"], "y": ["1", "0"]})
        return [frame.select(names) for frame in (first, second)]


def test_rows_of_one_user_are_limited_over_all_batches() -> None:
    """Fails when every batch of rows begins a new count of each user's rows."""
    source: Any = Batches()
    answers = asked_of(HEADER, 1).asked(source)
    assert answers[0].value == 2
    kinds = next(answer.value for answer in answers if isinstance(answer.value, dict) and "a" in answer.value)
    assert kinds == {"a": 2}


def test_users_whose_ids_begin_alike_are_different_users() -> None:
    """Fails when a part of an id stands for the whole, so that one user's rows decide which of another's count."""
    keys, known = user_keys_of(pl.Series(["patient-0001", "patient-0002", " patient-0001", ""]), ("",))
    assert len(set(keys[:3].tolist())) == 2
    assert known.tolist() == [True, True, True, False]
