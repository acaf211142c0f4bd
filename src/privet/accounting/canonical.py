"""Composition in one place: any event becomes distinct parts with their counts, so that no count can be forgotten."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privet.core import InvalidInput, NotProven
from privet.core import event as events

__all__ = ["Canonical", "CountedEvent", "canonical"]

_MOST = 10**100


@dataclass(frozen=True)
class CountedEvent:
    """One leaf, how its rows were chosen, and how often it ran."""

    leaf: events.Leaf
    sampling: events.Sampling | None
    count: int


@dataclass(frozen=True)
class Canonical:
    """An event as parts; `nonprivate` has the reason if anything in it has no guarantee at all."""

    parts: tuple[CountedEvent, ...]
    nonprivate: str | None


def canonical(event: events.Event) -> Canonical:
    """Flatten repetitions and compositions into (leaf, sampling, count), each pair once, in a fixed order.

    >>> from privet.core.event import Composed, Gaussian, Repeated
    >>> canonical(Composed((Gaussian(1.0), Repeated(Gaussian(1.0), 3)))).parts
    (CountedEvent(leaf=Gaussian(noise_multiplier=1.0), sampling=None, count=4),)
    """
    counts: dict[tuple[events.Leaf, events.Sampling | None], int] = {}
    reasons: list[str] = []
    waiting: list[tuple[events.Event, int]] = [(event, 1)]
    while waiting:
        this, times = waiting.pop()
        if times == 0:
            continue
        if isinstance(this, events.Repeated):
            if times * this.count > _MOST:
                raise InvalidInput("count", "multiplies to more than 10^100 runs", "nothing runs so often")
            waiting.append((this.event, times * this.count))
        elif isinstance(this, events.Composed):
            waiting.extend((inner, times) for inner in this.events)
        elif isinstance(this, events.NonPrivate):
            reasons.append(this.reason)
        else:
            leaf, sampling = _leaf_of(this)
            if _noiseless(leaf):
                reasons.append(f"{type(leaf).__name__} without noise")
            if (
                isinstance(leaf, (events.Selected, events.Shuffled))
                and (inside := canonical(leaf.event).nonprivate) is not None
            ):
                reasons.append(inside)
            everyone = isinstance(sampling, events.Poisson) and sampling.sample_rate == 1.0
            key = (leaf, None if everyone else sampling)
            counts[key] = counts.get(key, 0) + times
    parts = tuple(CountedEvent(leaf, sampling, n) for (leaf, sampling), n in sorted(counts.items(), key=_order))
    return Canonical(parts, reasons[-1] if reasons else None)


def _leaf_of(event: events.Event) -> tuple[events.Leaf, events.Sampling | None]:
    leaf, sampling = (event.event, event.by) if isinstance(event, events.Sampled) else (event, None)
    if not isinstance(leaf, events.Leaf):
        raise NotProven(f"{type(event).__name__} is not an event that this version can price")
    return (_one_gaussian(leaf) if isinstance(leaf, events.Joint) else leaf), sampling


def _order(item: tuple[tuple[events.Leaf, events.Sampling | None], int]) -> str:
    return repr(item[0])


def _noiseless(leaf: events.Leaf) -> bool:
    if isinstance(leaf, (events.Gaussian, events.Laplace)):
        return leaf.noise_multiplier == 0
    if isinstance(leaf, events.DiscreteGaussian):
        return leaf.sigma == 0
    return isinstance(leaf, events.DiscreteLaplace) and leaf.scale == 0


def _one_gaussian(joint: events.Joint) -> events.Gaussian:
    """Releases of the same rows are one Gaussian of precision Σ σ_j⁻², whatever the sampling."""
    if any(event.noise_multiplier == 0 for event in joint.events):
        return events.Gaussian(0.0)
    scale = min(event.noise_multiplier for event in joint.events)
    precision = math.fsum((scale / event.noise_multiplier) ** 2 for event in joint.events)
    return events.Gaussian(scale / math.sqrt(precision))
