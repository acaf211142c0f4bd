"""What a model keeps: nothing of a batch may stay in it, for it would leave with the model, unnoised.

From a batch to its step no parameter and no buffer may change. Other attributes may (a mask that was made once and is
kept), unless what is kept depends on the rows: `privet.training.coupling` calls the model on other rows and compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import _SpectralNorm

from privet.core.errors import InvalidInput

__all__ = ["Attributes", "Weights"]

_SIMPLE = (bool, int, float, str, type(None))


@dataclass(frozen=True, eq=False)
class Weights:
    """Parameters and buffers as they were."""

    held: dict[str, tuple[Tensor, int, Tensor | None]]
    """By name: the tensor, its version, and, where that is looked at too, a copy."""

    @staticmethod
    def of(model: nn.Module, *, copies: bool) -> Weights:
        """Note them; with copies, also a change that autograd is not told of (`.data`) will be seen."""
        return Weights(
            {
                name: (tensor, tensor._version, tensor.detach().clone() if copies else None)  # noqa: SLF001
                for name, tensor in _tensors(model)
            }
        )

    def require_unchanged(self, model: nn.Module) -> None:
        """Refuse a model that has written into any of them."""
        now, buffers = dict(_tensors(model)), {name for name, _ in model.named_buffers()}
        for name in {**self.held, **now}:
            before, version, copy = self.held.get(name, (None, 0, None))
            tensor = now.get(name)
            same = tensor is before and tensor is not None and tensor._version == version  # noqa: SLF001
            if same and (copy is None or (tensor is not None and _equal(tensor, copy))):
                continue
            kind = "buffer" if name in buffers else "parameter"
            problem = f"has changed its {kind} {name!r} between the batch and the step; it would leave unnoised"
            advice = (
                "put a layer that does so in eval mode or take it out (BatchNorm: privet.training.replace_batchnorm), "
                "and change weights yourself only after the step"
            )
            raise InvalidInput("model", problem, advice)


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """All parameters and buffers, but for what spectral normalisation keeps: it is made of the weights alone."""
    own = {id(b) for module in model.modules() if isinstance(module, _SpectralNorm) for b in module.buffers(False)}
    yield from model.named_parameters()
    yield from ((name, buffer) for name, buffer in model.named_buffers() if id(buffer) not in own)


@dataclass(frozen=True, eq=False)
class Attributes:
    """The plain attributes of a model's modules: tensors, numbers and texts."""

    held: tuple[tuple[nn.Module, dict[str, tuple[Any, Tensor | None]]], ...]

    @staticmethod
    def of(model: nn.Module) -> Attributes:
        """Note them, tensors with a copy."""
        return Attributes(tuple((module, _own(module)) for module in model.modules()))

    def put_back(self) -> None:
        """Make them what they were; what was added since is taken away."""
        for module, before in self.held:
            for name in set(_own(module)) - set(before):
                del module.__dict__[name]
            for name, (value, copy) in before.items():
                module.__dict__[name] = value
                if isinstance(value, Tensor) and copy is not None and not _equal(value, copy):
                    with torch.no_grad():
                        value.detach().copy_(copy)

    def differing(self, other: Attributes) -> list[str]:
        """The names of tensors that are not the same in both."""
        found = []
        for (module, mine), (_, theirs) in zip(self.held, other.held, strict=True):
            for name in {**mine, **theirs}:
                one, two = mine.get(name, (None, None))[1], theirs.get(name, (None, None))[1]
                if (one is None) != (two is None) or (one is not None and two is not None and not _equal(one, two)):
                    found.append(f"{type(module).__name__}.{name}")
        return found


def _own(module: nn.Module) -> dict[str, tuple[Any, Tensor | None]]:
    return {
        name: (value, value.detach().clone() if isinstance(value, Tensor) else None)
        for name, value in vars(module).items()
        if isinstance(value, (Tensor, *_SIMPLE))
    }


def _equal(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same, NaN for NaN."""
    if one.shape != other.shape or one.dtype != other.dtype or one.layout != other.layout:
        return False
    if one.layout != torch.strided or not (one.is_floating_point() or one.is_complex()):
        return bool(torch.equal(one, other))
    return bool(((one == other) | ((one != one) & (other != other))).all())
