"""A copy of a model in which GroupNorm stands where BatchNorm cannot be trained privately, with the list of changes.

BatchNorm divides each example by statistics of the others, so no bound on one example's influence holds. GroupNorm
(Wu & He 2018) takes the statistics within an example. It is another model: accuracy has to be measured again.
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
    """One layer that was replaced; a layer in two places is two changes to one new layer."""

    path: str
    old: str
    new: str
    reason: str


@dataclass(frozen=True)
class BatchNormReplacement:
    """The new model, and how it differs from the one that was given; `print` it."""

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
    """A copy of `model` with GroupNorm for each BatchNorm that private training refuses, and what was changed.

    The number of groups is the largest divisor of the channels that is at most `groups` and leaves enough channels in
    a group for something to be left of them after normalising. Weight and bias are kept (values, type, device,
    `requires_grad`, ties), and so are the layer's mode and eps; running statistics have no place in GroupNorm and are
    dropped. BatchNorm frozen in eval mode stays.

    >>> print(replace_batchnorm(nn.Sequential(nn.Conv2d(3, 48, 3), nn.BatchNorm2d(48), nn.ReLU())))
    Replaced (the model that was given is unchanged; make the optimizer from the new one's parameters):
      1  BatchNorm2d(48) → GroupNorm(24, 48)  mixes the examples of a batch; weight and bias kept, ...
    """
    count("groups", groups)
    if not isinstance(model, nn.Module):
        raise InvalidInput("model", f"is a {type(model).__name__}", "give a torch.nn.Module")
    # One entry per place, so that a layer used in two of them is shown twice.
    places = [
        (path, module)
        for path, module in model.named_modules(remove_duplicate=False)
        if isinstance(module, _BatchNorm) and running_statistics(module)
    ]
    problems = [*_wrapped(model), *(f"{path or 'the model'} {bad}" for path, old in places if (bad := _unfit(old)))]
    if problems:
        raise InvalidInput("model", "has BatchNorm that cannot be replaced:\n- " + "\n- ".join(problems))
    # `deepcopy` asks its memo for everything it meets: with the new layers in it, every mention of an old one (shared,
    # in a plain list, or the model itself) becomes the new one, and parameters stay tied as they were.
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
    """Why GroupNorm cannot stand in for this layer."""
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
    # A lone value normalises to 0 and a lone pair to ±1, whatever they were. Images bring further values to a group
    # (and with two channels in it even a 1×1 image leaves something); an input (N, C) has its channels only, so
    # where that may come, a group has eight: normalising takes away two degrees of freedom of them.
    least = 2 if isinstance(old, (nn.BatchNorm2d, nn.BatchNorm3d)) else 8
    channels = old.num_features
    return next(
        g for g in range(min(groups, channels), 0, -1) if channels % g == 0 and (channels // g >= least or g == 1)
    )


def _change(path: str, old: _BatchNorm, new: nn.GroupNorm) -> LayerChange:
    kept = "weight and bias kept" if new.affine else "no weight and bias, as before"
    dropped = "" if old.running_mean is None else ", running statistics dropped"
    # Of two values normalised together only the larger one's place is left.
    order = "; on inputs (N, 2) only the order of the two channels is left" if new.num_channels == 2 else ""
    return LayerChange(
        path,
        f"{type(old).__name__}({old.num_features})",
        f"GroupNorm({new.num_groups}, {new.num_channels})",
        f"{_REASON}; {kept}{dropped}{order}",
    )
