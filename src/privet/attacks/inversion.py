"""Model inversion: what a model reveals about a class (Fredrikson, Jha & Ristenpart 2015).

The attacker searches for the input that the model assigns to a class with the highest confidence. The result is what
the model must know about the class as a whole, to distinguish it from others: something like its mean. Where a class is
a digit, that is what the model was trained to learn, and nobody's secret; where a class is a person, it is that
person's face. Differential privacy for *examples* does not promise to hide what ten images of a person have in common;
for that the unit must be the person.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from privet.attacks.likeness import gaussian_weights, total_variation
from privet.attacks.target import Access, Target, class_labels, network_of
from privet.core import InvalidInput, checked

__all__ = ["Descent", "Inversion", "invert"]

_TOGETHER = 1024
"""Number of pixels whose slopes are estimated in one batch."""


@dataclass(frozen=True)
class Descent:
    """Search for the input by gradient descent on −log p(class), with denoising after each step.

    The paper minimizes 1 − p, which is flat where the model is confident of another class; the minimum is the same.
    """

    steps: int = 300
    learning_rate: float = 0.1
    smooth: float = 0.0
    """Weight of the images' total variation."""
    blur: float = 0.0
    """Standard deviation, in pixels, of a Gaussian blur after every step; 0 for none."""
    sure: float = 0.99
    """Probability of its class at which an image is finished."""
    bounds: tuple[float, float] = (0.0, 1.0)
    """Range of every pixel, which is public."""
    reach: float = 0.01
    """How far a pixel is moved to estimate its slope, where the target shows only scores."""

    def __post_init__(self) -> None:
        checked.count("steps", self.steps)
        checked.positive("learning_rate", self.learning_rate)
        checked.nonnegative("smooth", self.smooth)
        checked.nonnegative("blur", self.blur)
        checked.probability("sure", self.sure)
        checked.positive("reach", self.reach)
        if not checked.finite("bounds", self.bounds[0]) < checked.finite("bounds", self.bounds[1]):
            raise InvalidInput("bounds", f"are {self.bounds}", "give the lower one first")


@dataclass(frozen=True, eq=False)
class Inversion:
    """Images that a model assigns to its classes. They show people where classes are people."""

    pictures: Tensor = field(repr=False)
    """[labels, *shape]"""
    labels: Tensor
    confidences: Tensor
    """[labels]: probability that the model gives to each image's class."""
    steps: int
    queries: int
    """Number of inputs that the model was queried with, or whose gradients were computed."""


def invert(
    target: Target,
    shape: Sequence[int],
    *,
    labels: Sequence[int] | None = None,
    method: Descent = Descent(),  # noqa: B008 (a frozen record)
    start: Tensor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Inversion:
    """Find for each class an image that the model assigns to it with high confidence.

    For a white-box target the slope is computed; for a target that shows scores it is estimated by moving each pixel up
    and down, which takes two queries for each pixel and step. A target that shows only labels is refused.

    Args:
        target: The attacked model, which is not changed.
        shape: The shape of one image, as the model takes it, such as (1, 28, 28).
        labels: The classes to invert; all of them if omitted.
        method: The settings of the search.
        start: An image to start from, such as an average of public ones; gray if omitted.
        progress: Called after each step with the number of steps made and the maximum.

    Raises:
        InvalidInput: If the target shows only labels, does not take the shape, or answers with numbers that are not
            finite; a label is no class; `start` has another shape or is not finite; or smoothing is requested for
            inputs that are not images.

    >>> from privet.attacks.target import target
    >>> model = torch.nn.Linear(2, 2)
    >>> model.load_state_dict({"weight": torch.tensor([[9.0, 0.0], [0.0, 9.0]]), "bias": torch.zeros(2)})
    <All keys matched successfully>
    >>> invert(target(model, 2), (2,)).pictures.round().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    of = class_labels(range(target.classes) if labels is None else labels, target.classes)
    size = tuple(checked.count("shape", each) for each in shape)
    gray = torch.full(size, sum(method.bounds) / 2) if start is None else start.detach().float()
    if gray.shape != size or not bool(gray.isfinite().all()):
        raise InvalidInput("start", f"has the shape {tuple(gray.shape)}", f"give finite numbers of the shape {size}")
    if (method.smooth > 0 or method.blur > 0) and len(size) < 2:
        raise InvalidInput("shape", f"is {size}, and only pictures can be smoothed", "leave out smooth and blur")
    asked = _White(target) if target.access is Access.WEIGHTS else _Black(target, method.reach)
    pictures = gray.expand(len(of), *size).clone()
    confidences, steps = torch.zeros(len(of)), 0
    for step in range(method.steps + 1):
        confidences, slope = asked.slopes(pictures, of)
        going = confidences < method.sure
        if step == method.steps or not bool(going.any()):
            break
        moved = pictures - method.learning_rate * (slope + _rough(pictures, method.smooth))
        moved = _blurred(moved, method.blur).clamp(*method.bounds)
        pictures = torch.where(going.reshape(-1, *[1] * len(size)), moved, pictures)
        steps = step + 1
        if progress is not None:
            progress(steps, method.steps)
    return Inversion(pictures, of, confidences, steps, asked.queries)


class _White:
    """Slopes by automatic differentiation."""

    def __init__(self, target: Target) -> None:
        self.network, self.queries = deepcopy(network_of(target)).eval(), 0

    def slopes(self, pictures: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        self.queries += len(pictures)
        given = pictures.clone().requires_grad_()
        try:
            losses = F.cross_entropy(self.network(given), labels, reduction="none")
        except (RuntimeError, ValueError, IndexError) as error:
            raise _unfit(pictures, error) from error
        (slope,) = torch.autograd.grad(losses.sum(), given)
        return _sane(torch.exp(-losses.detach()), slope)


class _Black:
    """Slopes by finite differences, moving each pixel up and down."""

    def __init__(self, target: Target, reach: float) -> None:
        self.target, self.reach, self.queries = target, reach, 0

    def slopes(self, pictures: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        confidences = torch.exp(-self._losses(pictures, labels))
        found = torch.stack([self._slope(each, label) for each, label in zip(pictures, labels, strict=True)])
        return _sane(confidences.float(), found.reshape(pictures.shape).float())

    def _slope(self, picture: Tensor, label: Tensor) -> Tensor:
        parts = []
        for places in torch.split(torch.arange(picture.numel()), _TOGETHER):
            moves = self.reach * F.one_hot(places, picture.numel()).to(picture.dtype).reshape(-1, *picture.shape)
            both = self._losses(torch.cat([picture + moves, picture - moves]), label.expand(2 * len(places)))
            parts.append((both[: len(places)] - both[len(places) :]) / (2 * self.reach))
        return torch.cat(parts)

    def _losses(self, pictures: Tensor, labels: Tensor) -> Tensor:
        self.queries += len(pictures)
        try:
            scores = self.target.scores(pictures)
        except RuntimeError as error:
            raise _unfit(pictures, error) from error
        return F.cross_entropy(scores.double(), labels, reduction="none")


def _unfit(pictures: Tensor, error: Exception) -> InvalidInput:
    why = str(error).splitlines()[0]
    return InvalidInput("shape", f"is {tuple(pictures.shape[1:])}, and the model does not take it: {why}")


def _sane(confidences: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    if not bool(slope.isfinite().all() and confidences.isfinite().all()):
        raise InvalidInput("target", "answers with NaN or infinity", "find out where the model gives no number")
    return confidences, slope


def _rough(pictures: Tensor, weight: float) -> Tensor:
    """Return the slope of the total variation, summed over images, as each is searched for separately."""
    if weight == 0:
        return torch.zeros_like(pictures)
    given = pictures.clone().requires_grad_()
    (slope,) = torch.autograd.grad(weight * len(pictures) * total_variation(given), given)
    return slope


def _blurred(pictures: Tensor, sigma: float) -> Tensor:
    if sigma == 0:
        return pictures
    reach = max(1, round(3 * sigma))
    bell = gaussian_weights(reach, sigma).to(pictures.dtype)
    flat = pictures.reshape(-1, 1, *pictures.shape[-2:])
    flat = F.conv2d(F.pad(flat, (reach, reach, 0, 0), mode="replicate"), bell.reshape(1, 1, 1, -1))
    flat = F.conv2d(F.pad(flat, (0, 0, reach, reach), mode="replicate"), bell.reshape(1, 1, -1, 1))
    return flat.reshape(pictures.shape)
