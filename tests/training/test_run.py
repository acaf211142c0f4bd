"""The order of a run, what it does to the user's objects, and what it makes of losses and models that it cannot use."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.training import DPSGD, Performance, Run, RunError
from privet.training.accumulate import GradientSum
from tests.training.conftest import Attach, gradient, squared, trained_on
from tests.training.models import Described, described, filled, normal
from tests.training.reference import loop

# --- Order -----------------------------------------------------------------------------------------------------------


def rows() -> Tensor:
    return normal(9, 4).float()


def test_a_step_needs_a_batch(attach: Attach, network: nn.Module) -> None:
    """Catches gradients of rows that nobody drew."""
    run = attach(network, rows())
    with pytest.raises(RunError, match="batch"):
        run.step(squared(network, rows()))


def test_a_batch_is_stepped_on_once(attach: Attach, network: nn.Module) -> None:
    """Twice would count an example twice under one charge."""
    run = attach(network, rows(), steps=2)
    x = next(run.batches())
    run.step(squared(network, x))
    with pytest.raises(RunError, match="batch"):
        run.step(squared(network, x))


def test_a_batch_is_not_skipped(attach: Attach, network: nn.Module) -> None:
    """Batches chosen by looking at them are not Poisson batches."""
    run = attach(network, rows(), steps=3, sample_rate=0.5)
    batches = run.batches()
    first = next(batches)
    with pytest.raises(RunError, match="step"):
        next(batches)
    for _ in range(3):  # whoever asks again gets the same
        again = run.batches()
        assert torch.equal(next(again), first)
    with pytest.raises(RunError, match="no step was completed"):
        run.release(1e-5)


def looped(run: Run, model: nn.Module, fails: set[int]) -> int:
    """The loop that a user writes, which an error may end at these batches; started again until all is done."""
    taken, errors = 0, 0
    while run.steps < run.total or errors == 0:
        try:
            for x in run.batches():
                taken += 1
                if taken in fails:
                    raise MemoryError
                run.step(squared(model, x))
            break
        except MemoryError:
            errors += 1
    return errors


@pytest.mark.parametrize("micro", [None, 2])
def test_an_error_in_the_loop_loses_nothing(attach: Attach, micro: int | None) -> None:
    """Catches a batch that is lost, or drawn anew, when an error that has nothing to do with privacy ends the loop."""
    found = []
    for fails in (set[int](), {1, 2, 5, 7, 11}):
        model = filled(nn.Sequential(nn.Linear(4, 3))).float()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        given: dict[str, Any] = {"noise_multiplier": 1.0, "steps": 6, "sample_rate": 0.6, "batch_size": 4}
        run = attach(model, rows(), optimizer=optimizer, performance=Performance(micro_batch=micro), **given)
        assert (looped(run, model, fails) > 3) == bool(fails)
        assert run.steps == 6
        found.append(torch.cat([p.detach().flatten() for p in run.release(1e-5).value.parameters()]))
    assert torch.equal(*found)


def test_a_step_that_was_not_completed_is_not_released(attach: Attach, network: nn.Module) -> None:
    """Catches a run that cannot be released after an error, and a release that holds half of a step."""
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
    performance = Performance(micro_batch=3)
    run = attach(network, rows(), steps=4, noise_multiplier=1.0, optimizer=optimizer, performance=performance)
    batches = run.batches()
    while not run.step(squared(network, next(batches))):
        pass
    before = copy.deepcopy(network.state_dict())
    assert not run.step(squared(network, next(batches)))
    next(batches)
    released = run.release(1e-5).value.state_dict()
    assert all(torch.equal(released[name], value) for name, value in before.items())
    assert run.steps == 2


@pytest.mark.parametrize("late", [False, True])
def test_no_gradient_is_added_twice(attach: Attach, monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    """Ctrl-C while gradients are added up, and the batch stepped on again: a row would move the sum by twice the clip.

    Catches that, also where the whole sum was added (`late`) and only the run does not know it.
    """
    model = filled(nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))).float()
    run = attach(model, rows()[:1] * 100, steps=3)
    add = GradientSum.add

    def broken(self: GradientSum, parts: Any, factors: Any) -> None:
        monkeypatch.setattr(GradientSum, "add", add)
        few = parts if late else [*parts[:2], None, None]
        add(self, few, factors)
        raise KeyboardInterrupt

    batches = run.batches()
    x = next(batches)
    monkeypatch.setattr(GradientSum, "add", broken)
    with pytest.raises(KeyboardInterrupt):
        run.step(squared(model, x))
    with pytest.raises(RunError, match="count twice; go on with the next batch"):
        run.step(squared(model, x))
    x = next(run.batches())
    assert run.steps == 2
    run.step(squared(model, x))
    assert 0.9 < float(gradient(model).norm()) <= 1.0


def test_an_average_forgets_what_it_began_with(attach: Attach) -> None:
    """Catches the average of a short run that is hardly anything but the weights from before it."""
    model = filled(nn.Sequential(nn.Linear(4, 3))).float()
    plan = DPSGD(noise_multiplier=0.0, delta=1e-5, batch_size=9, sample_rate=1.0, steps=30, average=0.999)
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.5), rows(), rng=SeededRng(1))
    expected = weights = torch.cat([p.detach().flatten() for p in model.parameters()]).double()
    first = weights
    for x in run.batches():
        if run.step(squared(model, x)):
            weights = torch.cat([p.detach().flatten() for p in model.parameters()]).double()
            decay = min(0.999, run.steps / (run.steps + 9))
            expected = decay * expected + (1 - decay) * weights
    released = torch.cat([p.detach().flatten() for p in run.release(1e-5).value.parameters()]).double()
    torch.testing.assert_close(released, expected, rtol=1e-5, atol=1e-6)
    assert float((released - weights).norm()) < 0.3 * float((released - first).norm())


def test_nothing_after_the_release(attach: Attach, network: nn.Module) -> None:
    run = attach(network, rows(), steps=2, noise_multiplier=1.0)
    batches = run.batches()
    while not run.step(squared(network, next(batches))):
        pass
    assert run.release(1e-5).value is network
    for ask in (lambda: next(batches), lambda: next(run.batches()), lambda: run.release(1e-5), run.selftest):
        with pytest.raises(RunError, match="ended"):
            ask()


def test_no_more_steps_than_planned(attach: Attach, network: nn.Module) -> None:
    """The whole plan is priced, and no step beyond it."""
    run = attach(network, rows(), steps=3)
    for _ in range(3):
        trained_on(run, network)
    assert run.steps == run.total == 3


def test_nothing_to_release_without_a_step(attach: Attach, network: nn.Module) -> None:
    with pytest.raises(RunError, match="no step"):
        attach(network, rows(), noise_multiplier=1.0).release(1e-5)


def test_the_self_test_of_a_sound_run(attach: Attach, network: nn.Module) -> None:
    """It passes, and leaves weights, gradients and steps as they were. A false alarm of its noise check: 2e-9."""
    before = copy.deepcopy(network.state_dict())
    run = attach(network, rows(), steps=2, noise_multiplier=1.0)
    found = run.selftest(lambda batch: squared(network, batch))
    assert found.passed
    assert len(found.checks) == 4
    assert run.steps == 0
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    trained_on(run, network)
    assert run.steps == 2


# --- The user's objects ----------------------------------------------------------------------------------------------


def test_the_model_stays_what_it_was(attach: Attach, network: nn.Module) -> None:
    """Class, names, hooks and pickle are untouched."""
    names, kind = list(network.state_dict()), type(network)
    run = attach(network, rows(), steps=2)
    trained_on(run, network)
    assert type(network) is kind
    assert list(network.state_dict()) == names
    assert list(pickle.loads(pickle.dumps(network)).state_dict()) == names
    assert not any(module._forward_hooks or module._backward_hooks for module in network.modules())


def unfinished(run: Run, model: nn.Module) -> None:
    batches = run.batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]


def refused(run: Run, model: nn.Module) -> None:
    with pytest.raises(InvalidInput):
        run.step(squared(model, next(run.batches())).mean())


def finished(run: Run, model: nn.Module) -> None:
    trained_on(run, model)


@pytest.mark.parametrize("leave", [unfinished, refused, finished])
def test_no_hook_is_left_behind(leave: Callable[..., None], attach: Attach, network: nn.Module) -> None:
    """torch's process-wide hook would keep every later call of the model in memory, with its graph."""
    before = len(torch.nn.modules.module._global_forward_hooks)
    leave(attach(network, rows()), network)
    gc.collect()
    assert len(torch.nn.modules.module._global_forward_hooks) == before


def test_a_refused_step_releases_nothing(attach: Attach) -> None:
    """Weights and optimizer are as before the refusal."""
    model = filled(nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 3))).float()
    before = copy.deepcopy(model.state_dict())
    run = attach(model, rows(), noise_multiplier=1.0, optimizer=torch.optim.SGD(model.parameters(), lr=1.0))
    with pytest.raises(InvalidInput):
        trained_on(run, model, lambda model, x: squared(model, x) / squared(model, x).mean())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.1),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=0.1, amsgrad=True),
    "adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=0.1),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=list(OPTIMIZERS))
def test_any_optimizer(make: Callable[[Any], torch.optim.Optimizer], attach: Attach, network: nn.Module) -> None:
    """The optimizer does with the noisy mean what it would do with any gradient. Catches a gradient that changes under
    its hands, such as a buffer that is used again.
    """
    twin = copy.deepcopy(network)
    own, others = make(network.parameters()), make(twin.parameters())
    run = attach(network, rows(), steps=5, sample_rate=0.5, batch_size=4, noise_multiplier=1.0, optimizer=own)
    for x in run.batches():
        if run.step(squared(network, x)):
            for mine, its in zip(twin.parameters(), network.parameters(), strict=True):
                assert its.grad is not None
                mine.grad = its.grad.clone()
            others.step()
    for mine, its in zip(twin.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(mine, its, rtol=0.0, atol=0.0)


def test_stale_gradients_are_not_applied(attach: Attach, network: nn.Module) -> None:
    """A frozen parameter, and one outside the loss, may hold an old gradient. Catches an optimizer that applies it."""
    model = nn.ModuleDict({"used": network, "frozen": nn.Linear(2, 2), "unused": nn.Linear(2, 2)})
    model["frozen"].requires_grad_(False)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1e6)
    before = copy.deepcopy(model.state_dict())
    run = attach(model, rows(), optimizer=torch.optim.SGD(model.parameters(), lr=1e-3))
    trained_on(run, model, lambda model, x: squared(network, x))
    for name, value in model.state_dict().items():
        moved = float((value - before[name]).norm())
        assert moved == 0 if name.startswith(("frozen", "unused")) else 0 < moved < 1


@pytest.mark.parametrize("state", [True, False])
def test_parameters_that_change_their_mind(state: bool, attach: Attach, network: nn.Module) -> None:
    """Pitfall 17. Thawed or frozen after the run was attached: what the optimizer moves is not what is clipped."""
    half = next(network.children()).requires_grad_(not state)
    run = attach(network, rows(), steps=2)
    half.requires_grad_(state)
    with pytest.raises(InvalidInput, match=r"thawed|frozen"):
        trained_on(run, network)


@pytest.mark.parametrize("held", ["a", "b", "l.weight"])
def test_parameters_outside_the_optimizer(held: str, attach: Attach) -> None:
    """They take part in the computation, as constants. Catches a gradient that is looked for where nobody trains."""
    forward = described(lambda m, x: m.l(x * (m.a * m.b)), a=scale, b=scale, l=lambda: nn.Linear(4, 3))
    model = filled(forward()).double()
    chosen = dict(model.named_parameters())[held]
    run = attach(model, normal(9, 4), clip=1e3, optimizer=torch.optim.SGD([chosen], lr=0.0))
    trained_on(run, model)
    exact = loop(model, squared, (normal(9, 4),))[held].sum(0)
    assert float((gradient(model) - exact).norm()) <= 1e-5 * float(exact.norm())


def scale() -> nn.Parameter:
    return nn.Parameter(torch.zeros(4))


def keeping(forward: Callable[..., Any]) -> nn.Module:
    model = Described(forward, layer=nn.Linear(4, 3))
    model.register_buffer("mean", torch.zeros(4))
    return filled(model).float()


def written(m: Any, x: Tensor) -> Tensor:
    m.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
    out: Tensor = m.layer(x)
    return out


def assigned(m: Any, x: Tensor) -> Tensor:
    m.mean = 0.9 * m.mean + 0.1 * x.detach().mean(0)
    out: Tensor = m.layer(x)
    return out


@pytest.mark.parametrize("forward", [written, assigned])
def test_buffers_that_take_in_rows(forward: Callable[..., Any], attach: Attach) -> None:
    """The buffer would leave with the model, without noise. Catches a check that sees only one way to write."""
    model = keeping(forward)
    run = attach(model, rows(), steps=2)
    with pytest.raises(InvalidInput, match="mean"):
        trained_on(run, model)


def test_batch_norm_that_wakes_up(attach: Attach) -> None:
    """In eval mode when it was attached, in training mode later; without parameters, no gradient passes through it."""
    model = filled(nn.Sequential(nn.BatchNorm1d(4, affine=False), nn.Linear(4, 3))).float().eval()
    run = attach(model, rows(), steps=3)

    def waking(model: nn.Module, x: Tensor) -> Tensor:
        model.train(run.steps > 1)
        return squared(model, x)

    with pytest.raises(InvalidInput):
        trained_on(run, model, waking)


# --- Losses that cannot be used --------------------------------------------------------------------------------------

LOSSES: dict[str, Callable[[Tensor], Any]] = {
    "a mean": lambda losses: losses.mean(),
    "a number": lambda losses: 0.5,
    "a column": lambda losses: losses[:, None],
    "too few": lambda losses: losses[1:],
    "too many": lambda losses: torch.cat([losses, losses]),
    "detached": lambda losses: losses.detach(),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_that_are_not_one_a_row(loss: str, attach: Attach, network: nn.Module) -> None:
    """The error names the losses and says what to do."""
    run = attach(network, rows())
    with pytest.raises(InvalidInput, match=r"losses.*(reduction|groups|gradients)"):
        run.step(LOSSES[loss](squared(network, next(run.batches()))))
