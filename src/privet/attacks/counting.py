"""What counts of successes prove of a probability: exact limits (Clopper & Pearson 1934)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from privet.core import InvalidInput, checked

__all__ = ["Reals", "at_least", "at_most", "checked_scores", "checked_successes", "lower_limits"]

Reals = npt.NDArray[np.float64]


def at_least(successes: int, trials: int, error: float) -> float:
    """The probability of success is at least this, unless something of probability `error` happened.

    One-sided: the least p under which so many successes or more have probability `error`.

    >>> round(at_least(10, 10, 0.05), 4)
    0.7411
    """
    return float(lower_limits(checked_successes(successes, trials, error), trials, error))


def at_most(successes: int, trials: int, error: float) -> float:
    """The probability of success is at most this, unless something of probability `error` happened.

    >>> round(at_most(0, 10, 0.05), 4)
    0.2589
    """
    return float(1 - lower_limits(trials - checked_successes(successes, trials, error), trials, error))


def lower_limits(successes: Any, trials: int, error: float) -> Reals:
    """`at_least` for many counts at once, which are not checked."""
    counts = np.asarray(successes)
    return np.asarray(np.where(counts > 0, beta.ppf(error, np.maximum(counts, 1), trials - counts + 1), 0.0))


def checked_successes(successes: int, trials: int, error: float) -> int:
    """The successes, if there can be so many of so many trials."""
    checked.count("trials", trials)
    if not 0 <= successes <= trials:
        raise InvalidInput("successes", f"is {successes} of {trials} trials", "count again")
    if not 0 < checked.finite("error", error) < 1:
        raise InvalidInput("error", f"is {error:g}", "give a probability such as 0.05")
    return successes


def checked_scores(argument: str, values: Any, least: int) -> Reals:
    """Scores as numbers; one that is none, and too few of them, are refused."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1:
        raise InvalidInput(argument, f"have {found.ndim} dimensions", "give one score for each trial")
    if len(found) < least:
        raise InvalidInput(argument, f"are {len(found)}", f"an answer needs {least} or more: try it more often")
    if np.isnan(found).any():
        raise InvalidInput(argument, "hold NaN", "find out why the attack has no score there")
    return found
