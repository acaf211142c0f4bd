"""What a user is told who goes wrong: one error that names the thing, says why, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.core.errors import PrivetError
from privet.core.unit import Neighbours
from privet.training import DPSGD, RULES, BatchSampling, Performance, PerLayer, Run, fit
from privet.training.rules import OperationRule
from tests.training.conftest import Attach, gradient, squared, trained_on
from tests.training.models import filled, normal
from tests.training.reference import loop

PLAN = DPSGD(noise_multiplier=1.0, delta=1e-3, batch_size=3, steps=2)
ALL = DPSGD(noise_multiplier=1.0, delta=1e-3, batch_size=9, sample_rate=1.0, steps=1)


def network() -> nn.Module:
    return filled(nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))).float()


def attached(
    model: nn.Module | None = None, optimizer: Any = None, data: Any = None, plan: DPSGD = PLAN, **given: Any
) -> Run:
    model = network() if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if optimizer is None else optimizer
    return plan.attach(model, optimizer, normal(9, 4).float() if data is None else data, **given)


def stepped(change: Callable[[Tensor], Any]) -> None:
    run = attached()
    for x in run.batches():
        run.step(change(squared(run.model, x)))


def backward(losses: Tensor) -> Tensor:
    torch.autograd.backward(losses.sum())
    return losses


def grouped(groups: Any) -> None:
    run = attached(plan=ALL)
    for x in run.batches():
        run.step(squared(run.model, x), groups)


def with_a_stranger() -> Run:
    model = network()
    return attached(model, torch.optim.SGD([*model.parameters(), nn.Parameter(torch.zeros(3))], lr=0.1))


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "the mean loss": (lambda: stepped(Tensor.mean), r"losses has shape \(\), .* reduction='none'"),
    "losses of other rows": (
        lambda: stepped(lambda losses: losses.repeat(2)),
        r"losses has \d+ entries for a batch of \d+ rows; .*groups=",
    ),
    "a step without a batch": (
        lambda: attached().step(torch.ones(3)),
        r"no batch to step on; take one from run.batches",
    ),
    "a release without a step": (lambda: attached().release(), "no step was completed"),
    "a backward pass of one's own": (lambda: stepped(backward), "losses have been used .*; leave out loss.backward"),
    "groups in a list": (lambda: grouped([0, 0, 1]), "groups is of the type list; give a tensor"),
    "groups in words": (lambda: grouped("abc"), "groups is of the type str; give a tensor"),
    "no optimizer": (lambda: PLAN.attach(network(), None, normal(9, 4)), "optimizer is of the type NoneType; .*SGD"),  # type: ignore[arg-type]
    "half a row": (lambda: Performance(micro_batch=2.5), "micro_batch is 2.5"),  # type: ignore[arg-type]
    "a self-test of the mean": (
        lambda: attached().selftest(lambda x: x.mean()),
        "loss gives no tensor with one number for each row; .*reduction='none'",
    ),
    "a plan and data in the wrong order": (
        lambda: fit(network(), PLAN, normal(9, 4), loss=print, optimizer=None),  # type: ignore[arg-type]
        "plan is of the type Tensor; give privet.DPSGD.*after the model",
    ),
    "more than the population": (
        lambda: attached(plan=replace(PLAN, population=2, delta=1e-9)),
        "batch_size is 3, above population=2; give a smaller one, or the population",
    ),
    "neighbours that fixed sizes do not prove": (
        lambda: attached(
            plan=replace(PLAN, population=9, batches=BatchSampling.FIXED_SIZE, neighbours=Neighbours.ADD_REMOVE)
        ),
        "neighbours is add/remove, and fixed-size batches .*; draw Poisson batches, or use zero-out",
    ),
    "no rows": (lambda: attached(data=torch.zeros(0, 4)), "dataset has no rows"),
    "an impossible epsilon": (
        lambda: attached(plan=DPSGD(epsilon=1e-9, delta=1e-12, batch_size=3, epochs=9)),
        r"epsilon is 1e-09 at delta 1e-12, which 27 steps cannot meet; allow a larger",
    ),
    "no clip": (lambda: DPSGD(noise_multiplier=1.0, clip=0.0, batch_size=3, steps=2), "clip is 0.0, .* above 0"),
    "a clip below zero": (lambda: DPSGD(noise_multiplier=1.0, clip=-1.0, batch_size=3, steps=2), "clip is -1.0"),
    "another model's optimizer": (
        lambda: attached(optimizer=torch.optim.SGD(network().parameters(), lr=0.1)),
        r"optimizer cannot .*\n- optimizer: holds parameters that are not in the model \(4 of its 4 .*this model's",
    ),
    "an optimizer with more": (with_a_stranger, r"not in the model \(1 of its 5 parameters, of shape \(3,\)\)"),
    "nothing to train": (
        lambda: attached(network().requires_grad_(False)),
        r"optimizer: holds no parameter that can be trained; .*requires_grad=True",
    ),
    "a word for a way to clip": (
        lambda: DPSGD(noise_multiplier=1.0, clipping="per-layer", batch_size=3, steps=2),  # type: ignore[arg-type]
        r"clipping is 'per-layer', .*PerLayer\(\)",
    ),
    "a class for a way to clip": (
        lambda: DPSGD(noise_multiplier=1.0, clipping=PerLayer, batch_size=3, steps=2),  # type: ignore[arg-type]
        "clipping is .*PerLayer'>, .*give one of",
    ),
    "a ledger's place": (lambda: attached(charge="l.db"), r"charge is of the type str; .*Ledger\(place\)\.budget"),
    "a seed": (lambda: attached(rng=0), r"rng is of the type int, .*SeededRng\(0\)"),
    "a number of rows": (lambda: attached(performance=64), r"performance is of the type int; .*micro_batch="),
    "a bare rule": (lambda: attached(rules=RULES | {"X": print}), r"for 'X'; write \{'X': Known\(rule, \{1\}\)\}"),
    "a rule for a layer": (
        lambda: attached(rules=RULES | {nn.Linear: print}),
        "to operations, not to layers; .*grad_fn",
    ),
    "rules in a list": (lambda: attached(rules=[print]), "rules is of the type list; give RULES"),
    "a slot that is no set": (lambda: OperationRule(print, 1), r"slots is 1; .*\{1\}"),  # type: ignore[arg-type]
    "a list of columns": (
        lambda: attached(data=[normal(9, 4).float(), torch.arange(9)]),
        r"dataset is a list of 2 tensors .* list of rows; give a tuple of columns: \(X, Y\)",
    ),
    "a list of equal columns": (
        lambda: attached(data=[normal(9, 4).float(), normal(9, 4).float()]),
        r"batch_size is 3, above the 2 units there are; give a smaller one; or a tuple \(X, Y\)",
    ),
    "users by floats": (lambda: attached(users=torch.arange(9.0)), "users has the type float32; .*whole numbers"),
    "users in a list of floats": (lambda: attached(users=[1.0] * 9), "users holds float; .*whole number"),
    "too few users": (lambda: attached(users=range(8)), "users has 8 ids, and the data set has 9 rows; give one"),
    "one user": (lambda: attached(users=7), "users is no list of ids; give one for each row"),
    "rows of unequal length": (
        lambda: list(attached(data=[torch.zeros(2 + row % 2) for row in range(9)], plan=ALL).batches()),
        "collate_fn cannot make one batch of several rows; .*padded",
    ),
    "a dict of lists to explain": (
        lambda: PLAN.explain(network(), [{"input": [1.0, 2.0, 3.0, 4.0]}] * 9),
        r"loss is needed: .*\(TypeError\); give loss=.* or collate_fn=",
    ),
    "a place that is none": (
        lambda: attached().save("/no/such/place.pt"),
        "path is in /no/such, which is no directory",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str) -> None:
    """Catches an error of torch's own from deep inside, and one that does not say what to do."""
    make, words = MISTAKES[mistake]
    with pytest.raises(PrivetError, match=words) as caught:
        make()
    assert len(str(caught.value).splitlines()) <= 2


def test_saved_twice(tmp_path: Path) -> None:
    """At one place and at another, in the middle of a step too. Catches a second file that lost the bill."""
    run = attached()
    batches = run.batches()
    while not run.step(squared(run.model, next(batches))):
        pass
    for place in ("one.pt", "one.pt", "two.pt"):
        run.save(tmp_path / place)
    next(batches)
    run.save(tmp_path / "two.pt")
    run.close()
    for place, steps in (("one.pt", 2), ("two.pt", 2)):
        model = network()
        other = PLAN.attach(
            model, torch.optim.SGD(model.parameters(), lr=0.1), normal(9, 4).float(), resume=tmp_path / place
        )
        assert other.steps == steps
        other.close()


class Mixed(nn.Module):
    """A layer in float32 below one in float64; and float32 weights that are used in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.low, self.high, self.cast = nn.Linear(4, 6), nn.Linear(6, 5).double(), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.high(self.low(x).tanh().double()).tanh()
        return F.linear(hidden, self.cast.weight.double(), self.cast.bias.double())


@pytest.mark.parametrize("clip", [1e3, 0.1])
def test_float32_and_float64_in_one_model(clip: float, attach: Attach) -> None:
    """Every gradient has its own type, and the sum is that of a loop. Catches sums that torch refuses to add up."""
    model = Mixed()
    rows = normal(9, 4).float()
    run = attach(model, rows, clip=clip)
    trained_on(run, model)
    assert [p.grad.dtype for p in model.parameters() if p.grad is not None] == [p.dtype for p in model.parameters()]
    exact = torch.cat([each.double() for each in loop(model, squared, (rows,)).values()], 1)
    factors = (clip / exact.norm(dim=1)).clamp(max=1.0)
    wanted = (exact * factors[:, None]).sum(0)
    assert float((gradient(model).double() - wanted).norm()) <= 1e-5 * float(wanted.norm())


def test_one_number_a_row(attach: Attach) -> None:
    """A model whose output has one axis, as a regression may. Catches a check that takes a second one for granted."""
    model = filled(nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))).float()
    run = attach(model, normal(9, 4).float(), steps=2)
    for x in run.batches():
        run.step(model(x).square())
    assert run.steps == 2


def test_a_refused_run_lets_go_of_its_journal(tmp_path: Path) -> None:
    """The same place can be used at once. Catches a file that stays locked by a run that never was."""
    from privet.core.errors import BudgetExceeded
    from privet.ledger import Ledger

    ledger = Ledger(tmp_path / "ledger.db")
    ledger.create("small", epsilon=0.01, delta=1e-6)
    model = network()
    plan = DPSGD(noise_multiplier=1.0, delta=1e-3, batch_size=3, steps=2, population=9)
    rest = (model, torch.optim.SGD(model.parameters(), lr=0.1), normal(9, 4).float())
    with pytest.raises(BudgetExceeded) as caught:
        plan.attach(*rest, charge=ledger.budget("small"), journal=tmp_path / "log")
    assert caught.value.__traceback__ is not None  # it keeps what it has seen alive
    plan.attach(*rest, journal=tmp_path / "log").close()


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (DPSGD(noise_multiplier=1.0, delta=0.2, batch_size=3, steps=2), True),
        (DPSGD(noise_multiplier=1.0, delta=0.2, batch_size=3, steps=2, population=5), True),
        (DPSGD(noise_multiplier=1.0, delta=0.2, batch_size=3, steps=2, population=4), False),
        (DPSGD(noise_multiplier=1.0, delta=0.2, batch_size=3, steps=2, sample_rate=0.3), False),
    ],
)
def test_a_delta_of_one_over_n(plan: DPSGD, told: bool) -> None:
    """It would allow publishing somebody outright. Catches silence, and a word about a number that is not public."""
    words = "delta is 0.2, at least 1 over the"
    with pytest.warns(UserWarning, match=words) if told else nullcontext():
        attached(plan=plan)
    notes = plan.explain(network(), normal(9, 4).float()).notes
    assert any(each.startswith(words) for each in notes) == told
