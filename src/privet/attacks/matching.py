"""Search methods for images that have a given gradient."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor, nn
from torch.nn import functional as F

from privet.attacks.gradient_sharing import squared_norm
from privet.attacks.likeness import total_variation
from privet.core import InvalidInput, checked

__all__ = ["DLG", "IDLG", "Cosine", "MatchingMethod", "Problem", "Reconstruction"]

_FOUND = 1e-10
"""Relative squared distance of the gradients below which a search stops."""


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Reconstructed images. If the search succeeded, they show private rows."""

    pictures: Tensor = field(repr=False)
    """[examples, *shape]"""
    labels: Tensor = field(repr=False)
    """[examples]"""
    distance: float
    """Distance of the gradients, as the method measures it; 0 if they are equal. The attacker knows it, too."""
    steps: int
    """Number of steps of the search that came closest."""
    notes: tuple[str, ...] = ()
    """Reasons why a failure may not be informative."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Input of a search method: find images with this gradient."""

    network: nn.Module
    """Copy of the network, in double precision and evaluation mode."""
    seen: tuple[Tensor, ...]
    shape: tuple[int, ...]
    """Shape of one image."""
    classes: int
    examples: int
    labels: Tensor | None
    """Labels of the images, if the attacker knows them."""
    partial: bool
    """Whether zeros in `seen` are entries that were withheld."""

    @property
    def chances(self) -> Tensor | None:
        """Known labels as one-hot probabilities; None if they are unknown."""
        return None if self.labels is None else F.one_hot(self.labels, self.classes).double()

    def named(self) -> Problem:
        """Return the problem with the label that the last layer's gradient reveals; it is correct for one example.

        The gradient of the cross-entropy by a score is p − y, negative for the true class alone (Zhao et al. 2020), and
        so is that of the last bias. The rows of the last weights' gradient are multiples of one vector by these
        numbers: the row of the true class has negative products with all others, whatever that vector is.

        Raises:
            InvalidInput: If labels are unknown and several examples share the gradient, or the last layer's gradient is
                missing.
        """
        if self.labels is not None:
            return self
        last = next((each for each in reversed(self.seen) if each.ndim in (1, 2) and len(each) == self.classes), None)
        if self.examples != 1 or last is None:
            why = f"are not given, and {self.examples} examples share a gradient" if last is not None else "are hidden"
            raise InvalidInput("labels", why, "give them, or use DLG(), which looks for them")
        told = last if last.ndim == 1 else (last @ last.T).fill_diagonal_(0).sum(1)
        return replace(self, labels=told.argmin()[None])

    def gradient(self, pictures: Tensor, chances: Tensor) -> tuple[Tensor, ...]:
        """Return the gradient of the mean cross-entropy over images; it can be differentiated again.

        Args:
            pictures: [examples, *shape].
            chances: [examples, classes]: label probabilities.

        Raises:
            InvalidInput: If the network does not return one score for each example and class.
        """
        trained = [each for each in self.network.parameters() if each.requires_grad]
        said = self.network(pictures)
        if said.shape != (self.examples, self.classes):
            problem = f"answers {self.examples} pictures with the shape {tuple(said.shape)}"
            raise InvalidInput("target", problem, f"it must say {self.classes} numbers for each")
        found = torch.autograd.grad(F.cross_entropy(said, chances), trained, create_graph=True, allow_unused=True)
        given = [
            torch.zeros_like(to) if one is None else one * (to != 0) if self.partial else one
            for one, to in zip(found, self.seen, strict=True)
        ]
        return tuple(given)

    def squared(self, pictures: Tensor, chances: Tensor) -> Tensor:
        """Return the squared distance to the observed gradient, divided by its squared norm.

        Args:
            pictures: [examples, *shape].
            chances: [examples, classes]: label probabilities.
        """
        pairs = zip(self.gradient(pictures, chances), self.seen, strict=True)
        return torch.stack([((one - to) ** 2).sum() for one, to in pairs]).sum() / squared_norm(self.seen)

    def angle(self, pictures: Tensor, chances: Tensor) -> Tensor:
        """Return 1 minus the cosine of the angle to the observed gradient; the norms do not matter.

        Args:
            pictures: [examples, *shape].
            chances: [examples, classes]: label probabilities.
        """
        found = self.gradient(pictures, chances)
        product = torch.stack([(one * to).sum() for one, to in zip(found, self.seen, strict=True)]).sum()
        return 1 - product / (squared_norm(found) * squared_norm(self.seen)).sqrt().clamp(min=1e-300)


class MatchingMethod(Protocol):
    """Search method for `match_gradient`."""

    @property
    def steps(self) -> int:
        """Maximum number of steps of one search."""
        ...

    def find(self, problem: Problem, drawn: torch.Generator, tell: Callable[[int, float], None]) -> Reconstruction:
        """Search once, from a random start.

        Args:
            problem: The gradient to match.
            drawn: The random stream of the start.
            tell: Called after each step with the step's number and the distance.
        """
        ...


@dataclass(frozen=True)
class DLG:
    """Deep leakage from gradients (Zhu, Liu & Han 2019): L-BFGS on the squared distance of the gradients."""

    steps: int = 1000

    def __post_init__(self) -> None:
        checked.count("steps", self.steps)

    def find(self, problem: Problem, drawn: torch.Generator, tell: Callable[[int, float], None]) -> Reconstruction:
        """Search once, from normal noise; known labels are kept fixed.

        Args:
            problem: The gradient to match.
            drawn: The random stream of the start.
            tell: Called after each step with the step's number and the distance.

        Returns:
            The images and labels at the end of the search.

        Raises:
            InvalidInput: If the network does not return one score for each example and class.
        """
        shapes = [(problem.examples, *problem.shape)]
        shapes += [(problem.examples, problem.classes)] if problem.labels is None else []
        sizes = [int(np.prod(shape)) for shape in shapes]
        known, taken = problem.chances, [0]

        def parts(vector: Tensor) -> tuple[Tensor, Tensor]:
            pieces = [piece.reshape(shape) for piece, shape in zip(torch.split(vector, sizes), shapes, strict=True)]
            return pieces[0], known if known is not None else pieces[1].softmax(1)

        def distance(point: Any) -> tuple[float, Any]:
            vector = torch.from_numpy(np.array(point)).requires_grad_()
            value = problem.squared(*parts(vector))
            (slope,) = torch.autograd.grad(value, vector)
            return value.item(), slope.numpy()

        def after(intermediate_result: Any) -> None:
            taken[0] += 1
            tell(taken[0], float(intermediate_result.fun))
            if intermediate_result.fun < _FOUND:
                raise StopIteration

        start = torch.randn(sum(sizes), generator=drawn, dtype=torch.float64).numpy()
        options = {"maxiter": self.steps, "maxfun": 4 * self.steps, "ftol": 0.0, "gtol": 0.0, "maxcor": 50}
        found = minimize(distance, start, jac=True, method="L-BFGS-B", options=options, callback=after)
        pictures, chances = parts(torch.from_numpy(found.x))
        return Reconstruction(pictures, chances.argmax(1), float(found.fun), taken[0])


@dataclass(frozen=True)
class IDLG(DLG):
    """Improved deep leakage (Zhao, Mopuri & Bilen 2020): `DLG` with the label read off the last layer's gradient."""

    def find(self, problem: Problem, drawn: torch.Generator, tell: Callable[[int, float], None]) -> Reconstruction:
        """Read the label off the gradient, then search as `DLG` does.

        Args:
            problem: The gradient to match.
            drawn: The random stream of the start.
            tell: Called after each step with the step's number and the distance.

        Returns:
            The images and labels at the end of the search.

        Raises:
            InvalidInput: If labels are unknown and several examples share the gradient, or the last layer's gradient is
                missing.
        """
        return super().find(problem.named(), drawn, tell)


@dataclass(frozen=True)
class Cosine:
    """Inverting gradients (Geiping et al. 2020): signed Adam on the angle of the gradients, with total variation.

    The label of one example is read off as `IDLG` does. The norm of the gradient does not matter, so clipping has no
    effect.
    """

    steps: int = 1000
    learning_rate: float = 0.1
    smooth: float = 1e-3
    """Weight of the total variation."""
    bounds: tuple[float, float] = (0.0, 1.0)
    """Range of every pixel, which is public."""

    def __post_init__(self) -> None:
        checked.count("steps", self.steps)
        checked.positive("learning_rate", self.learning_rate)
        checked.nonnegative("smooth", self.smooth)
        if not checked.finite("bounds", self.bounds[0]) < checked.finite("bounds", self.bounds[1]):
            raise InvalidInput("bounds", f"are {self.bounds}", "give the lower one first")

    def find(self, problem: Problem, drawn: torch.Generator, tell: Callable[[int, float], None]) -> Reconstruction:
        """Search once, from normal noise; the learning rate falls to a tenth after 3, 5 and 7 eighths of the steps.

        Args:
            problem: The gradient to match.
            drawn: The random stream of the start.
            tell: Called after each step with the step's number and the distance.

        Returns:
            The images at the end of the search, and their labels.

        Raises:
            InvalidInput: If labels are unknown and several examples share the gradient, or the last layer's gradient is
                missing.
        """
        problem = problem.named()
        labels, chances = problem.labels, problem.chances
        if labels is None or chances is None:
            raise InvalidInput("labels", "are missing", "give them")
        pictures = torch.randn(problem.examples, *problem.shape, generator=drawn, dtype=torch.float64)
        pictures.clamp_(*self.bounds).requires_grad_()
        optimizer = torch.optim.Adam([pictures], lr=self.learning_rate)
        turns = [self.steps * eighths // 8 for eighths in (3, 5, 7)]
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, turns, gamma=0.1)
        for step in range(self.steps):
            distance = problem.angle(pictures, chances)
            (slope,) = torch.autograd.grad(distance + self.smooth * total_variation(pictures), pictures)
            pictures.grad = slope.sign()
            optimizer.step()
            schedule.step()
            pictures.data.clamp_(*self.bounds)
            tell(step + 1, distance.item())
        closest = problem.angle(pictures, chances).item()
        return Reconstruction(pictures.detach(), labels, closest, self.steps)
