"""Steps observed one by one: an upper bound on their noise, and the lower bound on the run's ε that follows from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privet.accounting import price
from privet.attacks import checked_scores
from privet.audit.counting import mu_of, mus
from privet.audit.scores import split_scores
from privet.core import Event, Evidence, Gaussian, Repeated, Sampled, Sampling, Unit, checked

__all__ = ["ASSUMED", "gaussian_steps", "least_epsilon", "noise_at_most"]

ASSUMED = "each step adds Gaussian noise of one and the same scale to a bounded sum"


def noise_at_most(present: Any, absent: Any, *, confidence: float = 0.95, threshold: float | None = None) -> float:
    """Return an upper bound on the noise multiplier; infinity where the observations cannot be distinguished.

    Args:
        present: For each step in which a canary took part, how far the released gradient goes in its direction.
        absent: The same for steps in which it took no part.
        confidence: The probability that the bound is right.
        threshold: Half of what the canary adds, if that is known beforehand. Without it, every second observation
            chooses a threshold, and the others are counted.

    Raises:
        InvalidInput: If there are no observations, or fewer than four of either kind without a threshold, or one is
            NaN; or `confidence` is no probability.

    >>> import numpy as np
    >>> drawn = np.random.default_rng(0)
    >>> 1.9 < noise_at_most(drawn.normal(1, 2, 9000), drawn.normal(0, 2, 9000), threshold=0.5) < 2.3
    True
    """
    error = 1 - checked.probability("confidence", confidence)
    if threshold is not None:
        one, other = checked_scores("present", present, 1), checked_scores("absent", absent, 1)
        hits, alarms = int((one >= threshold).sum()), int((other >= threshold).sum())
        found = mu_of(hits, len(one), alarms, len(other), error=error)
    else:
        split = split_scores(present, absent)
        test = split.best(lambda hits, some, alarms, others: mus(hits, some, alarms, others, error))
        found = mu_of(*split.counts(*test), error=error)
    return 1 / found if found else float("inf")


def gaussian_steps(
    present: Any,
    absent: Any,
    *,
    steps: int,
    sampling: Sampling | None = None,
    delta: float,
    confidence: float = 0.95,
    threshold: float | None = None,
    unit: Unit | None = None,
    attack: str = "gradient canaries, step by step",
) -> Evidence:
    """Return a lower bound on the run's ε, if its steps are Gaussian mechanisms (Nasr et al. 2023).

    The observations bound the noise of one step from above; the *lower* end of the accountant's ε for that many steps
    with that noise is the bound. It presumes that every step is Gaussian, on rows drawn by `sampling`: this can find
    too little noise, and it cannot refute a guarantee by itself.

    Args:
        present: For each step in which a canary took part, how far the released gradient goes in its direction.
        absent: The same for steps in which it took no part.
        steps: The number of steps of the run.
        sampling: How the rows of a batch are drawn; every step uses all rows by default.
        delta: The δ at which ε is stated.
        confidence: The probability that the bound is right.
        threshold: Half of what the canary adds, if that is known beforehand. Without it, every second observation
            chooses a threshold, and the others are counted.
        unit: The unit of the run; one example, added or removed, by default.
        attack: The name of the attack in the evidence.

    Raises:
        InvalidInput: If there are too few observations, one is NaN, `steps` is below 1, or `confidence` is no
            probability.
        NotProven: If no theorem covers such steps for the unit.
    """
    count, whose = checked.count("steps", steps), unit or Unit()

    def event(noise: float) -> Event:
        return Repeated(Gaussian(noise) if sampling is None else Sampled(Gaussian(noise), sampling), count)

    noise = noise_at_most(present, absent, confidence=confidence, threshold=threshold)
    trials = len(checked_scores("present", present, 1)) + len(checked_scores("absent", absent, 1))
    assumed = (ASSUMED,) if sampling is None else (ASSUMED, f"rows are drawn by {type(sampling).__name__}")
    return Evidence(least_epsilon(event, noise, delta, whose), delta, confidence, attack, trials, whose, assumed)


def least_epsilon(event: Callable[[float], Event], noise: float, delta: float, unit: Unit) -> float:
    """Return the least ε of an event whose noise multiplier is at most `noise`: the lower end of its interval.

    Args:
        event: The event at a given noise multiplier.
        noise: An upper bound on the noise multiplier; infinity gives 0.
        delta: The δ at which ε is stated.
        unit: Whose data is protected.

    Raises:
        NotProven: If no theorem covers the event for the unit.
    """
    return price.epsilon(event(noise), delta, unit=unit).epsilon.lower if noise < float("inf") else 0.0
