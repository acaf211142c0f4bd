"""The sum of a step: noise first, then every micro-batch's clipped gradients on top, in one flat buffer."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from privet.training.engine.contributions import Contribution

__all__ = ["GradientSum"]


class GradientSum:
    """Σ of clipped gradients for a list of parameters, in float32 or better, as one vector with a view for each."""

    def __init__(self, parameters: Sequence[Tensor], *, wide: bool = False) -> None:
        wide = wide or any(parameter.dtype == torch.float64 for parameter in parameters)
        dtype, device = torch.float64 if wide else torch.float32, parameters[0].device if parameters else None
        self.flat = torch.zeros(sum(p.numel() for p in parameters), dtype=dtype, device=device)
        sizes = [parameter.numel() for parameter in parameters]
        self.views = [
            piece.view(parameter.shape)
            for piece, parameter in zip(torch.split(self.flat, sizes), parameters, strict=True)
        ]

    def add(self, parts: Sequence[Contribution | None], factors: Sequence[Tensor | None]) -> None:
        """Add Σ_i factor_i · gradient_i for every parameter, in whatever precision its gradients are."""
        for view, part, factor in zip(self.views, parts, factors, strict=True):
            if part is not None and factor is not None:
                own = _dtype_of(part)
                out = view if own == view.dtype else torch.zeros_like(view, dtype=own)
                part.add_to(out, factor.to(own))
                if out is not view:
                    view.add_(out)


def _dtype_of(part: Contribution) -> torch.dtype:
    """In which precision a part is kept: that of its computation, which need not be the parameter's."""
    for each in vars(part).values():
        if isinstance(each, Tensor) and each.is_floating_point():
            return each.dtype
        if hasattr(each, "add_to"):
            return _dtype_of(each)
    raise ValueError("the part holds no numbers")
