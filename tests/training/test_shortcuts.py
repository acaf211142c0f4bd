"""Ways to the same numbers in fewer operations: shared norms, even blocks, weights noted without torch's own walk."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from privet.training import DPSGD
from privet.training.engine.parts import Dense, Outer, Squares
from privet.training.state import Weights
from privet.training.step import _not_finite
from tests.training.models import normal


@pytest.mark.parametrize("width", [3, 63, 64, 97, 784, 1000, 4096])
@pytest.mark.parametrize("scale", [1e-20, 1e-3, 1.0, 1e15])
def test_norms_in_blocks(width: int, scale: float) -> None:
    """Catches a block that leaves numbers out, and slack that does not cover what rounding took."""
    rows = normal(5, width).float() * scale
    found = Dense(rows).squares()
    true = rows.double().square().sum(1)
    assert torch.all(found.value.double() + found.slack.double() >= true)
    assert torch.allclose(found.value.double(), true, rtol=5e-6, atol=1e-36)


@pytest.mark.parametrize("scale", [1e-22, 1.0, 1e15])
def test_a_matrix_measured_beside_its_bias(scale: float) -> None:
    """Catches norms of other numbers than the matrix's own: the bias's, of another layer, or of a sum over places."""
    inputs, gradient = normal(6, 1, 70).float() / scale, normal(6, 130, seed=2).float() * scale
    bias = Dense(gradient).measured()
    beside = Outer(inputs, gradient[:, None]).measured_beside(bias).squares()
    alone = Outer(inputs, gradient[:, None]).squares()
    true = (inputs[:, 0].double().square().sum(1)) * gradient.double().square().sum(1)
    assert torch.equal(beside.value, alone.value)
    assert torch.all(beside.value.double() + beside.slack.double() >= true)
    for other in (None, Dense(gradient * 2).measured(), Dense(gradient), Dense(gradient[:, :65]).measured()):
        part = Outer(inputs, gradient[:, None]).measured_beside(other)
        assert torch.equal(part.squares().value, alone.value)
    several = Outer(normal(6, 2, 4).float(), normal(6, 2, 65, seed=3).float())
    folded = Dense(several.right.reshape(6, 130)).measured()  # the same memory, but two places in each row
    assert torch.equal(several.measured_beside(folded).squares().value, several.squares().value)


def test_every_tensor_is_noted_by_its_name() -> None:
    """Catches a parameter or buffer of a nested, shared or empty place that nobody watches."""
    shared = nn.Linear(2, 2)
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Sequential(shared, nn.ReLU()), nn.ModuleList([shared]), nn.Linear(2, 1))
    model[3].register_parameter("bias", None)
    model.register_buffer("own", torch.zeros(1), persistent=False)
    model.add_module("nothing", None)
    named = dict(model.named_parameters()) | dict(model.named_buffers())
    noted = Weights.of(model, copies=False).held
    assert {id(tensor) for tensor, _, _ in noted.values()} == {id(tensor) for tensor in named.values()}
    assert all(noted[name][0] is tensor for name, tensor in named.items() if not name.startswith(("1.0.", "2.0.")))
    before = Weights.of(model, copies=False)
    with torch.no_grad():
        shared.weight.add_(1)
    assert len(before.changed(model)) == 1
    model[3] = nn.Linear(2, 1)
    assert set(before.changed(model)) >= {"3.weight", "3.bias"}


def test_a_shared_module_may_count() -> None:
    """Fails when a buffer of a module that stands in two places is known by one name and watched by another."""

    class Counted(nn.Linear):
        calls: torch.Tensor

        def __init__(self) -> None:
            super().__init__(3, 3)
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return super().forward(rows)

    one = Counted()
    model = nn.Sequential(nn.Sequential(nn.Sequential(one), nn.ReLU()), nn.Sequential(one, nn.Linear(3, 2)))
    model[0].register_buffer("same", one.calls)
    plan = DPSGD(noise_multiplier=1.0, batch_size=20, sample_rate=0.5, steps=4)
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), (normal(40, 3).float(), torch.arange(40) % 2))
    for rows, labels in run.batches():
        run.step(nn.functional.cross_entropy(model(rows), labels, reduction="none"))
    assert run.steps == 4


@pytest.mark.parametrize("bad", [torch.inf, -torch.inf, torch.nan])
def test_what_is_not_finite_is_found_in_any_parameter(bad: float) -> None:
    """Catches an infinity that a sum hides, or a row that is blamed for another's."""
    good = Squares(torch.tensor([1.0, 2.0, 3e38]), torch.zeros(3))
    worse = Squares(torch.tensor([1.0, bad, 3e38]), torch.zeros(3))
    assert _not_finite([good, None, good]) is None
    found = _not_finite([good, worse, None])
    assert found is not None
    assert found.tolist() == [False, True, False]
