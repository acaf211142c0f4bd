"""The least noise, the highest rate or the most steps that a guarantee allows: never above the target.

Every search ends with a check of the published price on both sides: the answer fits, and a little less noise (0.1 %),
one more step, a little more of the rate or of ε, does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from privet.accounting import price
from privet.accounting.search import largest_count
from privet.core import (
    Event,
    Gaussian,
    InvalidInput,
    Laplace,
    Neighbours,
    Poisson,
    RandomizedResponse,
    Repeated,
    Sampled,
    Unit,
    checked,
)

__all__ = [
    "laplace_scale",
    "least",
    "most",
    "most_steps",
    "noise_multiplier",
    "randomized_response_epsilon",
    "sample_rate",
]

_STEP = 1e-3
_LOWEST, _HIGHEST = 1e-4, 1e7


def least(build: Callable[[float], Event], *, epsilon: float, delta: float, unit: Unit | None = None) -> float:
    """Return the least value, to 0.1 %, for which `build(value)` costs at most ε; a larger value must cost less.

    Args:
        build: From the value to the event that is priced.
        epsilon: The ε that must not be exceeded.
        delta: The δ at which ε is stated.
        unit: Whose data is protected; one example, added or removed, by default.

    Raises:
        InvalidInput: No value in the range that is searched reaches (ε, δ).
        NotProven: No theorem covers the event for the unit.

    >>> round(least(Gaussian, epsilon=1.0, delta=1e-5), 2)
    3.73
    """
    return _search(build, epsilon, delta, unit, rising=False, low=_LOWEST, high=_HIGHEST)


def most(
    build: Callable[[float], Event], *, epsilon: float, delta: float, unit: Unit | None = None, high: float = _HIGHEST
) -> float:
    """Return the largest value, to 0.1 %, for which `build(value)` costs at most ε; a larger value must cost more.

    Args:
        build: From the value to the event that is priced.
        epsilon: The ε that must not be exceeded.
        delta: The δ at which ε is stated.
        unit: Whose data is protected; one example, added or removed, by default.
        high: The largest value that is tried.

    Raises:
        InvalidInput: No value in the range that is searched reaches (ε, δ).
        NotProven: No theorem covers the event for the unit.
    """
    return _search(build, epsilon, delta, unit, rising=True, low=1e-12, high=high)


def noise_multiplier(
    *, epsilon: float, delta: float, sample_rate: float, steps: int, unit: Unit | None = None
) -> float:
    """Return the least noise multiplier of DP-SGD with Poisson sampling that costs at most (ε, δ).

    Args:
        epsilon: The ε that must not be exceeded.
        delta: The δ at which ε is stated.
        sample_rate: The probability of each row to be in a batch.
        steps: The number of steps.
        unit: Whose data is protected; one example, added or removed, by default.

    Raises:
        InvalidInput: No value in the range that is searched reaches (ε, δ).
        NotProven: No theorem covers the event for the unit.

    >>> sigma = noise_multiplier(epsilon=3.0, delta=1e-5, sample_rate=4096 / 60000, steps=560)
    >>> 2.41 < sigma < 2.42
    True
    """
    by = Poisson(sample_rate)
    steps = checked.count("steps", steps)
    return least(
        lambda noise: Repeated(Sampled(Gaussian(noise), by=by), steps), epsilon=epsilon, delta=delta, unit=unit
    )


def sample_rate(
    *, epsilon: float, delta: float, noise_multiplier: float, steps: int, unit: Unit | None = None
) -> float:
    """Return the highest Poisson sampling rate that costs at most (ε, δ).

    Args:
        epsilon: The ε that must not be exceeded.
        delta: The δ at which ε is stated.
        noise_multiplier: Standard deviation of the noise over the clipping norm.
        steps: The number of steps.
        unit: Whose data is protected; one example, added or removed, by default.

    Raises:
        InvalidInput: No value in the range that is searched reaches (ε, δ).
        NotProven: No theorem covers the event for the unit.
    """
    leaf, steps = Gaussian(checked.positive("noise_multiplier", noise_multiplier)), checked.count("steps", steps)
    return most(
        lambda rate: Repeated(Sampled(leaf, by=Poisson(rate)), steps), epsilon=epsilon, delta=delta, unit=unit, high=1.0
    )


def most_steps(event: Event, *, epsilon: float, delta: float, unit: Unit | None = None, limit: int = 10**9) -> int:
    """Return how often the event may be repeated within (ε, δ); one more would cost more than ε.

    Args:
        event: One step.
        epsilon: The ε that must not be exceeded.
        delta: The δ at which ε is stated.
        unit: Whose data is protected; one example, added or removed, by default.
        limit: The largest number of steps that is tried.

    Raises:
        NotProven: No theorem covers the event for the unit.

    >>> most_steps(Gaussian(10.0), epsilon=1.0, delta=1e-5)
    7
    """
    target, share = _target(epsilon, delta)

    def fits(count: int) -> bool:
        return price.epsilon(Repeated(event, count), share, unit=unit).epsilon.upper <= target

    count = largest_count(lambda n: price.upper(Repeated(event, n), share, unit=unit) <= target, limit)
    while count > 0 and not fits(count):
        count -= 1
    while count < limit and fits(count + 1):
        count += 1
    return count


def laplace_scale(*, epsilon: float, delta: float = 0.0, count: int = 1, unit: Unit | None = None) -> float:
    """Return the least scale of Laplace noise, over the L1 bound, for `count` answers within (ε, δ).

    Args:
        epsilon: The ε that must not be exceeded.
        delta: The δ at which ε is stated.
        count: The number of answers.
        unit: Whose data is protected; one example, added or removed, by default.

    Raises:
        InvalidInput: No value in the range that is searched reaches (ε, δ).
        NotProven: No theorem covers the event for the unit.
    """
    count = checked.count("count", count)
    return least(lambda scale: Repeated(Laplace(scale), count), epsilon=epsilon, delta=delta, unit=unit)


def randomized_response_epsilon(
    *, epsilon: float, delta: float = 0.0, categories: int = 2, count: int = 1, unit: Unit | None = None
) -> float:
    """Return the largest ε of each of `count` randomized responses that together cost at most (ε, δ).

    Args:
        epsilon: The ε that must not be exceeded.
        delta: The δ at which ε is stated.
        categories: The number of possible answers.
        count: The number of answers.
        unit: Whose data is protected; one example whose answer is replaced, by default.

    Raises:
        InvalidInput: No value in the range that is searched reaches (ε, δ).
        NotProven: No theorem covers the event for the unit.
    """
    unit = unit or Unit(neighbours=Neighbours.REPLACE)
    count = checked.count("count", count)

    def build(answer_epsilon: float) -> Event:
        return Repeated(RandomizedResponse(answer_epsilon, categories), count)

    return most(build, epsilon=epsilon, delta=delta, unit=unit, high=1e4)


def _target(epsilon: float, delta: float) -> tuple[float, float]:
    return checked.positive("epsilon", epsilon), checked.share("delta", delta)


def _search(
    build: Callable[[float], Event],
    epsilon: float,
    delta: float,
    unit: Unit | None,
    *,
    rising: bool,
    low: float,
    high: float,
) -> float:
    """A start from closed forms, a few secant steps with the quick half of the price, then settled with the whole."""
    target, share = _target(epsilon, delta)

    def upper(value: float) -> float:
        return price.upper(build(value), share, unit=unit)

    def published(value: float) -> bool:
        return price.epsilon(build(value), share, unit=unit).epsilon.upper <= target

    worst, best = (high, low) if rising else (low, high)
    if published(worst):
        return worst
    start = _start(lambda value: price.quick(build(value), share, unit=unit) <= target, worst, best)
    safe = _secant(upper, target, start, worst, best)
    if safe is None:
        advice = "allow more" if math.isinf(upper(best)) else "it lies outside the range that is searched"
        raise InvalidInput("epsilon", f"= {target} with delta = {share} cannot be reached", advice)
    toward = 1 + _STEP if rising else 1 - _STEP
    while not published(safe):
        safe /= toward
    while not _past(following := safe * toward, worst, rising) and published(following):
        safe = following
    return safe


def _past(value: float, end: float, rising: bool) -> bool:
    return value > end if rising else value < end


def _start(fits: Callable[[float], bool], worst: float, best: float) -> float:
    """A value near the edge by closed forms, to a tenth; the middle of the range where they have no say."""
    if not fits(best):
        return math.sqrt(worst * best)
    bad, good = math.log(worst), math.log(best)
    while abs(good - bad) > 0.1:
        middle = (good + bad) / 2
        good, bad = (middle, bad) if fits(math.exp(middle)) else (good, middle)
    return math.exp(good)


def _secant(price_of: Callable[[float], float], target: float, start: float, worst: float, best: float) -> float | None:
    """The best value found to cost at most the target; the next one towards `worst`, closer than 0.02 %, costs more."""
    bad, good = math.log(worst), math.log(best)
    bad_gap, good_gap = math.inf, -math.inf  # log of price over target at either end
    guess, close = math.log(start), _STEP / 5
    slow, width = 0, math.inf  # how often in a row the bracket was not halved
    for _ in range(120):
        gap = _log_ratio(price_of(math.exp(guess)), target)
        if gap <= 0:
            good, good_gap = guess, gap
        else:
            bad, bad_gap = guess, gap
        if abs(good - bad) <= close:
            break
        slow, width = (slow + 1 if abs(good - bad) > width / 2 else 0), abs(good - bad)
        if slow > 2 and math.isfinite(bad_gap) and math.isfinite(good_gap):  # a price that jumps
            guess, slow = (good + bad) / 2, 0
        elif math.isfinite(bad_gap) and math.isfinite(good_gap):
            slope = (bad_gap - good_gap) / (bad - good)
            root = good - good_gap / slope
            aim = root + math.copysign(close / 3, good - bad if gap > 0 else bad - good)
            edge = 0.01 * abs(good - bad)
            guess = min(max(aim, min(good, bad) + edge), max(good, bad) - edge)
        elif math.isfinite(good_gap) or math.isfinite(bad_gap):
            known, at = (good_gap, good) if math.isfinite(good_gap) else (bad_gap, bad)
            stride = max(min(abs(known), 2.0), 0.02) * 1.2
            guess = at + math.copysign(stride, (bad - good) if math.isfinite(good_gap) else (good - bad))
            if not min(good, bad) < guess < max(good, bad):
                guess = (good + bad) / 2
        else:
            guess = (good + bad) / 2
    return math.exp(good) if math.isfinite(good_gap) else None


def _log_ratio(value: float, target: float) -> float:
    if value == 0:
        return -745.0
    return math.log(value / target) if math.isfinite(value) else math.inf
