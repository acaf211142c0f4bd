"""What was seen of canaries, step by step, and what it proves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from privet.attacks import Reals
from privet.audit.gaussian_steps import ASSUMED, least_epsilon, noise_at_most
from privet.audit.one_run import guess_membership, one_run
from privet.core import Event, Evidence, InvalidInput, Unit
from privet.core.random import SeededRng

__all__ = ["CanaryObservations", "log_likelihood_ratios", "plan_guesses"]

_LEAST: Final = 1e-3
"""Below so little noise, a score may as well presume this much."""
_FARTHEST: Final = 600.0
_PRETENDED: Final = 2000
_SHARES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)


@dataclass(frozen=True, eq=False)
class CanaryObservations:
    """Steps by canaries: how far the released gradient went along each axis, in clips."""

    seen: npt.NDArray[np.float32] = field(repr=False)
    """[steps, canaries]"""
    took_part: npt.NDArray[np.bool_] = field(repr=False)
    """[steps, canaries]: whether the canary was in the batch of the step."""
    inside: npt.NDArray[np.bool_] = field(repr=False)
    """Whose coins came up."""
    noise_multiplier: float
    """As the plan has it: scores use it, and no bound presumes it."""
    sample_rate: float
    """The same of how often a row is drawn."""
    event: Callable[[float], Event] = field(repr=False)
    """What these steps are, at a given noise multiplier."""
    unit: Unit
    whole: bool = True
    """Whether a canary gets all of the clip."""

    @property
    def steps(self) -> int:
        """How many were seen."""
        return len(self.seen)

    @property
    def canaries(self) -> int:
        """How many there are, in or out."""
        return len(self.inside)

    @property
    def sums(self) -> Reals:
        """What a canary's axis was given over all steps: all that is left in a model that plain SGD trained."""
        return np.asarray(self.seen.sum(0, dtype=np.float64))

    @property
    def scores(self) -> Reals:
        """How much likelier it is that a canary is in, by the plan's noise and sampling."""
        return log_likelihood_ratios(self.seen, self.noise_multiplier, self.sample_rate)

    def by_steps(self, *, delta: float, confidence: float = 0.95) -> Evidence:
        """What the run costs at least, if its steps are Gaussian (Nasr et al. 2023; see `gaussian_steps`).

        Each canary in each step is one observation, with the clip or without. It presumes that noise is normal,
        independent between steps and axes and of one scale, and that batches are drawn as the plan says: it finds
        noise that is missing, and refutes nothing by itself.
        """
        present, absent = self.seen[self.took_part], self.seen[~self.took_part]
        if min(len(present), len(absent)) < 4:
            problem = f"are {len(present)} with a canary in the batch, and {len(absent)} without"
            raise InvalidInput("observations", problem, "plant more canaries, or train longer")
        threshold = 0.5 if self.whole else None
        noise = noise_at_most(present, absent, confidence=confidence, threshold=threshold)
        found = least_epsilon(self.event, noise, delta, self.unit)
        assumed = (ASSUMED, "batches are drawn as the plan says")
        attack = "gradient canaries, step by step"
        return Evidence(found, delta, confidence, attack, self.seen.size, self.unit, assumed)

    def by_coins(
        self, *, delta: float, confidence: float = 0.95, guesses: int | None = None, scores: Any = None
    ) -> Evidence:
        """What the run costs at least, whatever it did (Steinke, Nasr & Jagielski 2023; see `one_run`).

        Each canary is in by its own fair coin. `guesses` are chosen from the plan alone, unless given; `scores` are
        `scores` unless others are given, which no coin may have a say in.
        """
        said = self.scores if scores is None else scores
        if guesses is None:
            plan = self.canaries, self.steps, self.noise_multiplier, self.sample_rate
            guesses = plan_guesses(*plan, delta=delta, confidence=confidence)
        counts = guess_membership(said, self.inside, guesses=guesses)
        attack = "gradient canaries, one run"
        return one_run(self.canaries, *counts, delta=delta, confidence=confidence, unit=self.unit, attack=attack)


def log_likelihood_ratios(seen: Any, noise_multiplier: float, sample_rate: float) -> Reals:
    """log of how much likelier a canary's steps are if it is in: Σ log(1 − q + q·exp((x − ½)/σ²)), x in clips.

    By Neyman and Pearson no other score tells more, if noise is normal and batches are Poisson.

    >>> log_likelihood_ratios(np.array([[0.5, 1.5]]), 1.0, 1.0).tolist()
    [0.0, 1.0]
    """
    variance = max(noise_multiplier, _LEAST) ** 2
    found = np.zeros(np.shape(seen)[1])
    for row in seen:
        tilt = np.clip((np.asarray(row, dtype=np.float64) - 0.5) / variance, -_FARTHEST, _FARTHEST)
        found += np.log1p(sample_rate * np.expm1(tilt)) if sample_rate < 1 else tilt
    return found


def plan_guesses(
    canaries: int, steps: int, noise_multiplier: float, sample_rate: float, *, delta: float, confidence: float = 0.95
) -> int:
    """How many guesses find most, on made-up runs of the same plan: known before any coin is looked at."""
    rng = SeededRng(0, "guesses")
    scores = np.zeros(2 * _PRETENDED)
    inside = np.arange(len(scores)) < _PRETENDED
    for _ in range(steps):
        noise = rng.normal(len(scores), dtype=np.float32) * noise_multiplier
        took = inside & (rng.uniform(len(scores)) < sample_rate)
        scores += log_likelihood_ratios((noise + took)[None], noise_multiplier, sample_rate)
    found = []
    for share in _SHARES:
        pretended = max(2, 2 * round(share * _PRETENDED))
        asked = max(1, round(share * canaries))
        right = guess_membership(scores, inside, guesses=pretended)[1] / pretended
        likely = math.floor(right * asked - math.sqrt(right * (1 - right) * asked))
        bound = one_run(canaries, asked, max(0, likely), delta=delta, confidence=confidence).epsilon
        found.append((bound, asked))
    return max(found)[1]
