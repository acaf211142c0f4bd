"""Every oracle and every mechanism for means, by name, and which of them to take."""

from __future__ import annotations

from privet.core import InvalidInput
from privet.local.additive_noise import LocalGaussian, LocalLaplace
from privet.local.duchi import Duchi
from privet.local.hadamard import HadamardResponse
from privet.local.hashing import LocalHashing
from privet.local.mean import MeanMechanism
from privet.local.oracle import FrequencyOracle, PureOracle
from privet.local.piecewise import Piecewise
from privet.local.randomized_response import GeneralizedRandomizedResponse
from privet.local.rappor import Rappor
from privet.local.unary import OptimizedUnary, SymmetricUnary

__all__ = ["MEANS", "ORACLES", "best_mean", "best_oracle"]

ORACLES: dict[str, type[FrequencyOracle]] = {
    "generalized-randomized-response": GeneralizedRandomizedResponse,
    "symmetric-unary": SymmetricUnary,
    "optimized-unary": OptimizedUnary,
    "local-hashing": LocalHashing,
    "hadamard-response": HadamardResponse,
    "rappor": Rappor,
}
"""What an answer out of several can be reported by. Each takes (domain, epsilon)."""
MEANS: dict[str, type[MeanMechanism]] = {
    "laplace": LocalLaplace,
    "gaussian": LocalGaussian,
    "duchi": Duchi,
    "piecewise": Piecewise,
}
"""What a number can be reported by. Each takes (epsilon, low, high)."""
_AS_GOOD = 1.05


def best_oracle(domain: int, epsilon: float) -> PureOracle:
    """Return the oracle with the least variance for a rare value, or one within 5 % of it whose report is shorter.

    Args:
        domain: The number of possible answers.
        epsilon: The ε of each report.

    >>> best_oracle(10, 1.0).__class__.__name__, best_oracle(1000, 1.0).__class__.__name__
    ('GeneralizedRandomizedResponse', 'LocalHashing')
    """
    offers: list[PureOracle] = [GeneralizedRandomizedResponse(domain, epsilon)]
    for kind in (LocalHashing, HadamardResponse, OptimizedUnary):
        oracle = kind(domain, epsilon)
        try:
            oracle.variance(0.0)
        except InvalidInput:
            continue  # too many values for a tally of hashes
        offers.append(oracle)
    least = min(oracle.variance(0.0) for oracle in offers)
    return min(
        (oracle for oracle in offers if oracle.variance(0.0) <= _AS_GOOD * least), key=lambda oracle: oracle.report_bits
    )


def best_mean(epsilon: float, low: float = -1.0, high: float = 1.0) -> MeanMechanism:
    """Return the mechanism whose worst variance is least; its reports are bounded.

    Args:
        epsilon: The ε of each report.
        low: The lower bound of the numbers.
        high: The upper bound of the numbers.

    >>> best_mean(1.0).__class__.__name__, best_mean(2.0).__class__.__name__
    ('Duchi', 'Piecewise')
    """
    return min(
        (Duchi(epsilon, low, high), Piecewise(epsilon, low, high)), key=lambda mechanism: mechanism.worst_variance
    )
