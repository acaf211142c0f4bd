"""Drawing from a mechanism on two neighboring inputs, many times: what an audit of it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import Event, InvalidInput, Neighbours, Unit, checked
from privet.core.random import Rng
from privet.mechanisms.histogram import Cells, Histogram
from privet.mechanisms.randomized_response import RandomizedResponseMechanism
from privet.mechanisms.table import MECHANISMS, MechanismEntry

__all__ = ["RANDOMIZED_RESPONSE", "MechanismTrial", "TrialSettings", "auditable", "mechanism_trial"]

RANDOMIZED_RESPONSE = "randomized-response"
"""The one mechanism that can be audited and releases no `Bounded`: everybody uses it on their own answer."""
_DELTA = 1e-5
_FAST, _SLOW = 100_000, 10_000
_Outputs = npt.NDArray[Any]


@dataclass(frozen=True)
class TrialSettings:
    """What to draw from a mechanism: its noise or its ε, and how often. What is None takes its default."""

    epsilon: float | None = None
    delta: float | None = None
    noise: tuple[str, float] | None = None
    """The mechanism's own parameter, "scale" or "sigma", and its value: in place of ε."""
    categories: int | None = None
    """Of randomized response."""
    trials: int | None = None


@dataclass(frozen=True)
class MechanismTrial:
    """A mechanism that was built, what it claims, and how to draw from it."""

    event: Event
    unit: Unit
    delta: float
    settings: tuple[tuple[str, str], ...]
    """The mechanism's parameters, by name, as text."""
    trials: int
    draw: Callable[[bool, Rng], _Outputs] = field(repr=False)
    """Return `trials` independent outputs: on a data set (True), or on its neighbor (False)."""


def auditable() -> tuple[str, ...]:
    """Return the names of all mechanisms that `mechanism_trial` knows."""
    return (*MECHANISMS, RANDOMIZED_RESPONSE)


def mechanism_trial(name: str, settings: TrialSettings | None = None) -> MechanismTrial:
    """Build a mechanism by its name in `MECHANISMS`, to be drawn from on two neighboring inputs.

    Args:
        name: One of `auditable()`.
        settings: Its noise or its ε, and how often to draw.

    Returns:
        The mechanism's event, unit and δ, and a function that draws from it.

    Raises:
        InvalidInput: If the mechanism is unknown, or a setting does not belong to it.

    >>> from privet.core.random import SeededRng
    >>> trial = mechanism_trial("laplace", TrialSettings(noise=("scale", 2.0), trials=1000))
    >>> trial.event, trial.draw(True, SeededRng(1)).shape
    (DiscreteLaplace(scale=2.0, bound=1, dimension=1), (1000,))
    """
    request = settings or TrialSettings()
    if name not in auditable():
        raise InvalidInput("mechanism", f"is {name!r}", f"use one of: {', '.join(auditable())}")
    entry = MECHANISMS.get(name)
    if request.noise is not None:
        given = request.noise[0]
        if entry is None or entry.scale != given:
            raise InvalidInput(given, f"is given, and {name} has none", "leave it out")
        if request.epsilon is not None:
            raise InvalidInput("epsilon", f"and --{given} say the same thing twice", "leave one of them out")
    if request.categories is not None and name != RANDOMIZED_RESPONSE:
        raise InvalidInput("categories", f"is given, and {name} has none", "leave it out")
    epsilon = checked.positive("epsilon", 1.0 if request.epsilon is None else request.epsilon)
    needs_delta = entry is not None and entry.needs_delta
    delta = _DELTA if request.delta is None and needs_delta else checked.share("delta", request.delta or 0.0)
    if needs_delta and not delta:
        raise InvalidInput("delta", f"is 0, and {name} needs δ > 0", "give one such as 1e-5")
    if entry is None:
        return _response(epsilon, request.categories or 2, delta, _count(request.trials, _FAST))
    if entry.scale is not None:
        return _noise(entry, request, epsilon, delta, _count(request.trials, _FAST))
    return _releases(entry, epsilon, delta, _count(request.trials, _SLOW))


def _count(trials: int | None, default: int) -> int:
    return default if trials is None else checked.count("trials", trials, least=1000)


def _noise(entry: MechanismEntry, request: TrialSettings, epsilon: float, delta: float, trials: int) -> MechanismTrial:
    """Noise on counts. A histogram has its noise drawn for each cell by itself, and a row is in one of them: so of as
    many cells as trials, each is one draw of the count of its rows, of which there is one, or none."""
    counts = Histogram(Cells(0.0, float(trials), trials))
    own = request.noise
    mechanism = entry.build(epsilon, delta, counts) if own is None else entry.kind(own[1], counts)
    symbol = "σ" if entry.scale == "sigma" else str(entry.scale)
    settings = _settings(entry, symbol, f"{getattr(mechanism, str(entry.scale)):.6g}", delta)
    rows = np.arange(trials) + 0.5

    def draw(present: bool, rng: Rng) -> _Outputs:
        return np.asarray(mechanism.release(counts(rows if present else rows[:0]), rng=rng).value)

    return MechanismTrial(mechanism.event, counts.unit, delta, settings, trials, draw)


def _releases(entry: MechanismEntry, epsilon: float, delta: float, trials: int) -> MechanismTrial:
    """One release after another, of the entry's rows with and without the first of them."""
    unit = next(candidate for candidate in (Unit(), Unit(neighbours=Neighbours.REPLACE)) if entry.protects(candidate))
    clipper = entry.clipper(unit, 1)
    mechanism = entry.build(epsilon, delta, clipper)
    other = entry.rows[1:] if unit.neighbours is Neighbours.ADD_REMOVE else (entry.rows[1], *entry.rows[1:])

    def draw(present: bool, rng: Rng) -> _Outputs:
        query = clipper(entry.rows if present else other)
        values = [mechanism.release(query, rng=rng).value for _ in range(trials)]
        return np.array([value if isinstance(value, int | float) else str(value) for value in values])

    return MechanismTrial(mechanism.event, unit, delta, _settings(entry, "ε", f"{epsilon:g}", delta), trials, draw)


def _settings(entry: MechanismEntry, symbol: str, value: str, delta: float) -> tuple[tuple[str, str], ...]:
    return ((symbol, value), ("δ", f"{delta:g}")) if entry.needs_delta else ((symbol, value),)


def _response(epsilon: float, categories: int, delta: float, trials: int) -> MechanismTrial:
    mechanism = RandomizedResponseMechanism(epsilon, categories)

    def draw(present: bool, rng: Rng) -> _Outputs:
        return mechanism.randomize(np.full(trials, int(present)), rng=rng)

    settings = (("ε", f"{epsilon:g}"), ("categories", f"{categories}"))
    return MechanismTrial(mechanism.event, Unit(neighbours=Neighbours.REPLACE), delta, settings, trials, draw)
