"""Audit by one run with many canaries: how many were guessed right, and below which ε that is unlikely."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import binom

from privet.attacks import checked_scores
from privet.core import Evidence, InvalidInput, Unit, checked

__all__ = ["guess_membership", "one_run", "one_run_p_value"]

_MOST = 64.0
_ROUNDS = 60


def one_run_p_value(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Return an upper bound on the probability of `right` or more right guesses, if the run were (ε, δ)-private.

    Steinke, Nasr & Jagielski 2023, Theorem 5.2: each of `canaries` was included by a fair coin of its own; `guesses` of
    them are guessed at, and the others passed over. Under pure ε each guess is right with probability 1/(1 + e^−ε) at
    most, whatever the others do, so that the number is stochastically dominated by a binomial one; δ adds
    2·canaries·δ·max over i of P[right − i ≤ binomial < right]/i.

    Args:
        canaries: The number of canaries, included or excluded.
        guesses: The number of canaries that were guessed at.
        right: The number of right guesses.
        epsilon: The ε of the hypothesis.
        delta: The δ of the hypothesis.

    >>> round(one_run_p_value(1000, 1000, 500, 0.0, 0.0), 2)
    0.51
    """
    chance = 1 / (1 + math.exp(-epsilon))
    beyond = float(binom.sf(right - 1, guesses, chance))
    if not right or not delta:
        return min(1.0, beyond)
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))
    worst = float((below / np.arange(1, right + 1)).max())
    return min(1.0, beyond + 2 * canaries * delta * worst)


def one_run(
    canaries: int,
    guesses: int,
    right: int,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
    unit: Unit | None = None,
    attack: str = "one run",
) -> Evidence:
    """Return a lower bound on ε from a single run.

    The canaries must be included by independent fair coins, which the run did not see; the number of guesses must be
    fixed before the coins are seen.

    Args:
        canaries: The number of canaries, included or excluded.
        guesses: The number of canaries that were guessed at.
        right: The number of right guesses.
        delta: The δ at which ε is stated.
        confidence: The probability that the bound is right.
        unit: The unit of the run; one example, added or removed, by default.
        attack: The name of the attack in the evidence.

    Raises:
        InvalidInput: If there are more right guesses than guesses, or more guesses than canaries; or `canaries`,
            `delta` or `confidence` is out of range.

    >>> round(one_run(1000, 1000, 731, delta=1e-5).epsilon, 4)
    0.8803
    """
    checked.count("canaries", canaries)
    if not 0 <= right <= guesses <= canaries:
        problem = f"is {right} of {guesses} guesses about {canaries} canaries"
        raise InvalidInput("right", problem, "guess at each canary once at most, and count again")
    error = 1 - checked.confidence("confidence", confidence)
    share = checked.share("delta", delta)
    low, high = 0.0, 1.0
    if guesses and one_run_p_value(canaries, guesses, right, 0.0, share) < error:
        while high < _MOST and one_run_p_value(canaries, guesses, right, high, share) < error:
            low, high = high, 2 * high
        for _ in range(_ROUNDS):
            middle = (low + high) / 2
            below = one_run_p_value(canaries, guesses, right, middle, share) < error
            low, high = (middle, high) if below else (low, middle)
    return Evidence(low, share, confidence, attack, canaries, unit or Unit())


def guess_membership(scores: Any, inside: Any, *, guesses: int) -> tuple[int, int]:
    """Guess that the canaries with the highest scores are included and those with the lowest excluded, half of each.

    The number of guesses, and the rule that computes the scores, must be fixed before any coin is seen.

    Args:
        scores: One score for each canary, higher if it seems included.
        inside: For each canary, whether it is included.
        guesses: The number of guesses. If it is odd, one more canary is guessed to be included.

    Returns:
        The number of guesses, and how many of them are right, as `one_run` takes them.

    Raises:
        InvalidInput: If there are fewer than two scores, one is NaN, `inside` is not one boolean for each score, or
            `guesses` is below 1 or above the number of canaries.

    >>> guess_membership([0.9, 0.8, 0.5, 0.1], [True, False, True, False], guesses=2)
    (2, 2)
    """
    found = checked_scores("scores", scores, 2)
    coins = np.asarray(inside)
    if coins.shape != found.shape or coins.dtype != np.bool_:
        raise InvalidInput("inside", "is not one truth value for each score")
    checked.count("guesses", guesses)
    if guesses > len(found):
        raise InvalidInput("guesses", f"is {guesses}, of {len(found)} canaries", "guess fewer")
    order = np.argsort(found, kind="stable")
    lowest, highest = order[: guesses // 2], order[len(order) - (guesses - guesses // 2) :]
    return guesses, int(np.count_nonzero(coins[highest]) + np.count_nonzero(~coins[lowest]))
