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
from privet.accounting.price import CONTINUOUS_NOISE, AccountantAnswer, delta, epsilon, ladder, upper
from privet.accounting.profile import Profile
from privet.accounting.run_conditions import run_conditions
from privet.accounting.run_description import RunDescription, RunSettings, SamplingScheme, describe_run
from privet.accounting.solutions import (
    PrivacyTarget,
    RunParameter,
    Solution,
    neighbours_advice,
    solve_gaussian,
    solve_laplace,
    solve_randomized_response,
    solve_run,
    truth_probability,
)

__all__ = [
    "CONTINUOUS_NOISE",
    "Accountant",
    "AccountantAnswer",
    "PrivacyTarget",
    "Profile",
    "RunDescription",
    "RunParameter",
    "RunSettings",
    "SamplingScheme",
    "Solution",
    "default_delta",
    "delta",
    "describe_run",
    "epsilon",
    "ladder",
    "laplace_scale",
    "least",
    "most",
    "most_steps",
    "neighbours_advice",
    "noise_multiplier",
    "randomized_response_epsilon",
    "run_conditions",
    "sample_rate",
    "solve_gaussian",
    "solve_laplace",
    "solve_randomized_response",
    "solve_run",
    "truth_probability",
    "upper",
]
