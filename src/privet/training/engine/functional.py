"""Per-example gradients of a module's own parameters by `torch.func`, for operations that have no rule.

The call is made again, example by example, from what it was given, and differentiated; the rest of the model is not
touched. That costs the module's forward and backward pass once more. A call that does not give the same output again
(because it draws random numbers, or keeps a state) is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from privet.core import InvalidInput
from privet.training.engine.calls import Call
from privet.training.engine.contributions import Contribution, Dense
from privet.training.micro import RowInputs, remember_rows

__all__ = ["again"]

_TOLERANCES = {torch.float64: 1e-9, torch.float32: 2e-5}
"""How far the output of a row by itself may be from that of the row in its batch, over the largest output."""


def again(
    call: Call,
    names: Sequence[str],
    gradients: Sequence[Tensor | None],
    examples: int,
    known: RowInputs,
) -> dict[str, Contribution]:
    """For each of the module's own parameters in `names`, its examples' gradients.

    `known` remembers which of a module's inputs have rows (`remember_rows`).
    """
    flat, spec = tree_flatten((call.args, dict(call.kwargs)))
    batched = [isinstance(leaf, Tensor) and leaf.dim() > 0 and len(leaf) % examples == 0 for leaf in flat]
    batched = remember_rows(known, call.module, batched, examples)
    inputs = [_rows(leaf, examples) for leaf, here in zip(flat, batched, strict=True) if here]
    own = dict(call.module.named_parameters(recurse=False))
    moved = {name: own[name].detach() for name in names}
    wanted = [place for place, gradient in enumerate(gradients) if gradient is not None]
    upstream = [_rows(each, examples) for each in gradients if each is not None]

    def value(parameters: dict[str, Tensor], rows: list[Tensor], onto: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        given = iter(rows)
        leaves = [next(given) if here else leaf for leaf, here in zip(flat, batched, strict=True)]
        args, kwargs = tree_unflatten(leaves, spec)
        output = functional_call(call.module, parameters, args, kwargs)
        leaves = tree_leaves(output)
        chosen = [leaves[call.places[place]] for place in wanted]
        zero = torch.zeros((), device=onto[0].device if onto else None)
        return sum(((a * b).sum() for a, b in zip(chosen, onto, strict=True)), zero), chosen

    derivative = grad(value, has_aux=True)
    with torch.enable_grad(), warnings.catch_warnings():
        # torch warns of operations that it maps one by one, which is what is wanted.
        warnings.filterwarnings("ignore", message="There is a performance drop", category=UserWarning)
        try:
            found, outputs = vmap(derivative, in_dims=(None, 0, 0))(moved, inputs, upstream)
        except (RuntimeError, ValueError):
            # Not every operation can be mapped; then one after the other.
            found, outputs = _one_by_one(call, value, moved, inputs, upstream)
    for place, output in zip(wanted, outputs, strict=True):
        _same(call, output.detach(), _rows(call.outputs[place].detach(), examples))
    return {name: Dense(found[name].detach().to_dense().reshape(examples, -1)) for name in names}


_Value: TypeAlias = Callable[[dict[str, Tensor], list[Tensor], list[Tensor]], tuple[Tensor, list[Tensor]]]


def _one_by_one(
    call: Call, value: _Value, parameters: dict[str, Tensor], inputs: list[Tensor], upstream: list[Tensor]
) -> tuple[dict[str, Tensor], list[Tensor]]:
    """The derivatives of one example after the other, by plain autograd, and the outputs."""
    live = {name: each.requires_grad_() for name, each in parameters.items()}
    found: list[tuple[Tensor, ...]] = []
    outputs: list[list[Tensor]] = []
    try:
        for rows in zip(*inputs, *upstream, strict=True):
            total, made = value(live, list(rows[: len(inputs)]), list(rows[len(inputs) :]))
            gradients = torch.autograd.grad(total, list(live.values()), allow_unused=True, materialize_grads=True)
            found.append(tuple(gradient.to_dense() for gradient in gradients))
            outputs.append(made)
    except (RuntimeError, ValueError, IndexError) as error:
        problem = f"cannot be called again on one example ({str(error).splitlines()[0][:100]})"
        raise InvalidInput(type(call.module).__name__, problem, "put the batch first, or give a rule") from error
    stacked = [torch.stack(each) for each in zip(*found, strict=True)]
    return dict(zip(live, stacked, strict=True)), [torch.stack(each) for each in zip(*outputs, strict=True)]


def _rows(tensor: Tensor, examples: int) -> Tensor:
    """(B, rows of one example, …): what the module is given for one example is a batch of its own."""
    if len(tensor) % examples:
        problem = "gives an output whose first axis does not hold the examples"
        raise InvalidInput("a module without a rule", problem, "put the batch first, or give a rule")
    return tensor.detach().reshape(examples, len(tensor) // examples, *tensor.shape[1:])


def _same(call: Call, new: Tensor, old: Tensor) -> None:
    room = _TOLERANCES.get(old.dtype, 2e-2) * old.nan_to_num(0.0, 0.0, 0.0).abs().amax().clamp(min=1e-30)
    if new.shape != old.shape or not bool(((new - old).abs() <= room).logical_or(~old.isfinite()).all()):
        name = type(call.module).__name__
        problem = "gives another output when it is called again on one example, so its gradients cannot be had exactly"
        raise InvalidInput(
            name, problem, "take random numbers, state and work across examples out of it, or give a rule"
        )
