"""Pseudorandom numbers that follow from a public key and a name. No privacy depends on them."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from privet.core import InvalidInput

__all__ = ["generator", "initial_weights", "seed_of"]


def seed_of(key: str, *name: int | str) -> int:
    """Return a 31-bit seed for a name.

    Args:
        key: A public key.
        *name: The parts of the name.

    >>> seed_of("privet", "teacher", 3) == seed_of("privet", "teacher", 3) != seed_of("privet", "teacher", 4)
    True
    """
    digest = hashlib.sha256("\0".join(["privet ensemble", key, *(str(part) for part in name)]).encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def generator(key: str, *name: int | str) -> torch.Generator:
    """Return a random generator of its own for a name.

    Args:
        key: A public key.
        *name: The parts of the name.
    """
    return torch.Generator().manual_seed(seed_of(key, *name))


def initial_weights(model: nn.Module, drawn: torch.Generator) -> dict[str, Tensor]:
    """Return initial weights: for linear layers and convolutions, uniform on ±1/√(inputs), as PyTorch draws them.

    The parameters of all other layers keep the model's values.

    Args:
        model: The model, which is not changed.
        drawn: The generator to draw from.

    Raises:
        InvalidInput: If a parameter of the model has no shape yet.
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
