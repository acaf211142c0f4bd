"""What trust is worth: how well a share is known under the same (ε, δ), by whom the respondents have to trust."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privet.accounting import largest_local_epsilon
from privet.core import InvalidInput, checked
from privet.mechanisms import usable

__all__ = ["TrustCosts", "cost_of_trust", "costs_around"]


@dataclass(frozen=True)
class TrustCosts:
    """The standard error of the share of a yes-or-no question, from the noise alone, in three models of trust."""

    reports: int
    central: float
    """A trusted curator counts, and adds discrete Laplace noise: falls like 1/n."""
    shuffled: float
    """Randomized response, and a shuffler that is trusted to shuffle: falls like 1/n too, until ε₀ is as small as ε."""
    local: float
    """Randomized response, and nobody is trusted: falls like 1/√n."""
    local_epsilon: float
    """What each report is worth by itself where it is shuffled."""


def cost_of_trust(reports: int, *, epsilon: float, delta: float) -> TrustCosts:
    """Return the three errors for one number of honest reports, where one answer is replaced by the other one.

    Args:
        reports: The number of honest reports.
        epsilon: The ε that all three models give.
        delta: The δ.

    Raises:
        InvalidInput: A number is out of range.

    >>> costs = cost_of_trust(10_000, epsilon=1.0, delta=1e-6)
    >>> f"{costs.central:.5f} {costs.shuffled:.5f} {costs.local:.5f}"
    '0.00014 0.00065 0.00960'
    """
    checked.count("reports", reports)
    usable(epsilon)
    if checked.share("delta", delta) == 0:
        raise InvalidInput("delta", "is 0, at which no crowd hides anybody", "use a value such as 1e-6")
    own = largest_local_epsilon(reports, epsilon=epsilon, delta=delta)
    central = math.sqrt(2 * math.exp(-epsilon)) / -math.expm1(-epsilon) / reports
    return TrustCosts(reports, central, _response(own, reports), _response(epsilon, reports), own)


def _response(epsilon: float, reports: int) -> float:
    """√(p(1 − p)/n)/(2p − 1) with p = e^ε/(e^ε + 1), whatever the share."""
    return math.exp(-epsilon / 2) / -math.expm1(-epsilon) / math.sqrt(reports)


def costs_around(reports: int, *, epsilon: float, delta: float) -> tuple[TrustCosts, ...]:
    """Return `cost_of_trust` for a number of reports, and for a tenth, a hundredth, 10 and 100 times as many.

    Args:
        reports: The number of honest reports.
        epsilon: The ε that all three models give.
        delta: The δ.

    >>> [costs.reports for costs in costs_around(500, epsilon=1.0, delta=1e-6)]
    [5, 50, 500, 5000, 50000]
    """
    checked.count("reports", reports)
    sizes = {max(1, reports // 100), max(1, reports // 10), reports, reports * 10, reports * 100}
    return tuple(cost_of_trust(size, epsilon=epsilon, delta=delta) for size in sorted(sizes))
