"""Users come at their rate, bring at most so many rows each, and are who they are."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.training.sampling import PoissonSampler, UserRows, UserSampler
from tests.training.test_sampling import NOISE, fits, frequent


def test_users_come_at_the_rate_and_bring_at_most_their_cap() -> None:
    """Catches rows sampled where users must be, a cap that is not kept, and rows of others in a group."""
    ids = np.repeat(np.arange(60), 1 + np.arange(60) % 7)[::-1].copy()
    steps, rng = 800, SeededRng(11)
    users = UserSampler(PoissonSampler(0.15, steps, 60), ids, cap=3)
    seen = np.zeros(60, dtype=np.int64)
    for step in range(steps):
        drawn = users.draw(step, rng)
        assert drawn.groups is not None
        assert len(set(drawn.indices.tolist())) == len(drawn.indices) == len(drawn.groups)
        assert (np.diff(drawn.groups) >= 0).all()
        owners = ids[drawn.indices]
        present, sizes = np.unique(owners, return_counts=True)
        assert drawn.units == len(present) == len(set(drawn.groups.tolist()))
        assert len(set(zip(owners.tolist(), drawn.groups.tolist(), strict=True))) == len(present)
        assert sizes.tolist() == np.minimum(1 + present % 7, 3).tolist()
        seen[present] += 1
    frequent(seen, steps, 0.15)
    assert users.event(NOISE, steps) == PoissonSampler(0.15, steps, 60).event(NOISE, steps)
    assert (users.rows, users.units, users.steps_of()) == (len(ids), 60, steps)


def test_the_rows_of_a_user_are_chosen_evenly_each_time() -> None:
    """Catches a cap that keeps the first rows: all pairs of a user's five rows come equally often, in any step."""
    ids, steps, rng = [0, 1, 0, 0, 1, 0, 0], 4000, SeededRng(12)
    users = UserSampler(PoissonSampler(1.0, steps, 2), ids, cap=2)
    counts: Counter[tuple[int, ...]] = Counter()
    for step in range(steps):
        drawn = users.draw(step, rng)
        assert sorted(drawn.indices[2:].tolist()) == [1, 4]  # user 1 has no more than the cap
        counts[tuple(sorted(drawn.indices[:2].tolist()))] += 1
    fits([counts[pair] for pair in combinations((0, 2, 3, 5, 6), 2)], np.full(10, steps / 10))


@pytest.mark.parametrize(
    "ids",
    [
        ["bo", "al", "bo", "cy", "al"],
        [7, 3, 7, 2**70, 3],
        np.array(["bo", "al", "bo", "cy", "al"]),
        np.array(["bo", "al", "bo", "cy", "al"], dtype=object),
        np.array([7, 3, 7, 250, 3], dtype=np.uint8),
        [np.int32(7), np.int64(3), 7, 5, 3],
        torch.tensor([7, 3, 7, -1, 3]),
    ],
    ids=["texts", "large numbers", "array of texts", "objects", "uint8", "mixed widths", "tensor"],
)
def test_owners_may_be_named_in_any_usual_way(ids: Any) -> None:
    """Catches ids that are told apart, or confused, because of their type."""
    assert UserRows(ids).count(len(ids)) == 3
    drawn = UserSampler(PoissonSampler(1.0, 1, 3), ids, cap=9).draw(0, SeededRng(1))
    assert drawn.groups is not None
    groups = {frozenset(drawn.indices[drawn.groups == g].tolist()) for g in range(3)}
    assert groups == {frozenset({0, 2}), frozenset({1, 4}), frozenset({3})}


@pytest.mark.parametrize(
    "ids",
    [[1, "1"], [1.0, 2.0], ["a", float("nan")], ["a", None], np.array([0.5, 1.0]), [], np.zeros((2, 2), int), [True]],
)
def test_ids_that_could_split_a_person_are_refused(ids: Any) -> None:
    """Catches a person counted as two: 1 and "1", missing names, fractions."""
    with pytest.raises(InvalidInput, match="users"):
        UserSampler(PoissonSampler(1.0, 1, 2), ids, cap=1)


def test_a_sampler_of_another_number_of_users_is_refused_without_saying_how_many_there_are() -> None:
    """Catches a sampler over rows used for users, and an error that tells the private number of users."""
    with pytest.raises(InvalidInput, match="different ids") as refusal:
        UserSampler(PoissonSampler(0.1, 5, 1234), np.arange(567), cap=1)
    assert "567" not in str(refusal.value)
    with pytest.raises(InvalidInput, match="inner"):
        UserSampler(UserSampler(PoissonSampler(0.1, 5, 2), [1, 2], cap=1), [1, 2], cap=1)
    with pytest.raises(InvalidInput, match="cap"):
        UserSampler(PoissonSampler(0.1, 5, 2), [1, 2], cap=0)


def test_a_batch_without_users_is_empty_and_whole() -> None:
    """Catches a crash of the grouping on nobody."""
    drawn = UserSampler(PoissonSampler(1e-300, 1, 2), [5, 6, 6], cap=1).draw(0, SeededRng(1))
    assert drawn.groups is not None
    assert (drawn.indices.tolist(), drawn.groups.tolist(), drawn.units) == ([], [], 0)
    assert drawn.indices.dtype == drawn.groups.dtype == np.int64
