"""Clippers on neighbouring data: how far one unit really moves an answer is never more than the clipper says.

What is measured is the private value itself, in exact arithmetic. Rows are of every kind: missing, infinite, huge,
tiny, texts where numbers are wanted.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privet.core.errors import InvalidInput
from privet.core.unit import Neighbours, Unit, Whose
from privet.mechanisms import (
    BoundedSum,
    Categories,
    Cells,
    Count,
    Histogram,
    Keys,
    Magnitudes,
    Norm,
    Reach,
    VectorSum,
)
from privet.mechanisms.grid import NoiseGrid
from tests.mechanisms.examples import ADD, GROUP, REPLACE, UNITS, USER, ZERO, rows_of

wild = st.one_of(
    st.none(),
    st.floats(),
    st.integers(-(10**400), 10**400),
    st.sampled_from(["a", "b", "7", "", "nan", 1e308, -1e308, 5e-324, True]),
    st.lists(st.integers(), max_size=2),
)
bounds = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(lambda pair: (pair[0], pair[0] + pair[1]))
Rows = list[tuple[int, Any]]


def clippers(unit: Unit, low: float, high: float) -> list[Any]:
    rows = rows_of(unit)
    found: list[Any] = [
        Count(unit, rows),
        BoundedSum(low, high, unit, rows),
        Histogram(Categories(("a", "b", None)), unit, rows),
        Histogram(Cells(low, high, 5), unit, rows),
        Histogram(Cells(low, high, 5, missing=low), unit, rows),
        Histogram(Magnitudes(-3, 9), unit, rows),
    ]
    return found + ([Keys(unit, rows)] if unit.records == 1 else [])


def answer(clip: Any, rows: Rows, chunks: int = 1) -> Any:
    """The private value, from rows of (user, value) in so many chunks."""
    tally = clip.start()
    named = clip.unit.whose is Whose.USER and clip.unit.records == 1
    for i in range(chunks):
        chunk = rows[i * len(rows) // chunks : (i + 1) * len(rows) // chunks]
        tally.add([value for _, value in chunk], [user for user, _ in chunk] if named else None)
    return tally.bounded().value


def distances(one: Any, other: Any) -> dict[str, float]:
    """How far two answers are apart, exactly."""
    if isinstance(one, dict):
        names = {*one, *other}
        one, other = [one.get(name, 0) for name in names], [other.get(name, 0) for name in names]
    gaps = [abs(Fraction(float(b)) - Fraction(float(a))) for a, b in zip(np.ravel(one), np.ravel(other), strict=True)]
    return {
        "l0": sum(gap > 0 for gap in gaps),
        "l1": float(sum(gaps)),
        "l2": math.sqrt(sum(gap**2 for gap in gaps)) * (1 - 1e-12),
        "linf": float(max(gaps, default=Fraction(0))),
    }


def neighbour(rows: Rows, unit: Unit, mine: list[Any], others: list[Any]) -> tuple[Rows, Rows]:
    """Data with one unit's rows among everybody's, and without them or with others in their place."""
    size = unit.records if unit.records > 1 else (len(mine) if unit.whose is Whose.USER else 1)
    spots = [(7 * i + 3) % (len(rows) + 1) for i in range(size)]

    def merged(values: list[Any]) -> Rows:
        found = list(rows)
        for spot, value in sorted(zip(spots, values, strict=False), key=lambda pair: -pair[0]):
            found.insert(spot, (-1, value))
        return found

    if unit.neighbours is Neighbours.REPLACE:
        return merged(mine[:size]), merged(others[:size])
    return merged(mine[:size]), list(rows)


everyone = st.lists(st.tuples(st.integers(0, 3), wild), max_size=8)
own = st.lists(wild, min_size=3, max_size=5)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@settings(max_examples=40)
@example(rows=[], mine=[1e308] * 3, others=[-1e308] * 3, between=(-3.0, 2.0))
@example(rows=[(0, 1)], mine=["a", "a", "b"], others=["b", "b", "b"], between=(0.0, 0.1))
@given(rows=everyone, mine=own, others=own, between=bounds)
def test_one_unit_moves_no_more_than_is_said(
    unit: Unit, rows: Rows, mine: list[Any], others: list[Any], between: tuple[float, float]
) -> None:
    """Catches a row that counts twice, a bound that is passed, rounding in the sum, a limit of rows that others' rows
    decide, a replaced row that is taken for one that comes, and an error that depends on a row.
    """
    one, other = neighbour(rows, unit, mine, others)
    for clip in clippers(unit, *between):
        measured = distances(answer(clip, one), answer(clip, other))
        for norm, distance in measured.items():
            assert distance <= getattr(clip.reach, norm), (clip, norm)


@settings(max_examples=25)
@given(rows=everyone, chunks=st.integers(2, 4), between=bounds)
def test_a_stream_is_the_whole(rows: Rows, chunks: int, between: tuple[float, float]) -> None:
    """Catches a limit of rows that is forgotten between chunks, and a sum that is rounded."""
    for unit in (ADD, USER):
        for clip in clippers(unit, *between):
            assert np.array_equal(_listed(answer(clip, rows, chunks)), _listed(answer(clip, rows)))


def _listed(value: Any) -> Any:
    return sorted(value.items(), key=str) if isinstance(value, dict) else value


vectors = st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64), min_size=3, max_size=3)


@settings(max_examples=50)
@given(rows=st.lists(vectors, max_size=4), mine=vectors, other=vectors, clip=st.floats(1e-6, 1e6))
def test_one_vector_moves_no_more_than_is_said(
    rows: list[Any], mine: list[float], other: list[float], clip: float
) -> None:
    """Catches a clip that rounding passes, an overflow in a norm, and a NaN that spreads."""
    for norm in Norm:
        for unit in (ADD, REPLACE):
            of = VectorSum(3, clip, norm, unit)
            moved = distances(of([*rows, mine]).value, of([*rows, other] if unit is REPLACE else rows).value)
            assert all(moved[name] <= getattr(of.reach, name) for name in moved)


def test_bounds_are_reached() -> None:
    """The statements above are not only true because bounds are far too wide: each is attained."""
    assert BoundedSum(-3, 2)([-9]).value == -3.0
    assert BoundedSum(-3, 2).reach.linf == 3.0
    assert BoundedSum(-3, 2, REPLACE).reach.linf == 5.0
    assert BoundedSum(1, 2, REPLACE).reach.linf == 2.0, "someone who is replaced may have had no row"
    assert BoundedSum(0, 4, USER, 3)([9] * 5, ["ann"] * 5).value == 12.0 == BoundedSum(0, 4, USER, 3).reach.linf
    assert Count(GROUP).reach.linf == 3.0
    histogram = Histogram(Categories(tuple("ab")), REPLACE).reach
    assert (histogram.l0, histogram.l1, histogram.linf) == (2, 2, 1)
    assert histogram.l2 == pytest.approx(math.sqrt(2))
    assert Keys(USER, 4).reach.l2 == 2.0
    assert VectorSum(2, 1.0, Norm.L2, REPLACE).reach.l2 == 2.0
    assert np.abs(VectorSum(2, 1.0)([[3, 4]]).value - [0.6, 0.8]).max() < 1e-5
    assert VectorSum(2, 1.0, Norm.LINF)([[3, 0.5]]).value.tolist() == [1.0, 0.5]


def test_missing_values_have_a_rule() -> None:
    """Catches a NaN that makes a whole answer NaN, and a default outside of the bounds."""
    assert BoundedSum(10, 20)([None, "x", math.nan]).value == 30.0
    assert BoundedSum(10, 20, missing=15)([None, math.inf, -math.inf]).value == 45.0
    assert BoundedSum(-5, 5)([math.nan]).value == 0.0
    with pytest.raises(InvalidInput, match="missing"):
        BoundedSum(10, 20, missing=3)
    assert Count()([1, 0, None, math.nan, "x", "1"]).value == 2
    assert Histogram(Cells(0, 4, 4))([None, 9, -9]).value.tolist() == [1, 0, 0, 1]
    assert Histogram(Categories(("a", None)))([None, "a", "?"]).value.tolist() == [1, 1]
    assert Keys()([None, math.nan, ["x"], "a"]).value == {None: 2, "['x']": 1, "a": 1}
    assert VectorSum(2, 1.0, Norm.LINF)([[None, 0.5], "ab", [1]]).value.tolist() == [0.0, 0.5]


def test_ids_are_wanted_where_users_are_protected() -> None:
    """Catches rows of users that are counted as if each were a person, and ids that are ignored."""
    for clip, values in ((Count(USER), [1]), (BoundedSum(0, 1, USER), [1]), (Keys(USER), ["a"])):
        with pytest.raises(InvalidInput, match="users"):
            clip(values)
        with pytest.raises(InvalidInput, match="users"):
            clip(values, [1, 2])
    for clip, values in ((Count(), [1]), (Count(GROUP), [1]), (Keys(), ["a"])):
        with pytest.raises(InvalidInput, match="users"):
            clip(values, [1])
    with pytest.raises(InvalidInput, match="rows"):
        Count(ADD, 2)
    with pytest.raises(InvalidInput, match="several rows"):
        Keys(GROUP)
    with pytest.raises(InvalidInput, match="l1-ball"):
        Count(Unit(neighbours=Neighbours.L1_BALL, radius=1.0))
    assert Count(ZERO).reach.linf == 1.0


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.floats(1e-9, 1e9), st.booleans())
def test_rounding_to_the_grid_moves_no_further(x: float, y: float, bound: float, replaced: bool) -> None:
    """The theorem of `grid`: numbers at most m apart are at most ⌈m/g⌉ steps apart. Catches rounding that is not exact,
    and a bound that forgets it.
    """
    grid = NoiseGrid.for_noise(Reach(REPLACE if replaced else ADD, linf=bound), "l1")
    y = x + max(min(y - x, bound), -bound)
    if abs(Fraction(y) - Fraction(x)) <= Fraction(bound):
        assert abs(int(grid.steps(x)) - int(grid.steps(y))) <= grid.moves("l1")
    assert grid.contribution("l1") >= 128
    assert grid.contribution("l1") <= 257
    assert grid.back(grid.steps(x)) == pytest.approx(x, abs=grid.step / 2) or abs(x) > grid.step * 2**52


@given(
    st.lists(st.floats(-100, 100), min_size=4, max_size=4),
    st.lists(st.floats(-1, 1), min_size=4, max_size=4),
    st.sampled_from(["l1", "l2"]),
)
@example([0.4 / 64] * 4, [0.02] * 4, "l1")  # each moves by 1.28 steps and crosses two of them
def test_rounding_several_coordinates(at: list[float], move: list[float], norm: str) -> None:
    """The same for vectors: m/g and one step, or its root, for each coordinate. Without it the bound would fail."""
    here, there = np.array(at), np.array(at) + np.array(move)
    apart = distances(here, there)
    bound = max(apart[norm] * (1 + 1e-11), 1e-3)
    grid = NoiseGrid.for_noise(Reach(**{norm: bound}, dimension=4), norm, fine=1)  # type: ignore[arg-type]
    measured = distances(grid.steps(here), grid.steps(there))
    assert measured[norm] <= float(grid.moves(norm))


def test_the_grid_takes_everything() -> None:
    """Catches an overflow, a NaN and an error where an answer is out of all bounds."""
    grid = NoiseGrid.for_noise(Reach(linf=1.0, dimension=6), "linf")
    steps = grid.steps(np.array([math.nan, math.inf, -math.inf, 1e308, -1e308, 0.3]))
    assert steps.tolist()[:5] == [0, 2**52, -(2**52), 2**52, -(2**52)]
    assert NoiseGrid.whole(Reach(linf=1.0, whole=True)).steps(2**62).tolist() == 2**52
    with pytest.raises(InvalidInput, match="holds 1 numbers"):
        grid.steps(1.0)
    with pytest.raises(InvalidInput, match="where numbers are wanted"):
        grid.steps(["a"] * 6)


@given(
    st.integers(1, 9),
    st.lists(st.integers(-9, 9), min_size=1, max_size=9),
    st.sets(st.sampled_from(["l0", "l1", "l2", "linf"]), min_size=1),
)
def test_bounds_that_follow_from_others_hold(extra: int, vector: list[int], given_norms: set[str]) -> None:
    """A vector that obeys the stated bounds obeys the ones that are worked out from them."""
    moved = distances(np.zeros(len(vector)), np.array(vector))
    if not any(vector) or given_norms == {"l0"}:
        return
    stated = {norm: moved[norm] * (1 + (1e-11 if norm == "l2" else 0)) for norm in given_norms}
    reach = Reach(**stated, dimension=len(vector) + extra)  # type: ignore[arg-type]
    assert all(moved[norm] <= getattr(reach, norm) * (1 + 1e-11) for norm in moved)
