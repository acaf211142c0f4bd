"""Whole numbers on the way to the noise, and which users stand behind a private group."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privet import mechanisms
from privet.mechanisms.grid import MOST_STEPS, NoiseGrid
from privet.query import plan
from privet.query.methods import on_grid
from tests.query.tables import BY_USER, frame

GRID = NoiseGrid.for_noise(mechanisms.Reach(l1=1.0), "l1")


@pytest.mark.parametrize("exponent", [40, 60, 80, 100])
@pytest.mark.parametrize("near", [-2, -1, 0, 1, 2])
def test_sums_beyond_float64_are_rounded_once(exponent: int, near: int) -> None:
    """Fails when a sum of more than 2^53 steps becomes a float64 before it is rounded to the grid: neighbors, one row
    apart, could come out more steps apart than the noise is for. Compared with rounding in fractions."""
    step = GRID.step * 2.0**-exponent
    half = 1 << (exponent - 1)
    for whole in (0, 3, 12345):
        sum_ = (whole << exponent) + half + near
        (found,) = on_grid(np.array([sum_], dtype=object), step, GRID)
        wanted = (Fraction(sum_, 1 << exponent) + Fraction(1, 2)).__floor__()
        assert Fraction(float(found)) == wanted * Fraction(GRID.step)


def test_sums_beyond_the_grid_are_cut_to_it() -> None:
    """Fails when a sum leaves the range in which every whole number of steps is a float64."""
    found = on_grid(np.array([1 << 200, -(1 << 200)], dtype=object), GRID.step, GRID)
    assert found.tolist() == [MOST_STEPS * GRID.step, -MOST_STEPS * GRID.step]


ROWS = [
    {"age": "41", "bmi": "22", "ward": "north", "sick": "1", "town": "Bath", "id": "a"},
    {"age": "42", "bmi": "22", "ward": "north", "sick": "0", "town": "Bath", "id": "b"},
    {"age": "43", "bmi": "22", "ward": "north", "sick": "0", "town": "Bath", "id": "b"},
    {"age": "44", "bmi": "22", "ward": "south", "sick": "1", "town": "York", "id": "c"},
    {"age": "45", "bmi": "22", "ward": "south", "sick": "1", "town": "York", "id": "c"},
    {"age": "46", "bmi": "22", "ward": "south", "sick": "1", "town": "York", "id": "c"},
    {"age": "47", "bmi": "22", "ward": "south", "sick": "0", "town": "Ely", "id": "d"},
    {"age": "48", "bmi": "22", "ward": "south", "sick": "1", "town": "Ely", "id": ""},
]


@pytest.mark.parametrize(
    ("text", "owners", "sums"),
    [
        ("count by town", {"Bath": 2, "York": 1, "Ely": 1}, {"Bath": 3, "York": 2, "Ely": 1}),
        ("count by town where sick = 1", {"Bath": 1, "York": 1}, {"Bath": 1, "York": 2}),
        ("count by town where age > 44", {"York": 1, "Ely": 1}, {"York": 1, "Ely": 1}),
    ],
)
def test_private_groups_have_the_users_whose_rows_meet_the_condition(
    text: str, owners: dict[str, int], sums: dict[str, int]
) -> None:
    """Fails when a group is shown for users none of whose rows are asked about, a user counts once for each row, rows
    without a user are used, or more than the first two rows of one are."""
    made = plan(text, BY_USER, epsilon=1.0, delta=1e-6)
    (total,) = made.tally(made.open(frame(ROWS)))
    assert total.owners is not None
    counts = total.owners.bounded().value
    assert {label[0]: count for label, count in dict(counts).items()} == owners
    assert {label[0]: int(each[0]) for label, each in total.private.items()} == sums
