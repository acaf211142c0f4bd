"""Ways to train one and the same small network: plainly, with a defence that is taught, or with DP-SGD."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

import privet
from privet.core.event import Event
from privet.core.random import SeededRng
from privet.ensemble.seeding import generator, seed_of

__all__ = ["RECIPES", "Recipe", "Rows", "trained"]

HIDDEN, BATCH, LEARNING_RATE, PATIENCE = 128, 64, 5e-3, 3
PRIVATE_RATE, PRIVATE_BATCH, PRIVATE_EPOCHS = 2.0, 250, 20


@dataclass(frozen=True, eq=False)
class Rows:
    """Features and labels."""

    x: Tensor
    y: Tensor

    def take(self, index: Tensor) -> Rows:
        """Some of them."""
        return Rows(self.x[index], self.y[index])


@dataclass(frozen=True)
class Recipe:
    """What is done to a network while it learns; every number that is 0 is left out."""

    name: str
    epochs: int = 30
    dropout: float = 0.0
    weight_decay: float = 0.0
    smoothing: float = 0.0
    normed_weights: bool = False
    batch_norm: bool = False
    rare: float = 0.0
    """Features that are not 0 in less than this part of the rows are dropped."""
    stop_early: bool = False
    """On rows apart, once their loss has not fallen for three epochs; the best weights are kept."""
    epsilon: float = 0.0

    def plan(self, rows: int, delta: float) -> privet.DPSGD:
        """The private plan, for a public number of rows."""
        return privet.DPSGD(
            epsilon=self.epsilon,
            delta=delta,
            clip=1.0,
            batch_size=PRIVATE_BATCH,
            epochs=PRIVATE_EPOCHS,
            population=rows,
        ).calibrated()

    def event(self, rows: int, delta: float) -> Event:
        """What a private run does."""
        return self.plan(rows, delta).event()


RECIPES = (
    Recipe("plain"),
    Recipe("dropout 0.5", dropout=0.5),
    Recipe("early stopping", stop_early=True),
    Recipe("weight decay 0.001", weight_decay=1e-3),
    Recipe("label smoothing 0.2", smoothing=0.2),
    Recipe("weight normalisation", normed_weights=True),
    Recipe("batch norm", batch_norm=True),
    Recipe("no rare features", rare=0.05),
    Recipe("DP, ε = 1", epsilon=1.0),
    Recipe("DP, ε = 2", epsilon=2.0),
    Recipe("DP, ε = 4", epsilon=4.0),
    Recipe("DP, ε = 8", epsilon=8.0),
)


class Dropout(nn.Module):
    """Dropout from a stream of its own, so that a run can be repeated."""

    def __init__(self, part: float, drawn: torch.Generator) -> None:
        super().__init__()
        self.part, self.drawn = part, drawn

    def forward(self, values: Tensor) -> Tensor:
        """Some of the values, in training."""
        if not self.training:
            return values
        return values * (torch.rand(values.shape, generator=self.drawn) >= self.part) / (1 - self.part)


def trained(
    recipe: Recipe, rows: Rows, apart: Rows, *, classes: int, population: int, delta: float, key: str
) -> nn.Module:
    """One network. Rows apart are nobody's: early stopping looks at them, and nothing else does."""
    kept = torch.ones(rows.x.shape[1])
    if recipe.rare:
        kept = ((rows.x != 0).float().mean(0) >= recipe.rare).float()
    drawn = generator(key, recipe.name)
    with torch.random.fork_rng():
        torch.manual_seed(seed_of(key, "initial"))
        first, last = nn.Linear(rows.x.shape[1], HIDDEN), nn.Linear(HIDDEN, classes)
    if recipe.normed_weights:
        first, last = weight_norm(first), weight_norm(last)
    between: list[nn.Module] = [nn.ReLU()]
    if recipe.batch_norm:
        between.insert(0, nn.BatchNorm1d(HIDDEN))
    if recipe.dropout:
        between.append(Dropout(recipe.dropout, drawn))
    model = nn.Sequential(first, *between, last)
    given = Rows(rows.x * kept, rows.y)
    if recipe.epsilon:
        _privately(model, given, recipe.plan(population, delta), key)
    else:
        _plainly(model, given, Rows(apart.x * kept, apart.y), recipe, drawn)
    model.eval()
    return nn.Sequential(_Kept(kept), model).eval()


class _Kept(nn.Module):
    def __init__(self, kept: Tensor) -> None:
        super().__init__()
        self.kept = kept

    def forward(self, rows: Tensor) -> Tensor:
        return rows * self.kept


def _plainly(model: nn.Module, rows: Rows, apart: Rows, recipe: Recipe, drawn: torch.Generator) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=recipe.weight_decay, fused=True)
    best, waited, kept = float("inf"), 0, {}
    for _ in range(recipe.epochs):
        model.train()
        order = torch.rand(len(rows.y), generator=drawn).argsort()
        for places in torch.split(order[: len(order) - len(order) % BATCH], BATCH):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(rows.x[places]), rows.y[places], label_smoothing=recipe.smoothing)
            torch.autograd.backward(loss)
            optimizer.step()
        if recipe.stop_early:
            model.eval()
            with torch.no_grad():
                now = float(F.cross_entropy(model(apart.x), apart.y))
            if now < best:
                best, waited, kept = now, 0, {name: value.clone() for name, value in model.state_dict().items()}
            elif (waited := waited + 1) >= PATIENCE:
                break
    if recipe.stop_early:
        model.load_state_dict(kept)


def _privately(model: nn.Module, rows: Rows, plan: privet.DPSGD, key: str) -> None:
    losses: Callable[[Tensor, Tensor], Tensor] = lambda said, true: F.cross_entropy(said, true, reduction="none")  # noqa: E731
    privet.fit(
        model,
        (rows.x, rows.y),
        plan,
        loss=losses,
        optimizer=torch.optim.SGD(model.parameters(), lr=PRIVATE_RATE),
        rng=SeededRng(seed_of(key, "noise")),
    )
