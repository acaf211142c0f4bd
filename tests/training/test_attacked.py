"""Ways in which rows got out, or into each other, past an earlier version of the checks; each is refused now."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import privet
from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.training import RunError
from privet.training.engine.contributions import Dense

ROWS = 64


def data(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(ROWS, 8, generator=generator), torch.randint(0, 3, (ROWS,), generator=generator)


def loop(model: nn.Module, forward: Callable[[nn.Module, Tensor], Tensor] | None = None, **more: Any) -> None:
    """Three steps on batches of all rows."""
    plan = privet.DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=ROWS, steps=3, sample_rate=1.0)
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), data(), rng=SeededRng(1), **more)
    for x, y in run.batches():
        scores = forward(model, x) if forward else model(x)
        run.step(F.cross_entropy(scores, y, reduction="none"))


class Model(nn.Module):
    """A small network with a place for mischief before, in the middle and after."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 6), nn.Linear(6, 3)
        self.mean: Tensor
        self.register_buffer("mean", torch.zeros(8))
        self.frozen = nn.Parameter(torch.zeros(8), requires_grad=False)
        self.shift = nn.Parameter(torch.zeros(8))

    def before(self, x: Tensor) -> Tensor:
        return x

    def middle(self, h: Tensor, x: Tensor) -> Tensor:
        return h

    def after(self, scores: Tensor) -> Tensor:
        return scores

    def forward(self, x: Tensor) -> Tensor:
        given = self.before(x) + self.shift
        out: Tensor = self.after(self.last(torch.tanh(self.middle(self.first(given), x))))
        return out


class ThroughData(Model):
    def before(self, x: Tensor) -> Tensor:
        self.mean.data.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x


class Frozen(Model):
    def before(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.frozen.copy_(x.mean(0))
        return x


class FirstBatch(Model):
    started = False

    def before(self, x: Tensor) -> Tensor:
        if not self.started:
            with torch.no_grad():
                self.shift.copy_(-x.mean(0))
            self.started = True
        return x


class Attribute(Model):
    kept: Tensor | None = None

    def before(self, x: Tensor) -> Tensor:
        self.kept = x.mean(0)
        return x


class FirstAttribute(Model):
    kept: Tensor | None = None

    def before(self, x: Tensor) -> Tensor:
        if self.kept is None:
            self.kept = x.detach()[0]
        return x


class Listed(Model):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Any] = []

    def before(self, x: Tensor) -> Tensor:
        self.kept.append(float(x[0, 0]))
        return x


class Written(Model):
    text = ""

    def before(self, x: Tensor) -> Tensor:
        self.text = str(x[0].tolist())
        return x


class InBackward(Model):
    def middle(self, h: Tensor, x: Tensor) -> Tensor:
        def keep(_: Tensor) -> None:
            self.mean.copy_(x[0])

        if h.requires_grad:
            h.register_hook(keep)  # type: ignore[no-untyped-call]
        return h


@pytest.mark.parametrize(
    "kind", [ThroughData, Frozen, FirstBatch, Attribute, FirstAttribute, Listed, Written, InBackward]
)
def test_nothing_of_a_batch_stays_in_the_model(kind: type[Model]) -> None:
    """Each kept rows, or their mean, that left with the release; nothing noised them."""
    with pytest.raises(InvalidInput, match=r"has changed its|keeps something"):
        loop(kind())


class Mask(Model):
    mask: Tensor | None = None

    def after(self, scores: Tensor) -> Tensor:
        if self.mask is None:
            self.mask = torch.tensor([1.0, 1.0, 2.0])
        return scores * self.mask


class Counter(Model):
    count = 0

    def __init__(self) -> None:
        super().__init__()
        self.calls: Tensor
        self.register_buffer("calls", torch.zeros(()))
        self.table: Tensor | None
        self.register_buffer("table", None, persistent=False)

    def before(self, x: Tensor) -> Tensor:
        self.count += 1
        self.calls += 1
        if self.table is None:
            self.table = torch.ones(8)
        return x * self.table


class Spectral(Model):
    def __init__(self) -> None:
        super().__init__()
        nn.utils.parametrizations.spectral_norm(self.first)


@pytest.mark.parametrize("kind", [Mask, Counter, Spectral])
def test_what_does_not_depend_on_rows_may_be_kept(kind: type[Model]) -> None:
    """A table that is made once, a counter, what is made of the weights: none of them is a leak."""
    loop(kind())


class Adjacent(Model):
    def forward(self, x: Tensor, others: Tensor | None = None) -> Tensor:
        return super().forward(x) if others is None else super().forward(x) * others.sum()


@pytest.mark.parametrize("length", [13, 17])
def test_an_input_as_long_as_the_first_piece(length: int) -> None:
    """It was taken for rows, exchanged, and the model refused."""
    loop(Adjacent(), lambda model, x: model(x, torch.arange(length, dtype=torch.float32)))


def centred(x: Tensor) -> Tensor:
    return (x - x.mean(0)) / x.std(0)


class Masked(Model):
    def before(self, x: Tensor) -> Tensor:
        return centred(x)

    def after(self, scores: Tensor) -> Tensor:
        return torch.cat([scores[:, :2], scores.new_full((len(scores), 1), -1e9), scores[:, 2:]], 1)


class NumpyNoise(Model):
    def before(self, x: Tensor) -> Tensor:
        return centred(x) + float(np.random.normal()) * 1e-3


class PythonMixUp(Model):
    def before(self, x: Tensor) -> Tensor:
        share = random.random()
        return share * x + (1 - share) * x.roll(1, 0)


class OnlyLarge(Model):
    def before(self, x: Tensor) -> Tensor:
        return centred(x) if len(x) > 17 else x


class Gated(Model):
    """Row 40, and none of the first 17, opens the gate."""

    def middle(self, h: Tensor, x: Tensor) -> Tensor:
        rare = (x[:, :1] > 50.0).expand_as(h)
        return torch.where(rare, h.mean(0, keepdim=True), h)


class Looked(Model):
    """Hidden rows are looked up by a key, so that two rows with one key share the first one's."""

    def middle(self, h: Tensor, x: Tensor) -> Tensor:
        keys = (x[:, 0] > 50.0).long() + 2 * torch.arange(len(x))
        first = [int((keys == key).nonzero()[0]) if key % 2 == 0 else 0 for key in keys.tolist()]
        return F.embedding(torch.tensor(first), h)


@pytest.mark.parametrize("kind", [Masked, NumpyNoise, PythonMixUp, OnlyLarge])
def test_coupling_does_not_hide(kind: type[Model]) -> None:
    """Behind an enormous output, behind random numbers of others, or in batches of another size."""
    with pytest.raises(InvalidInput, match="coupled"):
        loop(kind())


@pytest.mark.parametrize("kind", [Gated, Looked])
def test_a_gate_that_a_late_row_opens(kind: type[Model], monkeypatch: pytest.MonkeyPatch) -> None:
    """The piece by which the model is examined does not have the row; the batch does."""
    x, y = data()
    x[40, 0] = 100.0
    model = kind()
    plan = privet.DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=ROWS, steps=2, sample_rate=1.0)
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.0), (x, y), rng=SeededRng(2))
    # Without the check of the forward pass: gradients alone must show it.
    monkeypatch.setattr("privet.training.step.check_forward", lambda *_, judge: None)

    def go() -> None:
        for rows, labels in run.batches():
            run.step(F.cross_entropy(model(rows), labels, reduction="none"))

    with pytest.raises(InvalidInput, match="belong to one example each"):
        go()


@dataclass
class Batch:
    x: Tensor


class Wrapped(Model):
    def forward(self, batch: Any) -> Tensor:
        return super().forward(batch.x if isinstance(batch, Batch) else batch)


def test_rows_that_cannot_be_told_apart() -> None:
    """A batch that torch cannot look into was passed on unexamined."""
    with pytest.raises(InvalidInput, match="as tensors"):
        loop(Wrapped(), lambda model, x: model(Batch(x)))


class TimeFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.last = nn.RNN(4, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.cell(x - x.mean(1, keepdim=True) if self.coupled else x)[0][-1])
        return out

    coupled = True


@pytest.mark.parametrize("coupled", [True, False])
def test_time_comes_first(coupled: bool) -> None:
    """Rows lie along the second axis; 17 times, as many as the first piece has rows, are not mistaken for them."""
    generator = torch.Generator().manual_seed(3)
    x, y = torch.randn(ROWS, 17, 4, generator=generator), torch.randint(0, 3, (ROWS,), generator=generator)
    model = TimeFirst()
    model.coupled = coupled
    plan = privet.DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=ROWS, steps=2, sample_rate=1.0)
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.0), (x, y), rng=SeededRng(2))

    def go() -> None:
        for rows, labels in run.batches():
            run.step(F.cross_entropy(model(rows.transpose(0, 1)), labels, reduction="none"))

    if coupled:
        with pytest.raises(InvalidInput, match="coupled"):
            go()
    else:
        go()


def test_a_collate_fn_that_mixes_rows() -> None:
    """It normalised over the batch before the model saw anything."""

    def collate(rows: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        x = torch.stack([row for row, _ in rows])
        return x - x.mean(0), torch.stack([label for _, label in rows])

    model = Model()
    plan = privet.DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=ROWS, steps=1, sample_rate=1.0)
    rows = list(zip(*data(), strict=True))
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), rows, collate_fn=collate, rng=SeededRng(1))
    with pytest.raises(InvalidInput, match="collate_fn"):
        next(run.batches())


@pytest.mark.parametrize("by", [lambda n: 1.0 / n, lambda n: torch.tensor(1.0 / n)])
def test_losses_divided_by_the_number_of_rows(by: Callable[[int], Any]) -> None:
    """One row more made every other row's gradient smaller, after it was priced as if it were not there."""
    model = Model()
    plan = privet.DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=ROWS, steps=1, sample_rate=1.0)
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), data(), rng=SeededRng(1))

    def loop() -> None:
        for x, y in run.batches():
            run.step(F.cross_entropy(model(x), y, reduction="none") * by(len(x)))

    with pytest.raises(InvalidInput, match="divided by"):
        loop()
    assert run.steps == 1


def test_a_loss_function_that_divides_by_the_number_of_rows() -> None:
    plan = privet.DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=ROWS, steps=1, sample_rate=1.0)
    model = Model()
    with pytest.raises(InvalidInput, match="loss"):
        privet.fit(
            model,
            data(),
            plan,
            loss=lambda out, y: F.cross_entropy(out, y, reduction="none").exp() / len(y) ** 0.5,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        )


def test_two_loops_are_one() -> None:
    """A second loop over the batches left the first one's pieces to be added to a sum whose noise was already known."""
    model = Model()
    plan = privet.DPSGD(noise_multiplier=5.0, delta=1e-5, batch_size=ROWS, steps=2, sample_rate=1.0)
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.0), data(), rng=SeededRng(1))
    batches = run.batches()
    x, y = next(batches)
    assert not run.step(F.cross_entropy(model(x), y, reduction="none"))
    for x, y in run.batches():
        run.step(F.cross_entropy(model(x), y, reduction="none"))
    assert run.steps == 2
    with pytest.raises(StopIteration):
        next(batches)
    run.release(1e-5)
    with pytest.raises(RunError, match="ended"):
        run.step(F.cross_entropy(model(x), y, reduction="none"))


def test_the_optimizer_steps_only_with_the_run() -> None:
    """A habit: `loss.backward(); optimizer.step()` beside `run.step` trained on gradients that nobody clipped."""
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = privet.DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=ROWS, steps=1, sample_rate=1.0)
    run = plan.attach(model, optimizer, data(), rng=SeededRng(1))
    for x, y in run.batches():
        run.step(F.cross_entropy(model(x), y, reduction="none"))
        with pytest.raises(RunError, match="outside of run"):
            optimizer.step()
    run.release(1e-5)
    optimizer.step()


def test_a_hook_on_a_parameter_is_refused() -> None:
    """It was obeyed for one row and not for several."""
    model = Model()
    model.shift.register_hook(lambda gradient: gradient * 0)  # type: ignore[no-untyped-call]
    with pytest.raises(InvalidInput, match="hook"):
        loop(model)


@pytest.mark.parametrize("size", [1, 63, 64, 4_097, 1_000_000])
def test_long_gradients_do_not_grow_beyond_the_clip(size: int) -> None:
    """Sums of a million squares in float32 are off by 1e-5 and more: the true norm was above the clip."""
    rows = torch.stack([torch.full((size,), 1.3337), torch.randn(size, generator=torch.Generator().manual_seed(size))])
    found = Dense(rows).squares()
    exact = rows.double().square().sum(1)
    assert bool(((found.value + found.slack).double() >= exact).all())
    assert bool(((found.value + found.slack).double() <= exact * (1 + 2e-5)).all())


class Reading(nn.Module):
    """Has a parameter without a rule, and takes a mask that all rows share."""

    def __init__(self) -> None:
        super().__init__()
        self.power = nn.Parameter(torch.full((12,), 1.5))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x.abs().clamp(min=0.1) ** self.power @ mask


def test_a_shared_mask_as_long_as_the_batch() -> None:
    """A mask of 12 × 12 was taken for 12 rows whenever a batch had 12."""
    generator = torch.Generator().manual_seed(4)
    model = Reading()
    plan = privet.DPSGD(noise_multiplier=1e-9, delta=1e-5, batch_size=34, steps=1, sample_rate=1.0)
    x = torch.randn(23, 12, generator=generator)
    mask = torch.eye(12) + 1.0
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), x, rng=SeededRng(1))
    sizes = []
    for rows in run.batches():
        sizes += [] if run.rehearsing else [len(rows)]
        run.step(model(rows, mask).square().sum(1))
    assert sizes == [11, 12]
