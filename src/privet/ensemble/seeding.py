"""Made-up numbers that follow from a key and a name. They hide nothing, and nobody's privacy rests on them."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from privet.core import InvalidInput

__all__ = ["generator", "initial_weights", "seed_of"]


def seed_of(key: str, *name: int | str) -> int:
    """31 bits for a name.

    >>> seed_of("privet", "teacher", 3) == seed_of("privet", "teacher", 3) != seed_of("privet", "teacher", 4)
    True
    """
    digest = hashlib.sha256("\0".join(["privet ensemble", key, *(str(part) for part in name)]).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def generator(key: str, *name: int | str) -> torch.Generator:
    """A stream of its own for a name."""
    return torch.Generator().manual_seed(seed_of(key, *name))


def initial_weights(model: nn.Module, drawn: torch.Generator) -> dict[str, Tensor]:
    """Values for a model to begin with: for linear layers and convolutions, uniform on ±1/√(inputs), as torch has them.

    The parameters of all other layers begin as the model has them.
    """
    found = {}
    for name, parameter in model.named_parameters():
        if isinstance(parameter, UninitializedParameter):
            raise InvalidInput("model", f"has the parameter {name!r} without a shape", "call it on rows once")
        owner = model.get_submodule(name.rpartition(".")[0])
        if isinstance(owner, (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)):
            bound = owner.weight[0].numel() ** -0.5
            found[name] = (2 * torch.rand(parameter.shape, generator=drawn) - 1) * bound
        else:
            found[name] = parameter.detach().clone()
    return found
