"""No privacy: the same model trained without noise, for comparison on the internal report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privet.core import NonPrivate
from privet.runs.methods.convex import RADIUS, loss_for
from privet.runs.methods.protocol import FitSession, Method, MethodBudget, MethodPlan

if TYPE_CHECKING:
    from torch import nn

    from privet.core import Internal
    from privet.runs.facts import PublicFacts
    from privet.runs.request import TrainRequest
    from privet.runs.row_sets import LabeledRows
    from privet.training.models import Model

__all__ = ["NONE"]

_EPOCHS, _BATCH, _RATE = 20, 256, 1e-3
_PENALTY = 1.0
"""Just enough for a linear model to have a minimum."""
_TOLERANCE = 1.0
"""The norm of the gradient at which the solver stops."""


def _plan(request: TrainRequest, facts: PublicFacts, share: MethodBudget, model: Model | None) -> MethodPlan:
    event = NonPrivate("trained without noise, for comparison")
    return MethodPlan(NONE.name, event, share.unit, "a model without privacy")


def _fit(plan: MethodPlan, rows: LabeledRows, session: FitSession) -> Internal[nn.Module]:
    """Fit linear models with a solver and others with Adam. Rows without a target are left out."""
    import numpy as np
    import torch

    from privet.core import Internal
    from privet.training.convex import LinearModel, approach, within
    from privet.training.models import Family, Model, UnitNormLinear, UserModel

    classes, model = len(session.facts.classes), session.trainable()
    is_known = (rows.y >= 0) & (rows.y < classes) if classes else rows.y.isfinite()
    x, y = rows.x[is_known], rows.y[is_known]
    head = model.head if isinstance(model, Model) else model
    family = model.family if isinstance(model, Model) else Family.LINEAR
    if family is Family.LINEAR and not isinstance(head, UserModel):
        loss = loss_for(classes)
        features = within(session.features(x).numpy(), RADIUS)
        start = np.zeros((loss.outputs, features.shape[1]))
        weights = approach(loss, features, y.numpy(), _PENALTY, start, _TOLERANCE)
        return Internal(UnitNormLinear.of(LinearModel(weights, RADIUS), classes))
    losses: Any = model.losses
    optimizer = torch.optim.Adam(model.parameters(), lr=_RATE)
    order = torch.Generator().manual_seed(0)
    for _ in range(_EPOCHS):
        for batch in torch.split(torch.randperm(len(x), generator=order), _BATCH):
            optimizer.zero_grad()
            losses(x[batch], y[batch], 0.0).mean().backward()
            optimizer.step()
    return Internal(model.eval())


NONE = Method("none", "none", _plan, _fit, is_private=False)
