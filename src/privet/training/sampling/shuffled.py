"""Shuffled epochs: what most training code does, priced without any gain from the shuffling."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from privet.core import Event, InvalidInput, Leaf, Neighbours, Repeated, Sampled, ShuffledEpoch
from privet.core.random import KEY_BYTES, PATIENCE, Keystream, Rng, broken_source
from privet.training.sampling.protocol import Indices, SampledBatch, State, planned, same_plan, whole

__all__ = ["ShuffledSampler"]


@dataclass
class _Orders:
    """The keys of the orders drawn so far, one for each epoch, and the order that was used last."""

    keys: dict[int, bytes] = field(default_factory=dict)
    epoch: int = -1
    order: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class ShuffledSampler:
    """Every epoch goes once through all rows in a new random order, in batches; the last may be shorter than the rest.

    A row is in one batch of each epoch, so an epoch costs as much as one release of one batch (parallel composition)
    and no more is claimed: shuffling does not amplify as Poisson sampling does (Chua et al. 2024). Adding a row would
    move others to other batches, so the guarantee is for replace and zero-out neighbours.

    That holds as long as no row is used twice in an epoch, so a restarted run needs the order of the epoch in which it
    stopped. `state()` has it; a step whose epoch began without it is refused, and `next_step` says where to go on.

    >>> from privet.core.random import SeededRng
    >>> run, rng = ShuffledSampler(batch_size=4, rows=10, epochs=2), SeededRng(1)
    >>> [run.draw(step, rng).units for step in range(run.steps_of())]
    [4, 4, 2, 4, 4, 2]
    """

    batch_size: int
    rows: int
    epochs: int
    neighbours: ClassVar[frozenset[Neighbours]] = frozenset({Neighbours.ZERO_OUT, Neighbours.REPLACE})
    _orders: _Orders = field(default_factory=_Orders, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("batch_size", "rows", "epochs"):
            object.__setattr__(self, name, whole(name, getattr(self, name)))

    @property
    def units(self) -> int:
        """Number of rows: every row is a unit."""
        return self.rows

    @property
    def batches(self) -> int:
        """Number of batches of an epoch; none is dropped."""
        return -(-self.rows // self.batch_size)

    def steps_of(self) -> int:
        """Return the number of batches of all epochs."""
        return self.batches * self.epochs

    def draw(self, step: int, rng: Rng) -> SampledBatch:
        """Return the batch of a step. The order is drawn once for each epoch, so a step always has the same rows.

        Args:
            step: Number of the step, counted from 0 over the whole run.
            rng: Source of randomness.

        Raises:
            InvalidInput: The step is not part of the plan, or is within an epoch whose order is unknown.
        """
        epoch, place = divmod(planned(step, self.steps_of()), self.batches)
        order = self._order_of(epoch, place, rng)
        return SampledBatch.of_rows(order[place * self.batch_size : (place + 1) * self.batch_size].copy())

    def next_step(self, step: int) -> int:
        """Return `step` if its epoch's order is known or not yet drawn, else the start of the next epoch.

        Args:
            step: Number of the step, counted from 0 over the whole run.
        """
        number = whole("step", step, 0)
        epoch, place = divmod(number, self.batches)
        known = place == 0 or epoch in self._orders.keys
        return min(number if known else (epoch + 1) * self.batches, self.steps_of())

    def event(self, per_step: Leaf, steps: int) -> Event:
        """Return one release for each epoch that was started: a run that stops within an epoch pays for all of it.

        Args:
            per_step: Event of one step on its batch, before subsampling.
            steps: Number of steps.
        """
        begun = -(-whole("steps", steps, 0) // self.batches)
        return Repeated(Sampled(per_step, ShuffledEpoch(self.batches)), begun)

    def state(self) -> State:
        """Return the plan, and the keys from which the orders of the epochs so far follow."""
        return {**self._plan(), "keys": {str(epoch): key.hex() for epoch, key in self._orders.keys.items()}}

    def load(self, state: State) -> None:
        """Load the orders of a run with the same plan.

        Args:
            state: What `state` returned.

        Raises:
            InvalidInput: The state belongs to another plan or is damaged, or this sampler has already drawn.
        """
        same_plan(state, self._plan())
        if self._orders.keys:
            raise InvalidInput("state", "comes after this sampler has drawn", "load it into a new sampler")
        try:
            keys = {int(epoch): bytes.fromhex(key) for epoch, key in state["keys"].items()}
        except (AttributeError, KeyError, TypeError, ValueError):
            keys = {-1: b""}
        if not all(0 <= epoch < self.epochs and len(key) == KEY_BYTES for epoch, key in keys.items()):
            raise InvalidInput("state", "has no usable orders under `keys`", "give what state() returned")
        self._orders.keys.update(keys)

    def _plan(self) -> State:
        return {"kind": "shuffled", "batch_size": self.batch_size, "rows": self.rows, "epochs": self.epochs}

    def _order_of(self, epoch: int, place: int, rng: Rng) -> Indices:
        orders = self._orders
        if epoch not in orders.keys:
            if place:
                problem = f"is in the middle of epoch {epoch}, whose order is not known: rows could be used twice in it"
                advice = f"load the state of the run, or go on at step {self.next_step(epoch * self.batches + place)}"
                raise InvalidInput("step", problem, advice)
            orders.keys[epoch] = rng.bits(KEY_BYTES)
        if epoch != orders.epoch:
            orders.epoch, orders.order = epoch, _permutation(self.rows, orders.keys[epoch])
        return orders.order


def _permutation(rows: int, key: bytes) -> Indices:
    """Return the order that a key determines: rows sorted by 64 random bits each, all redrawn if two are equal.

    Storing a key instead of the order keeps checkpoints small: 32 bytes for each epoch, for any number of rows.
    """
    stream, raw = Keystream(key), np.empty(8 * rows, dtype=np.uint8)
    for _ in range(PATIENCE):
        stream.fill(raw)
        words = raw.view("<u8")
        order = np.argsort(words)
        ranked = words[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order.astype(np.int64, copy=False)
    raise broken_source()
