"""Exact confidence limits on a probability from counts of successes (Clopper & Pearson 1934)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from privet.core import InvalidInput, checked

__all__ = ["Reals", "at_least", "at_most", "checked_scores", "checked_successes", "lower_limits"]

Reals = npt.NDArray[np.float64]


def at_least(successes: int, trials: int, error: float) -> float:
    """Return a lower confidence limit on a probability of success; it fails with probability `error` at most.

    The limit is one-sided: the smallest p under which this many successes or more have probability `error`.

    Args:
        successes: The number of successes.
        trials: The number of independent trials.
        error: The probability that the limit may fail with.

    Raises:
        InvalidInput: If there are more successes than trials, no trials, or `error` is not between 0 and 1.

    >>> round(at_least(10, 10, 0.05), 4)
    0.7411
    """
    return float(lower_limits(checked_successes(successes, trials, error), trials, error))


def at_most(successes: int, trials: int, error: float) -> float:
    """Return an upper confidence limit on a probability of success; it fails with probability `error` at most.

    Args:
        successes: The number of successes.
        trials: The number of independent trials.
        error: The probability that the limit may fail with.

    Raises:
        InvalidInput: If there are more successes than trials, no trials, or `error` is not between 0 and 1.

    >>> round(at_most(0, 10, 0.05), 4)
    0.2589
    """
    return float(1 - lower_limits(trials - checked_successes(successes, trials, error), trials, error))


def lower_limits(successes: Any, trials: int, error: float) -> Reals:
    """Return the limits of `at_least` for many counts at once, without checking them.

    Args:
        successes: The counts, as an array.
        trials: The number of trials behind each count.
        error: The probability that each limit may fail with.
    """
    counts = np.asarray(successes)
    return np.asarray(np.where(counts > 0, beta.ppf(error, np.maximum(counts, 1), trials - counts + 1), 0.0))


def checked_successes(successes: int, trials: int, error: float) -> int:
    """Return the number of successes after checking it.

    Args:
        successes: The number of successes.
        trials: The number of trials.
        error: The probability that a limit may fail with.

    Raises:
        InvalidInput: If there are more successes than trials, no trials, or `error` is not between 0 and 1.
    """
    checked.count("trials", trials)
    if not 0 <= successes <= trials:
        raise InvalidInput("successes", f"is {successes} of {trials} trials", "count again")
    if not 0 < checked.finite("error", error) < 1:
        raise InvalidInput("error", f"is {error:g}", "give a probability such as 0.05")
    return successes


def checked_scores(argument: str, values: Any, least: int) -> Reals:
    """Return scores as an array of floats after checking them.

    Args:
        argument: The name of the argument, for the error message.
        values: The scores.
        least: The smallest number of scores.

    Raises:
        InvalidInput: If the scores are not one-dimensional, are fewer than `least`, or hold NaN.
    """
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1:
        raise InvalidInput(argument, f"have {found.ndim} dimensions", "give one score for each trial")
    if len(found) < least:
        raise InvalidInput(argument, f"are {len(found)}", f"an answer needs {least} or more: try it more often")
    if np.isnan(found).any():
        raise InvalidInput(argument, "hold NaN", "find out why the attack has no score there")
    return found
