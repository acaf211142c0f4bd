"""Ways to the same numbers in fewer operations: shared norms, even blocks, weights noted without torch's own walk."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from privet.training import DPSGD
from privet.training.clipping import Flat
from privet.training.engine.contributions import Dense, Lookup, Mixed, Outer
from privet.training.engine.groups import Groups
from privet.training.engine.squares import Squares
from privet.training.rules import convolution
from privet.training.rules.channels_last import ChannelsLast
from privet.training.rules.convolution import ConvolutionFactors
from privet.training.rules.kernels import Geometry, Method, has_loops, in_loops, looped, windows_by_channel
from privet.training.rules.tuning import Way
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
    bias = Dense(gradient).with_squares()
    beside = Outer(inputs, gradient[:, None]).with_squares_beside(bias).squares()
    alone = Outer(inputs, gradient[:, None]).squares()
    true = (inputs[:, 0].double().square().sum(1)) * gradient.double().square().sum(1)
    assert torch.equal(beside.value, alone.value)
    assert torch.all(beside.value.double() + beside.slack.double() >= true)
    for other in (None, Dense(gradient * 2).with_squares(), Dense(gradient), Dense(gradient[:, :65]).with_squares()):
        part = Outer(inputs, gradient[:, None]).with_squares_beside(other)
        assert torch.equal(part.squares().value, alone.value)
    several = Outer(normal(6, 2, 4).float(), normal(6, 2, 65, seed=3).float())
    folded = Dense(several.right.reshape(6, 130)).with_squares()  # the same memory, but two places in each row
    assert torch.equal(several.with_squares_beside(folded).squares().value, several.squares().value)


def cancelling(k: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows that are nearly the same, times gradients that nearly cancel: all that is left of the sum is rounding."""
    left = torch.linspace(0.5643125176429749, 0.5711323618888855, k)[None, :, None].expand(2, k, width).contiguous()
    right = torch.eye(k).sub_(1.0 / k)[None].expand(2, k, k).contiguous()
    return left, right


@pytest.mark.usefixtures("loops_or_not")
@pytest.mark.parametrize("k", [2, 8, 200])
@pytest.mark.parametrize("width", [3, 256, 3072, 20_001])
def test_positions_that_cancel(width: int, k: int) -> None:
    """Catches slack that is small beside the rounding of inner products: a gradient would be longer than the clip."""
    left, right = cancelling(k, width)
    found = Outer(left, right).squares()
    matrix = left.double().mT @ right.double()
    true = matrix.square().sum((1, 2))
    assert torch.all(found.value.double() + found.slack.double() >= true)
    index = torch.arange(k)[None].expand(2, k) % 3
    looked = Lookup(index, (right - 0.3) @ left, 5)
    table = looked.right.double().new_zeros(2, 5, width).index_add_(1, index[0], looked.right.double())
    both = looked.squares()
    assert torch.all(both.value.double() + both.slack.double() >= table.square().sum((1, 2)))
    outer = Outer(normal(2, k, 5).float(), right @ left)
    mixed = Mixed(outer, looked).squares()
    whole = outer.left.double().mT @ outer.right.double() + table
    assert torch.all(mixed.value.double() + mixed.slack.double() >= whole.square().sum((1, 2)))


@pytest.mark.usefixtures("loops_or_not")
@pytest.mark.parametrize("method", [looped, windows_by_channel])
@pytest.mark.parametrize("by_places", [True, False])
def test_places_that_cancel(method: Method, by_places: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for a convolution whose gradients are not kept, so that other numbers are added than were measured."""
    monkeypatch.setattr(convolution, "way", lambda *_: Way(method, keep=False, by_places=by_places))
    size = 40 if by_places else 128
    pictures = 0.5643125176429749 + 0.007 * torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(1))
    gradient = torch.ones(2, 2, size, size).mul_(0.1)
    gradient[:, :, ::2] *= -1.0
    geometry = Geometry((2, 3, 1, 1), (1, 1), (0, 0), (1, 1), 1)
    found = ConvolutionFactors(pictures, gradient, geometry).squares()
    true = torch.einsum("bohw,bchw->boc", gradient.double(), pictures.double()).square().sum((1, 2))
    assert torch.all(found.value.double() + found.slack.double() >= true)
    assert torch.all(found.slack > 0)


@pytest.mark.usefixtures("loops_or_not")
@pytest.mark.parametrize("method", [looped, windows_by_channel])
@pytest.mark.parametrize("by_places", [True, False])
@pytest.mark.parametrize(("size", "gradient"), [(1e-23, 1e17), (2e19, 0.0), (2e19, 1e-30), (1e-30, 1.0)])
def test_places_beyond_the_range_of_squares(
    method: Method, by_places: bool, size: float, gradient: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches squares that vanish or overflow: a gradient that is not clipped, or a factor that is NaN for all."""
    monkeypatch.setattr(convolution, "way", lambda *_: Way(method, keep=False, by_places=by_places))
    pictures = torch.full((2, 8, 6, 6), size)
    gradients = torch.full((2, 8, 4, 4), gradient)
    found = ConvolutionFactors(pictures, gradients, Geometry((8, 8, 3, 3), (1, 1), (0, 0), (1, 1), 1)).squares()
    true = 8 * 8 * 9 * (16 * size * gradient) ** 2
    factor = Flat().factors([found], 1e-6, [0]).by_parameter[0]
    assert factor is not None
    assert bool(factor.isfinite().all())
    assert bool((factor.double() * true**0.5 <= 1.0001e-6).all())


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("slack", [0.0, torch.nan, torch.inf])
def test_what_is_unknown_adds_nothing(value: float, slack: float) -> None:
    """Catches a NaN or an infinite square, of either sign, that leaves an example whole."""
    found = Squares(torch.tensor([value, 4.0]), torch.tensor([slack, 0.0]))
    factor = Flat().factors([found], 1.0, [0]).by_parameter[0]
    assert factor is not None
    assert factor.tolist() == pytest.approx([0.0, 0.5], rel=1e-5)


def test_gradients_with_the_channels_last() -> None:
    """Catches norms that were kept for what is no longer the same rows: users' sums, and rows that were blanked."""
    value = normal(6, 4, 3, 2, 5).float()
    turned = ChannelsLast(value).with_squares()
    plain = Dense(value.movedim(-1, 2).flatten(1))
    groups = Groups.of(torch.tensor([0, 0, 1, 1, 1, 2]), 6, 3)
    bad = torch.tensor([False, True, False, False, True, False])
    factors = torch.linspace(0.1, 1.0, 6)
    for mine, other in (
        (turned, plain),
        (turned.regroup(groups), plain.regroup(groups)),
        (turned.blank(bad), plain.blank(bad)),
        (
            ChannelsLast(value.index_fill(0, torch.tensor([1, 4]), torch.nan)).with_squares().blank(bad),
            plain.blank(bad),
        ),
    ):
        assert torch.allclose(mine.squares().value, other.squares().value, rtol=1e-5)
        assert torch.allclose(mine.dense(), other.dense())
        sums = torch.zeros(2, 120)
        for total, part in zip(sums, (mine, other), strict=True):
            part.add_to(total.view(4, 5, 3, 2), factors[: len(part.squares().value)])
        assert torch.allclose(sums[0], sums[1], atol=1e-5)
    assert bool((turned.squares().slack > 0).all())


def test_loops_of_a_convolution_have_slack() -> None:
    """Catches norms from the loops that are taken for exact."""
    pictures, gradient = normal(3, 2, 6, 6).float(), normal(3, 4, 4, 4).float()
    geometry = Geometry((4, 2, 3, 3), (1, 1), (0, 0), (1, 1), 1)
    if has_loops(geometry, pictures, gradient):
        found = in_loops(geometry, pictures, gradient, None)
        assert torch.all(found.slack >= found.value * 16 * torch.finfo(torch.float32).eps / 2)


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
    plan = DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=20, sample_rate=0.5, steps=4)
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
