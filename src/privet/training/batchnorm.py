"""Replace BatchNorm, which cannot be trained privately, by GroupNorm in a copy of a model, and list the changes.

BatchNorm normalizes each example by statistics of the others, so no bound on one example's influence holds. GroupNorm
(Wu & He 2018) computes the statistics within an example. The result is another model: measure its accuracy again.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from privet.core import InvalidInput, count
from privet.training.validate import running_statistics, wrapper

__all__ = ["BatchNormReplacement", "LayerChange", "replace_batchnorm"]

_REASON = "mixes the examples of a batch"
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


@dataclass(frozen=True)
class LayerChange:
    """One replaced layer. A layer that is used in two places gives two changes, to one new layer."""

    path: str
    old: str
    new: str
    reason: str


@dataclass(frozen=True)
class BatchNormReplacement:
    """The new model and the list of changes, which `print` shows."""

    model: nn.Module
    changes: tuple[LayerChange, ...]

    def __str__(self) -> str:
        lines = ["No BatchNorm to replace; the model is a plain copy."]
        if self.changes:
            lines = [
                "Replaced (the model that was given is unchanged; make the optimizer from the new one's parameters):"
            ]
            rows = [(each.path or "the model", f"{each.old} → {each.new}", each.reason) for each in self.changes]
            places, swaps = (max(len(row[column]) for row in rows) for column in (0, 1))
            lines += [f"  {place:<{places}}  {swap:<{swaps}}  {reason}" for place, swap, reason in rows]
        kept = [path or "the model" for path, each in self.model.named_modules() if isinstance(each, _BatchNorm)]
        if kept:
            lines.append(f"Kept, since frozen in eval mode: {', '.join(kept)}")
        return "\n".join(lines)


def replace_batchnorm(model: nn.Module, *, groups: int = 32) -> BatchNormReplacement:
    """Return a copy of a model with GroupNorm in place of each BatchNorm that private training refuses.

    The number of groups is the largest divisor of the channels that is at most `groups` and leaves enough channels in
    a group for information to remain after normalization. Weight and bias are kept (values, type, device,
    `requires_grad`, ties), and so are the layer's mode and eps; GroupNorm has no running statistics, so they are
    dropped. BatchNorm frozen in eval mode is kept.

    Args:
        model: The model, which is not changed.
        groups: Largest number of groups of a GroupNorm layer.

    Returns:
        The new model and the list of changes.

    Raises:
        InvalidInput: `model` is not a module, cannot be copied, or has BatchNorm that cannot be replaced.

    >>> print(replace_batchnorm(nn.Sequential(nn.Conv2d(3, 48, 3), nn.BatchNorm2d(48), nn.ReLU())))
    Replaced (the model that was given is unchanged; make the optimizer from the new one's parameters):
      1  BatchNorm2d(48) → GroupNorm(24, 48)  mixes the examples of a batch; weight and bias kept, ...
    """
    count("groups", groups)
    if not isinstance(model, nn.Module):
        raise InvalidInput("model", f"is a {type(model).__name__}", "give a torch.nn.Module")
    # One entry for each place, so that a layer used in two places is listed twice.
    places = [
        (path, module)
        for path, module in model.named_modules(remove_duplicate=False)
        if isinstance(module, _BatchNorm) and running_statistics(module)
    ]
    problems = [*_wrapped(model), *(f"{path or 'the model'} {bad}" for path, old in places if (bad := _unfit(old)))]
    if problems:
        raise InvalidInput("model", "has BatchNorm that cannot be replaced:\n- " + "\n- ".join(problems))
    # `deepcopy` looks up every object in its memo. With the new layers in it, every reference to an old layer (shared,
    # in a plain list, or the model itself) becomes the new one, and tied parameters stay tied.
    memo: dict[int, object] = {}
    for _, old in places:
        memo[id(old)] = _group_norm(old, groups, memo)
    try:
        new_model = copy.deepcopy(model, memo)
    except RuntimeError as error:
        raise InvalidInput(
            "model",
            f"cannot be copied ({error})",
            "copy a model that has not been run yet, or delete the tensors that it keeps from its last run",
        ) from error
    changes = []
    for path, old in places:
        new = new_model.get_submodule(path)
        if new is not memo[id(old)] or not isinstance(new, nn.GroupNorm):
            raise InvalidInput("model", f"copies {path!r} in its own way (__deepcopy__)", "replace BatchNorm by hand")
        changes.append(_change(path, old, new))
    return BatchNormReplacement(new_model, tuple(changes))


def _wrapped(model: nn.Module) -> Iterator[str]:
    for path, module in model.named_modules():
        if why := wrapper(module):
            yield f"{path or 'the model'} {why.problem}; {why.fix}"


def _unfit(old: _BatchNorm) -> str | None:
    """Return why GroupNorm cannot replace this layer; None where it can."""
    name = type(old).__name__
    if any(map(is_lazy, (*old.parameters(), *old.buffers()))) or old.num_features == 0:
        return f"({name}) has no number of channels yet; make it with one, or run the model once on made-up input"
    if old.num_features == 1:
        return f"({name}) has one channel: a group of one value normalises to 0; take the layer out of the model"
    if "forward" in vars(old) or type(old).forward not in (_BatchNorm.forward, nn.SyncBatchNorm.forward):
        return f"({name}) has a forward of its own, which GroupNorm would drop; replace it by hand"
    if any(True for _ in old.children()) or any(vars(old).get(hooks) for hooks in _HOOKS):
        return f"({name}) carries hooks or parametrisations, which GroupNorm would drop; remove them first"
    return None


def _group_norm(old: _BatchNorm, groups: int, memo: dict[int, object]) -> nn.GroupNorm:
    new = nn.GroupNorm(_divisor(old, groups), old.num_features, eps=old.eps, affine=False)
    new.affine = old.affine
    new.weight, new.bias = copy.deepcopy(old.weight, memo), copy.deepcopy(old.bias, memo)
    return new.train(old.training)


def _divisor(old: _BatchNorm, groups: int) -> int:
    # A single value normalizes to 0 and a pair to ±1, whatever they were. Images add further values to a group (and
    # with two channels even a 1×1 image keeps some information). An input (N, C) has only its channels, so where that
    # is possible a group has eight of them: normalization removes two degrees of freedom.
    least = 2 if isinstance(old, (nn.BatchNorm2d, nn.BatchNorm3d)) else 8
    channels = old.num_features
    return next(
        g for g in range(min(groups, channels), 0, -1) if channels % g == 0 and (channels // g >= least or g == 1)
    )


def _change(path: str, old: _BatchNorm, new: nn.GroupNorm) -> LayerChange:
    kept = "weight and bias kept" if new.affine else "no weight and bias, as before"
    dropped = "" if old.running_mean is None else ", running statistics dropped"
    # Of two values that are normalized together, only the index of the larger one remains.
    order = "; on inputs (N, 2) only the order of the two channels is left" if new.num_channels == 2 else ""
    return LayerChange(
        path,
        f"{type(old).__name__}({old.num_features})",
        f"GroupNorm({new.num_groups}, {new.num_channels})",
        f"{_REASON}; {kept}{dropped}{order}",
    )
