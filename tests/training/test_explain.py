"""What a plan says it would do with a model is what it does, and saying it touches nothing."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from privet.core.errors import InvalidInput
from privet.training import DPSGD, Noise, Performance
from privet.training.explain import Explanation, Layer, Norms

PLAN = DPSGD(noise_multiplier=1.0, batch_size=64, epochs=1)


def layer(found: Explanation, name: str) -> Layer:
    return next(each for each in found.layers if each.name == name)


def norms(found: Explanation, name: str) -> dict[str, Norms]:
    return {share.name: share.norms for share in layer(found, name).shares}


def rules(found: Explanation, name: str) -> dict[str, tuple[str, ...]]:
    return {share.name: share.rules for share in layer(found, name).shares}


class Tied(nn.Module):
    """A small decoder: positions as a bare parameter, and one table for both ends."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(50, 16)
        self.places = nn.Parameter(torch.zeros(1, 8, 16))
        self.block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.table.weight

    def forward(self, index: Tensor) -> Tensor:
        out: Tensor = self.head(self.block(self.table(index) + self.places))
        return out


class Odd(nn.Module):
    """An operation for which there is no rule."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.ones(8))
        self.line = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.line(torch.logaddexp(x, self.slope))
        return out


def test_a_perceptron() -> None:
    """Catches a table that shows other rules than the engine uses, or memory that is not what is kept: the two factors
    of a linear layer's gradient, and its bias' gradient, in float32."""
    model = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 3))
    found = PLAN.explain(model, (torch.randn(100, 20), torch.zeros(100, dtype=torch.int64)))
    assert [(each.name, each.kind, each.parameters) for each in found.layers] == [
        ("0", "Linear", 630),
        ("2", "Linear", 93),
    ]
    assert rules(found, "0") == {"weight": ("addmm",), "bias": ("addmm",)}
    assert norms(found, "0") == {"weight": Norms.GHOST, "bias": Norms.INSTANTIATED}
    assert layer(found, "0").bytes_per_row == 4 * (20 + 30 + 30)
    assert found.bytes_per_row == 4 * (20 + 30 + 30 + 30 + 3 + 3)
    assert (found.parameters, found.frozen, found.refusals) == (723, 0, ())
    assert all(each.cost is not None and each.cost > 0 for each in found.layers)


def test_a_sequence_changes_the_choice() -> None:
    """With many positions a small matrix is written out, as it is smaller than its factors. Catches a table made from
    the module's kind alone."""
    model = nn.Linear(4, 3)
    assert norms(PLAN.explain(model, torch.randn(9, 4)), "")["weight"] is Norms.GHOST
    long = PLAN.explain(model, torch.randn(9, 12, 4))
    assert norms(long, "")["weight"] is Norms.INSTANTIATED
    assert layer(long, "").bytes_per_row == 4 * (12 + 3)


def test_a_convolutional_network() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 2))
    found = PLAN.explain(model, torch.randn(9, 3, 8, 8))
    assert [next(iter(rules(found, name).values())) for name in "014"] == [
        ("convolution",),
        ("group_norm",),
        ("addmm",),
    ]
    assert found.refusals == ()


def test_a_tied_decoder() -> None:
    """The table is one parameter with two names and two rules. Catches a tied layer that is counted twice."""
    found = PLAN.explain(Tied(), torch.zeros(9, 8, dtype=torch.int64))
    (share,) = layer(found, "table").shares
    assert set(share.rules) == {"embedding", "mm"}
    assert (share.norms, share.also) == (Norms.GHOST, ("head.weight",))
    assert "head" not in {each.name for each in found.layers}
    assert found.parameters == sum(each.numel() for each in Tied().parameters())
    assert rules(found, "")["places"] == ("add",)
    assert "table = head.weight" in str(found)


def test_a_module_without_a_rule() -> None:
    found = PLAN.explain(Odd(), torch.randn(9, 8))
    assert rules(found, "") == {"slope": ("torch.func",)}
    assert rules(found, "line")["weight"] == ("addmm",)


def test_unused_and_frozen_parameters() -> None:
    model = nn.ModuleDict({"used": nn.Linear(4, 2), "unused": nn.Linear(4, 2), "frozen": nn.Linear(4, 2)})
    model["frozen"].requires_grad_(False)
    found = PLAN.explain(model, torch.randn(9, 4), loss=lambda x: model["frozen"](model["used"](x).repeat(1, 2)).sum(1))
    assert set(norms(found, "unused").values()) == {Norms.UNUSED}
    assert (found.frozen, found.parameters) == (10, 20)
    assert "frozen" not in {each.name for each in found.layers}


def test_refused_before_it_is_run() -> None:
    """Catches statistics that are written while a model is being refused."""
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    before = copy.deepcopy(model.state_dict())
    found = PLAN.explain(model, torch.randn(9, 4))
    assert len(found.refusals) == 1
    assert "replace_batchnorm" in found.refusals[0]
    assert found.cost is None
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert "refused: 1: BatchNorm1d" in str(found)


class Coupled(nn.Module):
    """Keeps a buffer, or subtracts the batch's mean."""

    mean: Tensor

    def __init__(self, keeps: bool) -> None:
        super().__init__()
        self.line, self.keeps = nn.Linear(4, 3), keeps
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        if self.keeps:
            self.mean = 0.9 * self.mean + x.detach().mean(0)
            return torch.as_tensor(self.line(x))
        return torch.as_tensor(self.line(x - x.mean(0)))


@pytest.mark.parametrize(("keeps", "word"), [(True, "Coupled.mean"), (False, "coupled")])
def test_refused_while_it_runs(keeps: bool, word: str) -> None:
    """Catches a refusal that is found by training alone, and a buffer that is left changed."""
    model = Coupled(keeps)
    kept = model.mean
    found = PLAN.explain(model, torch.randn(9, 4))
    assert word in found.refusals[0]
    assert model.mean is kept
    assert not bool(kept.any())


def test_nothing_is_touched() -> None:
    """Weights, gradients, modes, hooks and torch's random numbers; and the rows' values are not looked at: rows of NaN
    give the same answer. Catches an explanation that costs privacy."""
    model = nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.5), nn.Linear(5, 2))
    weights, state = copy.deepcopy(model.state_dict()), torch.random.get_rng_state()
    hooks = len(torch.nn.modules.module._global_forward_hooks)
    found = PLAN.explain(model, torch.randn(9, 4, generator=torch.Generator().manual_seed(1)))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(weights[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert len(torch.nn.modules.module._global_forward_hooks) == hooks
    blind = PLAN.explain(model, torch.full((9, 4), torch.nan))
    assert [replace(each, cost=None) for each in blind.layers] == [replace(each, cost=None) for each in found.layers]


def test_the_micro_batch_is_the_runs() -> None:
    """Catches a size that is computed twice, and differently."""
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Flatten(), nn.Linear(4 * 64 * 64, 100))
    data, plan = (
        torch.randn(2, 3, 64, 64),
        DPSGD(noise_multiplier=1.0, delta=1e-6, batch_size=5000, sample_rate=1.0, steps=1),
    )
    found = plan.explain(model, data)
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.0), data)
    for x in run.batches():
        run.step(model(x).square().sum(1))
    assert found.micro_batch == run._step.most_rows
    assert found.micro_batch is not None
    assert "pieces" in str(found)
    assert plan.explain(model, data, performance=Performance(micro_batch=7)).micro_batch == 7


GUESSED: dict[str, tuple[nn.Module, str]] = {
    "linear": (nn.Sequential(nn.Linear(4, 3)), "(4,)"),
    "conv": (nn.Sequential(nn.Conv2d(1, 2, 5), nn.Flatten(), nn.Linear(2 * 24 * 24, 3)), "(1, 28, 28)"),
    "tokens": (nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 3)), "(16,)"),
    "recurrent": (nn.GRU(4, 3, batch_first=True), "(16, 4)"),
    "attention": (nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), "(16, 8)"),
}


@pytest.mark.parametrize("case", GUESSED)
def test_without_data(case: str) -> None:
    """`plan.explain(model)` by itself. Catches a guess that is not said to be one."""
    model, shape = GUESSED[case]
    found = PLAN.explain(model)
    assert found.refusals == ()
    assert found.cost is not None
    assert f"a row of {shape}, guessed" in str(found)


def test_without_data_or_a_guess() -> None:
    found = PLAN.explain(nn.ParameterDict({"a": nn.Parameter(torch.zeros(3))}))
    assert found.cost is None
    assert "give your data set" in str(found)


def test_a_batch_of_names() -> None:
    """A dict, as Hugging Face's models take; masks are ones and labels are left to the loss."""

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(9, 4)

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Any]:
            assert bool(attention_mask.all())
            return {"logits": self.table(input_ids), "loss": torch.zeros(()), "cache": object()}

    rows = torch.zeros(5, 3, dtype=torch.int64)
    data = {"input_ids": rows, "attention_mask": rows, "labels": rows[:, 0]}
    model = Named()
    assert rules(PLAN.explain(model, data), "table") == {"weight": ("embedding",)}

    def loss(batch: Any) -> Tensor:
        logits = model(batch["input_ids"], batch["attention_mask"])["logits"].mean(1)
        return cross_entropy(logits, batch["labels"], reduction="none")

    assert rules(PLAN.explain(model, data, loss=loss), "table") == {"weight": ("embedding",)}


def test_noise_on_a_grid_writes_everything_out() -> None:
    found = replace(PLAN, noise=Noise.LATTICE).explain(nn.Linear(20, 30), torch.randn(9, 20))
    assert set(norms(found, "").values()) == {Norms.INSTANTIATED}
    assert found.bytes_per_row == 8 * 630


def test_a_plan_for_an_epsilon_need_not_be_calibrated() -> None:
    plan = DPSGD(epsilon=1.0, delta=1e-5, batch_size=64, epochs=1)
    assert plan.explain(nn.Linear(4, 3), torch.randn(100, 4)).refusals == ()


def test_what_is_no_model() -> None:
    with pytest.raises(InvalidInput, match="model is a int"):
        PLAN.explain(3)  # type: ignore[arg-type]
