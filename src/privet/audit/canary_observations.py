"""What was observed of canaries, step by step, and the lower bounds on ε that follow from it."""

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
"""The least noise multiplier that scores presume."""
_FARTHEST: Final = 600.0
_PRETENDED: Final = 2000
_SHARES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)


@dataclass(frozen=True, eq=False)
class CanaryObservations:
    """Observations of canaries in each step: the released gradient along each axis, in units of the clipping norm."""

    seen: npt.NDArray[np.float32] = field(repr=False)
    """[steps, canaries]: the released gradient along each canary's axis."""
    took_part: npt.NDArray[np.bool_] = field(repr=False)
    """[steps, canaries]: whether the canary was in the batch of the step."""
    inside: npt.NDArray[np.bool_] = field(repr=False)
    """For each canary, whether its coin included it."""
    noise_multiplier: float
    """The noise multiplier of the plan: scores use it, and no bound presumes it."""
    sample_rate: float
    """The probability that a row is in a batch: scores use it, and no bound presumes it."""
    event: Callable[[float], Event] = field(repr=False)
    """The event of these steps at a given noise multiplier."""
    unit: Unit
    whole: bool = True
    """Whether a canary's gradient has the whole clipping norm."""

    @property
    def steps(self) -> int:
        """The number of observed steps."""
        return len(self.seen)

    @property
    def canaries(self) -> int:
        """The number of canaries, included or excluded."""
        return len(self.inside)

    @property
    def sums(self) -> Reals:
        """The sum over all steps of each canary's axis: all that remains of it in a model trained by plain SGD."""
        return np.asarray(self.seen.sum(0, dtype=np.float64))

    @property
    def scores(self) -> Reals:
        """The log-likelihood ratio that each canary is included, by the plan's noise and sampling."""
        return log_likelihood_ratios(self.seen, self.noise_multiplier, self.sample_rate)

    def by_steps(self, *, delta: float, confidence: float = 0.95) -> Evidence:
        """Return a lower bound on the run's ε, if its steps are Gaussian (Nasr et al. 2023; see `gaussian_steps`).

        Each canary in each step is one observation, with the clipping norm or without. The bound presumes that noise is
        normal, independent between steps and axes and of one scale, and that batches are drawn as the plan says: it
        finds noise that is missing, and refutes nothing by itself.

        Args:
            delta: The δ at which ε is stated.
            confidence: The probability that the bound is right.

        Raises:
            InvalidInput: If there are fewer than four observations with a canary in the batch, or fewer than four
                without; or `confidence` is no probability.
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
        """Return a lower bound on the run's ε that assumes nothing about the run (`one_run`).

        The method is that of Steinke, Nasr & Jagielski 2023. Each canary is included by its own fair coin.

        Args:
            delta: The δ at which ε is stated.
            confidence: The probability that the bound is right.
            guesses: The number of canaries to guess at, fixed before any coin is seen; chosen from the plan alone by
                default.
            scores: One score for each canary, higher if it seems included; the property `scores` by default. The coins
                must not influence it.

        Raises:
            InvalidInput: If there is not one score for each canary, or more guesses than canaries.
        """
        said = self.scores if scores is None else scores
        if guesses is None:
            plan = self.canaries, self.steps, self.noise_multiplier, self.sample_rate
            guesses = plan_guesses(*plan, delta=delta, confidence=confidence)
        counts = guess_membership(said, self.inside, guesses=guesses)
        attack = "gradient canaries, one run"
        return one_run(self.canaries, *counts, delta=delta, confidence=confidence, unit=self.unit, attack=attack)


def log_likelihood_ratios(seen: Any, noise_multiplier: float, sample_rate: float) -> Reals:
    """Return the log-likelihood ratio of each canary being included: Σ log(1 − q + q·exp((x − ½)/σ²)), x in clips.

    By Neyman and Pearson no other score is more powerful, if noise is normal and batches are Poisson.

    Args:
        seen: [steps, canaries]: the released gradient along each axis, in units of the clipping norm.
        noise_multiplier: The σ of the plan.
        sample_rate: The q of the plan: the probability that a row is in a batch.

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
    """Return the number of guesses that gives the largest bound on simulated runs of the same plan.

    It depends on the plan alone, so that it is known before any coin is seen.

    Args:
        canaries: The number of canaries.
        steps: The number of steps.
        noise_multiplier: The noise multiplier of the plan.
        sample_rate: The probability that a row is in a batch.
        delta: The δ at which ε is stated.
        confidence: The probability that the bound is right.
    """
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
