"""From events to guarantees: privacy-loss distributions, Rényi, zCDP, GDP, basic and advanced composition."""

from __future__ import annotations

from privet.accounting.accountant import Accountant
from privet.accounting.calibrate import (
    laplace_scale,
    least,
    most,
    most_steps,
    noise_multiplier,
    randomized_response_epsilon,
    sample_rate,
)
from privet.accounting.default_delta import default_delta
from privet.accounting.price import AccountantAnswer, delta, epsilon, ladder, upper
from privet.accounting.profile import Profile

__all__ = [
    "Accountant",
    "AccountantAnswer",
    "Profile",
    "default_delta",
    "delta",
    "epsilon",
    "ladder",
    "laplace_scale",
    "least",
    "most",
    "most_steps",
    "noise_multiplier",
    "randomized_response_epsilon",
    "sample_rate",
    "upper",
]
