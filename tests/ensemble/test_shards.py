"""Shards by keyed hash: a record that comes or goes moves no other, and nobody is with two teachers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privet.core.errors import InvalidInput
from privet.data import Category, Identifier, Images, Number, Schema, Table, read
from privet.ensemble import Shards, require_disjoint, shards

CLINIC = Schema(
    (
        Identifier("person"),
        Number("age", 0, 100),
        Category("ward", ("north", "south")),
        Category("well", ("no", "yes")),
    ),
    target="well",
    user="person",
)


def people(folder: Path, rows: list[int], *, by_user: bool = True) -> Table:
    lines = [f"p{n // 3},{n % 97},{('north', 'south')[n % 5 > 2]},{('no', 'yes')[n % 2]}" for n in rows]
    path = folder / "people.csv"
    path.write_text("person,age,ward,well\n" + "\n".join(lines) + "\n")
    return read(path, CLINIC if by_user else replace(CLINIC, user=None))


def pictures(rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Images:
    x = np.stack([rows >> 8, rows & 255], axis=1).astype(np.uint8).reshape(-1, 1, 2)
    return Images(x, rows % 3, ("a", "b", "c"), None)


@pytest.mark.parametrize("by_user", [False, True])
def test_a_row_of_a_table_that_goes_moves_no_other(by_user: bool, tmp_path: Path) -> None:
    """Fails when a shard depends on a row's place, on how many rows there are, or on a user's number in the table."""
    every = list(range(300))
    whole = shards(people(tmp_path, every, by_user=by_user), 20).of
    for gone in ([0], [150], [299], [0, 1, 2], [150, 151, 152]):  # the last two are all rows of one user
        left = people(tmp_path, [n for n in every if n not in gone], by_user=by_user)
        np.testing.assert_array_equal(np.delete(whole, gone), shards(left, 20).of)


def test_a_picture_or_an_id_that_goes_moves_no_other() -> None:
    """Fails when shards are dealt out in turns, evened out, or when a text is hashed as it is padded in its array: the
    last text is far longer than the others, and without it all of them are stored in fewer bytes."""
    numbers = np.arange(500)
    texts = np.array([f"p{n}" for n in numbers[:-1]] + ["a person with a name that is far longer"])
    for gone in (0, 250, 499):
        left = np.delete(numbers, gone)
        np.testing.assert_array_equal(np.delete(shards(numbers, 20).of, gone), shards(left, 20).of)
        np.testing.assert_array_equal(np.delete(shards(texts, 20).of, gone), shards(np.array([*texts[left]]), 20).of)
        whole = shards(pictures(numbers), 20).of
        np.testing.assert_array_equal(np.delete(whole, gone), shards(pictures(left), 20).of)


def test_users_and_equal_rows_stay_together(tmp_path: Path) -> None:
    """Fails when one user's rows, or rows with the same content, are with two teachers; zeros of both signs and every
    NaN are the same number."""
    table = people(tmp_path, list(range(600)))
    found = shards(table, 20)
    assert table.users is not None
    assert all(len(set(found.of[table.users == user])) == 1 for user in range(200))
    rows = np.array([[0.0, np.nan], [-0.0, -np.nan], [0.5, 1.0], [0.5, 1.0]] * 20, dtype=np.float32)
    twins = Table(rows, np.zeros(80, np.int64), replace(CLINIC, user=None))
    alike = shards(twins, 50).of.reshape(-1, 4)
    assert (alike[:, 0] == alike[:, 1]).all()
    assert (alike[:, 2] == alike[:, 3]).all()
    assert len(np.unique(alike)) == 2


def test_shards_are_even_disjoint_and_follow_the_key() -> None:
    """Fails when a shard is preferred, a row is in two shards or none, or the key does not matter. 100,000 rows over
    100 shards: χ² with 99 degrees beyond 180 is a chance of 1e-6, were ids random; they are fixed."""
    ids = np.arange(100_000)
    found = shards(ids, 100, key="one")
    sizes = np.array([len(rows) for rows in found.members])
    assert float(((sizes - 1000) ** 2 / 1000).sum()) < 180
    np.testing.assert_array_equal(np.sort(np.concatenate(found.members)), ids)
    assert all((found.of[rows] == teacher).all() for teacher, rows in enumerate(found.members))
    assert abs((found.of == shards(ids, 100, key="other").of).mean() - 0.01) < 0.002


def test_what_cannot_be_divided_is_refused(tmp_path: Path) -> None:
    """Fails when one teacher, fewer rows than teachers (by the public number, where there is one), an array that is not
    of ids, or a shard that does not exist passes."""
    ids = np.arange(10)
    with pytest.raises(InvalidInput, match="teachers is 1, which is below 2"):
        shards(ids, 1)
    with pytest.raises(InvalidInput, match="teachers is 11, and there are 10 rows"):
        shards(ids, 11)
    table = people(tmp_path, list(range(30)))
    with pytest.raises(InvalidInput, match="there are 5 rows"):
        shards(replace(table, schema=replace(table.schema, rows=5)), 6)
    for wrong in (np.zeros((4, 2)), np.array([0.5, 1.5]), np.array([object()])):
        with pytest.raises(InvalidInput, match="data is an array that is not of ids"):
            shards(wrong, 2)
    with pytest.raises(InvalidInput, match="of is not one whole number from 0 to 2"):
        Shards(np.array([0, 3]), 3)


def test_silos_that_share_somebody_are_refused(tmp_path: Path) -> None:
    """Fails when a user or a record in two silos is not noticed, or silos that are apart are refused."""
    one, other = people(tmp_path, [0, 1, 2, 3]), people(tmp_path, [6, 7])
    require_disjoint([one, other])
    with pytest.raises(InvalidInput, match="share a record or a user"):
        require_disjoint([one, other, people(tmp_path, [5])])  # of the user whose row 3 is in the first silo
    with pytest.raises(InvalidInput, match="share a record or a user"):
        require_disjoint([pictures(np.array([1, 2])), pictures(np.array([2, 3]))])
    require_disjoint([np.array([7, 7]), np.array([8])])
    with pytest.raises(InvalidInput, match="silos are 1"):
        require_disjoint([one])
