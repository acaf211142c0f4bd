"""The same event with more noise: what a refused caller may try next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from privet.core import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Joint,
    Laplace,
    NoisyMax,
    RandomizedResponse,
    Repeated,
    Sampled,
    Selected,
    Shuffled,
)

__all__ = ["noisier", "parameter_of"]

_PARAMETERS: dict[type[Event], tuple[str, int]] = {
    Gaussian: ("noise_multiplier", 1),
    Laplace: ("noise_multiplier", 1),
    DiscreteGaussian: ("sigma", 1),
    DiscreteLaplace: ("scale", 1),
    Exponential: ("epsilon", -1),
    NoisyMax: ("epsilon", -1),
    RandomizedResponse: ("epsilon", -1),
}
"""What stands for the noise of a leaf: larger is noisier (1), or smaller is (−1). Blocks have none."""


def noisier(event: Event, factor: float) -> Event | None:
    """Return the same event with all its noise larger by a factor; None if a part of it has no noise to change.

    >>> noisier(Repeated(Gaussian(1.0), 10), 2.0)
    Repeated(event=Gaussian(noise_multiplier=2.0), count=10)
    """
    if type(event) in _PARAMETERS:
        name, sign = _PARAMETERS[type(event)]
        return _with(event, name, getattr(event, name) * factor**sign)
    if isinstance(event, (Sampled, Repeated, Selected, Shuffled)):
        inner = noisier(event.event, factor)
        return None if inner is None else _with(event, "event", inner)
    if isinstance(event, (Composed, Joint)):
        parts = tuple(noisier(part, factor) for part in event.events)
        return None if None in parts else _with(event, "events", parts)
    return None


def parameter_of(event: Event) -> tuple[str, float] | None:
    """Return the name and value of the one noise parameter, if the event has a single leaf that has one.

    >>> parameter_of(Repeated(Gaussian(1.1), 10))
    ('noise_multiplier', 1.1)
    """
    while isinstance(event, (Sampled, Repeated, Selected, Shuffled)):
        event = event.event
    if type(event) not in _PARAMETERS:
        return None
    name = _PARAMETERS[type(event)][0]
    return name, float(getattr(event, name))


def _with(event: Any, name: str, value: object) -> Event:
    changed: Event = replace(event, **{name: value})
    return changed
