"""The methods beside DP-SGD: one solver, one draw of noise; and none, for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privet.core.random import Rng, default_rng
from privet.core.release import Release
from privet.runs.plan import RADIUS, ConvexPlan
from privet.training.convex import LinearModel, LogCosh, Loss, Softmax
from privet.training.convex.linear import within
from privet.training.convex.minimum import approach
from privet.training.models import Model, Shortened
from privet.training.models.choose import Family

__all__ = ["fit_convex", "fit_without_privacy"]

_EPOCHS, _BATCH, _RATE = 20, 256, 1e-3
_WEAK = 1.0
"""The weight of the penalty where there is no noise: enough for a minimum to exist."""
_EXACT = 1.0
"""The gradient at which the solver stops there."""


def fit_convex(
    plan: ConvexPlan, front: nn.Module | None, x: Tensor, y: Tensor, classes: int, *, rng: Rng | None, source: str
) -> Release[nn.Module]:
    """A linear model by output or objective perturbation, on features.

    Guarantee: that of the plan's event.
    """
    release = plan.fit(_features(front, x), y.numpy(), source=source, rng=rng or default_rng())
    return release.map(lambda model: Shortened.of(model, classes))


def fit_without_privacy(model: nn.Module, front: nn.Module | None, x: Tensor, y: Tensor, classes: int) -> nn.Module:
    """The same model without privacy: for internal eyes. Linear ones by a solver, others by Adam.

    Rows without a target teach it nothing, and stop nothing.
    """
    known = (y >= 0) & (y < classes) if classes else y.isfinite()
    x, y = x[known], y[known]
    family = model.family if isinstance(model, Model) else Family.LINEAR
    if family is Family.LINEAR and not _is_own(model):
        loss: Loss = Softmax(classes) if classes else LogCosh()
        rows = within(_features(front, x), RADIUS)
        start = np.zeros((loss.outputs, rows.shape[1]))
        return Shortened.of(LinearModel(approach(loss, rows, y.numpy(), _WEAK, start, _EXACT), RADIUS), classes)
    losses: Any = model.losses
    optimizer = torch.optim.Adam(model.parameters(), lr=_RATE)
    order = torch.Generator().manual_seed(0)
    for _ in range(_EPOCHS):
        for some in torch.split(torch.randperm(len(x), generator=order), _BATCH):
            optimizer.zero_grad()
            losses(x[some], y[some], 0.0).mean().backward()
            optimizer.step()
    return model.eval()


def _features(front: nn.Module | None, x: Tensor) -> Any:
    with torch.no_grad():
        return (x if front is None else front(x)).numpy()


def _is_own(model: nn.Module) -> bool:
    from privet.training.models import Own

    return isinstance(model.head if isinstance(model, Model) else model, Own)
