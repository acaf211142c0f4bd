"""GroupNorm in BatchNorm's place: a new model, the same weights, no example that depends on another, nothing erased."""

from __future__ import annotations

import copy
from typing import TypeVar

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from privet.core.errors import InvalidInput
from privet.training.batchnorm import LayerChange, replace_batchnorm
from privet.training.validate import Severity, check, require

M = TypeVar("M", bound=nn.Module)


def drawn(shape: tuple[int, ...], seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def trained(norm: M, seed: int = 2) -> M:
    """With the weights of a trained layer, so that a lost value shows."""
    with torch.no_grad():
        for number, parameter in enumerate(norm.parameters()):
            parameter.copy_(drawn(tuple(parameter.shape), seed + number))
    return norm


def group_norm(model: nn.Module, path: str = "") -> nn.GroupNorm:
    layer = model.get_submodule(path)
    assert isinstance(layer, nn.GroupNorm)
    return layer


# --- How many groups ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("norm", "groups", "expected"),
    [
        (nn.BatchNorm2d(64), 32, 32),
        (nn.BatchNorm2d(48), 32, 24),  # 32 does not divide 48
        (nn.BatchNorm2d(16), 32, 8),  # two channels a group at least
        (nn.BatchNorm3d(64), 8, 8),
        (nn.BatchNorm2d(7), 32, 1),  # a prime: all channels together
        (nn.BatchNorm2d(2), 32, 1),
        (nn.BatchNorm2d(64), 1, 1),
        (nn.BatchNorm1d(4), 32, 1),  # opacus#567
        (nn.BatchNorm1d(64), 32, 8),
        (nn.BatchNorm1d(512), 32, 32),
        (nn.SyncBatchNorm(64), 32, 8),
    ],
)
def test_number_of_groups(norm: nn.BatchNorm2d, groups: int, expected: int) -> None:
    """Catches groups that do not divide the channels, exceed what was asked for, or hold too few values."""
    layer = group_norm(replace_batchnorm(norm, groups=groups).model)
    assert (layer.num_groups, layer.num_channels) == (expected, norm.num_features)


@pytest.mark.parametrize("channels", range(3, 70))
def test_no_group_erases_its_input(channels: int) -> None:
    """Catches opacus#567 in all its sizes: flat rows turned into zeros, or into signs alone.

    What is left of a row is counted by the rank of the layer's derivative: a group of m values keeps m - 2 of them,
    none at all for m = 1 or 2. At least half of a row's freedom has to stay, and one degree for three channels.
    """
    layer = replace_batchnorm(nn.BatchNorm1d(channels).double()).model
    row = drawn((channels,)).double()
    derivative = torch.func.jacrev(lambda one: layer(one[None])[0])(row)
    # eps alone keeps the lost directions from being exactly 0: they are about 1e-5 of the others.
    sizes = torch.linalg.svdvals(derivative)
    kept = int((sizes > 1e-3 * sizes[0]).sum())
    assert kept >= max(1, channels // 2)


@pytest.mark.parametrize("norm", [nn.BatchNorm1d(1), nn.BatchNorm2d(1), nn.BatchNorm3d(1)])
def test_refuses_a_single_channel(norm: nn.Module) -> None:
    """Catches GroupNorm(1, 1), which turns a lone value into 0."""
    with pytest.raises(InvalidInput, match=r"body\.0 .* has one channel"):
        replace_batchnorm(nn.ModuleDict({"body": nn.Sequential(norm)}))


def test_two_channels_come_with_a_warning() -> None:
    """Catches silence where next to nothing of a flat input is left."""
    (change,) = replace_batchnorm(nn.BatchNorm1d(2)).changes
    assert "only the order of the two channels" in change.reason


@pytest.mark.parametrize("groups", [0, -3, 2.0, True])
def test_groups_is_a_positive_whole_number(groups: int) -> None:
    """Catches an empty search for a divisor, or True taken for 1."""
    with pytest.raises(InvalidInput, match=r"^groups "):
        replace_batchnorm(nn.BatchNorm2d(4), groups=groups)


# --- What is kept ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_keeps_weights_flags_and_mode(dtype: torch.dtype, training: bool) -> None:
    """Catches pretrained weights reset to 1 and 0, float64 becoming float32, frozen weights thawed, eval lost."""
    old = nn.BatchNorm2d(8, eps=0.25, track_running_stats=training, dtype=dtype).train(training)
    trained(old)
    old.weight.requires_grad_(False)
    new = group_norm(replace_batchnorm(nn.Sequential(old)).model, "0")
    assert torch.equal(new.weight, old.weight)
    assert torch.equal(new.bias, old.bias)
    assert (new.weight.dtype, new.bias.dtype) == (dtype, dtype)
    assert (new.weight.requires_grad, new.bias.requires_grad) == (False, True)
    assert (new.eps, new.training) == (0.25, training)
    assert new.weight is not old.weight


def test_keeps_the_device() -> None:
    """Catches a new layer left on the CPU."""
    new = group_norm(replace_batchnorm(nn.BatchNorm2d(8, device="meta")).model)
    assert new.weight.device.type == "meta"


@pytest.mark.parametrize(("affine", "bias"), [(False, False), (True, False), (True, True)])
def test_keeps_what_parameters_there_were(affine: bool, bias: bool) -> None:
    """Catches weights that appear from nowhere and would be trained, or a bias that is lost."""
    old = nn.BatchNorm2d(8, affine=affine)
    if not bias:
        old.register_parameter("bias", None)
    names = [name for name, _ in old.named_parameters()]
    new = group_norm(replace_batchnorm(old).model)
    assert [name for name, _ in new.named_parameters()] == names
    assert new.affine is affine
    assert new(drawn((2, 8, 3, 3))).shape == (2, 8, 3, 3)


def test_computes_what_group_norm_computes() -> None:
    """Catches weights in each other's place and a wrong eps, against the formula written out."""
    old = trained(nn.BatchNorm2d(8, eps=0.5).double())
    rows = drawn((3, 8, 2, 2)).double()
    grouped = rows.reshape(3, 4, 2 * 2 * 2)
    centred = grouped - grouped.mean(2, keepdim=True)
    plain = (centred / (centred.square().mean(2, keepdim=True) + 0.5).sqrt()).reshape(rows.shape)
    expected = plain * old.weight.reshape(8, 1, 1) + old.bias.reshape(8, 1, 1)
    torch.testing.assert_close(replace_batchnorm(old).model(rows), expected, rtol=1e-12, atol=1e-12)


# --- Where it is found -------------------------------------------------------------------------------------------


class Residual(nn.Module):
    """BatchNorm in every sort of place: nested, shared, in lists and dictionaries, and in a plain Python list."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), self.norm, nn.ReLU(inplace=True))])
        self.heads = nn.ModuleDict({"flat": nn.BatchNorm1d(8), "frozen": nn.BatchNorm1d(8)})
        self.unseen = [self.norm]
        self.heads["frozen"].eval()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        rows = self.unseen[0](self.first(rows)).relu_()
        for block in self.blocks:
            rows = rows + block(rows)
        flat = self.heads["flat"](rows.mean((2, 3)))
        out: torch.Tensor = self.heads["frozen"](flat)
        return out


def test_finds_every_place_and_keeps_sharing() -> None:
    """Catches a shared layer becoming two, one that only a plain list mentions staying behind, a path left out."""
    model = Residual()
    replaced = replace_batchnorm(model)
    new = replaced.model
    assert isinstance(new, Residual)
    assert {each.path for each in replaced.changes} == {"norm", "blocks.0.1", "heads.flat"}
    assert new.norm is new.get_submodule("blocks.0.1") is new.unseen[0]
    assert isinstance(new.norm, nn.GroupNorm)
    assert isinstance(new.heads["frozen"], nn.BatchNorm1d)
    require(new, torch.optim.SGD(new.parameters(), lr=0.1))


def test_examples_no_longer_depend_on_each_other() -> None:
    """Catches a BatchNorm left anywhere in the path: batch of four = four batches of one, in value and gradient."""
    new = replace_batchnorm(Residual().double()).model
    rows = drawn((4, 3, 5, 5)).double()
    together = new(rows)
    torch.testing.assert_close(together, torch.cat([new(row[None]) for row in rows]), rtol=1e-10, atol=1e-10)
    whole = torch.autograd.grad(together.square().sum(), list(new.parameters()))
    alone = [torch.autograd.grad(new(row[None]).square().sum(), list(new.parameters())) for row in rows]
    for parts, total in zip(zip(*alone, strict=True), whole, strict=True):
        torch.testing.assert_close(torch.stack(parts).sum(0), total, rtol=1e-9, atol=1e-9)


def test_in_place_activations_stay_and_work() -> None:
    """Catches opacus#828: an in-place ReLU after the new layer that breaks the backward pass or changes it."""
    model = trained(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True)).double())
    new = replace_batchnorm(model).model
    activation = new.get_submodule("2")
    assert isinstance(activation, nn.ReLU)
    assert activation.inplace
    plain = copy.deepcopy(new)
    vars(plain.get_submodule("2"))["inplace"] = False
    rows = drawn((4, 3, 6, 6)).double()
    gradients = [torch.autograd.grad(each(rows).square().sum(), list(each.parameters())) for each in (new, plain)]
    for one, other in zip(*gradients, strict=True):
        assert torch.equal(one, other)


def test_the_model_itself_may_be_a_batch_norm() -> None:
    """Catches a walk over children only."""
    replaced = replace_batchnorm(nn.BatchNorm2d(64))
    assert isinstance(replaced.model, nn.GroupNorm)
    assert replaced.changes == (
        LayerChange(
            "",
            "BatchNorm2d(64)",
            "GroupNorm(32, 64)",
            "mixes the examples of a batch; weight and bias kept, running statistics dropped",
        ),
    )


def test_tied_parameters_stay_tied() -> None:
    """Catches copies that are trained apart: one BatchNorm's weight is another's, and a Linear's bias, too."""
    one, other, linear = nn.BatchNorm1d(8), nn.BatchNorm1d(8), nn.Linear(8, 8)
    other.weight, linear.bias = one.weight, one.bias
    new = replace_batchnorm(nn.Sequential(linear, one, other)).model
    assert group_norm(new, "1").weight is group_norm(new, "2").weight
    assert group_norm(new, "1").bias is new.get_submodule("0").bias
    assert len(list(new.parameters())) == 4


def test_the_given_model_is_untouched() -> None:
    """Catches a swap inside the user's own model, or storage shared with it."""
    model = Residual()
    layers, state = list(model.modules()), copy.deepcopy(model.state_dict())
    new = replace_batchnorm(model).model
    with torch.no_grad():
        for parameter in new.parameters():
            parameter.add_(1.0)
    new(drawn((2, 3, 5, 5)))
    assert all(a is b for a, b in zip(model.modules(), layers, strict=True))
    assert model.state_dict().keys() == state.keys()
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_replaces_exactly_what_is_refused() -> None:
    """Catches frozen layers replaced unasked (opacus#315), and eval-mode ones that still mix examples kept."""
    model = nn.Sequential(
        nn.BatchNorm1d(8),
        nn.BatchNorm1d(8).eval(),
        nn.BatchNorm1d(8, track_running_stats=False).eval(),
        nn.LazyBatchNorm1d(),
        nn.InstanceNorm1d(8),
        nn.LayerNorm(8),
    )
    model[3](drawn((4, 8)))
    refused = [
        each.path for each in check(model, torch.optim.SGD(model.parameters(), lr=0.1)) if each.kind is Severity.REFUSAL
    ]
    replaced = replace_batchnorm(model)
    assert [each.path for each in replaced.changes] == refused == ["0", "2", "3"]
    for number in (1, 4, 5):
        assert type(replaced.model.get_submodule(str(number))) is type(model[number])


# --- What cannot be replaced -------------------------------------------------------------------------------------


class Activated(nn.BatchNorm2d):
    """BatchNorm and activation in one."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return super().forward(rows).relu()


class Renamed(nn.BatchNorm2d):
    """BatchNorm by another name."""


def hooked() -> nn.Module:
    norm = nn.BatchNorm2d(8)
    norm.register_forward_hook(lambda module, given, out: 2 * out)
    return norm


@pytest.mark.parametrize(
    ("norm", "word"),
    [
        (Activated(8), "a forward of its own"),
        (hooked(), "hooks"),
        (parametrizations.weight_norm(nn.BatchNorm2d(8)), "parametrisations"),
        (nn.LazyBatchNorm2d(), "no number of channels"),
        (nn.LazyBatchNorm2d(affine=False, track_running_stats=False), "no number of channels"),
    ],
)
def test_refuses_to_drop_what_a_layer_does_besides(norm: nn.Module, word: str) -> None:
    """Catches an activation, a hook or a parametrisation that vanishes with the layer."""
    with pytest.raises(InvalidInput, match=rf"\n- 1 .*{word}"):
        replace_batchnorm(nn.Sequential(nn.Conv2d(3, 8, 3), norm))
    assert isinstance(replace_batchnorm(Renamed(8)).model, nn.GroupNorm)


def test_one_error_tells_every_layer() -> None:
    """Catches an error that stops at the first layer."""
    with pytest.raises(InvalidInput, match=r"(?s)\n- 0 .*one channel.*\n- 2 .*of its own"):
        replace_batchnorm(nn.Sequential(nn.BatchNorm2d(1), nn.BatchNorm2d(8), Activated(8)))


def test_refuses_wrapped_models() -> None:
    """Catches a copy whose wrapper goes on running the old layers."""
    with pytest.raises(InvalidInput, match="plain model"):
        replace_batchnorm(nn.DataParallel(nn.BatchNorm2d(8)))


class Stubborn(nn.Sequential):
    """A model that hands out itself for a copy."""

    def __deepcopy__(self, memo: dict[int, object]) -> Stubborn:
        return self


def test_refuses_models_that_do_not_copy() -> None:
    """Catches an unchanged model passed off as new, and torch's bare error for tensors kept from a run."""
    with pytest.raises(InvalidInput, match="copies '0' in its own way"):
        replace_batchnorm(Stubborn(nn.BatchNorm2d(8)))
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    vars(model)["last"] = model(drawn((4, 8)))
    with pytest.raises(InvalidInput, match="cannot be copied"):
        replace_batchnorm(model)


# --- How it is shown ---------------------------------------------------------------------------------------------


def test_shows_each_change_and_what_stays() -> None:
    """Catches a difference that is not shown: path, old, new and reason of each, frozen layers, and the next step."""
    shown = str(replace_batchnorm(Residual())).splitlines()
    assert "make the optimizer from the new one's parameters" in shown[0]
    rows = [line.split(maxsplit=1) for line in shown[1:-1]]
    assert [place for place, _ in rows] == ["norm", "blocks.0.1", "heads.flat"]
    assert rows[0][1].startswith("BatchNorm2d(8) → GroupNorm(4, 8)")
    assert rows[2][1].startswith("BatchNorm1d(8) → GroupNorm(1, 8)")
    assert all(
        "mixes the examples of a batch; weight and bias kept, running statistics dropped" in row for _, row in rows
    )
    assert shown[-1] == "Kept, since frozen in eval mode: heads.frozen"


def test_says_when_there_was_nothing_to_do() -> None:
    """Catches an empty table."""
    replaced = replace_batchnorm(nn.Linear(2, 2))
    assert replaced.changes == ()
    assert str(replaced) == "No BatchNorm to replace; the model is a plain copy."
