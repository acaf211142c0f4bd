"""Shadow models: models that were trained on an example, and models that were not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from privet.attacks.counting import Reals
from privet.core import InvalidInput, checked
from privet.ensemble import InProcess, Learner, Placement, generator, train

__all__ = ["Bits", "Shadows", "confidences", "shadows"]

Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Shadows:
    """Scores of shadow models for examples, and which model was trained on which example."""

    scores: Reals = field(repr=False)
    """[models, examples] or [models, examples, queries]: logit-scaled confidence in the true class."""
    inside: Bits = field(repr=False)
    """[models, examples]: whether the model was trained on the example."""
    outputs: Reals | None = field(default=None, repr=False)
    """[models, examples, classes]: all scores before softmax, for attacks that need them."""

    def __post_init__(self) -> None:
        scores, inside = np.asarray(self.scores, dtype=np.float64), np.asarray(self.inside)
        if scores.ndim not in (2, 3) or inside.shape != scores.shape[:2] or inside.dtype != np.bool_:
            raise InvalidInput("inside", "does not say of each model and example whether it was in")
        if np.isnan(scores).any():
            raise InvalidInput("scores", "hold NaN", "find out where a model gives no number")
        if self.outputs is not None and (self.outputs.ndim != 3 or self.outputs.shape[:2] != inside.shape):
            raise InvalidInput("outputs", "do not say of each model and example one number for each class")
        object.__setattr__(self, "scores", scores if scores.ndim == 3 else scores[:, :, None])

    @property
    def models(self) -> int:
        """Number of shadow models."""
        return len(self.inside)

    @property
    def all_outputs(self) -> Reals:
        """The outputs, for attacks that need them.

        Raises:
            InvalidInput: If there are none.
        """
        if self.outputs is None:
            problem, advice = "have no outputs", "make them by shadows(…), or give what they say for all classes"
            raise InvalidInput("shadows", problem, advice)
        return self.outputs

    def without(self, model: int) -> Shadows:
        """Return all shadow models but one, which can then serve as the attacked model, and its complement.

        The complement was trained on exactly the other examples: keeping it would reveal the members of the excluded
        model.

        Args:
            model: The index of the model to exclude.

        Raises:
            InvalidInput: If there is no such model.
        """
        if not 0 <= model < self.models:
            raise InvalidInput("model", f"is {model}, of {self.models}", f"use 0 to {self.models - 1}")
        kept = (self.inside == self.inside[model]).any(1)
        kept[model] = False
        return Shadows(self.scores[kept], self.inside[kept], None if self.outputs is None else self.outputs[kept])

    def matching(self, scores: Any) -> Reals:
        """Return a model's own scores as [examples, queries], if they are for the same examples and queries.

        Args:
            scores: [examples] or [examples, queries]: logit-scaled confidences of the attacked model.

        Raises:
            InvalidInput: If the shape differs from that of the shadow models, or a score is NaN.
        """
        own = np.asarray(scores, dtype=np.float64)
        own = own[:, None] if own.ndim == 1 else own
        if own.shape != self.scores.shape[1:]:
            problem = f"have the shape {own.shape}, and shadow models say {self.scores.shape[1:]}"
            raise InvalidInput("scores", problem, "ask both about the same examples and versions")
        if np.isnan(own).any():
            raise InvalidInput("scores", "hold NaN", "find out where the model gives no number")
        return own

    def side(self, *, inside: bool) -> tuple[Reals, Reals]:
        """Return the scores of one side, NaN where a model is on the other; and their mean for each example.

        Args:
            inside: True for models that were trained on an example, False for models that were not.

        Returns:
            The scores as [models, examples, queries], and their means as [examples, queries].

        Raises:
            InvalidInput: If an example has no model on this side.
        """
        chosen: Bits = self.inside if inside else ~self.inside
        if not chosen.any(0).all():
            side = "saw" if inside else "did not see"
            raise InvalidInput("shadows", f"have an example that no model {side}", "train more of them")
        scores = np.where(chosen[:, :, None], self.scores, np.nan)
        return scores, np.nanmean(scores, axis=0)


def shadows(
    learner: Learner,
    inputs: Tensor,
    labels: Tensor,
    *,
    classes: int,
    models: int = 16,
    key: str = "privet",
    queries: tuple[Tensor, ...] = (),
    where: Placement = InProcess(),  # noqa: B008 (a frozen record without fields)
) -> Shadows:
    """Train shadow models in pairs, and score all examples with all of them.

    In each pair, one model is trained on an example and the other is not, by a fair coin for each pair and example. So
    each example is in exactly half of the models, and the members of any one model are independent of all other pairs.

    Args:
        learner: How the models are trained; as the attacked model was, if possible.
        inputs: The examples.
        labels: The class of each example.
        classes: The number of classes.
        models: The number of models, which is even.
        key: Seed of the coins.
        queries: Further versions of the examples to score, such as their mirror images.
        where: Where the models are trained: in this process, or in several.

    Raises:
        InvalidInput: If `models` is odd or below 2.
    """
    if checked.count("models", models, least=2) % 2:
        raise InvalidInput("models", f"is {models}", "take an even number: each example is in half of them")
    coins = torch.rand(models // 2, len(inputs), generator=generator(key, "shadows")) < 0.5
    inside: Bits = torch.stack([coins, ~coins], dim=1).flatten(0, 1).numpy()
    members = [np.flatnonzero(row) for row in inside]
    ensemble = train(learner, inputs, labels, members, classes=classes, where=where)
    outputs = ensemble.scores(inputs)
    found = [confidences(outputs, labels), *(confidences(ensemble.scores(each), labels) for each in queries)]
    return Shadows(np.stack(found, axis=2), inside, outputs.double().numpy())


def confidences(scores: Any, labels: Any) -> Reals:
    """Return the logit-scaled confidence in the true class (Carlini et al. 2022): log p − log(1 − p).

    Args:
        scores: [..., examples, classes]: scores before softmax.
        labels: [examples]: the true classes.

    Returns:
        [..., examples].

    >>> confidences(torch.tensor([[2.0, 0.0]]), torch.tensor([0])).tolist()
    [2.0]
    """
    given, named = torch.as_tensor(scores).double(), torch.as_tensor(labels).long()
    own = given.gather(-1, named.expand(given.shape[:-1])[..., None])[..., 0]
    others = given.scatter(-1, named.expand(given.shape[:-1])[..., None], -torch.inf).logsumexp(-1)
    return (own - others).numpy()
