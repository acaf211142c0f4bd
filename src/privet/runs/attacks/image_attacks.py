"""What a model of pictures shows of its classes: the picture that it takes for each, beside the members' mean."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from privet.attacks import Access, Descent, Inversion, Target, correlation, invert, montage, png, ssim, target
from privet.core import InvalidInput
from privet.ensemble import generator
from privet.report import Picture
from privet.runs.attacks.rows import AttackedRun
from privet.training.models import Model, Pictures

__all__ = ["invert_classes"]

_MOST = 10
"""Classes that are shown."""
_SECONDS = 5.0
_STEPS = (10, 300)
_SMALL = 100
"""So many pixels can be moved one by one."""
_TRIED, _MOVED = 1e-4, 0.05
"""The learning rate of a first step, and how far a pixel moves in those that follow, at most, at first."""
_WIDE = 600
_NOISE, _ROUGH_NOISE, _BLUR = 0.01, 0.2, 0.5
"""Scattering features have one length whatever a picture's contrast, so that from a nearly flat start specks too faint
to be seen make the model sure: those begin rough, and are blurred after every step."""
_PERSON = (
    "This shows a class as a whole, which is a leak about a person only where a class is a person; a better attack may "
    "show more"
)


class _Seen(nn.Module):
    """The model from pictures on [0, 1] on; for a white box slopes pass through the features, too."""

    def __init__(self, model: Model, peak: int, *, slopes: bool) -> None:
        super().__init__()
        self.model, self.peak, self.slopes = model, peak, slopes

    def forward(self, pictures: Tensor) -> Tensor:
        front, given = self.model.front, pictures * self.peak
        # Calling the features' module looks at each row alone, to the last bit, and without slopes.
        through = front.batch if self.slopes and isinstance(front, Pictures) else front
        features = through(given)
        found: Tensor = self.model.head(features)
        return found


def invert_classes(found: AttackedRun, seconds: float = _SECONDS) -> tuple[Picture | None, str]:
    """Invert the model for up to ten classes.

    The gradient is computed where autograd passes through the model; otherwise it is estimated, if pictures are small.

    Args:
        found: The attacked run.
        seconds: Time limit in seconds.

    Returns:
        The picture and a note; where there is no picture, the note says why.
    """
    labels = list(found.means)[:_MOST]
    if not labels:
        return None, ""
    shape = tuple(found.means[labels[0]].shape)
    peak, classes = found.described.peak, found.classes
    white = target(_Seen(found.model, peak, slopes=True), classes)
    scattered = isinstance(found.model.front, Pictures)
    made = _inverted(white, shape, labels, seconds, scattered=scattered)
    if made is None and found.means[labels[0]].numel() <= _SMALL:
        black = target(_Seen(found.model, peak, slopes=False), classes, Access.SCORES)
        made = _inverted(black, shape, labels, seconds, scattered=scattered)
    if made is None:
        why = "no slope passes through it, or it is too slow to find one by its scores"
        return None, f"The model was not inverted: {why}."
    return _picture(found, made, labels), ""


def _inverted(
    seen: Target, shape: tuple[int, ...], labels: Sequence[int], seconds: float, *, scattered: bool
) -> Inversion | None:
    # A flat picture has no slope in what depends on its edges.
    noise = torch.randn(shape, generator=generator("privet", "inversion"))
    start = (0.5 + (_ROUGH_NOISE if scattered else _NOISE) * noise).clamp(0, 1)
    once = Descent(steps=1, learning_rate=_TRIED)
    try:
        began = time.monotonic()
        first = invert(seen, shape, labels=labels, method=once, start=start)
        each = (time.monotonic() - began) / 2  # it looks once more, where it has come to
        slope = float((first.pictures - start).abs().max()) / _TRIED
        steps = min(int(seconds / max(each, 1e-9)), _STEPS[1])
        if slope == 0 or steps < _STEPS[0]:
            return None
        method = replace(once, steps=steps, learning_rate=_MOVED / slope, blur=_BLUR if scattered else 0.0)
        return invert(seen, shape, labels=labels, method=method, start=start)
    except (InvalidInput, RuntimeError):  # torch's own, where a layer has no slope
        return None


def _picture(found: AttackedRun, made: Inversion, labels: Sequence[int]) -> Picture:
    means = [found.means[label].float() for label in labels]
    pairs = list(zip(made.pictures, means, strict=True))
    like = [(ssim(one, other), correlation(one, other)) for one, other in pairs]
    rows = [[_shown(one) for one, _ in pairs], [_shown(other) for _, other in pairs]]
    whole = montage(rows)
    names = [found.described.classes[label] for label in labels]
    told = "; ".join(f"{name}: {a:.2f} and {b:.2f}" for name, (a, b) in zip(names, like, strict=True))
    mean_ssim, mean_correlation = (sum(part) / len(like) for part in zip(*like, strict=True))
    return Picture(
        "What the model shows of its classes, by inversion",
        f"Above: the picture that the model takes for each of {', '.join(names)}. Below: the mean of that class's "
        f"members. SSIM and correlation of the two are {mean_ssim:.2f} and {mean_correlation:.2f} on average ({told}). "
        f"{_PERSON}.",
        base64.b64encode(png(whole, scale=max(1, _WIDE // whole.shape[-1]))).decode("ascii"),
    )


def _shown(picture: Tensor) -> Tensor:
    """Grey, where there are other channels than a screen has."""
    return picture.mean(0) if picture.ndim == 3 and len(picture) not in (1, 3) else picture
