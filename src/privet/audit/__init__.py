"""Audits: lower bounds on ε that hold with a stated confidence, to be compared with the claimed guarantee."""

from __future__ import annotations

from privet.audit.canaries import CanaryModel, CanaryWatch
from privet.audit.canary_observations import CanaryObservations
from privet.audit.canary_observations import plan_guesses as plan_guesses
from privet.audit.counting import epsilon_of, mu_of
from privet.audit.error_shares import ALPHA as ALPHA
from privet.audit.error_shares import KINDS as KINDS
from privet.audit.error_shares import confidence_per_test as confidence_per_test
from privet.audit.gaussian_steps import gaussian_steps, noise_at_most
from privet.audit.inserted_canaries import InsertedCanaries, insert_canaries
from privet.audit.ladder import Ladder, Rung, audit_ladder
from privet.audit.many_runs import many_runs
from privet.audit.mechanisms import audit_draws
from privet.audit.one_run import guess_membership, one_run, one_run_p_value
from privet.audit.replay import QueryMovement, Replay, ReplayError, replay

__all__ = [
    "CanaryModel",
    "CanaryObservations",
    "CanaryWatch",
    "InsertedCanaries",
    "Ladder",
    "QueryMovement",
    "Replay",
    "ReplayError",
    "Rung",
    "audit_draws",
    "audit_ladder",
    "epsilon_of",
    "gaussian_steps",
    "guess_membership",
    "insert_canaries",
    "many_runs",
    "mu_of",
    "noise_at_most",
    "one_run",
    "one_run_p_value",
    "replay",
]
