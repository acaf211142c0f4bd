"""Models of several layers: attention, bare parameters, tied and shared weights, losses over tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from tests.training.models import EXAMPLES, LAYERS, Case, described, normal, tokens, waves

__all__ = ["CASES"]


def parameter(*shape: int) -> Callable[[], nn.Parameter]:
    return lambda: nn.Parameter(torch.zeros(shape))


def batch_second(m: Any, x: Tensor) -> Tensor:
    output: Tensor = m.layer(x.transpose(0, 1))
    return output.transpose(0, 1)


def attention() -> Iterator[Case]:
    options: tuple[tuple[str, dict[str, Any]], ...] = (
        ("", {}),
        ("without bias", {"bias": False}),
        ("learned key and value", {"add_bias_kv": True}),
        ("zero attention", {"add_zero_attn": True}),
    )

    def attend(m: Any, x: Tensor, weights: bool) -> Tensor:
        query = x if m.layer.batch_first else x.transpose(0, 1)
        output: Tensor = m.layer(query, query, query, need_weights=weights)[0]
        return output if m.layer.batch_first else output.transpose(0, 1)

    def masked(m: Any, x: Tensor) -> Tensor:
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        padding = torch.arange(x.shape[1])[None] >= x.shape[1] - (x[:, 0, :1] > 0).long()
        output: Tensor = m.layer(x, x, x, attn_mask=causal, key_padding_mask=padding, need_weights=False)[0]
        return output

    def crossed(m: Any, x: Tensor, y: Tensor) -> Tensor:
        output: Tensor = m.other(m.layer(x, y, y)[0], y[..., :4], y[..., 1:6])[0]
        return output

    for first in (True, False):
        for name, option in options:
            build = described(
                partial(attend, weights=first), layer=partial(nn.MultiheadAttention, 6, 2, batch_first=first, **option)
            )
            for times in (3, EXAMPLES):
                order = "" if first else "time first "
                yield Case(f"attention {order}{name} T={times}", build, (normal(EXAMPLES, times, 6),))
    whole = partial(nn.MultiheadAttention, 6, 2, batch_first=True)
    yield Case("attention masked", described(masked, layer=whole), (normal(EXAMPLES, 3, 6),))
    other = partial(nn.MultiheadAttention, 6, 2, batch_first=True, kdim=4, vdim=5)
    yield Case(
        "attention crossed",
        described(crossed, layer=whole, other=other),
        (normal(EXAMPLES, 2, 6), normal(EXAMPLES, 3, 6)),
    )


def transformers() -> Iterator[Case]:
    def both(m: Any, x: Tensor, y: Tensor) -> Tensor:
        first: bool = m.layer.self_attn.batch_first
        output: Tensor = m.layer(x, y) if first else m.layer(x.transpose(0, 1), y.transpose(0, 1)).transpose(0, 1)
        return output

    for times in (3, EXAMPLES, 2 * EXAMPLES):
        rows = normal(EXAMPLES, times, 6)
        encoder = partial(nn.TransformerEncoderLayer, 6, 2, 8, dropout=0.0)
        yield Case(f"encoder T={times}", partial(encoder, batch_first=True), (rows,))
        yield Case(f"encoder time first T={times}", described(batch_second, layer=encoder), (rows,))
    pair = (normal(EXAMPLES, 2, 6), normal(EXAMPLES, EXAMPLES, 6))
    for first in (True, False):
        decoder = partial(nn.TransformerDecoderLayer, 6, 2, 8, dropout=0.0, batch_first=first, norm_first=first)
        yield Case(f"decoder {'batch' if first else 'time'} first", described(both, layer=decoder), pair)


class Conv1D(nn.Module):
    """The linear layer of Hugging Face's GPT-2: the weight is transposed and the rows are flattened."""

    def __init__(self, outputs: int, inputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        self.weight = nn.Parameter(torch.zeros(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        flat = torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight)
        return flat.view(*x.shape[:-1], self.outputs)


def bare() -> Iterator[Case]:
    rows, line = (normal(EXAMPLES, 3, 4),), partial(nn.Linear, 4, 4)

    def case(name: str, forward: Callable[..., Any], *shapes: tuple[int, ...]) -> Case:
        named = {name: parameter(*shape) for name, shape in zip("pq", shapes, strict=False)}
        return Case(f"bare {name}", described(forward, l=line, **named), rows)

    yield case("class token", lambda m, x: torch.cat([m.p.expand(len(x), -1, -1), m.l(x)], 1).tanh(), (1, 1, 4))
    yield case("class token, repeated", lambda m, x: torch.cat([m.p.repeat(len(x), 1, 1), m.l(x)], 1).tanh(), (1, 1, 4))
    yield case("position table", lambda m, x: (m.l(x) + m.p[:, : x.shape[1]]).tanh(), (1, 6, 4))
    yield case("position table, 2-d", lambda m, x: (m.l(x) + m.p).tanh(), (3, 4))
    yield case(
        "position table, time first", lambda m, x: (m.l(x).transpose(0, 1) + m.p).tanh().transpose(0, 1), (3, 1, 4)
    )
    yield case("scale 1 + g", lambda m, x: m.l(x).tanh() * (1 + m.p), (4,))
    yield case("layer scale", lambda m, x: x + m.p * m.l(x).tanh(), (4,))
    yield case("temperature", lambda m, x: m.l(x).tanh() * m.p.exp() - m.q, (), (1,))
    yield case("division", lambda m, x: m.p / (3 + m.l(x).tanh()) + m.l(x) / (3 + m.q), (4,), (4,))
    yield case("matrix", lambda m, x: m.l(x).tanh() @ m.p, (4, 3))
    yield case("matrix, transposed", lambda m, x: m.l(x).tanh() @ m.p.mT, (3, 4))
    yield case("vector", lambda m, x: m.l(x).tanh() @ m.p, (4,))
    yield case("einsum", lambda m, x: torch.einsum("btd,hdp->bthp", m.l(x).tanh(), m.p), (2, 4, 3))
    yield case(
        "einsum of heads",
        lambda m, x: torch.einsum("bthd,hdp->bthp", m.l(x).unflatten(2, (2, 2)).tanh(), m.p),
        (2, 2, 3),
    )
    yield case("pieces", lambda m, x: F.linear(F.linear(x, *m.p.split(4)[:1]), m.p.split(4)[1]), (8, 4))
    yield case("on raw rows", lambda m, x: m.l((x * m.p + m.q).tanh()), (1, 3, 4), (4,))
    yield case("two in a product", lambda m, x: F.linear(m.l(x).tanh(), m.p @ m.q), (3, 2), (2, 4))
    yield case("rank one", lambda m, x: m.l(x).tanh() @ (m.p.exp() * m.q.exp()), (4, 1), (1, 4))
    yield case("unit vectors", lambda m, x: F.linear(F.normalize(m.l(x), dim=-1), F.normalize(m.p, dim=-1)), (3, 4))
    yield case("table by index", lambda m, x: m.l(x) * m.p[(x[..., 0] > 0).long()], (2, 4))
    yield case("chosen", lambda m, x: torch.where(x > 0.5, m.p, m.l(x)), (4,))
    yield case("unused", lambda m, x: m.l(x).tanh(), (4,))
    yield Case("bare used in one branch", described(lambda m, x: m.l(x).tanh() + m.p * 0, l=line, p=parameter(4)), rows)


def shared() -> Iterator[Case]:
    rows, line = (normal(EXAMPLES, 4, 4),), partial(nn.Linear, 4, 4)
    yield Case("module used twice", described(lambda m, x: m.l(m.l(x).tanh()), l=line), rows)
    twice = described(lambda m, x: m.c(m.c(x).tanh()), c=partial(nn.Conv1d, 4, 4, 3, padding=1))
    yield Case("convolution used twice", twice, rows)
    yield Case("weight lent to another", described(lambda m, x: F.linear(m.l(x).tanh(), m.l.weight.t()), l=line), rows)
    yield Case(
        "embedding used twice",
        described(lambda m, i: m.e(i) * m.e(i.flip(1)).tanh(), e=partial(nn.Embedding, 7, 4)),
        (tokens(EXAMPLES, 3),),
    )

    def decode(m: Any, i: Tensor, flat: bool) -> Tensor:
        places = torch.arange(i.shape[1])
        return F.linear((m.e(i) + m.w(places if flat else places[None])).tanh(), m.e.weight)

    def tied() -> nn.Module:
        model = described(
            lambda m, i: m.head(m.f(m.e(i).tanh()).tanh()),
            e=partial(nn.Embedding, 30, 12),
            f=partial(nn.Linear, 12, 12),
            head=partial(nn.Linear, 12, 30, bias=False),
        )()
        model.head.weight = model.e.weight  # type: ignore[union-attr]
        return model

    for length in (1, 3, EXAMPLES, 2 * EXAMPLES):
        for flat in (True, False):
            build = described(partial(decode, flat=flat), e=partial(nn.Embedding, 7, 4), w=partial(nn.Embedding, 16, 4))
            name = f"tied, positions {'[L]' if flat else '[1, L]'}, L={length}"
            yield Case(name, build, (tokens(EXAMPLES, length),))
    yield Case("tied head", tied, (tokens(EXAMPLES, 3, vocabulary=5),))
    conv1d = described(lambda m, x: m.b(m.a(x).tanh()), a=partial(Conv1D, 6, 4), b=partial(Conv1D, 3, 6))
    yield Case("Conv1D of GPT-2", conv1d, rows)
    yield Case("weight norm", lambda: parametrizations.weight_norm(nn.Linear(4, 3)), rows)
    yield Case("weight norm of a convolution", lambda: parametrizations.weight_norm(nn.Conv1d(4, 3, 2)), rows)

    def frames(m: Any, x: Tensor) -> Tensor:
        seen: Tensor = m.l(m.n(m.c(x.flatten(0, 1))).flatten(1)).unflatten(0, x.shape[:2])
        return seen

    folded = described(
        frames, c=partial(nn.Conv2d, 2, 4, 3), n=partial(nn.GroupNorm, 2, 4), l=partial(nn.Linear, 16, 3)
    )
    for count in (3, EXAMPLES):
        yield Case(f"{count} frames in the batch", folded, (normal(EXAMPLES, count, 2, 4, 4),))


def stack() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.LayerNorm(6), nn.Linear(6, 4))


def losses() -> Iterator[Case]:
    def per_token(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(model(x).transpose(1, 2), y, ignore_index=1, reduction="none").sum(1)

    def averaged(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        flat = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=1, reduction="none")
        kept = (y != 1).sum(1)
        return flat.view_as(y).sum(1) / kept.clamp(min=1)

    def live(model: nn.Module, x: Tensor) -> Tensor:
        return waves(model, x.clone().requires_grad_())

    labelled = (normal(EXAMPLES, 3, 4), tokens(EXAMPLES, 3, vocabulary=4))
    yield Case("loss summed over tokens", stack, labelled, per_token)
    yield Case("loss averaged over kept tokens", stack, labelled, averaged)
    yield Case("nothing but ignored tokens", stack, (labelled[0], torch.ones_like(labelled[1])), per_token)
    yield Case("inputs that require gradients", stack, (normal(EXAMPLES, 4),), live)
    for frozen in ("0", "0.weight", "0.bias", "2", "2.weight", "3.weight", "3"):
        yield Case(f"frozen {frozen}", stack, (normal(EXAMPLES, 3, 4),), frozen=(frozen,))


CASES: tuple[Case, ...] = (*LAYERS, *attention(), *transformers(), *bare(), *shared(), *losses())
