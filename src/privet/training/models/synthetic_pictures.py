"""Synthetic pictures: strokes on black, and overlapping shapes. They do not depend on any data.

Random processes teach a private model what pictures are like at no cost (Tang et al. 2023, "Differentially private
image classification by learning priors from random processes"). Here they only say which features vary together.
"""

from __future__ import annotations

from math import pi

import torch
from torch import Tensor

__all__ = ["synthetic_pictures"]

_STROKES, _POINTS, _SHAPES = 4, 14, 30
_AT_ONCE = 250


def synthetic_pictures(count: int, height: int, width: int) -> Tensor:
    """Return synthetic pictures (count, height, width) on [0, 1], always the same: half strokes, half shapes.

    Args:
        count: Number of pictures.
        height: Height in pixels.
        width: Width in pixels.

    >>> synthetic_pictures(6, 8, 8).shape
    torch.Size([6, 8, 8])
    """
    generator = torch.Generator().manual_seed(0)
    down = (torch.arange(height) + 0.5) / max(height, width)
    across = (torch.arange(width) + 0.5) / max(height, width)
    parts = []
    for start in range(0, count, 2 * _AT_ONCE):
        size = min(count - start, 2 * _AT_ONCE)
        parts += [_strokes(size - size // 2, down, across, generator), _shapes(size // 2, down, across, generator)]
    return torch.cat(parts) if parts else torch.empty(0, height, width)


def _strokes(count: int, down: Tensor, across: Tensor, generator: torch.Generator) -> Tensor:
    """One to four white curves of a pen's width: cubic Bézier curves through random points, as chains of segments."""
    time = torch.linspace(0, 1, _POINTS)
    weights = torch.stack([(1 - time) ** 3, 3 * time * (1 - time) ** 2, 3 * time**2 * (1 - time), time**3])
    size = max(len(down), len(across))
    extent = torch.stack([down[-1] + down[0], across[-1] + across[0]])
    picture = torch.zeros(count, len(down), len(across))
    for stroke in range(_STROKES):
        there = torch.rand(count, generator=generator) < (1.0 if stroke == 0 else 0.5)
        corners = (torch.rand(count, 4, 2, generator=generator) * 0.8 + 0.1) * extent
        pen = torch.rand(count, 1, 1, generator=generator) * 0.05 + 0.02
        points = torch.einsum("kt,nkd->ntd", weights, corners)
        nearest = torch.full_like(picture, torch.inf)
        for begin, end in zip(points[:, :-1].unbind(1), points[:, 1:].unbind(1), strict=True):
            nearest = torch.minimum(nearest, _distance(begin, end, down, across))
        ink = ((pen - nearest.sqrt()) * size + 0.5).clamp(0, 1) * there[:, None, None]
        picture = torch.maximum(picture, ink)
    return picture


def _distance(begin: Tensor, end: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """Squared, from every pixel to a segment."""
    along = end - begin
    from_y = (down - begin[:, :1])[:, :, None]
    from_x = (across - begin[:, 1:])[:, None, :]
    dy, dx = along[:, 0, None, None], along[:, 1, None, None]
    share = ((from_y * dy + from_x * dx) / (dy**2 + dx**2 + 1e-9)).clamp(0, 1)
    return (from_y - share * dy) ** 2 + (from_x - share * dx) ** 2


def _shapes(count: int, down: Tensor, across: Tensor, generator: torch.Generator) -> Tensor:
    """Return ellipses and boxes of random grays, many small ones and few large ones, which overlap."""

    def some(low: float, high: float) -> Tensor:
        return torch.rand(count, 1, 1, generator=generator) * (high - low) + low

    size = max(len(down), len(across))
    picture = some(0, 1).expand(count, len(down), len(across))
    for _ in range(_SHAPES):
        y, x = down[None, :, None] - some(0, 1), across[None, None] - some(0, 1)
        angle, flat, radius = some(0, pi), some(0.2, 1), 0.03 / some(0.05, 0.95)
        u, v = x * angle.cos() + y * angle.sin(), (y * angle.cos() - x * angle.sin()) / flat
        box = torch.maximum(u.abs(), v.abs())
        away = torch.where(some(0, 1) < 0.5, box, (u**2 + v**2).sqrt())
        ink = ((radius - away) * size + 0.5).clamp(0, 1)
        picture = picture * (1 - ink) + some(0, 1) * ink
    return picture
