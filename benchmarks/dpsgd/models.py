"""The models that are measured, and the data they are measured on: random numbers of the right shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

CLASSES = 10
ROWS = 8192
"""Rows of the data set that batches are drawn from."""


class Encoder(nn.Module):
    """A two-layer transformer over 64 tokens, width 128, four heads."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(1000, 128)
        self.positions = nn.Embedding(64, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(128, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1]).expand(len(tokens), -1)
        out: Tensor = self.head(self.layers(self.tokens(tokens) + self.positions(places)).mean(1))
        return out


class Recurrent(nn.Module):
    """An LSTM of 128 units over 64 steps of 64 numbers."""

    lstm_class: type[nn.Module] = nn.LSTM

    def __init__(self) -> None:
        super().__init__()
        self.lstm = self.lstm_class(64, 128, batch_first=True)
        self.head = nn.Linear(128, CLASSES)

    def forward(self, rows: Tensor) -> Tensor:
        out: Tensor = self.head(self.lstm(rows)[0][:, -1])
        return out


class Block(nn.Module):
    """One layer of a decoder, in the manner of GPT-2."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        out: Tensor = x + self.down(nn.functional.gelu(self.up(self.between(x))))
        return out


class Decoder(nn.Module):
    """A GPT-2-like decoder of 10 million parameters: six layers, width 320, 8,000 tokens, length 64."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(8000, 320), nn.Embedding(64, 320)
        self.blocks = nn.Sequential(*(Block(320, 5) for _ in range(6)))
        self.last = nn.LayerNorm(320)
        self.head = nn.Linear(320, 8000, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1]).expand(len(tokens), -1)
        out: Tensor = self.head(self.last(self.blocks(self.tokens(tokens) + self.positions(places)))[:, -1])
        return out


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, CLASSES))


def _mnist_cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, CLASSES),
    )


def _cifar_cnn() -> nn.Module:
    layers: list[nn.Module] = []
    before = 3
    for width in (32, 64, 128):
        layers += [nn.Conv2d(before, width, 3, padding=1), nn.ReLU()]
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        before = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, CLASSES))


@dataclass(frozen=True)
class Case:
    """A model at a batch size, and the ratio to plain SGD that is aimed at."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    batch: int
    goal: float
    tokens: int = 0
    """If not 0, inputs are tokens below this number."""
    labels: int = CLASSES
    rows: int = ROWS

    def data(self) -> tuple[Tensor, Tensor]:
        """Inputs and labels, the same at every call."""
        source = torch.Generator().manual_seed(1)
        size = (self.rows, *self.shape)
        if self.tokens:
            inputs = torch.randint(0, self.tokens, size, generator=source)
        else:
            inputs = torch.randn(size, generator=source)
        return inputs, torch.randint(0, self.labels, (self.rows,), generator=source)


CASES: tuple[Case, ...] = (
    Case("mlp 784-1000-10", _mlp, (784,), 256, 1.55),
    Case("mlp 784-1000-10", _mlp, (784,), 1024, 1.35),
    Case("mnist cnn", _mnist_cnn, (1, 28, 28), 256, 1.35),
    Case("mnist cnn", _mnist_cnn, (1, 28, 28), 1024, 1.35),
    Case("cifar cnn", _cifar_cnn, (3, 32, 32), 256, 1.25),
    Case("transformer", Encoder, (64,), 256, 1.25, tokens=1000),
    Case("lstm", Recurrent, (64, 64), 256, 1.6),
    Case("decoder 10M", Decoder, (64,), 64, 1.25, tokens=8000, labels=8000, rows=1024),
)
