"""The self-test sees what is wrong, and the run goes on as if nobody had asked."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from privet.core.random import SeededRng
from privet.training import DPSGD, Adaptive, Performance, Run, RunError
from tests.training.conftest import Attach, squared
from tests.training.models import filled, normal


class Kept(nn.Module):
    """Dropout, and a buffer that a forward pass may write."""

    def __init__(self) -> None:
        super().__init__()
        self.line, self.drop, self.last = nn.Linear(4, 6), nn.Dropout(0.3), nn.Linear(6, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.last(self.drop(self.line(x).tanh()))
        return out


def trained(ask: bool) -> tuple[Run, nn.Module]:
    """All steps in micro-batches, with momentum and an adaptive clip; with or without self-tests on the way."""
    model = filled(Kept()).float()
    plan = DPSGD(
        noise_multiplier=0.5,
        delta=1e-5,
        batch_size=9,
        sample_rate=0.8,
        steps=4,
        clipping=Adaptive(count_noise=1.0),
        average=0.5,
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with torch.random.fork_rng(devices=[]):
        torch.random.manual_seed(5)
        run = plan.attach(
            model, optimizer, normal(12, 4).float(), performance=Performance(micro_batch=3), rng=SeededRng(3)
        )
        for x in run.batches():
            run.step(squared(model, x))
            if ask:
                run.selftest(lambda batch: squared(model, batch))
                assert model.training  # dropout is off for the comparison alone
    return run, model


def test_a_run_goes_on_as_if_nobody_had_asked() -> None:
    """Asked after every micro-batch, in the middle of steps too. Catches a self-test that clears the count of an
    adaptive clip, the sum so far, what the engine knows, or that takes numbers from the run's or torch's stream."""
    (run, model), (other, twin) = trained(ask=True), trained(ask=False)
    assert run.clip == other.clip
    assert run.clip != run.plan.clip
    assert run.steps == other.steps == 4
    assert run._step.engine.round == other._step.engine.round
    for mine, its in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(mine, its)
        assert mine.grad is not None
        assert its.grad is not None
        assert torch.equal(mine.grad, its.grad)
    for name, value in vars(run._step).items():
        if isinstance(value, (int, float)):
            assert value == vars(other._step)[name], name


def test_gradients_and_buffers_are_put_back(attach: Attach) -> None:
    model = filled(Kept()).float().eval()
    run = attach(model, normal(9, 4).float(), noise_multiplier=1.0)
    held = [torch.ones_like(parameter) for parameter in model.parameters()]
    for parameter, gradient in zip(model.parameters(), held, strict=True):
        parameter.grad = gradient
    state = torch.random.get_rng_state()
    flat = run._step.sum.flat.clone()

    def loss(batch: Tensor) -> Tensor:
        torch.randn(3)
        return squared(model, batch)

    assert run.selftest(loss).passed
    assert all(parameter.grad is gradient for parameter, gradient in zip(model.parameters(), held, strict=True))
    assert torch.equal(state, torch.random.get_rng_state())
    assert torch.equal(flat, run._step.sum.flat)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_rows_that_cannot_be_compared(bad: float, attach: Attach, network: nn.Module) -> None:
    """Catches `max(0.0, nan)`, which is 0.0."""
    run = attach(network, normal(9, 4).float(), noise_multiplier=1.0)
    factor = torch.tensor([1.0, bad, 1.0])
    with pytest.raises(RunError, match=r"FAIL largest relative error .*NaN"):
        run.selftest(lambda batch: squared(network, batch) * (factor if len(batch) == 3 else bad))


def test_parameters_that_nobody_clips(attach: Attach, network: nn.Module) -> None:
    """Catches a self-test of a copy that has nothing to do with the run's own step."""
    run = attach(network, normal(9, 4).float(), noise_multiplier=1.0)
    run.optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})
    with pytest.raises(RunError, match="FAIL parameters that the optimizer changes"):
        run.selftest()
