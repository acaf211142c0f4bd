"""What output and objective perturbation share: a linear model on features, fitted once, with one draw of noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import sqrt
from typing import TYPE_CHECKING

from privet.core import InvalidInput
from privet.runs.methods.protocol import FitSession, Method, MethodBudget, MethodPlan

if TYPE_CHECKING:
    from torch import nn

    from privet.core import Release
    from privet.runs.facts import PublicFacts
    from privet.runs.request import TrainRequest
    from privet.runs.row_sets import LabeledRows
    from privet.training.convex import ConvexLoss, ObjectivePerturbation, OutputPerturbation
    from privet.training.models import Model, ModelDescription

__all__ = ["RADIUS", "convex_method", "loss_for"]

RADIUS = sqrt(2.0)
"""Features have a norm of 1 at most, and the intercept is 1."""


def loss_for(classes: int) -> ConvexLoss:
    """Return the loss of a linear model: softmax for classes, log-cosh for a regression.

    Args:
        classes: Number of classes; 0 for regression.
    """
    from privet.training.convex import LogCosh, Softmax

    return Softmax(classes) if classes > 1 else LogCosh()


def convex_method(
    name: str,
    title: str,
    perturbation: Callable[[], type[OutputPerturbation] | type[ObjectivePerturbation]],
    penalty: Callable[[ConvexLoss, float, float], float],
) -> Method:
    """Return a method that fits a linear model with one perturbation.

    Args:
        name: On the command line.
        title: On pages.
        perturbation: Gives the class of the plan; called when a run plans or fits.
        penalty: From the loss, ε and δ to the weight of the L2 penalty.
    """

    def plan(request: TrainRequest, facts: PublicFacts, share: MethodBudget, model: Model | None) -> MethodPlan:
        epsilon, delta = share.model_epsilon, share.delta
        weight = penalty(loss_for(len(facts.classes)), epsilon, delta)
        settings = {"epsilon": epsilon, "delta": delta, "weight": weight, "radius": RADIUS}
        event = _build(settings, facts).event
        # The event follows from (ε, δ) alone; the penalty needs the classes.
        is_complete = facts.schema is not None or facts.shape is not None
        return MethodPlan(name, event, share.unit, f"the model, by {title}", settings=settings, is_complete=is_complete)

    def _build(settings: dict[str, float], facts: PublicFacts) -> OutputPerturbation | ObjectivePerturbation:
        loss = loss_for(len(facts.classes))
        weight, radius = settings["weight"], settings["radius"]
        return perturbation()(loss, settings["epsilon"], settings["delta"], weight, radius, facts.unit)

    def fit(plan: MethodPlan, rows: LabeledRows, session: FitSession) -> Release[nn.Module]:
        """Fit the features of the rows. Guarantee: that of the plan's event (`privet.training.convex`)."""
        from privet.core.random import default_rng
        from privet.training.models import UnitNormLinear

        classes = len(session.facts.classes)
        fitted = _build(dict(plan.settings), session.facts)
        if fitted.event != plan.event:
            problem = "has another event than its settings, which were changed or belong to another schema"
            raise InvalidInput("plan", problem, "train anew, which costs anew")
        features = session.features(rows.x).numpy()
        release = fitted.fit(features, rows.y.numpy(), source=session.source, rng=session.rng or default_rng())
        return release.map(lambda model: UnitNormLinear.of(model, classes))

    def describe(described: ModelDescription, plan: MethodPlan, head: nn.Module) -> ModelDescription:
        return replace(described, family="convex", radius=plan.settings["radius"])

    return Method(name, title, plan, fit, describe)
