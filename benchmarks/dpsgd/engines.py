"""One full step, by each engine: sampling, forward, backward, clip, noise, optimizer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import privet
from benchmarks.dpsgd.models import Case, Recurrent
from privet.core.random import default_rng
from privet.training import Performance
from privet.training.data import Rows
from privet.training.sampling import PoissonSampler

NOISE, CLIP, RATE = 1.0, 1.0, 0.01
DEFAULT = Performance()
Stepper = Callable[[], object]


def plain(case: Case) -> Stepper:
    """Ordinary SGD on random batches of the expected size."""
    model, (inputs, labels) = case.make(), case.data()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

    def step() -> None:
        rows = torch.randperm(len(inputs))[: case.batch]
        optimizer.zero_grad()
        torch.autograd.backward(F.cross_entropy(model(inputs[rows]), labels[rows]))
        optimizer.step()

    return step


def ours(case: Case, performance: Performance = DEFAULT) -> Stepper:
    """Privet, as the loop of the README."""
    model, data = case.make(), case.data()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    plan = privet.DPSGD(noise_multiplier=NOISE, delta=1e-5, clip=CLIP, batch_size=case.batch, steps=1_000_000)
    run = plan.attach(model, optimizer, data, performance=performance)
    batches = iter(run.batches())

    def step() -> None:
        done = False
        while not done:
            inputs, labels = next(batches)
            done = run.step(F.cross_entropy(model(inputs), labels, reduction="none"))

    return step


def sampling(case: Case) -> Stepper:
    """What a step of `ours` does before the model: draw the rows' numbers, and gather the rows."""
    data = case.data()
    rows, sampler, rng = Rows.of(data), PoissonSampler(case.batch / case.rows, 1_000_000, case.rows), default_rng()
    return lambda: rows.batch(sampler.draw(0, rng).indices)


def opacus(case: Case, mode: str) -> Stepper:
    """opacus with the given way of computing per-example gradients: "hooks" or "ghost"."""
    from opacus import PrivacyEngine
    from opacus.layers import DPLSTM, DPMultiheadAttention

    model = case.make()
    if isinstance(model, Recurrent):
        model.lstm = DPLSTM(64, 128, batch_first=True)
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.MultiheadAttention):
            new = DPMultiheadAttention(module.embed_dim, module.num_heads, batch_first=True)
            model.get_submodule(name.rpartition(".")[0]).register_module(name.rpartition(".")[2], new)
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=RATE)
    loader = DataLoader(TensorDataset(*case.data()), batch_size=case.batch)
    arguments: dict[str, Any] = {"module": model, "optimizer": optimizer, "data_loader": loader}
    arguments |= {"noise_multiplier": NOISE, "max_grad_norm": CLIP, "grad_sample_mode": mode}
    criterion: Any = nn.CrossEntropyLoss()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if mode == "ghost":
            private, optimizer, criterion, loader = PrivacyEngine().make_private(criterion=criterion, **arguments)
        else:
            private, optimizer, loader = PrivacyEngine().make_private(**arguments)
    batches = _forever(loader)

    def step() -> None:
        inputs, labels = next(batches)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            optimizer.zero_grad()
            criterion(private(inputs), labels).backward()
            optimizer.step()

    return step


def _forever(loader: DataLoader[Any]) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        yield from loader


ENGINES: dict[str, Callable[[Case], Stepper]] = {
    "plain": plain,
    "privet": ours,
    "opacus hooks": lambda case: opacus(case, "hooks"),
    "opacus ghost": lambda case: opacus(case, "ghost"),
}
MICRO = "privet, micro-batches"
FOR_MEMORY = ENGINES | {MICRO: lambda case: ours(case, Performance(micro_batch=max(16, case.batch // 8)))}
