"""Networks trained together: their parameters are stacked, and `torch.func.vmap` runs all of them in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import cos, pi

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from privet.core import InvalidInput, checked
from privet.ensemble.learner import EnsembleTask
from privet.ensemble.seeding import generator, initial_weights
from privet.training.models import UserModel

__all__ = ["NetworkTraining", "Networks", "Stacked"]

_TOGETHER = 64
"""The number of members trained at once: public, like every other number here that decides a shape."""
_ASKED_TOGETHER = 8
_ALONE = (nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU, nn.Softplus, nn.Identity)
"""Elementwise layers."""


@dataclass(frozen=True, eq=False)
class Networks:
    """Networks of one architecture, with stacked parameters."""

    model: nn.Module = field(repr=False)
    parameters: dict[str, Tensor] = field(repr=False)
    """The stacked parameters by name, each [members, …]."""
    classes: int

    @property
    def size(self) -> int:
        """The number of members."""
        return len(next(iter(self.parameters.values())))

    def scores(self, inputs: Tensor) -> Tensor:
        """Return the logits of each network: [members, rows, classes].

        Args:
            inputs: [rows, …]: the rows to score.
        """
        forward = vmap(partial(functional_call, self.model), in_dims=(0, None), chunk_size=_ASKED_TOGETHER)
        with torch.no_grad():
            scores: Tensor = forward(self.parameters, (inputs,))
        return scores


@dataclass(frozen=True)
class NetworkTraining:
    """Settings for training small networks by Adam.

    Attributes:
        model: A network from a batch to one number for each class. It is a template, and is not changed.
        steps: The number of batches.
        batch_size: The number of rows in a batch.
        learning_rate: The learning rate of the first step.
        key: The initial weights and the order of rows follow from it.
    """

    model: nn.Module
    steps: int = 200
    batch_size: int = 32
    learning_rate: float = 0.003
    key: str = field(default="privet", kw_only=True)

    def __post_init__(self) -> None:
        checked.count("steps", self.steps)
        checked.count("batch_size", self.batch_size)
        checked.positive("learning_rate", self.learning_rate)


@dataclass(frozen=True)
class Stacked(NetworkTraining):
    """Small networks trained by Adam with a cosine learning-rate schedule, all members in one pass.

    A member's batches go through its own rows in orders of its own, again and again, until `steps` batches of
    `batch_size` are full. So members of unequal size train together without padding, and neither a shape nor a number
    of steps depends on the rows. If rows were padded to the largest shard, a record in that shard would change the
    rounding of every other member; if epochs were counted, it would change their number of steps. Adam is elementwise,
    so its state is stacked as the parameters are. A member without rows keeps its initial weights. Inputs that are not
    finite are replaced by 0.
    """

    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked.nonnegative("weight_decay", self.weight_decay)
        for layer in self.model.modules():
            if isinstance(layer, _NormBase) and layer.track_running_stats:
                problem = f"has a {type(layer).__name__}, whose running statistics cannot be stacked"
                raise InvalidInput("model", problem, "use GroupNorm or LayerNorm")
            if isinstance(layer, _DropoutNd) and layer.p:
                problem = f"has a {type(layer).__name__}, which draws from torch's global generator"
                raise InvalidInput("model", problem, "leave it out, and set weight_decay")

    def fit(self, task: EnsembleTask) -> Networks:
        """Train all members of the task.

        Args:
            task: The private rows, their labels, and the rows of each member.

        Raises:
            InvalidInput: If the model does not return one number for each class on rows of this shape.
        """
        UserModel(self.model, task.classes).check("model", tuple(task.inputs.shape[1:]))
        if not bool(task.inputs.isfinite().all()):
            task = replace(task, inputs=task.inputs.nan_to_num(0.0, 0.0, 0.0))
        members = range(len(task.members))
        blocks = [
            self._block(task, members[start : start + _TOGETHER]) for start in range(0, len(task.members), _TOGETHER)
        ]
        stacked = {name: torch.cat([block[name] for block in blocks]) for name in blocks[0]}
        return Networks(self.model, stacked, task.classes)

    def _block(self, task: EnsembleTask, places: range) -> dict[str, Tensor]:
        streams = [generator(self.key, "network", task.first + place) for place in places]
        each = [initial_weights(self.model, stream) for stream in streams]
        begun = {name: torch.stack([one[name] for one in each]) for name in each[0]}
        own = [task.members[place] for place in places]
        orders = torch.stack([self._order(rows, stream) for rows, stream in zip(own, streams, strict=True)])
        taught = torch.tensor([len(rows) > 0 for rows in own])
        if not len(task.inputs):
            return begun
        parameters = {name: _turned(value).contiguous().clone().requires_grad_() for name, value in begun.items()}
        optimizer = torch.optim.Adam(
            list(parameters.values()), lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )
        forward = (_passed(self.model) if task.inputs.ndim == 2 else None) or vmap(partial(functional_call, self.model))
        rows = torch.empty(len(own) * self.batch_size, *task.inputs.shape[1:], dtype=task.inputs.dtype)
        everybody = bool(taught.all())
        for step in range(self.steps):
            at = orders[:, step].flatten()
            for group in optimizer.param_groups:
                group["lr"] = self.learning_rate * (1 + cos(pi * step / self.steps)) / 2
            torch.index_select(task.inputs, 0, at, out=rows)
            stacked, labels = rows.view(len(own), self.batch_size, *rows.shape[1:]), task.labels[at]
            if not everybody:
                # A member without rows gets zeros and no other member's rows: a mask on losses would let 0·∞ through.
                stacked[~taught] = 0
                labels.view(len(own), -1)[~taught] = 0
            # The gradient of the sum in one member's parameters is that of its own loss.
            scores = forward({name: _turned(each) for name, each in parameters.items()}, stacked).flatten(0, 1)
            loss = F.cross_entropy(scores, labels, reduction="sum") / self.batch_size
            gradients = torch.autograd.grad(loss, list(parameters.values()))
            for parameter, gradient in zip(parameters.values(), gradients, strict=True):
                # Fused steps go through memory as it lies, and need both to lie alike.
                parameter.grad = gradient.contiguous()
            optimizer.step()
        # Zeros, and the weights' decay, have moved members without rows.
        return {
            name: _kept(taught, _turned(value.detach()), begun[name]).contiguous() for name, value in parameters.items()
        }

    def _order(self, rows: Tensor, stream: torch.Generator) -> Tensor:
        """[steps, batch_size]: a member's own rows in a new order each time that it has gone through all of them."""
        wanted = self.steps * self.batch_size
        if not len(rows):
            return torch.zeros(self.steps, self.batch_size, dtype=torch.int64)
        rounds = -(-wanted // len(rows))
        found = torch.rand(rounds, len(rows), generator=stream).argsort(1).flatten()[:wanted]
        return rows[found].reshape(self.steps, self.batch_size)


def _passed(model: nn.Module) -> Callable[[dict[str, Tensor], Tensor], Tensor] | None:
    """Return one forward pass of all members through linear layers and activations, or None for every other model.

    It avoids `vmap`, which costs a third of a step.
    """
    layers = list(model.named_children())
    # Layers and weights that are used twice have one name, and are left to `vmap`.
    whole = type(model) is nn.Sequential and len(layers) == len(model) > 0
    names = {name for name, _ in model.named_parameters()}
    known = all(
        type(layer) in _ALONE or (type(layer) is nn.Linear and f"{name}.weight" in names) for name, layer in layers
    )
    if not whole or not known:
        return None

    def passed(parameters: dict[str, Tensor], inputs: Tensor) -> Tensor:
        for name, layer in layers:
            if type(layer) is not nn.Linear:
                inputs = layer(inputs)
                continue
            weight, bias = parameters[f"{name}.weight"].transpose(1, 2), parameters.get(f"{name}.bias")
            inputs = torch.bmm(inputs, weight) if bias is None else torch.baddbmm(bias[:, None], inputs, weight)
        return inputs

    return passed


def _kept(members: Tensor, values: Tensor, otherwise: Tensor) -> Tensor:
    """Return the values [members, …] of these members, and `otherwise` for the rest."""
    return torch.where(members.reshape(-1, *[1] * (values.ndim - 1)), values, otherwise)


def _turned(values: Tensor) -> Tensor:
    """Return matrices [members, outputs, inputs] transposed, as their gradients lie in memory; others unchanged.

    Applied twice, it returns the original values.
    """
    return values.transpose(1, 2) if values.ndim == 3 else values
