"""Pictures: scattering features in a basis that made-up pictures give, and a small network of convolutions."""

from __future__ import annotations

import hashlib
import os
from math import log2, prod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from privet.core import InvalidInput, checked
from privet.training.models.linear import task_losses
from privet.training.models.rowwise import apply_rowwise
from privet.training.models.scattering import Scattering, cached
from privet.training.models.synthetic_pictures import synthetic_pictures

__all__ = ["Convolutions", "Pictures", "Pixels"]

_LEAST = 8
_DRAWN = 3000
_FLOOR = 1e-4
"""Added to the made-up pictures' variances, where that of a whole picture is at most 1: directions that hardly vary are
not blown up beyond it."""


class Pictures(nn.Module):
    """Features of pictures, each of length 1; there are no parameters, and nothing of the data.

    The scattering coefficients of a picture are made equally bright for all (square roots, length 1), and expressed in
    the principal axes that the coefficients of made-up pictures have, less their mean and divided by their deviations.
    Neighboring coefficients are nearly equal; so a private gradient, whose norm is bounded, is spent on what
    differs. The axes are buffers, kept with the model: other machines may find other ones. A picture's features depend
    on no other picture, to the last bit.
    """

    mean: Tensor
    axes: Tensor

    def __init__(self, height: int, width: int, colours: int = 1, features: int = 800) -> None:
        super().__init__()
        checked.count("colours", colours)
        checked.count("features", features)
        shorter = min(height, width)
        if shorter < _LEAST:
            raise InvalidInput(
                "height", f"and width are {height} and {width}", f"pictures have at least {_LEAST} pixels"
            )
        self.scattering = Scattering(height, width, max(1, int(log2(shorter / 7))))
        self.colours = colours
        every = _spread(self.scattering(synthetic_pictures(_DRAWN, height, width)))
        mean = every.mean(0)
        away = (every - mean) / _DRAWN**0.5
        kept = min(features, *away.shape)
        # From the pictures' products with each other, which stay as many however many coefficients there are.
        variances, weights = (part[..., -kept:].flip(-1) for part in torch.linalg.eigh(away @ away.T))
        axes = away.T @ weights / variances.clamp_min(1e-9).sqrt()
        self.register_buffer("mean", mean)
        self.register_buffer("axes", axes / (variances + _FLOOR).sqrt())
        self.features = colours * kept
        """How many features a picture has."""

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the features of pictures, (n, features).

        Args:
            pictures: Pictures (n, height, width) or (n, colors, height, width), of any brightness.
        """
        return apply_rowwise(self.batch, pictures) if len(pictures) else torch.zeros(0, self.features)

    def batch(self, pictures: Tensor) -> Tensor:
        """Return the features of one batch of pictures, without the guarantee of `apply_rowwise` about rounding.

        Args:
            pictures: Pictures (n, height, width) or (n, colors, height, width).
        """
        coefficients = self.scattering(pictures.reshape(-1, *pictures.shape[-2:]))
        return _normalised(((_spread(coefficients) - self.mean) @ self.axes).reshape(len(pictures), -1))

    def cached(self, pictures: Tensor, folder: str | os.PathLike[str]) -> Tensor:
        """Return the features, and cache them in a file that only its owner can read.

        Args:
            pictures: Pictures (n, height, width) or (n, colors, height, width).
            folder: Directory of the cache.
        """
        digest = hashlib.sha256(self.axes.contiguous().numpy().data).hexdigest()
        return cached(pictures, self, folder, key=f"{self.scattering} {self.colours} {digest}")


class Pixels(nn.Module):
    """Pictures as they are, on [0, 1]; `flat` makes a row of numbers of each, of length 1 at most.

    >>> Pixels((2, 2), peak=16, flat=True)(torch.full((1, 2, 2), 16, dtype=torch.uint8)).tolist()
    [[0.5, 0.5, 0.5, 0.5]]
    """

    def __init__(self, shape: tuple[int, ...], peak: int, *, flat: bool = False) -> None:
        super().__init__()
        self.peak, self.flat = checked.count("peak", peak), flat
        self.features = prod(shape)
        """How many numbers a picture has."""

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the pixels of pictures, scaled to [0, 1].

        Args:
            pictures: Pictures (n, …) of integers from 0 to the peak.
        """
        found = pictures.to(torch.get_default_dtype()) / self.peak
        return found.flatten(1) / self.features**0.5 if self.flat else found


def _spread(coefficients: Tensor) -> Tensor:
    """Return square roots of the coefficients, scaled to unit norm; a black picture stays zero."""
    flat = coefficients.flatten(1).clamp_min(0).sqrt()
    return _normalised(flat)


def _normalised(rows: Tensor) -> Tensor:
    """Scale each row to unit norm; zeros stay zeros."""
    return F.normalize(rows, dim=1, eps=1e-9)


class Convolutions(nn.Module):
    """The network of tanh units of Papernot et al. (2021), "Tempered sigmoid activations", for pictures of any size."""

    def __init__(self, colours: int, classes: int) -> None:
        super().__init__()
        self.classes = checked.count("classes", classes)
        self.layers = nn.Sequential(
            nn.Conv2d(checked.count("colours", colours), 16, 8, stride=2, padding=3),
            nn.Tanh(),
            nn.MaxPool2d(2, stride=1),
            nn.Conv2d(16, 32, 4, stride=2, padding=1),
            nn.Tanh(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(512, 32),
            nn.Tanh(),
            nn.Linear(32, classes),
        )

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the scores of the classes.

        Args:
            pictures: Pictures (n, height, width) or (n, colors, height, width).
        """
        whole = pictures if pictures.ndim == 4 else pictures[:, None]
        found: Tensor = self.layers(whole)
        return found

    def losses(self, pictures: Tensor, targets: Tensor, pull: float = 0.0) -> Tensor:
        """Return one loss for each picture.

        Args:
            pictures: Pictures (n, height, width) or (n, colors, height, width).
            targets: Target of each picture: a class number.
            pull: Not used: this model has no center.
        """
        del pull
        return task_losses(self(pictures), targets, self.classes)
