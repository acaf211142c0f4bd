"""What a model keeps: nothing of a batch may stay in it, for it would leave with the model, unnoised.

From a batch to its step no parameter may change. Buffers and other attributes may (a mask that was made once and is
kept, a counter), unless what is kept depends on the rows: `privet.training.coupling` calls the model on other rows and
compares.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, zip_longest
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from privet.core import InvalidInput

__all__ = ["Attributes", "Weights", "alike", "buffer_names", "modes_restored", "restored"]

_TORCHS = frozenset(vars(nn.Module()))
"""What torch itself keeps in every module."""
_SIMPLE = (bool, int, float, complex, str, bytes, type(None))
_PLAIN = (Tensor, np.ndarray, list, tuple, dict, set, deque, *_SIMPLE)
_OPAQUE = (nn.Module, type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
_LIBRARIES = frozenset(
    {"torch", "numpy", "transformers", "peft", "accelerate", "pytorch_lightning", "lightning", "lightning_fabric"}
)
"""Objects of these packages (a trainer, a configuration) are not looked into; those of the user's own classes are."""
_DEEPEST = 6
"""How deep objects inside of objects are looked into, so that a circle of them ends."""


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

    def require_unchanged(self, model: nn.Module, allowed: set[str]) -> None:
        """Refuse a model that has written into any of them, but for the allowed ones."""
        for name in self.changed(model):
            if name not in allowed:
                kind = "buffer" if name in buffer_names(model) else "parameter"
                problem = f"has changed its {kind} {name!r} between the batch and the step; it would leave unnoised"
                advice = (
                    "put a layer that does so in eval mode or take it out (BatchNorm: privet.training."
                    "replace_batchnorm), and change weights yourself only after the step"
                )
                raise InvalidInput("model", problem, advice)

    def changed(self, model: nn.Module) -> list[str]:
        """The names of those that are not what they were."""
        now = dict(_tensors(model))
        return [name for name in {**self.held, **now} if not self._same(name, now.get(name))]

    def put_back(self, model: nn.Module) -> None:
        """Make parameters what they were; needs copies. What was added since is taken away."""
        with torch.no_grad():
            for prefix, module in _modules(model):
                held = module._parameters  # noqa: SLF001
                for name in [name for name, tensor in held.items() if tensor is not None]:
                    if prefix + name not in self.held:
                        del held[name]
                        continue
                    before, _, copy = self.held[prefix + name]
                    if held[name] is not before:
                        held[name] = before  # type: ignore[assignment]  # it was a parameter when it was noted
                    if copy is not None and not _equal(before, copy):
                        _put(before, copy)

    def _same(self, name: str, tensor: Tensor | None) -> bool:
        before, version, copy = self.held.get(name, (None, 0, None))
        if tensor is None or tensor is not before or tensor._version != version:  # noqa: SLF001
            return False
        return copy is None or _equal(tensor, copy)


@contextmanager
def restored(model: nn.Module) -> Iterator[list[InvalidInput]]:
    """Restore parameters, buffers and plain attributes after a pass that is no step.

    Yields a list, to which a refusal is added at the end if the pass wrote into a parameter: what a model or a loop
    sets from the rows (an initialization from the first batch, say) would leave without noise. It is restored all the
    same, so that nothing leaves if the refusal is not raised.
    """
    weights, attributes = Weights.of(model, copies=True), Attributes.of(model)
    refusals: list[InvalidInput] = []
    try:
        yield refusals
    finally:
        try:
            weights.require_unchanged(model, buffer_names(model))
        except InvalidInput as refusal:
            refusals.append(refusal)
        weights.put_back(model)
        attributes.put_back()


@contextmanager
def modes_restored(model: nn.Module, *, evaluate: bool = False) -> Iterator[None]:
    """Put every module back into its mode, training or eval, afterwards; with `evaluate`, start in eval mode."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        for module, mode in modes:
            module.training = mode and not evaluate
        yield
    finally:
        for module, mode in modes:
            module.training = mode


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers by name; torch's own walk takes ten times as long, in every step."""
    for prefix, module in _modules(model):
        for held in (module._parameters, module._buffers):  # noqa: SLF001
            for name, tensor in held.items():
                if tensor is not None:
                    yield prefix + name, tensor


def buffer_names(model: nn.Module) -> set[str]:
    """The names among these that are buffers'; one that several modules hold has several."""
    return {prefix + name for prefix, module in _modules(model) for name in module._buffers}  # noqa: SLF001


def _modules(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Every module once, with what its tensors' names begin with."""
    seen, stack = {id(model)}, [("", model)]
    while stack:
        prefix, module = stack.pop()
        yield prefix, module
        for name, child in module._modules.items():  # noqa: SLF001
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                stack.append((f"{prefix}{name}.", child))


@dataclass(frozen=True, eq=False)
class Attributes:
    """The buffers and plain attributes of a model's modules: tensors, arrays, numbers, texts, and lists of these."""

    held: tuple[tuple[nn.Module, dict[str, tuple[Any, Any]]], ...]
    """For each module, by name: the value, and a copy of it."""

    @staticmethod
    def of(model: nn.Module) -> Attributes:
        """Note them."""
        return Attributes(tuple((module, _own(module)) for module in model.modules()))

    def put_back(self) -> None:
        """Make them what they were; what was added since is taken away."""
        for module, before in self.held:
            for name in set(_own(module)) - set(before):
                del module.__dict__[name]
            for name, (value, copy) in before.items():
                place = module._buffers if name in module._buffers else module.__dict__  # noqa: SLF001
                place[name] = value
                _restore(value, copy)

    def differing(self, other: Attributes) -> list[str]:
        """The names of what is not the same in both."""
        return [
            f"{type(module).__name__}.{name}"
            for (module, mine), (_, theirs) in zip(self.held, other.held, strict=True)
            for name in {**mine, **theirs}
            if (name in mine) != (name in theirs) or not alike(mine[name][1], theirs[name][1])
        ]


def _own(module: nn.Module) -> dict[str, tuple[Any, Any]]:
    plain = {name: value for name, value in vars(module).items() if name not in _TORCHS and _is_plain(value)}
    return {name: (value, _copy(value)) for name, value in {**module._buffers, **plain}.items()}  # noqa: SLF001


def _is_plain(value: Any) -> bool:
    return isinstance(value, _PLAIN) or _is_object(value)


def _is_object(value: Any) -> bool:
    """Whether this is an object of a class that is neither torch's nor another library's, with attributes."""
    if isinstance(value, (*_PLAIN, *_OPAQUE)) or type(value).__module__.partition(".")[0] in _LIBRARIES:
        return False
    return hasattr(value, "__dict__") or any("__slots__" in vars(each) for each in type(value).__mro__)


def _attributes(value: Any) -> dict[str, Any]:
    """The attributes of an object, in its dictionary and in slots."""
    slots = [name for each in type(value).__mro__ for name in _slots(each) if hasattr(value, name)]
    return {name: getattr(value, name) for name in slots} | dict(getattr(value, "__dict__", {}))


def _slots(kind: type) -> tuple[str, ...]:
    found = vars(kind).get("__slots__", ())
    names = (found,) if isinstance(found, str) else tuple(found)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


@dataclass(frozen=True, eq=False)
class _Object:
    """A copy of an object's attributes."""

    value: Any
    """The object itself."""
    attributes: dict[str, Any]


def _copy(value: Any, deep: int = 0) -> Any:
    """A copy that no later change reaches; of what is none of these kinds, or lies too deep, nothing."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, _SIMPLE):
        return value
    if deep >= _DEEPEST:
        return None
    if isinstance(value, dict):
        return {key: _copy(each, deep + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple, deque)):
        return [_copy(each, deep + 1) for each in value]
    if isinstance(value, set):
        return set(value)
    if _is_object(value):
        found = _attributes(value).items()
        return _Object(value, {name: _copy(each, deep + 1) for name, each in found if _is_plain(each)})
    return None


def _restore(value: Any, copy: Any) -> None:
    """Put a value's contents back, as far as they were changed in place."""
    if isinstance(value, Tensor) and not _equal(value, copy):
        _put(value, copy)
    elif isinstance(value, np.ndarray) and not alike(value, copy):
        value[...] = copy
    elif isinstance(value, (list, deque)):
        whole = [_returned(now, old) for now, old in zip_longest(islice(value, len(copy)), copy)]
        value.clear()
        value.extend(whole)
    elif isinstance(copy, _Object):
        _restore_object(value, copy)
    elif isinstance(value, dict):
        kept = {key: _returned(value.get(key), old) for key, old in copy.items()}
        value.clear()
        value.update(kept)
    elif isinstance(value, set):
        value.clear()
        value.update(copy)


def _restore_object(value: Any, copy: _Object) -> None:
    """Put an object's attributes back; those that were added since, and are of a kind that is looked at, go."""
    for name, now in _attributes(value).items():
        if name not in copy.attributes and _is_plain(now):
            object.__delattr__(value, name)
    for name, old in copy.attributes.items():
        object.__setattr__(value, name, _returned(getattr(value, name, None), old))


def _put(tensor: Tensor, copy: Tensor) -> None:
    """Put a tensor's contents back, also where it was given another shape or type in the meantime."""
    with torch.no_grad():
        if tensor.shape == copy.shape and tensor.dtype == copy.dtype and tensor.layout == copy.layout:
            tensor.detach().copy_(copy)
        else:
            tensor.data = copy.clone()


def _returned(value: Any, copy: Any) -> Any:
    """A value with its contents put back; where it was replaced by another, what it was."""
    if isinstance(copy, _SIMPLE) and (copy is not None or isinstance(value, _SIMPLE)):
        return copy
    if isinstance(copy, _Object):
        _restore(copy.value, copy)
        return copy.value
    if isinstance(value, tuple) and isinstance(copy, list):
        before = tuple(each.value if isinstance(each, _Object) else each for each in copy)
        return value if alike(_copy(value), copy) else before
    is_same_kind = isinstance(value, (list, dict, set, np.ndarray)) and type(value) is type(copy)
    is_tensor = isinstance(value, Tensor) and isinstance(copy, Tensor)
    if is_same_kind or is_tensor or (isinstance(value, deque) and isinstance(copy, list)):
        _restore(value, copy)
        return value
    return value if copy is None else copy


def alike(one: Any, other: Any) -> bool:
    """Whether two copies are the same."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return _equal(one, other)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and type(one) is type(other):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, _Object) and isinstance(other, _Object):
        return type(one.value) is type(other.value) and alike(one.attributes, other.attributes)
    return type(one) is type(other) and bool(one == other or (one != one and other != other))


def _equal(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors are the same, NaN for NaN."""
    if one.shape != other.shape or one.dtype != other.dtype or one.layout != other.layout:
        return False
    if one.layout != torch.strided or not (one.is_floating_point() or one.is_complex()):
        return bool(torch.equal(one, other))
    return bool(((one == other) | ((one != one) & (other != other))).all())
