"""Layers with every option, as a table: `CASES`. Each row is small, since it is run once for each of its examples.

Composed models are in `composed.py`, which is part of the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

__all__ = ["EXAMPLES", "LAYERS", "Batch", "Case", "filled", "generator", "normal", "tokens", "waves"]

Batch: TypeAlias = tuple[Tensor, ...]
"""What the model is given: the examples are along the first axis of each tensor."""
EXAMPLES = 5


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=generator(seed), dtype=torch.float64)


def tokens(*shape: int, vocabulary: int = 7, seed: int = 1) -> Tensor:
    return torch.randint(vocabulary, shape, generator=generator(seed))


def waves(model: nn.Module, *rows: Tensor) -> Tensor:
    """A loss whose derivative is nowhere structured, of whatever the model returns first."""
    output = model(*rows)
    flat = (output if isinstance(output, Tensor) else output[0]).flatten(1)
    return (flat * torch.linspace(0.5, 1.5, flat.shape[1], dtype=flat.dtype)).sin().sum(1)


@dataclass(frozen=True)
class Case:
    """A model and a batch for it."""

    name: str
    build: Callable[[], nn.Module]
    batch: Batch
    loss: Callable[..., Tensor] = waves
    frozen: tuple[str, ...] = ()
    """Parameters that are not trained."""

    def model(self, dtype: torch.dtype = torch.float64) -> nn.Module:
        model = filled(self.build())
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(not name.startswith(self.frozen or ("none",)))
        return model.to(dtype)

    def rows(self, dtype: torch.dtype = torch.float64) -> Batch:
        return tuple(each.to(dtype) if each.is_floating_point() else each for each in self.batch)

    def __str__(self) -> str:
        return self.name


@torch.no_grad()
def filled(model: nn.Module, seed: int = 2) -> nn.Module:
    """Every parameter and every statistic away from its special first value, the same on every machine."""
    source = generator(seed)
    for parameter in model.parameters():
        parameter.copy_(0.4 * torch.randn(parameter.shape, generator=source, dtype=torch.float64))
    for name, buffer in model.named_buffers():
        if name.endswith("running_var"):
            buffer.copy_(torch.rand(buffer.shape, generator=source) + 0.5)
        elif name.endswith("running_mean"):
            buffer.copy_(torch.randn(buffer.shape, generator=source))
    return model


class Described(nn.Module):
    """A forward pass given as a function of the module, for models of one line."""

    def __init__(self, forward: Callable[..., Any], **parts: nn.Module | nn.Parameter | bool) -> None:
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *rows: Tensor) -> Any:
        return self.function(self, *rows)


def described(forward: Callable[..., Any], **parts: Callable[[], nn.Module | nn.Parameter]) -> Callable[[], nn.Module]:
    return lambda: Described(forward, **{name: part() for name, part in parts.items()})


def linear() -> Iterator[Case]:
    for axes in ((), (3,), (3, 2), (5,), (10,)):
        yield Case(f"linear {len(axes) + 2}-d {axes}", lambda: nn.Linear(4, 3), (normal(EXAMPLES, *axes, 4),))
    yield Case("linear without bias", lambda: nn.Linear(4, 3, bias=False), (normal(EXAMPLES, 3, 4),))
    yield Case("linear wide", lambda: nn.Linear(20, 30), (normal(EXAMPLES, 2, 20),))
    stack = lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(inplace=True), nn.Linear(6, 3))  # noqa: E731
    yield Case("in-place relu", stack, (normal(EXAMPLES, 4),))


_CONVOLUTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("plain", {}),
    ("stride and padding", {"stride": 2, "padding": 1}),
    ("groups", {"groups": 2}),
    ("depthwise", {"groups": 4, "padding": 1}),
    ("dilation", {"dilation": 2, "padding": 2}),
    ("stride, padding and dilation", {"stride": 3, "padding": 2, "dilation": 2}),
    ("no bias, stride, groups", {"stride": 2, "groups": 2, "bias": False}),
)
_PADDINGS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("same", {"padding": "same"}),
    ("same, dilated", {"padding": "same", "dilation": 2}),
    ("circular", {"padding": 1, "padding_mode": "circular"}),
    ("reflect", {"padding": 1, "padding_mode": "reflect"}),
    ("replicate, same", {"padding": "same", "padding_mode": "replicate"}),
)
_TRANSPOSED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("output padding", {"stride": 2, "output_padding": 1}),
    ("output padding, groups", {"stride": 3, "padding": 1, "output_padding": 2, "groups": 2, "dilation": 2}),
)


def convolutions() -> Iterator[Case]:
    kinds = ((nn.Conv1d, nn.ConvTranspose1d), (nn.Conv2d, nn.ConvTranspose2d), (nn.Conv3d, nn.ConvTranspose3d))
    for dims, (plain, transposed) in enumerate(kinds, 1):
        image, small = normal(EXAMPLES, 4, *[7, 6, 5][:dims]), normal(EXAMPLES, 4, *[4, 3, 3][:dims])
        for name, options in _CONVOLUTIONS + _PADDINGS * (dims < 3):
            yield Case(f"conv{dims}d {name}", partial(plain, 4, 8, 3, **options), (image,))
        for name, options in _CONVOLUTIONS + _TRANSPOSED:
            yield Case(f"transposed{dims}d {name}", partial(transposed, 4, 8, 3, **options), (small,))
    yield Case(
        "conv2d even window, same", lambda: nn.Conv2d(2, 3, (2, 4), padding="same"), (normal(EXAMPLES, 2, 5, 6),)
    )
    yield Case("conv2d of one place", lambda: nn.Conv2d(3, 4, 1), (normal(EXAMPLES, 3, 4, 4),))
    # Many weights and few places: this one is kept in factors.
    yield Case("conv2d wide", lambda: nn.Conv2d(16, 24, 3), (normal(EXAMPLES, 16, 4, 4),))


def embeddings() -> Iterator[Case]:
    def case(name: str, index: Tensor, **options: Any) -> Case:
        return Case(f"embedding {name}", lambda: nn.Embedding(7, 4, **options), (index,))

    yield case("one a row", tokens(EXAMPLES))
    yield case("repeated", tokens(EXAMPLES, 6, vocabulary=3))
    yield case("images of tokens", tokens(EXAMPLES, 2, 3))
    yield case("padding", tokens(EXAMPLES, 6), padding_idx=2)
    yield case("padding from the end", tokens(EXAMPLES, 6), padding_idx=-1)
    yield case("sparse", tokens(EXAMPLES, 6), sparse=True)
    yield Case("embedding bag", lambda: nn.EmbeddingBag(7, 4), (tokens(EXAMPLES, 3),))


def normalizations() -> Iterator[Case]:
    def case(name: str, layer: Callable[[], nn.Module], *shape: int) -> Case:
        return Case(name, layer, (normal(EXAMPLES, *shape),))

    yield case("layer norm", lambda: nn.LayerNorm(4), 4)
    yield case("layer norm of rows", lambda: nn.LayerNorm(4), 3, 4)
    yield case("layer norm of two axes", lambda: nn.LayerNorm((3, 4)), 3, 4)
    yield case("layer norm of two axes of three", lambda: nn.LayerNorm((3, 4)), 2, 3, 4)
    yield case("layer norm without bias", lambda: nn.LayerNorm(4, bias=False), 3, 4)
    yield case("group norm 1-d", lambda: nn.GroupNorm(2, 6), 6)
    yield case("group norm 2-d", lambda: nn.GroupNorm(3, 6), 6, 4, 3)
    yield case("group norm of all", lambda: nn.GroupNorm(1, 6), 6, 4)
    yield Case("group norm off centre", lambda: nn.GroupNorm(2, 6), (normal(EXAMPLES, 6, 4) + 30,))
    yield case("instance norm 1-d", lambda: nn.InstanceNorm1d(3, affine=True), 3, 5)
    yield case("instance norm 2-d", lambda: nn.InstanceNorm2d(3, affine=True), 3, 4, 3)
    yield case("instance norm 3-d", lambda: nn.InstanceNorm3d(3, affine=True), 3, 2, 3, 2)
    yield case(
        "instance norm, stored", lambda: nn.InstanceNorm2d(3, affine=True, track_running_stats=True).eval(), 3, 4, 4
    )
    yield case("rms norm", lambda: nn.RMSNorm(4), 3, 4)
    yield case("rms norm of two axes", lambda: nn.RMSNorm((3, 4)), 3, 4)
    yield case("batch norm 1-d, stored", lambda: nn.BatchNorm1d(4).eval(), 4)
    yield case("batch norm of rows, stored", lambda: nn.BatchNorm1d(4).eval(), 4, 3)
    yield case("batch norm 2-d, stored", lambda: nn.BatchNorm2d(4).eval(), 4, 3, 3)
    yield case("prelu of one", nn.PReLU, 4, 3)
    yield case("prelu of channels", lambda: nn.PReLU(4), 4, 3)
    yield case("bilinear", lambda: Described(lambda m, x: m.b(x, x.cos()), b=nn.Bilinear(4, 4, 3)), 4)


def recurrent() -> Iterator[Case]:
    rows = (normal(EXAMPLES, 3, 4),)
    options: tuple[tuple[str, dict[str, Any]], ...] = (
        ("", {}),
        ("two layers, both ways", {"num_layers": 2, "bidirectional": True}),
        ("without bias", {"bias": False}),
    )

    def second(m: Any, x: Tensor) -> Tensor:
        output: Tensor = m.layer(x.transpose(0, 1))[0]
        return output.transpose(0, 1)

    def last(m: Any, x: Tensor) -> Tensor:
        state = m.layer(x)[1]
        cell: Tensor = state if isinstance(state, Tensor) else state[0] * state[1]
        return cell.transpose(0, 1)

    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        for name, option in options:
            yield Case(f"{kind.__name__} {name}", partial(kind, 4, 5, batch_first=True, **option), rows)
            build = described(second, layer=partial(kind, 4, 5, **option))
            yield Case(f"{kind.__name__} time first {name}", build, rows)
        # As many times as examples: which axis holds the examples does not show from the shape.
        yield Case(f"{kind.__name__} time first, T = B", build, (normal(EXAMPLES, EXAMPLES, 4),))
        yield Case(f"{kind.__name__} last state", described(last, layer=partial(kind, 4, 5, 2, batch_first=True)), rows)
    yield Case("RNN with relu", lambda: nn.RNN(4, 5, nonlinearity="relu", batch_first=True), rows)
    yield Case("LSTM projected", lambda: nn.LSTM(4, 5, proj_size=2, batch_first=True), rows)
    for cell in (nn.RNNCell, nn.GRUCell, nn.LSTMCell):
        yield Case(f"{cell.__name__}", partial(cell, 4, 5), (normal(EXAMPLES, 4),))


LAYERS: tuple[Case, ...] = (*linear(), *convolutions(), *embeddings(), *normalizations(), *recurrent())
