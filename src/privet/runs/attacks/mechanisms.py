"""Mechanisms to audit, by the shell's words: the package's own, on two neighbouring inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import checked
from privet.core.errors import InvalidInput
from privet.core.event import Event
from privet.core.random import Rng
from privet.core.unit import Neighbours, Unit
from privet.mechanisms import (
    Categories,
    Cells,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    Histogram,
    LaplaceMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
)
from privet.mechanisms.randomized_response import RandomizedResponseMechanism

__all__ = ["MechanismAudit", "MechanismToAudit", "describe_audit"]

_DELTA = 1e-5
_EPSILON = 1.0
_FAST, _SLOW = 100_000, 10_000
_VOTES = Histogram(Categories(("yes", "no")))
_Outputs = npt.NDArray[Any]


class MechanismToAudit(StrEnum):
    """What can be audited by name."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    DISCRETE_GAUSSIAN = "discrete-gaussian"
    DISCRETE_LAPLACE = "discrete-laplace"
    RANDOMIZED_RESPONSE = "randomized-response"
    EXPONENTIAL = "exponential"
    NOISY_MAX = "noisy-max"
    PERMUTE_AND_FLIP = "permute-and-flip"


_Normal = GaussianMechanism | DiscreteGaussianMechanism
_Absolute = LaplaceMechanism | DiscreteLaplaceMechanism
_NORMAL: dict[MechanismToAudit, type[_Normal]] = {
    MechanismToAudit.GAUSSIAN: GaussianMechanism,
    MechanismToAudit.DISCRETE_GAUSSIAN: DiscreteGaussianMechanism,
}
_ABSOLUTE: dict[MechanismToAudit, type[_Absolute]] = {
    MechanismToAudit.LAPLACE: LaplaceMechanism,
    MechanismToAudit.DISCRETE_LAPLACE: DiscreteLaplaceMechanism,
}
_CHOICES: dict[MechanismToAudit, type[ExponentialMechanism | ReportNoisyMax | PermuteAndFlip]] = {
    MechanismToAudit.EXPONENTIAL: ExponentialMechanism,
    MechanismToAudit.NOISY_MAX: ReportNoisyMax,
    MechanismToAudit.PERMUTE_AND_FLIP: PermuteAndFlip,
}


@dataclass(frozen=True)
class MechanismAudit:
    """A mechanism, what it claims to be, and how to draw from it."""

    name: str
    settings: tuple[tuple[str, str], ...]
    event: Event
    delta: float
    unit: Unit
    trials: int
    draw: Callable[[bool, Rng], _Outputs] = field(repr=False)
    """All outputs on one input, or on its neighbour."""


def describe_audit(
    word: MechanismToAudit,
    *,
    scale: float | None,
    sigma: float | None,
    epsilon: float | None,
    delta: float | None,
    categories: int | None,
    trials: int | None,
) -> MechanismAudit:
    """The mechanism of the words; what does not belong to it is refused."""
    _only(word, "scale", scale, word in _ABSOLUTE)
    _only(word, "sigma", sigma, word in _NORMAL)
    _only(word, "categories", categories, word is MechanismToAudit.RANDOMIZED_RESPONSE)
    given = "scale" if scale is not None else "sigma"
    if epsilon is not None and (scale is not None or sigma is not None):
        raise InvalidInput("epsilon", f"and --{given} say the same thing twice", "leave one of them out")
    wanted = checked.positive("epsilon", _EPSILON if epsilon is None else epsilon)
    if word is MechanismToAudit.RANDOMIZED_RESPONSE:
        return _response(wanted, categories or 2, delta, _count(trials, _FAST))
    if word in _CHOICES:
        return _choice(word, wanted, delta, _count(trials, _SLOW))
    share = _DELTA if delta is None and word in _NORMAL else checked.share("delta", delta or 0.0)
    if word in _NORMAL and not share:
        raise InvalidInput("delta", "is 0, and Gaussian noise needs δ > 0", "give one such as 1e-5")
    return _noise(word, scale, sigma, wanted, share, _count(trials, _FAST))


def _count(trials: int | None, usual: int) -> int:
    return usual if trials is None else checked.count("trials", trials, least=1000)


def _only(word: MechanismToAudit, name: str, value: object, fits: bool) -> None:
    if value is not None and not fits:
        raise InvalidInput(name, f"is given, and {word.value} has none", "leave it out")


def _noise(
    word: MechanismToAudit, scale: float | None, sigma: float | None, epsilon: float, delta: float, trials: int
) -> MechanismAudit:
    """Noise on counts. A histogram has its noise drawn for each cell by itself, and a row is in one of them: so of as
    many cells as trials, each is one draw of the count of its rows, of which there is one, or none."""
    counts = Histogram(Cells(0.0, float(trials), trials))
    mechanism: _Normal | _Absolute
    if word in _NORMAL:
        normal = _NORMAL[word]
        mechanism = normal.for_epsilon(epsilon, delta, counts) if sigma is None else normal(sigma, counts)
        settings = [("σ", f"{mechanism.sigma:.6g}"), ("δ", f"{delta:g}")]
    else:
        absolute = _ABSOLUTE[word]
        mechanism = absolute.for_epsilon(epsilon, counts) if scale is None else absolute(scale, counts)
        settings = [("scale", f"{mechanism.scale:.6g}")]
    rows = np.arange(trials) + 0.5

    def draw(present: bool, rng: Rng) -> _Outputs:
        given = counts(rows if present else rows[:0])
        return np.asarray(mechanism.release(given, rng=rng).value)

    return MechanismAudit(word.value, tuple(settings), mechanism.event, delta, counts.unit, trials, draw)


def _response(epsilon: float, categories: int, delta: float | None, trials: int) -> MechanismAudit:
    mechanism = RandomizedResponseMechanism(epsilon, categories)
    settings = (("ε", f"{epsilon:g}"), ("categories", f"{categories}"))
    unit = Unit(neighbours=Neighbours.REPLACE)

    def draw(present: bool, rng: Rng) -> _Outputs:
        return mechanism.randomize(np.full(trials, int(present)), rng=rng)

    return MechanismAudit(
        "randomized-response", settings, mechanism.event, checked.share("delta", delta or 0.0), unit, trials, draw
    )


def _choice(word: MechanismToAudit, epsilon: float, delta: float | None, trials: int) -> MechanismAudit:
    """A choice between two, for each of which somebody has voted; one vote more, or none."""
    mechanism = _CHOICES[word].for_epsilon(epsilon, _VOTES)
    settings = (("ε", f"{epsilon:g}"),)

    def draw(present: bool, rng: Rng) -> _Outputs:
        votes = _VOTES(["yes", "no"] + ["yes"] * present)
        return np.array([mechanism.release(votes, rng=rng).value for _ in range(trials)])

    share = checked.share("delta", delta or 0.0)
    return MechanismAudit(word.value, settings, mechanism.event, share, _VOTES.unit, trials, draw)
