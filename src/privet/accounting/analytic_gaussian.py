"""The exact privacy curve of Gaussian noise (Balle & Wang 2018, Thm 8), stable in every corner and rounded outward.

With μ the shift over the standard deviation, δ(ε) = Φ(a) − e^ε·Φ(b) with a = μ/2 − ε/μ and b = −μ/2 − ε/μ. Because
(a² − b²)/2 = −ε, the factor e^ε cancels: δ(ε) = ½·e^(−a²/2)·(erfcx(−a/√2) − erfcx(−b/√2)), where nothing overflows.
"""

from __future__ import annotations

import math

from scipy.special import erfcx, ndtr

from privet.accounting.search import falling_root
from privet.core import InvalidInput, checked

__all__ = [
    "analytic_gaussian_sigma",
    "classical_gaussian_sigma",
    "gdp_delta_below",
    "gdp_epsilon_below",
    "gdp_to_delta",
    "gdp_to_epsilon",
    "log_gdp_delta",
]

_ULP = 2.0**-52
_TINY = 5e-324
_ROOT_HALF = math.sqrt(0.5)


def log_gdp_delta(mu: float, epsilon: float, side: int = 1) -> float:
    """log δ(ε) of μ-GDP, rounded up for side = 1 and down for side = −1."""
    if mu == 0:
        return -math.inf
    if math.isinf(mu):
        return 0.0
    # δ falls in ε and rises in μ, so moving both by a few ulp covers the rounding of a and b
    epsilon, mu = epsilon * (1 - side * 4 * _ULP), mu * (1 + side * 4 * _ULP)
    ratio = epsilon / mu
    if math.isinf(ratio):
        return -math.inf
    a = mu / 2 - ratio
    x, y = -a * _ROOT_HALF, (ratio + mu / 2) * _ROOT_HALF
    if x < -1:
        value = float(ndtr(a)) - 0.5 * float(erfcx(y)) * math.exp(-a * a / 2)
        return min(0.0, math.log(max(value + side * 8 * _ULP, _TINY)))
    here, there = float(erfcx(x)), float(erfcx(y))
    plain = here - there + side * 16 * _ULP * here
    # erfcx is convex, so its tangents at x and y bound the difference too, without cancellation where μ is tiny
    at, value = (x, here) if side > 0 else (y, there)
    slope = 2 / math.sqrt(math.pi) - 2 * at * value + side * 16 * _ULP * (1 + abs(at) * value)
    tangent = mu * _ROOT_HALF * (1 + side * 4 * _ULP) * slope
    difference = min(plain, tangent) if side > 0 else max(plain, tangent)
    if difference <= 0:
        return -math.inf
    log_delta = -a * a / 2 * (1 - side * 4 * _ULP) + math.log(difference / 2)
    return min(0.0, log_delta + side * 4 * _ULP * (1 + abs(log_delta)))


def gdp_to_delta(mu: float, epsilon: float) -> float:
    """δ(ε) of μ-GDP, rounded up (Dong, Roth & Su 2022, Cor. 2.13).

    >>> round(gdp_to_delta(1.0, 1.0), 6)
    0.126937
    """
    _nonnegative_or_infinite("mu", mu)
    return min(1.0, math.exp(log_gdp_delta(mu, checked.nonnegative("epsilon", epsilon))))


def gdp_to_epsilon(mu: float, delta: float) -> float:
    """The least ε with δ(ε) ≤ δ for μ-GDP, rounded up; infinite at δ = 0.

    >>> round(gdp_to_epsilon(1.0, 1e-5), 4)
    4.3772
    """
    _nonnegative_or_infinite("mu", mu)
    checked.share("delta", delta)
    if mu == 0:
        return 0.0
    if delta == 0 or math.isinf(mu):
        return math.inf
    target = math.log(delta)
    if log_gdp_delta(mu, 0.0) <= target:
        return 0.0
    # δ(ε) ≤ Φ(a) ≤ e^(−a²/2), which is δ at this end
    high = (mu * mu / 2 + mu * math.sqrt(-2 * target)) * (1 + 1e-12)
    if math.isinf(high):
        return math.inf
    return falling_root(lambda epsilon: log_gdp_delta(mu, epsilon) - target, 0.0, high)


def gdp_delta_below(mu: float, epsilon: float) -> float:
    """δ(ε) of μ-GDP, rounded down."""
    return math.exp(log_gdp_delta(mu, epsilon, -1))


def gdp_epsilon_below(mu: float, delta: float) -> float:
    """An ε at which μ-GDP certainly still has more than δ, next to the largest; 0 where none was found."""
    if delta == 0 or mu == 0 or math.isinf(mu):
        return math.inf if mu > 0 and delta == 0 else 0.0
    target, upper = math.log(delta), gdp_to_epsilon(mu, delta)
    for less in (1e-12, 1e-11, 1e-9, 1e-6, 1e-3):
        if math.isfinite(upper) and log_gdp_delta(mu, upper * (1 - less), -1) > target:
            return upper * (1 - less)
    return 0.0


def analytic_gaussian_sigma(epsilon: float, delta: float) -> float:
    """The least noise multiplier with which one Gaussian release is (ε, δ)-DP (Balle & Wang 2018, Alg. 1), rounded up.

    >>> round(analytic_gaussian_sigma(1.0, 1e-5), 4)
    3.7306
    """
    epsilon = checked.nonnegative("epsilon", epsilon)
    if checked.share("delta", delta) == 0:
        raise InvalidInput("delta", "is 0, and Gaussian noise never gives pure ε-DP", "use δ > 0 or Laplace noise")
    target = math.log(delta)
    # μ²/2 + μ·√(2·log(1/δ)) ≤ ε suffices, and so does μ ≤ δ, since δ(0) ≤ μ·φ(0)
    root = math.sqrt(-2 * target)
    mu = max(2 * epsilon / (root + math.sqrt(root * root + 2 * epsilon)), delta) * (1 - 1e-9)
    enough = 1 / mu
    too_little = enough / 2
    while log_gdp_delta(1 / too_little, epsilon) <= target:
        enough, too_little = too_little, too_little / 2
    return falling_root(lambda sigma: log_gdp_delta(1 / sigma, epsilon) - target, too_little, enough)


def classical_gaussian_sigma(epsilon: float, delta: float) -> float:
    """√(2·log(1.25/δ))/ε (Dwork & Roth 2014, Thm A.1): larger than needed, and proven only for ε ≤ 1."""
    epsilon = checked.positive("epsilon", epsilon)
    if epsilon > 1:
        advice = "use analytic_gaussian_sigma, which holds for every ε and needs less noise"
        raise InvalidInput("epsilon", f"is {epsilon}, and the classical formula is proven only up to 1", advice)
    if checked.share("delta", delta) == 0:
        raise InvalidInput("delta", "is 0, and Gaussian noise never gives pure ε-DP", "use δ > 0 or Laplace noise")
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def _nonnegative_or_infinite(argument: str, value: float) -> None:
    if value != math.inf:
        checked.nonnegative(argument, value)
