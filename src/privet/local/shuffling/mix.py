"""What one stop does with a batch: take a layer off, drop what is bad or came twice, give the rest a new order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from privet.core import PrivetError
from privet.core.random import Rng
from privet.local.shuffling.onion import MixKey, unpadded
from privet.local.shuffling.plan import MixPlan
from privet.local.shuffling.report_format import is_canonical_report
from privet.mechanisms import random_order

__all__ = ["Batch", "BatchCounts", "ConnectionLost", "LayerOutcome", "MixRefused"]


class MixRefused(PrivetError):
    """A batch that must not go on: its guarantee would not hold. Nothing of it is released."""


class ConnectionLost(MixRefused):
    """A connection ended in the middle: nobody can say whether the report was taken."""


class LayerOutcome(Enum):
    """What became of a layer that arrived."""

    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    BAD = "bad"


@dataclass(frozen=True)
class BatchCounts:
    """How a batch fared at one stop."""

    accepted: int
    duplicates: int
    bad: int

    def __str__(self) -> str:
        return (
            f"{self.accepted:,} reports kept, {self.duplicates:,} dropped that came twice, {self.bad:,} dropped as bad"
        )


class Batch:
    """The layers that have arrived at one stop, opened; it forgets who sent them before it knows what is inside.

    A layer that arrives twice is a replay, since every layer is made with a key of its own: it counts once.
    """

    def __init__(self, plan: MixPlan, key: MixKey) -> None:
        self.plan, self.place = plan, plan.place_of(key.public)
        self.is_last = self.place == len(plan.stops) - 1
        self._key, self._name, self._length = key, plan.name, plan.length(self.place)
        self._seen: set[bytes] = set()
        self._inner: list[bytes] = []
        self._duplicates = self._bad = 0

    @property
    def counts(self) -> BatchCounts:
        """What has been taken so far."""
        return BatchCounts(len(self._inner), self._duplicates, self._bad)

    def add(self, layer: bytes) -> LayerOutcome:
        """Take a layer off, if it is one of this batch and has not arrived before.

        Args:
            layer: What arrived.
        """
        if layer in self._seen:
            self._duplicates += 1
            return LayerOutcome.DUPLICATE
        inner = self._key.peel(layer, self._name) if len(layer) == self._length else None
        if inner is not None and self.is_last:
            report = unpadded(inner)
            inner = report if report is not None and is_canonical_report(self.plan, report) else None
        if inner is None:
            self._bad += 1
            return LayerOutcome.BAD
        self._seen.add(layer)
        self._inner.append(inner)
        return LayerOutcome.ACCEPTED

    def add_all(self, body: bytes) -> None:
        """Add many layers, one after another; an incomplete one at the end is bad.

        Args:
            body: The layers, end to end.
        """
        for start in range(0, len(body), self._length):
            self.add(body[start : start + self._length])

    def close(self, rng: Rng) -> list[bytes]:
        """Return the opened layers in an order that is uniform among all (Fisher & Yates) and is not stored anywhere.

        Refuses a batch with fewer than the plan's minimum left: a smaller crowd hides less than was promised.

        Args:
            rng: The randomness of the order.

        Raises:
            MixRefused: Fewer than the plan's minimum are left.
        """
        opened, self._inner = self._inner, []
        if len(opened) < self.plan.minimum:
            counts = BatchCounts(len(opened), self._duplicates, self._bad)
            raise MixRefused(
                f"the batch {self.plan.batch!r} is refused at stop {self.place + 1}: {counts}, and the plan asks for "
                f"{self.plan.minimum:,}; a smaller crowd hides less than was promised, so nothing goes on"
            )
        return [opened[at] for at in random_order(len(opened), rng)]
