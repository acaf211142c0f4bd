"""What can be seen from a model and its optimizer alone, before any step: what is refused, and what to know.

Nothing here reads data. What only shows while the model runs (a loss that mixes examples, `F.batch_norm` called by
hand) is found there, not here. Spectral norm, weight norm and other parametrisations are let through: their power
iteration writes buffers in the forward pass, but from the weights alone, which are released anyway.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.parameter import is_lazy

from privet.core import InvalidInput

__all__ = [
    "ModelFinding",
    "Reason",
    "Severity",
    "check",
    "large_delta",
    "listing",
    "require",
    "running_statistics",
    "wrapper",
]

_OPTIMIZER = "optimizer"
_DTYPES = (torch.bfloat16, torch.float32, torch.float64)


class Severity(Enum):
    """How much a finding weighs."""

    REFUSAL = "refusal"
    """The guarantee or the exactness would fail: nothing is trained."""
    NOTE = "note"
    """Sound, and perhaps not what was meant."""


class Reason(NamedTuple):
    """Why something cannot stay as it is, and what to do."""

    problem: str
    fix: str


@dataclass(frozen=True)
class ModelFinding:
    """One thing about the model or the optimizer."""

    path: str
    """Where: a name in `named_modules()` or `named_parameters()`, empty for the model itself, or `optimizer`."""
    kind: Severity
    problem: str
    fix: str

    def __str__(self) -> str:
        return f"{_place(self.path)}: {self.problem}; {self.fix}"


def _refusal(path: str, problem: str, fix: str) -> ModelFinding:
    return ModelFinding(path, Severity.REFUSAL, problem, fix)


def _note(path: str, problem: str, fix: str) -> ModelFinding:
    return ModelFinding(path, Severity.NOTE, problem, fix)


class _Family(NamedTuple):
    """Classes by the start of their full name, so that none of them need be importable, or imported, here."""

    names: tuple[str, ...]
    problem: str
    fix: str


_PLAIN = "pass the plain model: under torchrun every process trains its own copy, and privet sums over them itself"
_WRAPPERS = (
    _Family(
        ("torch._dynamo.",),
        "is compiled by torch.compile, which hides the steps that each example's gradient is read from",
        "pass the model from before torch.compile",
    ),
    _Family(
        ("torch.distributed.fsdp.", "torch.distributed._composable.fsdp.", "fairscale.nn."),
        "is sharded (FSDP), so that no process sees an example's whole gradient to clip it",
        _PLAIN,
    ),
    _Family(
        ("torch.nn.parallel.", "torch.distributed._composable.", "deepspeed."),
        "is wrapped for data-parallel training, which adds the examples' gradients up before they can be clipped",
        _PLAIN,
    ),
    _Family(
        ("torch.jit.",),
        "is a TorchScript module, whose operations cannot be read one by one",
        "train the Python model, and script or trace it afterwards",
    ),
    _Family(
        ("torch.ao.nn.", "torch.ao.quantization.", "torch.nn.quantized.", "torch.nn.qat.", "torch.nn.intrinsic."),
        "is quantised or prepared for it: its weights have no exact gradients, and observers keep private values",
        "train the floating-point model and quantise the result, which is post-processing and free",
    ),
    _Family(
        ("opacus.grad_sample.",),
        "is wrapped by Opacus, which computes per-example gradients of its own",
        "pass the model from before the wrapping",
    ),
)
_OPTIMIZERS = (
    _Family(
        ("torch.optim.sparse_adam.",),
        "needs sparse gradients, and private ones are dense: every row gets noise",
        "use torch.optim.Adam",
    ),
    _Family(
        ("torch.distributed.optim.",),
        "shares its work between processes, and each must step with all of the noisy gradient",
        "use the plain torch.optim class",
    ),
    _Family(("opacus.optimizers.",), "clips and adds noise itself, a second time", "pass the plain torch optimizer"),
)


_NOTHING = _refusal(
    "",
    "has no parameter with requires_grad=True, so that there is nothing to train",
    "thaw some, such as the last layer's: layer.requires_grad_(True)",
)


def check(model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> tuple[ModelFinding, ...]:
    """Everything that can be told from the two objects, or the model alone: refusals, and what may be unintended.

    >>> model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    >>> [(each.path, each.kind.value) for each in check(model, torch.optim.SGD(model.parameters(), lr=0.1))]
    [('1', 'refusal')]
    """
    if not isinstance(model, nn.Module):
        raise InvalidInput("model", f"is a {type(model).__name__}", "give the torch.nn.Module that is to be trained")
    if optimizer is None:
        trained = [each for each in model.parameters() if each.requires_grad]
        return (*_of_modules(model), *_of_parameters(model, trained), *(() if trained else (_NOTHING,)))
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InvalidInput("optimizer", f"is a {type(optimizer).__name__}", "give a torch.optim.Optimizer")
    held = list(_held(optimizer))
    return (*_of_modules(model), *_of_parameters(model, held), *_of_optimizer(model, optimizer, held))


def require(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Raise one error that lists every refusal; notes do not raise."""
    if not hasattr(optimizer, "param_groups"):
        problem = f"is of the type {type(optimizer).__name__}"
        raise InvalidInput("optimizer", problem, "give one of torch.optim, such as SGD(model.parameters(), lr=0.1)")
    refusals = [each for each in check(model, optimizer) if each.kind is Severity.REFUSAL]
    if refusals:
        argument = "optimizer" if all(each.path == _OPTIMIZER for each in refusals) else "model"
        raise InvalidInput(argument, f"cannot be used for private training as it is:\n{listing(refusals)}")


def listing(findings: Sequence[ModelFinding]) -> str:
    """Findings as lines of text: places with the same trouble share a line, since a network repeats its layers."""
    places: dict[Reason, list[str]] = {}
    for each in findings:
        places.setdefault(Reason(each.problem, each.fix), []).append(_place(each.path))
    return "\n".join(f"- {', '.join(at)}: {why.problem}; {why.fix}" for why, at in places.items())


def large_delta(delta: float | None, units: int | None) -> str | None:
    """What is weak about this δ, where the number of units is public; sound, and perhaps not what was meant.

    >>> large_delta(0.5, 9)
    'delta is 0.5, at least 1 over the 9 units: one of them could be published outright; use one far below, as 1e-5'
    """
    if delta is None or units is None or delta * units < 1:
        return None
    why = "one of them could be published outright"
    return f"delta is {delta:g}, at least 1 over the {units} units: {why}; use one far below, as 1e-5"


def running_statistics(module: nn.Module) -> Reason | None:
    """Why this layer, in the mode it is in now, mixes examples or remembers them; None if it does not."""
    name = type(module).__name__
    if isinstance(module, _BatchNorm):
        absent = module.running_mean is None or module.running_var is None
        if not module.training and not absent:
            return None  # frozen: a fixed affine map, the same for each example
        coupled = f"{name} normalises each example by the others in its batch"
        replace = "privet.training.replace_batchnorm(model) returns a model with GroupNorm in its place"
        if absent:  # torch takes the batch's statistics in eval mode, too
            return Reason(coupled, f"{replace}; .eval() does not help, since it keeps no running statistics to use")
        return Reason(
            f"{coupled} and keeps running statistics of private rows, without noise",
            f"{replace}; or, if its running statistics are public, freeze it with .eval() after every model.train()",
        )
    if isinstance(module, _InstanceNorm):
        # What torch does, `track_running_stats` set to False later on included: the buffers are there, so it writes.
        if module.running_mean is None or (module.track_running_stats and not module.training):
            return None
        return Reason(
            f"{name} keeps running statistics of private rows, without noise",
            "make it with track_running_stats=False, or freeze it with .eval()",
        )
    if module.training and dict(module.named_buffers(recurse=False)).get("num_batches_tracked") is not None:
        return Reason(
            f"{name} has a buffer `num_batches_tracked`, so it keeps running statistics of private rows, without noise",
            "use a layer that keeps none, or freeze it with .eval(), after every model.train()",
        )
    return None


def wrapper(module: nn.Module) -> Reason | None:
    """Why this module hides the one that is to be trained; None if it does not."""
    if family := _family(type(module), _WRAPPERS):
        return Reason(f"{type(module).__name__} {family.problem}", family.fix)
    forward = getattr(module, "forward", None)
    if vars(module).get("_compiled_call_impl") is not None or hasattr(forward, "_torchdynamo_orig_callable"):
        # `module.compile()` and a compiled `forward` leave the class as it was.
        return Reason(f"{type(module).__name__} {_WRAPPERS[0].problem}", _WRAPPERS[0].fix)
    return None


def _of_modules(model: nn.Module) -> Iterator[ModelFinding]:
    outer: list[tuple[str, str]] = []
    for path, module in model.named_modules():
        why = wrapper(module)
        # A scripted or sharded model consists of such modules all the way down: the outermost is enough.
        if why and not any(fix == why.fix and _inside(path, above) for fix, above in outer):
            outer.append((why.fix, path))
            yield _refusal(path, *why)
        for reason in (running_statistics(module), _lookup(module), _shapeless(module)):
            if reason:
                yield _refusal(path, *reason)
        if isinstance(module, (nn.Embedding, nn.EmbeddingBag)) and module.sparse and module.weight.requires_grad:
            yield _note(path, "is made with sparse=True, which saves nothing here", "every row's gradient gets noise")
    if not model.training:
        yield _note("", "is in eval mode (no dropout)", "call model.train() first if that is not meant")


def _lookup(module: nn.Module) -> Reason | None:
    if not isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
        return None
    name = type(module).__name__
    if module.max_norm is not None:
        # `embedding_renorm_` writes to the weights in the forward pass: in eval mode and to frozen weights, too.
        return Reason(
            f"{name} has max_norm, which rescales the rows that private examples look up, without noise",
            "make it with max_norm=None, and bound the rows' norms between steps if need be",
        )
    if module.scale_grad_by_freq and module.weight.requires_grad:
        return Reason(
            f"{name} has scale_grad_by_freq, which divides an example's gradient by counts over the whole batch",
            "make it with scale_grad_by_freq=False",
        )
    return None


def _shapeless(module: nn.Module) -> Reason | None:
    if any(map(is_lazy, (*module.parameters(recurse=False), *module.buffers(recurse=False)))):
        return Reason(
            f"{type(module).__name__} has parameters without a shape yet",
            "run the model once on made-up input of the right shape, then make the optimizer",
        )
    return None


def _of_parameters(model: nn.Module, trained: Sequence[torch.Tensor]) -> Iterator[ModelFinding]:
    held = {id(one) for one in trained}
    devices: dict[torch.device, str] = {}
    for path, parameter in model.named_parameters():
        in_optimizer = id(parameter) in held
        if not (parameter.requires_grad or in_optimizer):
            continue  # a constant: any type will do, such as the quantized weights under an adapter
        if why := _unfit(parameter):
            freeze = "" if in_optimizer else "freeze it with requires_grad_(False), since it is not trained; or "
            yield _refusal(path, why.problem, freeze + why.fix)
        devices.setdefault(parameter.device, path)
        if not in_optimizer:
            yield _note(path, "is in no group of the optimizer", "it will not be trained")
        elif not parameter.requires_grad:
            yield _note(path, "is frozen (requires_grad=False)", "it will not be trained")
        elif parameter.grad is not None:
            yield _note(path, "already has a .grad", "it will be overwritten, not added to")
    if len(devices) > 1:
        where = ", ".join(f"{path} on {device}" for device, path in devices.items())
        yield _refusal("", f"has parameters on several devices ({where})", "move it to one: model.to(…)")


def _unfit(parameter: nn.Parameter) -> Reason | None:
    """Why no exact private gradient can be had for a parameter of this sort."""
    kind = type(parameter)
    if parameter._backward_hooks or parameter._post_accumulate_grad_hooks:  # noqa: SLF001
        return Reason("has a hook on its gradient, which no single example's gradient passes", "remove the hook")
    if kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return Reason(f"is a {kind.__name__}, not a plain tensor", "pass the model with its whole, plain parameters")
    if parameter.layout is not torch.strided:
        return Reason(f"is stored as {parameter.layout}; noise makes it dense", "store it dense: .to_dense()")
    if parameter.is_meta:
        return Reason("is on the meta device, so it has no values", "load or initialise the model on a real device")
    if parameter.is_complex():
        return Reason("is complex, and clipping and noise are made for real numbers", "keep real and imaginary parts")
    if not parameter.is_floating_point():
        return Reason(f"is of {parameter.dtype}, which has no gradient", "take it out of the optimizer")
    if parameter.dtype not in _DTYPES:
        return Reason(
            f"is of {parameter.dtype}, in which gradients overflow and noise is lost to rounding",
            "keep the weights in float32 (or bfloat16, float64), with torch.autocast around the forward pass for speed",
        )
    return None


def _of_optimizer(
    model: nn.Module, optimizer: torch.optim.Optimizer, held: Sequence[torch.Tensor]
) -> Iterator[ModelFinding]:
    name = type(optimizer).__name__
    if family := _family(type(optimizer), _OPTIMIZERS):
        yield _refusal(_OPTIMIZER, f"{name} {family.problem}", family.fix)
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        problem = f"{name} evaluates the loss again inside a step (closure), each time on private rows and unaccounted"
        yield _refusal(_OPTIMIZER, problem, "use one that takes a gradient, such as SGD or Adam")
    names = {id(parameter): path for path, parameter in model.named_parameters()}
    strangers = [one for one in held if id(one) not in names]
    if strangers:
        shapes = ", ".join("lazy" if is_lazy(one) else str(tuple(one.shape)) for one in strangers[:3])
        count = f"{len(strangers)} of its {len(held)} parameters, of shape {shapes}{', …' if strangers[3:] else ''}"
        problem = f"holds parameters that are not in the model ({count}), so they would be neither clipped nor noised"
        fix = "make it from this model's parameters(), after every copy or replacement, or train both as one module"
        yield _refusal(_OPTIMIZER, problem, fix)
    seen: set[int] = set()
    for one in held:
        if id(one) in seen:
            where = names.get(id(one), "a parameter")
            yield _refusal(_OPTIMIZER, f"holds {where} twice, so it would move twice", "list it once")
        seen.add(id(one))
    if not strangers and not any(one.requires_grad for one in held):
        fix = "give it parameters of this model that have requires_grad=True"
        yield _refusal(_OPTIMIZER, "holds no parameter that can be trained", fix)
    if optimizer.state:
        problem = "already has a history (momentum, averages), which the guarantee does not cover"
        yield _note(_OPTIMIZER, problem, "start with a new one, unless that history is public")


def _held(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    for group in optimizer.param_groups:
        yield from group["params"]


def _family(kind: type, families: tuple[_Family, ...]) -> _Family | None:
    names = [f"{each.__module__}.{each.__qualname__}" for each in kind.__mro__]
    return next((one for one in families if any(name.startswith(one.names) for name in names)), None)


def _inside(path: str, above: str) -> bool:
    return not above or path.startswith(f"{above}.")


def _place(path: str) -> str:
    return path or "the model"
