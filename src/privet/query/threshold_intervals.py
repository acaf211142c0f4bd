"""Intervals for counts that are shown only where they reach a threshold.

Of a small group only upward noise gets over the threshold, so that the usual interval, of noise that may go either way,
misses the truth of nearly every small group that is seen. What is right is the law of a noisy count *given that it is
shown*: Y = n + X given Y ≥ T, with X discrete Laplace noise. Its tails grow with n (the noise is log-concave, hence the
likelihood ratio is monotone; Lehmann & Romano 2005, Thm 3.4.1), so both ends are found by inverting them. Where the
noisy count is not far above T, the law is the same for all n ≤ T, and the lower end is 1: a shown group has one row.
"""

from __future__ import annotations

import math

from privet.accounting import largest_count

__all__ = ["thresholded_interval"]

_OUTWARD = 1 - 1e-9
"""So that rounding widens an interval and never narrows it."""
_MOST = 2**62


def thresholded_interval(noisy: int, scale: float, threshold: int, confidence: float) -> tuple[int, int]:
    """All counts n ≥ 1 for which neither tail beyond `noisy` has a chance below (1 - confidence)/2, given it is shown.

    It holds the true count of a group that is shown with at least the confidence, however large the group is.

    >>> thresholded_interval(17, 1.0, 15, 0.95), thresholded_interval(200, 1.0, 15, 0.95)
    ((1, 20), (197, 203))
    """
    miss = (1 - confidence) / 2 * _OUTWARD

    def likely_above(n: int) -> bool:
        """P(Y ≥ noisy | Y ≥ T) > miss; true from some n on."""
        if n < threshold:  # both tails are tiny, and their quotient does not depend on n
            return math.exp(-(noisy - threshold) / scale) > miss
        return _upper(noisy - n, scale) > miss * _upper(threshold - n, scale)

    def likely_below(n: int) -> bool:
        """P(Y ≤ noisy | Y ≥ T) > miss; true up to some n."""
        between = _upper(n - noisy, scale) - _upper(n - threshold + 1, scale)  # by symmetry of the noise
        return between > miss * _upper(threshold - n, scale)

    # The noisy count itself is always inside; next to a threshold with wide noise it is unlikely under every n.
    below = largest_count(lambda distance: likely_above(noisy - distance), noisy - 1)
    above = largest_count(lambda distance: likely_below(noisy + distance), _MOST)
    return noisy - below, noisy + above


def _upper(least: int, scale: float) -> float:
    """P(noise ≥ least) of discrete Laplace noise."""
    if least >= 1:
        return math.exp(-least / scale) / (1 + math.exp(-1 / scale))
    return 1 - _upper(1 - least, scale)
