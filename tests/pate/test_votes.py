"""Votes are checked when they are counted, and do not leave by themselves."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from privet.core.errors import InvalidInput
from privet.core.unit import Neighbours, Unit, Whose
from privet.pate import Votes
from privet.pate.votes import moved_teachers, top_reach, vote_reach


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda: Votes([[1.5, 2.5]], teachers=4), "counts holds float64 and not whole numbers"),
        (lambda: Votes([[1, 2], [4, 0]], teachers=4), "counts has a row that does not add up to the 4 teachers"),
        (lambda: Votes([[5, -1]], teachers=4), "counts has a count below 0"),
        (lambda: Votes([[1, 0]], teachers=1), "teachers is 1: a vote of one hides nothing"),
        (lambda: Votes([4, 0], teachers=4), "counts has 1 dimensions"),
        (lambda: Votes([[4]], teachers=4), "counts has 1 questions and 1 labels"),
        (lambda: Votes(np.zeros((0, 2), dtype=int), teachers=4), "counts has 0 questions"),
        (lambda: Votes.cast([[0, 2]], labels=2), "ballots has a vote outside of 0 to 1"),
        (lambda: Votes.cast([[0.0, 1.0]], labels=2), "ballots holds float64"),
        (lambda: Votes.cast([[0], [1]], labels=2), "teachers is 1"),
    ],
)
def test_bad_votes_are_one_clear_line(make: Callable[[], Votes], line: str) -> None:
    """Fails when a malformed matrix is counted, or its error does not say what is wrong."""
    with pytest.raises(InvalidInput) as raised:
        make()
    assert str(raised.value).startswith(line)
    assert "\n" not in str(raised.value)


def test_ballots_are_counted() -> None:
    """Fails when a question's ballots are counted under another question or label."""
    votes = Votes.cast([[0, 2, 2, 1], [1, 1, 1, 1]], labels=3)
    assert votes.counts.tolist() == [[1, 1, 2], [0, 4, 0]]
    assert (votes.teachers, votes.labels, votes.questions) == (4, 3, 2)


def test_votes_do_not_leave() -> None:
    """Fails when counts can be printed, pickled, copied, changed or written as JSON."""
    votes = Votes([[137, 113]], teachers=250)
    assert "137" not in f"{votes} {votes!r} {votes!s}"
    forbidden: list[Callable[[Any], Any]] = [pickle.dumps, copy.copy, copy.deepcopy, json.dumps, lambda v: v.to_json()]
    for leave in forbidden:
        with pytest.raises(TypeError):
            leave(votes)
    with pytest.raises(AttributeError):
        votes.teachers = 3
    with pytest.raises(ValueError, match="read-only"):
        votes.counts[0, 0] = 1


def test_a_unit_moves_as_many_teachers_as_it_may_have_shards() -> None:
    """Fails when a replaced record, which may be in another shard, or a user of several records moves one teacher."""
    assert moved_teachers(Unit()) == 1
    assert moved_teachers(Unit(neighbours=Neighbours.REPLACE)) == 2
    assert moved_teachers(Unit(whose=Whose.USER, records=3)) == 3
    with pytest.raises(InvalidInput, match="say nothing about rows"):
        moved_teachers(Unit(neighbours=Neighbours.L2_BALL, radius=1.0))


@pytest.mark.parametrize("unit", [Unit(), Unit(neighbours=Neighbours.REPLACE), Unit(whose=Whose.USER, records=3)])
def test_no_change_of_teachers_moves_counts_further(unit: Unit) -> None:
    """Fails when a stated distance is smaller than what some change of ballots does: √2 as 1, or a top that moves 0."""
    rng = np.random.default_rng(5)
    reach, top = vote_reach(unit, 4), top_reach(unit)
    furthest = {"l0": 0.0, "l1": 0.0, "l2": 0.0, "linf": 0.0, "top": 0.0}
    for _ in range(3000):
        ballots = rng.integers(0, 4, 6)
        other = ballots.copy()
        other[rng.choice(6, moved_teachers(unit), replace=False)] = rng.integers(0, 4, moved_teachers(unit))
        first, second = (Votes.cast([each], labels=4).counts[0] for each in (ballots, other))
        moved = np.abs(first - second)
        found = {"l0": (moved > 0).sum(), "l1": moved.sum(), "l2": np.sqrt((moved**2).sum()), "linf": moved.max()}
        found["top"] = abs(first.max() - second.max())
        furthest = {name: max(furthest[name], float(found[name])) for name in furthest}
    for name in ("l0", "l1", "l2", "linf"):
        assert furthest[name] <= getattr(reach, name)
    assert furthest["l2"] > 0.999 * float(reach.l2 or 0)  # and it is reached
    assert furthest["top"] == top.linf
