"""Audits: lower bounds on ε that hold with a stated confidence, to be set beside what is claimed."""

from __future__ import annotations

from privet.audit.counting import epsilon_of, mu_of
from privet.audit.gaussian_steps import gaussian_steps, noise_at_most
from privet.audit.many_runs import many_runs
from privet.audit.mechanisms import audit_draws, audit_mechanism
from privet.audit.one_run import guessed, one_run, one_run_p_value

__all__ = [
    "audit_draws",
    "audit_mechanism",
    "epsilon_of",
    "gaussian_steps",
    "guessed",
    "many_runs",
    "mu_of",
    "noise_at_most",
    "one_run",
    "one_run_p_value",
]
