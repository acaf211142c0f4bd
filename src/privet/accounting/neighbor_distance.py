"""How far neighboring data sets are apart, in the terms of one event: the only place where 1C and 2C are told apart.

Noise added to a sum sees a *distance*: `shift(unit)` bounds. A mechanism known only by its guarantee sees *steps* of
its own neighbor relation: `steps(leaf, unit)`. Neither counts `Unit.records`: whoever prices a unit of k records
multiplies by k where that is exact (see `span` and `stretch`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from privet.core import Neighbours, NotProven, Unit
from privet.core import event as events

__all__ = ["gaussian_mu", "require_one_record", "shift", "span", "steps", "stretch"]

_REPLACE = Neighbours.REPLACE
_BALLS = (Neighbours.L1_BALL, Neighbours.L2_BALL)


def shift(unit: Unit) -> float:
    """How many contribution bounds the sums of neighboring data sets differ by: 1, 2 when replaced, or the radius.

    A contribution that comes, goes or is blanked moves the sum by its own norm, at most one bound. One that is replaced
    by another takes its own away and adds the other, at most two bounds.

    >>> shift(Unit()), shift(Unit(neighbours=Neighbours.REPLACE))
    (1.0, 2.0)
    """
    if unit.neighbours in _BALLS:
        return unit.radius
    return 2.0 if unit.neighbours is _REPLACE else 1.0


def span(unit: Unit) -> float:
    """`shift` for a unit that owns up to `unit.records` records, all of which may move at once."""
    return shift(unit) * unit.records


def gaussian_mu(leaf: Any, unit: Unit) -> float:
    """Return the distance over the standard deviation, of continuous or discrete Gaussian noise; infinite without any.

    Discrete noise of the same σ costs no more than continuous noise (Canonne, Kamath & Steinke 2020, Thm 4).
    """
    if isinstance(leaf, events.Gaussian):
        return span(unit) / leaf.noise_multiplier if leaf.noise_multiplier > 0 else math.inf
    return span(unit) * float(leaf.bound) / float(leaf.sigma)


def require_one_record(leaf: events.Leaf, unit: Unit) -> None:
    """Raise `NotProven` for a unit of several records: no theorem covers these for one sampled run."""
    if unit.records > 1:
        what = f"a sampled {type(leaf).__name__} for units of {unit.records} records"
        raise NotProven(f"{what}: use group privacy on the total")


def steps(leaf: events.Leaf, unit: Unit) -> int:
    """How many of the block's own steps lie between neighbors: 2 where a replacement is a removal and an addition.

    >>> steps(events.Pure(1.0), Unit()), steps(events.Pure(1.0), Unit(neighbours=Neighbours.REPLACE))
    (1, 2)
    """
    rule = _STEPS.get(type(leaf))
    if rule is None or unit.neighbours in _BALLS:
        what = f"{type(leaf).__name__} for {unit.neighbours.value} neighbors"
        raise NotProven(f"{what}: its distance is not counted in steps; use `shift`")
    return rule(leaf, unit)


def stretch(leaf: events.Leaf, unit: Unit) -> int:
    """`steps` for a unit that owns up to `unit.records` records: one walk changes them one after another."""
    return steps(leaf, unit) * unit.records


def _block(leaf: Any, unit: Unit) -> int:
    """A blanked contribution is one that is not there, so add/remove steps reach zero-out neighbors in one."""
    return 2 if unit.neighbours is _REPLACE and leaf.neighbours is not _REPLACE else 1


def _comes_or_goes(_: events.Leaf, unit: Unit) -> int:
    return 2 if unit.neighbours is _REPLACE else 1


def _answers(leaf: events.Leaf, unit: Unit) -> int:
    """A report always holds one answer, so its neighbors are those of replacement and of no other kind."""
    if unit.neighbours is not _REPLACE:
        raise NotProven(
            f"{type(leaf).__name__} for {unit.neighbours.value} neighbors: a report is there or not; use replace"
        )
    return 1


_STEPS: dict[type[events.Leaf], Callable[[Any, Unit], int]] = {
    events.Exponential: _comes_or_goes,
    events.NoisyMax: _comes_or_goes,
    events.RandomizedResponse: _answers,
    events.Pure: _block,
    events.Approximate: _block,
    events.Concentrated: _block,
}
