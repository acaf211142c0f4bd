"""What output and objective perturbation have in common: their conditions, and the noise on the minimum."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from privet.core import Event, InvalidInput, Neighbours, Release, Unit, checked
from privet.core.random import Rng
from privet.training.convex.linear import LinearModel
from privet.training.convex.losses import Array, ConvexLoss
from privet.training.lattice import Lattice

__all__ = ["ConvexMethod"]


@dataclass(frozen=True)
class ConvexMethod:
    """The minimum of a regularized convex objective, released with noise; the subclasses say where noise goes."""

    loss: ConvexLoss
    epsilon: float
    delta: float
    regularization: float
    """Λ, of the sum of all losses, not of their mean."""
    radius: float = 1.0
    """Inputs, with their intercept, are divided by this and then scaled down to a norm of at most 1."""
    unit: Unit = field(default_factory=Unit)

    def __post_init__(self) -> None:
        checked.positive("epsilon", self.epsilon)
        if not 0.0 < checked.share("delta", self.delta) < 1.0:
            advice = "give a small positive number, below 1 over the number of rows"
            raise InvalidInput("delta", f"is {self.delta}", advice)
        checked.positive("regularization", self.regularization)
        checked.positive("radius", self.radius)
        if self.unit.neighbours not in (Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT) or self.unit.records != 1:
            advice = "use one example that comes or goes (add/remove), or is blanked (zero-out)"
            raise InvalidInput("unit", f"is {self.unit}, for which this method has no proof here", advice)

    @property
    def event(self) -> Event:
        """The event of a fit, known before any data is read."""
        raise NotImplementedError

    def _noisy(self, weight: Array, noise: float, clip: float, source: str, rng: Rng) -> Release[LinearModel]:
        """Return the model with exact noise on its weights.

        Guarantee: that of `Gaussian(noise)` for weights that one unit moves by at most `clip` (`Lattice`).
        """
        lattice = Lattice.for_deviation(noise * clip)
        sigma = lattice.deviation(noise, checked.positive("clip", clip), weight.size)
        model = LinearModel(lattice.add(torch.from_numpy(weight), sigma, rng).numpy(), self.radius)
        return Release.of(model, self.event, unit=self.unit, source=source, randomness=rng.kind)
