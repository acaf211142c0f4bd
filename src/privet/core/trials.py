"""How often something is tried before the best try is kept: never a fixed number, which would cost far more."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privet.core import checked
from privet.core.codec import Record
from privet.core.errors import InvalidInput

__all__ = ["Trials"]

_LEAST_GAMMA = math.exp(-700.0)


@dataclass(frozen=True)
class Trials(Record):
    """The truncated negative binomial law of a number of runs, 1, 2, 3, … (Papernot & Steinke 2022, Definition 1).

    P[K = k] is proportional to (1 − γ)^k · η(η + 1)⋯(η + k − 1)/k!, with the shape η; η = 1 is the geometric law and
    η = 0, as a limit, the logarithmic one. A smaller shape costs less for a mean, and is oftener a single run.
    γ is what is stored, priced and drawn with; the mean follows from it.

    >>> Trials(gamma=0.1, shape=1.0).mean
    10.0
    >>> round(Trials.with_mean(10.0, shape=0.0).chance(1), 3)
    0.269
    """

    gamma: float
    """In (0, 1); near 1 there is mostly one run."""
    shape: float = 0.0
    """η, above −1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", checked.finite("gamma", self.gamma))
        if not _LEAST_GAMMA <= self.gamma < 1:
            raise InvalidInput("gamma", f"is {self.gamma}, which is not in (0, 1) or too small", "use Trials.with_mean")
        object.__setattr__(self, "shape", _shape(self.shape))

    @staticmethod
    def with_mean(mean: float, shape: float = 0.0) -> Trials:
        """Return the law of this shape with the given mean, or less by a rounding error.

        >>> trials = Trials.with_mean(20.0, shape=-0.5)
        >>> 20.0 - 1e-9 < trials.mean <= 20.0
        True
        """
        mean, shape = checked.finite("mean", mean), _shape(shape)
        if mean <= 1:
            raise InvalidInput("mean", f"is {mean}, and a mean of 1 is a single run", "give a number above 1")
        # The mean falls with γ; the logarithm of γ is halved until no double lies between the ends.
        low, high = math.log(_LEAST_GAMMA), math.log1p(-(2.0**-53))
        if _mean(math.exp(low), shape) < mean or _mean(math.exp(high), shape) > mean:
            raise InvalidInput("mean", f"= {mean} is out of reach for the shape {shape}", "take another shape")
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if _mean(math.exp(middle), shape) > mean else (low, middle)
        return Trials(math.exp(high), shape)

    @property
    def mean(self) -> float:
        """The mean number of runs: η(1 − γ)/(γ(1 − γ^η)), which is (1/γ − 1)/log(1/γ) for η = 0."""
        return _mean(self.gamma, self.shape)

    def chance(self, runs: int) -> float:
        """Return P[K = runs], for display."""
        k = checked.count("runs", runs)
        first = math.log(self.mean) + (1 + self.shape) * math.log(self.gamma)  # P[K = 1] = f′(0) = γ^(1+η)·E[K]
        rising = math.lgamma(k + self.shape) - math.lgamma(1 + self.shape) - math.lgamma(k + 1)
        return math.exp(first + (k - 1) * math.log1p(-self.gamma) + rising)

    def quantile(self, share: float) -> int:
        """Return a number of runs that is not exceeded with this probability: how long one may have to wait.

        >>> Trials(gamma=0.1, shape=1.0).quantile(0.95)
        29
        """
        if not 0 < checked.finite("share", share) <= 1 - 1e-9:
            raise InvalidInput("share", f"is {share}, which is not between 0 and 1", "give one such as 0.95")
        runs, chance = 1, self.chance(1)
        total = chance
        while total < share:
            chance *= (1 - self.gamma) * (runs + self.shape) / (runs + 1)
            total, runs = total + chance, runs + 1
        return runs


def _shape(shape: float) -> float:
    shape = checked.finite("shape", shape)
    if not -1 < shape <= 1e6:
        raise InvalidInput("shape", f"is {shape}, which is not above -1", "0 is the logarithmic law, 1 the geometric")
    return shape


def _mean(gamma: float, shape: float) -> float:
    """(1 − γ)/γ · (x / (e^x − 1)) / log(1/γ) with x = η·log γ, which is 1 in the middle for η = 0."""
    log = math.log(gamma)
    x = shape * log
    middle = x / math.expm1(x) if x != 0 else 1.0
    return max(1.0, (1 - gamma) / gamma * middle / -log)
