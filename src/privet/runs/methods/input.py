"""Input perturbation: every record is randomized by itself, so that nobody need be trusted with the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from privet.core import InvalidInput
from privet.runs.methods.protocol import FitSession, Method, MethodBudget, MethodPlan

if TYPE_CHECKING:
    from torch import nn

    from privet.core import Release
    from privet.runs.facts import PublicFacts
    from privet.runs.request import TrainRequest
    from privet.runs.row_sets import LabeledRows
    from privet.training.models import Model, ModelDescription

__all__ = ["INPUT"]

_NAME = "input"


def _plan(request: TrainRequest, facts: PublicFacts, share: MethodBudget, model: Model | None) -> MethodPlan:
    from privet.training.convex import InputPerturbation

    if facts.schema is None or facts.is_schema_released:
        problem = "is input, which needs a public schema of a table: nobody may learn one from the rows"
        raise InvalidInput("method", problem, "give --schema")
    plan = InputPerturbation(facts.schema, share.epsilon)
    settings = {"epsilon": share.epsilon, "bins": plan.bins}
    return MethodPlan(_NAME, plan.event, plan.unit, "every record, randomised by itself", settings=settings)


def _fit(plan: MethodPlan, rows: LabeledRows, session: FitSession) -> Release[nn.Module]:
    """Randomize every row and fit the reports. Guarantee: that of the plan's event (`InputPerturbation`)."""
    from privet.core.random import default_rng
    from privet.training.convex import InputPerturbation
    from privet.training.models import Additive

    if session.facts.schema is None:
        raise InvalidInput("schema", "is missing")
    fitted = InputPerturbation(session.facts.schema, plan.settings["epsilon"])
    if fitted.event != plan.event:
        raise InvalidInput("plan", "has another event than its schema", "train anew, which costs anew")
    rng = session.rng or default_rng()
    release = fitted.fit(rows.x.numpy(), rows.y.numpy(), source=session.source, rng=rng)
    return release.map(Additive.of)


def _describe(described: ModelDescription, plan: MethodPlan, head: nn.Module) -> ModelDescription:
    return replace(described, family="additive", bins=plan.settings["bins"])


INPUT = Method(_NAME, "input perturbation", _plan, _fit, _describe, has_central_trust=False)
