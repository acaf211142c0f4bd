"""From events to guarantees: privacy-loss distributions, Rényi, zCDP, GDP, basic and advanced composition."""

from __future__ import annotations

from privet.accounting import calibrate as calibrate
from privet.accounting import price as price
from privet.accounting import renyi as renyi
from privet.accounting.accountant import Accountant
from privet.accounting.analytic_gaussian import analytic_gaussian_sigma as analytic_gaussian_sigma
from privet.accounting.calibrate import (
    laplace_scale,
    least,
    most,
    most_steps,
    noise_multiplier,
    randomized_response_epsilon,
    sample_rate,
)
from privet.accounting.canonical import CountedEvent as CountedEvent
from privet.accounting.canonical import canonical as canonical
from privet.accounting.conversions import group_privacy as group_privacy
from privet.accounting.conversions import rdp_to_epsilon as rdp_to_epsilon
from privet.accounting.default_delta import default_delta
from privet.accounting.default_delta import is_near_one_unit as is_near_one_unit
from privet.accounting.meaning import FALSE_POSITIVE_RATES as FALSE_POSITIVE_RATES
from privet.accounting.meaning import Meaning as Meaning
from privet.accounting.meaning import best_true_positive_rate as best_true_positive_rate
from privet.accounting.meaning import meaning as meaning
from privet.accounting.meaning import tail_of as tail_of
from privet.accounting.neighbor_distance import span as span
from privet.accounting.price import CONTINUOUS_NOISE, AccountantAnswer, delta, epsilon, ladder, upper
from privet.accounting.price import TOO_LARGE as TOO_LARGE
from privet.accounting.price import gate as gate
from privet.accounting.price import require_one as require_one
from privet.accounting.profile import Profile
from privet.accounting.renyi import total as total
from privet.accounting.run_conditions import run_conditions
from privet.accounting.run_description import RunDescription, RunSettings, SamplingScheme, describe_run
from privet.accounting.search import Array as Array
from privet.accounting.search import falling_root as falling_root
from privet.accounting.search import largest_count as largest_count
from privet.accounting.shuffling import largest_local_epsilon as largest_local_epsilon
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
from privet.accounting.tradeoff import delta_of as delta_of
from privet.accounting.tradeoff import piecewise as piecewise

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
