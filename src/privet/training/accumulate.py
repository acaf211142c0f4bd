"""The sum of a step: noise first, then every micro-batch's clipped gradients on top, in one flat buffer."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from privet.training.engine.parts import Part

__all__ = ["Sum"]


class Sum:
    """Σ of clipped gradients for a list of parameters, in float32 or better, as one vector with a view for each."""

    def __init__(self, parameters: Sequence[Tensor], *, wide: bool = False) -> None:
        wide = wide or any(parameter.dtype == torch.float64 for parameter in parameters)
        self.flat = torch.zeros(sum(p.numel() for p in parameters), dtype=torch.float64 if wide else torch.float32)
        sizes = [parameter.numel() for parameter in parameters]
        self.views = [
            piece.view(parameter.shape)
            for piece, parameter in zip(torch.split(self.flat, sizes), parameters, strict=True)
        ]

    def add(self, parts: Sequence[Part | None], factors: Sequence[Tensor | None]) -> None:
        """Add Σ_i factor_i · gradient_i for every parameter."""
        for view, part, factor in zip(self.views, parts, factors, strict=True):
            if part is not None and factor is not None:
                part.add_to(view, factor.to(view.dtype))
