"""A toy method of training in one file, as CONTRIBUTING describes it: predict the most frequent class."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privet.runs.methods.protocol import FitSession, Method, MethodBudget, MethodPlan

if TYPE_CHECKING:
    from torch import nn

    from privet.core.release import Release
    from privet.mechanisms import Histogram
    from privet.runs.facts import PublicFacts
    from privet.runs.request import TrainRequest
    from privet.runs.row_sets import LabeledRows
    from privet.training.models import Model, ModelDescription

__all__ = ["MAJORITY", "STOPS", "fit"]

STOPS: list[int] = []
"""One entry for each of the next fits that is interrupted."""
_NAME = "majority"


def _counts(facts: PublicFacts) -> Histogram:
    from privet.mechanisms import Cells, Histogram

    return Histogram(Cells(-0.5, len(facts.classes) - 0.5, len(facts.classes)), facts.unit)


def _plan(request: TrainRequest, facts: PublicFacts, share: MethodBudget, model: Model | None) -> MethodPlan:
    from privet.mechanisms import DiscreteLaplaceMechanism

    mechanism = DiscreteLaplaceMechanism.for_epsilon(share.model_epsilon, _counts(facts))
    settings = {"scale": mechanism.scale}
    return MethodPlan(_NAME, mechanism.event, share.unit, "noisy counts of the classes", settings=settings)


def fit(plan: MethodPlan, rows: LabeledRows, session: FitSession) -> Release[nn.Module]:
    """Predict the most frequent class.

    Guarantee: that of the plan's event: one histogram of the labels.
    """
    import torch

    from privet.core.random import default_rng
    from privet.mechanisms import DiscreteLaplaceMechanism
    from privet.training.models import UnitNormLinear

    if STOPS:
        STOPS.pop()
        raise KeyboardInterrupt
    counts = _counts(session.facts)
    mechanism = DiscreteLaplaceMechanism(plan.settings["scale"], counts)
    released = mechanism.release(counts(rows.y.numpy()), rng=session.rng or default_rng(), source=session.source)

    def model(noisy: Any) -> nn.Module:
        head = UnitNormLinear(session.model.features, len(noisy), 1.0)
        head.weight.zero_()
        head.weight[:, -1] = torch.tensor(noisy, dtype=head.weight.dtype)
        return head

    return released.map(model)


def _describe(described: ModelDescription, plan: MethodPlan, head: nn.Module) -> ModelDescription:
    return replace(described, family="convex", radius=1.0)


MAJORITY = Method(_NAME, "the majority class", _plan, fit, _describe)
