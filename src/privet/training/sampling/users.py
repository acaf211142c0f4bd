"""User-level units: users are drawn, and each of them brings at most a public number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from privet.core import Event, InvalidInput, Leaf, Neighbours
from privet.core.random import PATIENCE, Rng, broken_source
from privet.training.sampling.protocol import Indices, SampledBatch, Sampler, State, same_plan, whole

if TYPE_CHECKING:
    import torch

__all__ = ["Ids", "UserRows", "UserSampler", "count_units"]

Ids: TypeAlias = "Sequence[int] | Sequence[str] | npt.NDArray[Any] | torch.Tensor"
"""One owner for each row: whole numbers or texts, in a list, an array or a tensor."""


@dataclass(frozen=True, eq=False)
class UserRows:
    """Whose rows they are: the owner of each row, and how many rows of one user a batch may hold.

    Where one row of each user is enough, `users=ids` does without it.

    >>> UserRows(["ann", "bob", "ann"], cap=2).count(rows=3)
    2
    """

    ids: Ids
    """The owner of each row, in the order of the rows: whole numbers or texts."""
    cap: int = 1
    """The largest number of rows of one user in one batch."""

    @staticmethod
    def of(users: UserRows | Ids | None) -> UserRows | None:
        """Return the record for a record, for bare ids or for None.

        Args:
            users: What the `users` argument of a run was given.

        Returns:
            The owners of the rows, or None where each row is a unit of its own.
        """
        return users if users is None or isinstance(users, UserRows) else UserRows(users)

    def count(self, rows: int) -> int:
        """Return how many users own the rows of a data set. Private under add/remove.

        Args:
            rows: How many rows the data set has.

        Returns:
            The number of different ids.

        Raises:
            InvalidInput: There is not one id for each row, or the ids are of mixed types.
        """
        numbers = _number_owners(self.ids)
        if len(numbers) != rows:
            problem = f"has {len(numbers)} ids, and the data set has {rows} rows"
            raise InvalidInput("users", problem, "give one id for each row, in the order of the rows")
        return int(numbers.max(initial=-1)) + 1


def count_units(users: UserRows | None, rows: int) -> int:
    """Return the number of units of a data set: users, or rows where there are no users. Private under add/remove.

    Args:
        users: The users of the rows; None where each row is a unit.
        rows: Number of rows of the data set.
    """
    return rows if users is None else users.count(rows)


@dataclass(frozen=True, eq=False)
class UserSampler:
    """Draws users with `inner`, and for each of them at most `cap` rows, chosen anew each time.

    `ids` names the owner of each row, by whole numbers or by texts. `inner` is any sampler over as many units as there
    are owners (`UserRows.count`); its event and its neighbours hold for users, provided that what is clipped is the one
    contribution of a user, made of all rows of its group.

    >>> from privet.core.random import SeededRng
    >>> from privet.training.sampling import PoissonSampler
    >>> users = UserSampler(PoissonSampler(sample_rate=1.0, steps=1, rows=2), ids=["ann", "bob", "ann", "ann"], cap=2)
    >>> drawn = users.draw(0, SeededRng(1))
    >>> len(drawn.indices), drawn.groups.tolist(), drawn.units
    (3, [0, 0, 1], 2)
    """

    inner: Sampler
    ids: InitVar[Ids]
    cap: int
    _owned: Indices = field(init=False, repr=False)
    """Rows, those of one user next to each other."""
    _starts: Indices = field(init=False, repr=False)
    """Where each user's rows begin among these, and where the last one's end."""

    def __post_init__(self, ids: Ids) -> None:
        object.__setattr__(self, "cap", whole("cap", self.cap))
        if isinstance(self.inner, UserSampler):
            raise InvalidInput("inner", "draws users already, and what it returns are rows", "give its inner sampler")
        numbers = _number_owners(ids)
        sizes = np.bincount(numbers)
        if len(sizes) != self.inner.units:
            # The number of users may be private, so it is not said.
            problem = "draws from another number of units than there are different ids"
            raise InvalidInput("inner", problem, "make it with as many rows as there are different ids")
        object.__setattr__(self, "_owned", np.argsort(numbers, kind="stable").astype(np.int64, copy=False))
        object.__setattr__(self, "_starts", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64, copy=False))

    @property
    def rows(self) -> int:
        """Number of rows of all users."""
        return len(self._owned)

    @property
    def units(self) -> int:
        """Number of users."""
        return self.inner.units

    @property
    def neighbours(self) -> frozenset[Neighbours]:
        """Neighbor relations of the sampler that draws the users."""
        return self.inner.neighbours

    def steps_of(self) -> int:
        """Return the number of steps of the sampler that draws the users."""
        return self.inner.steps_of()

    def draw(self, step: int, rng: Rng) -> SampledBatch:
        """Draw the users of a step, and at most `cap` rows of each.

        Args:
            step: Number of the step, counted from 0 over the whole run.
            rng: Source of randomness.

        Returns:
            The rows, grouped by user, in the order in which the users were drawn.
        """
        users = self.inner.draw(step, rng).indices
        starts = self._starts[users]
        sizes = self._starts[users + 1] - starts
        groups = np.repeat(np.arange(len(users), dtype=np.int64), sizes)
        within = np.arange(len(groups), dtype=np.int64) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = self._owned[np.repeat(starts, sizes) + within]
        if (sizes > self.cap).any():
            # A random order within each group, of which the first `cap` are kept.
            rows = rows[_shuffled_within(groups, rng)]
            kept = within < self.cap
            rows, groups = rows[kept], groups[kept]
        return SampledBatch(rows, groups, len(users))

    def next_step(self, step: int) -> int:
        """Return the first step, from `step` on, that the sampler of the users may still draw.

        Args:
            step: Number of the step, counted from 0 over the whole run.
        """
        return self.inner.next_step(step)

    def event(self, per_step: Leaf, steps: int) -> Event:
        """Return the event of drawing the users; it does not depend on the number of rows of a user.

        Args:
            per_step: Event of one step on its batch, before subsampling.
            steps: Number of steps.
        """
        return self.inner.event(per_step, steps)

    def state(self) -> State:
        """Return the state of the sampler of the users, and the cap."""
        return {"kind": "users", "cap": self.cap, "inner": self.inner.state()}

    def load(self, state: State) -> None:
        """Resume from a state with the same cap and the same plan for the users.

        Args:
            state: What `state` returned.

        Raises:
            InvalidInput: The state belongs to another plan.
        """
        same_plan(state, {"kind": "users", "cap": self.cap})
        self.inner.load(state.get("inner", {}))


def _shuffled_within(groups: Indices, rng: Rng) -> npt.NDArray[np.intp]:
    """Return a uniform order within each group; groups stay in place. Equal keys in a group are drawn again."""
    for _ in range(PATIENCE):
        keys = rng.words(len(groups))
        order = np.lexsort((keys, groups))
        ranked = keys[order]
        if not ((ranked[1:] == ranked[:-1]) & (groups[1:] == groups[:-1])).any():
            return order
    raise broken_source()


def _number_owners(ids: Ids) -> npt.NDArray[np.intp]:
    """For each row the number of its owner, 0, 1, …

    Whole numbers or texts, and not both: 1 and "1" would be two owners, and one person's rows would count as two's.
    """
    given: Any = ids.detach().cpu().numpy() if hasattr(ids, "detach") else ids
    listed = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
    array = given if isinstance(given, np.ndarray) else np.array(list(given) if listed else [], dtype=object)
    if array.ndim == 1 and isinstance(given, np.ndarray) and array.dtype.kind in "iu" and not array.size:
        return np.zeros(0, dtype=np.intp)  # of a data set without rows, which may be a secret
    if array.ndim != 1 or not array.size:
        raise InvalidInput("users", "is no list of ids", "give one for each row of the data set, in a list or an array")
    if array.dtype.kind == "O":
        kinds = {_kind(value) for value in array}
        if len(kinds) > 1 or not kinds <= {"int", "text"}:
            advice = "give every owner by a whole number, or every owner by a text"
            raise InvalidInput("users", f"holds {', '.join(sorted(kinds))}", advice)
        numbers: dict[Any, int] = {}
        return np.array([numbers.setdefault(value, len(numbers)) for value in array], dtype=np.intp)
    if array.dtype.kind not in "iuU":
        raise InvalidInput("users", f"has the type {array.dtype}", "name owners by whole numbers or by texts")
    return np.unique(array, return_inverse=True)[1].reshape(-1)


def _kind(value: object) -> str:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return "int"
    return "text" if isinstance(value, str) else type(value).__name__
