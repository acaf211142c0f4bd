"""One run with many canaries: how many were guessed right, and the ε below which that is hardly possible."""

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
    """The chance, at most, that so many guesses or more are right, if the run were (ε, δ)-private.

    Steinke, Nasr & Jagielski 2023, Theorem 5.2: each of `canaries` was put in by a fair coin of its own; `guesses` of
    them are guessed at, and the others passed over. Under pure ε each guess is right with probability 1/(1 + e^−ε) at
    most, whatever the others do, so that the number is below a binomial one; δ adds
    2·canaries·δ·max over i of P[right − i ≤ binomial < right]/i.

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
    """ε is at least what it says, with the stated confidence, from a single run.

    The canaries were put in by independent fair coins, which the run did not see; how many guesses are made is fixed
    before the coins are looked at.

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
    """How many guesses, and how many of them are right: the highest half are said to be in, the lowest half out.

    `guesses` must be fixed before any coin is looked at, and so must be whatever the scores are computed by.

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
