"""Similarity of images: structural similarity, peak signal-to-noise ratio, correlation; and total variation."""

from __future__ import annotations

from math import log10
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from privet.core import InvalidInput, checked

__all__ = ["correlation", "gaussian_weights", "psnr", "ssim", "total_variation"]

_WINDOW, _SIGMA = 11, 1.5
_K1, _K2 = 0.01, 0.03
"""All four as in Wang et al. 2004, section III."""


def ssim(one: Any, other: Any, *, peak: float = 1.0) -> float:
    """Return the structural similarity (Wang et al. 2004): 1 for equal images, about 0 for unrelated ones, at least −1.

    Means, variances and covariance are computed under a Gaussian window of 11 × 11 pixels with σ = 1.5 that lies
    entirely within the image, and averaged over all window positions and channels. For an image smaller than the
    window, the largest odd window that fits is used.

    Args:
        one: An image, [height, width] or [channels, height, width].
        other: The image to compare it with, of the same shape.
        peak: The largest value that a pixel can have; the smallest is 0.

    Raises:
        InvalidInput: If the shapes differ or are not those of images, a pixel is not finite, or `peak` is not positive.

    >>> picture = torch.arange(256.0).reshape(16, 16) / 255
    >>> ssim(picture, picture), ssim(picture, 1 - picture) < 0
    (1.0, True)
    """
    first, second = _pair(one, other)
    first, second = first.reshape(-1, 1, *first.shape[-2:]), second.reshape(-1, 1, *second.shape[-2:])
    window = _window(*first.shape[-2:])
    mean, mean_other = F.conv2d(first, window), F.conv2d(second, window)
    variance = F.conv2d(first**2, window) - mean**2
    variance_other = F.conv2d(second**2, window) - mean_other**2
    covariance = F.conv2d(first * second, window) - mean * mean_other
    c1, c2 = (_K1 * checked.positive("peak", peak)) ** 2, (_K2 * peak) ** 2
    found = (2 * mean * mean_other + c1) * (2 * covariance + c2)
    return float((found / ((mean**2 + mean_other**2 + c1) * (variance + variance_other + c2))).mean())


def psnr(one: Any, other: Any, *, peak: float = 1.0) -> float:
    """Return the peak signal-to-noise ratio in dB, 10 log₁₀(peak² / mean squared error); infinite for equal images.

    Args:
        one: An image, [height, width] or [channels, height, width].
        other: The image to compare it with, of the same shape.
        peak: The largest value that a pixel can have.

    Raises:
        InvalidInput: If the shapes differ or are not those of images, a pixel is not finite, or `peak` is not positive.

    >>> round(psnr(torch.zeros(4, 4), torch.full((4, 4), 0.1)), 6)
    20.0
    """
    first, second = _pair(one, other)
    error = float(((first - second) ** 2).mean())
    return 10 * log10(checked.positive("peak", peak) ** 2 / error) if error > 0 else float("inf")


def correlation(one: Any, other: Any) -> float:
    """Return the Pearson correlation of the pixels; it ignores brightness and contrast, and is 0 for a constant image.

    Args:
        one: An image, [height, width] or [channels, height, width].
        other: The image to compare it with, of the same shape.

    Raises:
        InvalidInput: If the shapes differ or are not those of images, or a pixel is not finite.

    >>> picture = torch.arange(16.0).reshape(4, 4)
    >>> round(correlation(picture, 3 * picture + 5), 6)
    1.0
    """
    first, second = (each.flatten() - each.mean() for each in _pair(one, other))
    lengths = float(first.norm() * second.norm())
    return float(first @ second) / lengths if lengths > 0 else 0.0


def total_variation(pictures: Tensor) -> Tensor:
    """Return the mean absolute difference of vertically and horizontally adjacent pixels: small for smooth images.

    Args:
        pictures: [..., height, width].

    Returns:
        A scalar that can be differentiated.

    >>> total_variation(torch.tensor([[0.0, 1.0], [0.0, 1.0]])).item()
    1.0
    """
    down = (pictures[..., 1:, :] - pictures[..., :-1, :]).abs()
    across = (pictures[..., :, 1:] - pictures[..., :, :-1]).abs()
    return down.mean() + across.mean()


def _pair(one: Any, other: Any) -> tuple[Tensor, Tensor]:
    first, second = (torch.as_tensor(each).detach().double() for each in (one, other))
    if first.ndim not in (2, 3) or first.shape != second.shape or not first.numel():
        problem = f"have the shapes {tuple(first.shape)} and {tuple(second.shape)}"
        raise InvalidInput("pictures", problem, "give two of the same shape, [height, width] or with channels first")
    if not (first.isfinite().all() and second.isfinite().all()):
        raise InvalidInput("pictures", "hold NaN or infinity", "find out why the attack has no number there")
    return first, second


def _window(height: int, width: int) -> Tensor:
    size = min(_WINDOW, height, width)
    size -= 1 - size % 2
    weights = gaussian_weights(size // 2, _SIGMA)
    return (weights[:, None] * weights[None, :])[None, None]


def gaussian_weights(reach: int, sigma: float) -> Tensor:
    """Return the weights of a Gaussian window from -reach to reach, which sum to 1.

    Args:
        reach: The half width of the window, in pixels.
        sigma: The standard deviation, in pixels.
    """
    weights = torch.exp(-(torch.arange(-reach, reach + 1, dtype=torch.float64) ** 2) / (2 * sigma**2))
    return weights / weights.sum()
