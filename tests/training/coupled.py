"""Models and losses in which one example's loss depends on another example: every one of them must be refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.training.composed import parameter
from tests.training.models import Batch, described, filled, normal, tokens

__all__ = ["AT_ONCE", "IN_THE_LOSS", "LATER", "Coupled"]

ROWS = 40


class Coupled(NamedTuple):
    name: str
    build: Callable[[], nn.Module]
    loss: Callable[..., Tensor]
    batch: Batch = (normal(ROWS, 4),)

    def model(self) -> nn.Module:
        return filled(self.build()).float()

    def data(self) -> Any:
        rows = tuple(each.float() if each.is_floating_point() else each for each in self.batch)
        return rows if len(rows) > 1 else rows[0]


def squared(model: nn.Module, x: Tensor) -> Tensor:
    output = model(x)
    flat: Tensor = (output if isinstance(output, Tensor) else output[0]).flatten(1)
    return (flat - 1).square().sum(1)


def stack() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def two(forward: Callable[..., Any]) -> Callable[[], nn.Module]:
    return described(forward, a=partial(nn.Linear, 4, 5), b=partial(nn.Linear, 5, 3))


def at_once() -> Iterator[Coupled]:
    """Seen in the first batch, by what gradients reach or by what outputs change."""
    yield Coupled("batch norm", lambda: nn.Sequential(nn.Linear(4, 5), BatchNormByHand(), nn.Linear(5, 3)), squared)
    yield Coupled("mean of a hidden layer", two(lambda m, x: m.b((m.a(x) - m.a(x).mean(0)).tanh())), squared)
    yield Coupled("detached mean", two(lambda m, x: m.b((m.a(x) - m.a(x).mean(0).detach()).tanh())), squared)
    yield Coupled("mean of the raw rows", two(lambda m, x: m.b(m.a(x - x.mean(0)).tanh())), squared)
    yield Coupled("largest of the raw rows", two(lambda m, x: m.b(m.a(x / x.abs().max()).tanh())), squared)
    yield Coupled("raw rows with those before them", two(lambda m, x: m.b(m.a(x.cumsum(0)).tanh())), squared)
    yield Coupled("order in the batch", two(lambda m, x: m.b(m.a(x)) * (x[:, :1] > x[:, :1].median())), squared)
    yield Coupled("neighbours mixed", two(lambda m, x: m.b(m.a(0.7 * x + 0.3 * x.flip(0)).tanh())), squared)
    yield Coupled(
        "attention over the batch",
        lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0),
        squared,
        (normal(ROWS, 3, 4),),
    )
    yield Coupled("recurrence over the batch", lambda: nn.GRU(4, 5), squared, (normal(ROWS, 3, 4),))
    yield Coupled("contrastive", stack, lambda m, x: contrastive(m(x)))
    yield Coupled("weak contrastive", stack, lambda m, x: squared(m, x) + 1e-6 * contrastive(m(x)))
    yield Coupled("mean of the losses", stack, lambda m, x: squared(m, x).mean().expand(len(x)))
    yield Coupled("loss over the batch's losses", stack, lambda m, x: squared(m, x) / squared(m, x).mean())
    yield Coupled("losses in another order", stack, lambda m, x: squared(m, x).flip(0))
    yield Coupled("balance of experts", stack, lambda m, x: squared(m, x) + m(x).softmax(1).mean(0).square().sum())
    lookup = described(lambda m, x: m.a(x), a=partial(nn.Linear, 4, 6), e=partial(nn.Embedding, 50, 6))
    pairs = (normal(ROWS, 4), tokens(ROWS, vocabulary=50))
    yield Coupled("in-batch negatives", lookup, lambda m, x, y: negatives(m(x), m.e(y)), pairs)
    # In the first piece the labels count like positions.
    counted = (normal(4, 4), torch.tensor([3, 4, 9, 1]))
    yield Coupled("in-batch negatives, counting at first", lookup, lambda m, x, y: negatives(m(x), m.e(y)), counted)
    both = described(lambda m, x: m.a(x), a=partial(nn.Linear, 4, 6), e=partial(nn.Linear, 4, 6))
    yield Coupled("pairs of a batch", both, lambda m, x: negatives(m(x), m.e(x.cos())))


class BatchNormByHand(nn.Module):
    """No module that could be recognised."""

    def forward(self, x: Tensor) -> Tensor:
        return F.batch_norm(x, None, None, training=True)


def contrastive(found: Tensor) -> Tensor:
    return (found @ found.T).logsumexp(1)


def negatives(found: Tensor, candidates: Tensor) -> Tensor:
    return F.cross_entropy(found @ candidates.T, torch.arange(len(found)), reduction="none")


class Later(NamedTuple):
    """Coupled from the first step on, through something that is zero at first and then is not."""

    name: str
    coupled: Coupled
    zero: str


def later() -> Iterator[Later]:
    hidden = Coupled("", two(lambda m, x: m.b((m.a(x) - m.a(x).mean(0)).tanh())), squared)
    yield Later("mean of a hidden layer under a head of zeros", hidden, "b.weight")
    raw = Coupled("", two(lambda m, x: m.b(m.a(x - x.mean(0)).tanh())), squared)
    yield Later("mean of the raw rows under a head of zeros", raw, "b.weight")
    gate = described(
        lambda m, x: m.b(m.a(x) + m.g * (m.a(x) - m.a(x).mean(0))),
        a=partial(nn.Linear, 4, 5),
        b=partial(nn.Linear, 5, 3),
        g=parameter(),
    )
    yield Later("a branch behind a gate of zero", Coupled("", gate, squared), "g")
    share = described(
        lambda m, x: m.b(m.a(x).tanh()), a=partial(nn.Linear, 4, 5), b=partial(nn.Linear, 5, 3), g=parameter()
    )
    warm = Coupled("", share, lambda m, x: squared(m, x) + m.g.detach() * contrastive(m(x)))
    yield Later("a contrastive loss whose share grows from zero", warm, "g")


def in_the_loss() -> Iterator[Coupled]:
    """What neither gradients nor the model's outputs show, since the loss alone looks at other examples' values."""
    labelled = (normal(ROWS, 4), torch.arange(ROWS) // 2 % 3)

    def entropy(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(model(x), y, ignore_index=2, reduction="none")

    yield Coupled(
        "divided by the kept labels of the batch", stack, lambda m, x, y: entropy(m, x, y) / (y != 2).sum(), labelled
    )
    yield Coupled(
        "weights of the batch's classes", stack, lambda m, x, y: entropy(m, x, y) / y.bincount(minlength=3)[y], labelled
    )
    yield Coupled("divided by the detached mean", stack, lambda m, x: squared(m, x) / squared(m, x).mean().detach())
    yield Coupled("rows centred outside the model", stack, lambda m, x: squared(m, x - x.mean(0)))


AT_ONCE: tuple[Coupled, ...] = tuple(at_once())
LATER: tuple[Later, ...] = tuple(later())
IN_THE_LOSS: tuple[Coupled, ...] = tuple(in_the_loss())
