"""A real training run and its card, made once: handwritten digits, two epochs, every number computed and none invented.

1,257 rows are private and trained on, 180 are private and held out, and 360 stand for a public test file.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

import privet
from privet.core.disclosure import Internal, Public
from privet.core.event import Composed, Event, Repeated
from privet.core.random import SecureRng, SeededRng
from privet.core.release import Release
from privet.core.scores import Score, Trial
from privet.core.unit import Unit
from privet.ledger import Ledger
from privet.mechanisms import Count, DiscreteGaussianMechanism
from privet.report.curves import Curves, curves_of
from privet.report.training_card import TrainingCard
from privet.report.training_price import growth_of, price_lines, trial_of
from privet.report.training_records import Charged, Choice, Measure, Series
from privet.training import DPSGD, Progress
from privet.training.convex import OutputPerturbation, Softmax

ROWS, HELD, DELTA, EPOCHS, BATCH = 1257, 180, 1e-4, 2, 128
SCHEMA = """\
privet = 1
target = "digit"
rows = 1257

[[column]]
name = "ink <of> \\"pixels\\""
kind = "number"
low = 0
high = 16
source = "domain limit"

[[column]]
name = "digit"
kind = "category"
values = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
source = "domain limit"
"""


@dataclass(frozen=True)
class Split:
    """Inputs scaled by their public bounds, and labels."""

    x: Tensor
    y: Tensor

    def right(self, model: nn.Module) -> Tensor:
        with torch.no_grad():
            found: Tensor = model(self.x).argmax(1)
        return found == self.y

    def accuracy(self, model: nn.Module) -> float:
        return float(self.right(model).float().mean())


@cache
def splits() -> tuple[Split, Split, Split]:
    """Train, held out, test."""
    digits = load_digits()
    x = torch.from_numpy((digits.data / 16.0).astype(np.float32))
    y = torch.from_numpy(digits.target.astype(np.int64))
    ends = (0, ROWS, ROWS + HELD, len(x))
    train, held, test = (Split(x[a:b], y[a:b]) for a, b in pairwise(ends))
    return train, held, test


def clipped(model: nn.Linear, split: Split, clip: float) -> float:
    """The share of rows whose gradient is longer than the clip: |p − y|·√(|x|² + 1) for a linear softmax."""
    with torch.no_grad():
        gap = F.softmax(model(split.x), 1) - F.one_hot(split.y, 10)
        norms = gap.norm(dim=1) * (split.x.norm(dim=1) ** 2 + 1).sqrt()
        return float((norms > clip).float().mean())


@cache
def trained(*, seeded: bool = True) -> TrainingCard:
    """The card of a run with a model, a released score, another method beside it, and internal curves."""
    train, held, test = splits()
    rng: Any = SeededRng(4) if seeded else SecureRng()
    unit = Unit()
    plan = DPSGD(epsilon=1.5, delta=DELTA, clip=1.0, batch_size=BATCH, epochs=EPOCHS, population=ROWS).calibrated()
    model = nn.Linear(64, 10)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    steps = plan.sampler(ROWS).steps_of()
    seen: dict[str, list[float]] = {"test": [], "loss": [], "clipped": [], "train": []}

    def follow(progress: Progress) -> None:
        if progress.step * EPOCHS % progress.total == 0:
            with torch.no_grad():
                seen["loss"].append(float(F.cross_entropy(model(train.x), train.y)))
            seen["test"].append(test.accuracy(model))
            seen["train"].append(train.accuracy(model))
            seen["clipped"].append(clipped(model, train, plan.clip))

    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "ledger.db")
        ledger.create("digits", epsilon=4.0, delta=1e-3)
        release = privet.fit(
            model,
            (train.x, train.y),
            plan,
            loss=lambda output, target: F.cross_entropy(output, target, reduction="none"),
            optimizer=torch.optim.SGD(model.parameters(), lr=2.0),
            callbacks=(follow,),
            charge=ledger.budget("digits"),
            rng=rng,
        )
        noise = DiscreteGaussianMechanism.for_epsilon(0.5, DELTA / 10)
        with ledger.reserve("digits", noise.event, purpose="score").drawing():
            count: Release[int] = noise.release(Count()(held.right(model).tolist()), rng=rng, source="digits")
        output = OutputPerturbation(Softmax(10), epsilon=1.0, delta=DELTA, regularization=20.0, radius=4.0)
        with ledger.reserve("digits", output.event, purpose="comparison").drawing():
            other = output.fit(train.x.numpy(), train.y.numpy(), source="digits", rng=rng)
        statement = ledger.show("digits")
        charged = Charged("digits", tuple(entry.id for entry in statement.entries), statement.budget.head)
        ledger.close()

    privacy, bill = price_lines(
        [
            ("the model, by DP-SGD", release.event),
            ("its score on held-out rows", count.event),
            ("another model, by output perturbation", output.event),
        ],
        DELTA,
        unit=unit,
        population=ROWS,
        described=(("method", "DP-SGD"), ("steps", f"{steps}")),
        conditions=("Each loss depends on its own example alone.",),
        notes=("Settings were chosen by rules, and not tuned on these rows.",),
    )

    def after(epoch: int) -> Event:
        assert isinstance(release.event, Repeated)
        return Composed((Repeated(release.event.event, steps * epoch // EPOCHS), count.event, output.event))

    half = noise.interval(0.95) / HELD

    def held_score(correct: int) -> Score:
        value = correct / HELD
        return Score("accuracy", value, "held-out rows", True, value - half, value + half, 0.95, "the noise")

    def own(_: nn.Module) -> Score:
        return Score("accuracy", test.accuracy(model), "the test file")

    def beside(found: Any) -> Score:
        right = (found.scores(test.x.numpy()).argmax(1) == test.y.numpy()).mean()
        return Score("accuracy", float(right), "the test file")

    plain = LogisticRegression(max_iter=200).fit(train.x.numpy(), train.y.numpy())
    baseline = Score("accuracy", float(plain.score(test.x.numpy(), test.y.numpy())), "the test file")
    epochs = tuple(float(epoch + 1) for epoch in range(EPOCHS))

    def series(measure: Measure, on: str, values: list[float]) -> Series:
        return Series(measure, on, epochs, tuple(values))

    return TrainingCard(
        command=Public("privet train digits --epsilon 1.5 --delta 1e-4 --epochs 2 --compare none,output"),
        made=Public("2026-01-02T03:04:05+00:00"),
        data=Public("digits"),
        model=Public("linear, 650 parameters"),
        method=Public("DP-SGD"),
        choices=Public(
            (
                Choice("noise multiplier", f"{plan.noise_multiplier:.4g}", "the least that meets ε and δ"),
                Choice("clip", f"{plan.clip:g}", "gradients of a linear model are about that long"),
                Choice("batch", f"{BATCH}", "about a tenth of the rows"),
                Choice("epochs", f"{EPOCHS}", "asked for"),
                Choice("learning rate", "2", "a linear model takes large steps"),
            )
        ),
        privacy=privacy,
        bill=bill,
        growth=Public(growth_of(after, EPOCHS, privacy.guarantee.value)),
        randomness=Public(release.randomness),
        versions=Public((("privet", "0.1.0"), ("torch", torch.__version__))),
        ledger=Public(charged),
        rows=Public(ROWS),
        schema=Public(SCHEMA),
        scores=(
            release.map(own),
            count.map(held_score),
            Internal(Score("accuracy", seen["train"][-1], "training rows")),
        ),
        history=(
            release.map(lambda _: series(Measure.ACCURACY, "the test file", seen["test"])),
            Internal(series(Measure.ACCURACY, "training rows", seen["train"])),
            Internal(series(Measure.LOSS, "training rows", seen["loss"])),
            Internal(series(Measure.CLIPPED, "training rows", seen["clipped"])),
        ),
        compared=(
            trial_of("this run", "DP-SGD", release.map(own), DELTA),
            trial_of("output", "output perturbation", other.map(beside), DELTA),
            Internal(Trial("none", "none", float("inf"), 0.0, baseline)),
        ),
    )


@cache
def curves(*, seeded: bool = True) -> Curves:
    """The curves of that card."""
    return curves_of(trained(seeded=seeded).privacy)
