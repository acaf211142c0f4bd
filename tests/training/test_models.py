"""Models and their features: lengths, rules for odd rows, and what is learned."""

from __future__ import annotations

import math

import pytest
import torch

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.data.columns import Category, Number
from privet.data.schema import Schema
from privet.training.models import Convolutions, Family, Linear, Pictures, Residual, TableFeatures, choose
from privet.training.models.synthetic_pictures import synthetic_pictures
from privet.training.plan import DPSGD

COLUMNS = (
    Number("age", 17, 90),
    Number("gain", 0, 100_000),
    Category("work", ("a", "b", "c")),
    Category("y", ("no", "yes")),
)
SCHEMA = Schema(COLUMNS, target="y")


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def pictures() -> Pictures:
    return Pictures(8, 8, features=40)


def test_rows_have_a_length_of_at_most_one() -> None:
    """Catches a feature that is not counted in the scale: its rows would be clipped harder than others."""
    front = TableFeatures(SCHEMA, bins=5)
    rows = torch.rand(500, 3, generator=generator()) * 2 - 1
    rows[:, 2] = torch.randint(0, 4, (500,), generator=generator())
    rows[::7, 1] = torch.nan
    found = front(rows)
    assert found.shape == (500, front.features)
    assert not list(front.parameters())
    assert found.norm(dim=1).max() <= 1 + 1e-6
    assert front(torch.tensor([[1.0, 1.0, 0.0]])).norm() == pytest.approx(1)


def test_odd_rows_never_raise() -> None:
    """Catches control flow that depends on rows: whatever is in a cell, there are features, and they are finite."""
    odd = torch.tensor([[math.nan] * 3, [math.inf] * 3, [-math.inf] * 3, [1e30, -1e30, 99.0], [0.0, 0.0, -1.0]])
    found = TableFeatures(SCHEMA)(odd)
    assert found.isfinite().all()
    assert (found.norm(dim=1) <= 1 + 1e-6).all()


def test_missing_numbers_and_unknown_categories_have_features_of_their_own() -> None:
    """Catches a missing number that looks like some number, or an unseen category that looks like a listed one."""
    front = TableFeatures(Schema(COLUMNS[::2] + COLUMNS[3:], target="y"), bins=2)
    known, missing, unseen = front(torch.tensor([[0.5, 0.0], [math.nan, 0.0], [0.5, 3.0]])) != 0
    assert known.nonzero().flatten().tolist() == [1, 2, 4]
    assert missing.nonzero().flatten().tolist() == [3, 4]
    assert unseen.nonzero().flatten().tolist() == [1, 2, 7]


def test_money_is_cut_on_a_logarithmic_scale() -> None:
    """Catches bins of equal widths alone, which put nearly all sums of money into the first one."""
    front = TableFeatures(Schema((COLUMNS[1], COLUMNS[3]), target="y"), bins=8)
    few = COLUMNS[1].scaled(torch.tensor([0.0, 50.0, 3000.0, 4000.0]).double().numpy())
    found = front(torch.tensor(few, dtype=torch.float32)[:, None])
    assert len({tuple(row) for row in (found[:, :8] > 0).tolist()}) == 1
    assert (found[:, 8:16] > 0).int().argmax(1).tolist() == [0, 2, 5, 5]
    assert TableFeatures(SCHEMA, bins=8).features == 10 + 18 + 4


def test_the_centre_walks_to_the_mean() -> None:
    """Catches a centre whose gradient has another sign or size, or that logits move: a step of 1 / pull goes there.

    The noise is a millionth; everything else is exact.
    """
    inputs = torch.rand(50, 6, generator=generator())
    targets = torch.randint(0, 3, (50,), generator=generator())
    model = Linear(6, 3)
    model.line.weight.data.normal_(generator=generator(1))
    groups = [{"params": [model.line.weight, model.bias], "lr": 0.0}, {"params": list(model.centres()), "lr": 1 / 0.2}]
    optimizer = torch.optim.SGD(groups, lr=0.0)
    plan = DPSGD(noise_multiplier=1e-6, delta=1e-5, clip=100.0, batch_size=50, steps=1, sample_rate=1.0)
    run = plan.attach(model, optimizer, (inputs, targets), rng=SeededRng(0))
    for rows, labels in run.batches():
        run.step(model.losses(rows, labels, pull=0.2))
    run.close()
    assert torch.allclose(model.centre.weight[0], inputs.mean(0), atol=1e-3)
    assert torch.allclose(model.away(inputs).mean(0), torch.zeros(6), atol=1e-3)


@pytest.mark.parametrize("head", [Linear(5, 3), Residual(5, 3, width=4)])
def test_without_a_pull_losses_are_those_of_the_task(head: Linear | Residual) -> None:
    """Catches a centre that is trained though nobody asked, and models that begin with an opinion."""
    inputs, targets = torch.rand(7, 5, generator=generator()), torch.randint(0, 3, (7,), generator=generator())
    losses = head.losses(inputs, targets)
    assert torch.equal(head(inputs), torch.zeros(7, 3))
    assert losses.tolist() == pytest.approx([math.log(3)] * 7)
    (gradient,) = torch.autograd.grad(losses.sum(), list(head.centres()))
    assert not gradient.abs().max()


@pytest.mark.parametrize("make", [Linear, Residual])
def test_numbers_are_learned_by_least_squares(make: type[Linear] | type[Residual]) -> None:
    """Catches a target that is compared with a column in place of a number, which would broadcast."""
    head = make(4, 0)
    inputs = torch.rand(6, 4, generator=generator())
    assert head(inputs).shape == (6,)
    assert head.losses(inputs, torch.full((6,), 0.5)).tolist() == [0.125] * 6


def test_features_of_pictures_have_length_one_and_depend_on_the_picture_alone(pictures: Pictures) -> None:
    """Catches statistics of the batch, a dependence on brightness, and NaN for a black picture."""
    some = torch.rand(9, 8, 8, generator=generator())
    found = pictures(some)
    assert found.shape == (9, pictures.features)
    assert torch.allclose(found.norm(dim=1), torch.ones(9), atol=1e-5)
    assert torch.allclose(pictures(some[4:5]), found[4:5], atol=1e-4)
    assert torch.allclose(pictures(40 * some), found, atol=1e-3)
    assert pictures(torch.zeros(1, 8, 8)).isfinite().all()
    assert not list(pictures.parameters())
    assert {"mean", "axes"} <= set(pictures.state_dict())


def test_made_up_pictures_come_out_evenly_spread(pictures: Pictures) -> None:
    """Catches axes that are not the principal ones: of made-up pictures, all kept directions vary about as much."""
    coefficients = pictures(synthetic_pictures(400, 8, 8))
    spread = coefficients.var(0)
    assert spread.max() / spread.min() < 20
    apart = coefficients.T @ coefficients / 400
    assert (apart - apart.diag().diag()).abs().max() < 0.3 * spread.max()


def test_drawn_pictures_are_the_same_always() -> None:
    """Catches a generator that is shared or seeded by the clock: the features of one model would not be another's."""
    first = synthetic_pictures(9, 8, 12)
    assert first.shape == (9, 8, 12)
    assert torch.equal(first, synthetic_pictures(9, 8, 12))
    assert first.min() >= 0
    assert first.max() <= 1
    assert first.flatten(1).std(1).min() > 0


def test_choose_looks_at_shape_and_size_alone() -> None:
    """Catches a family that does not fit, and a network where rows are too few for it."""
    assert choose(SCHEMA, 2, 5_000).family is Family.LINEAR
    assert choose(SCHEMA, 2, 5_000_000).family is Family.RESIDUAL
    small = choose((8, 8), 10, 1_000)
    assert isinstance(small.front, Pictures)
    assert small(torch.rand(3, 8, 8, generator=generator())).shape == (3, 10)
    assert isinstance(choose((3, 8, 8), 10, 1_000, "convolutions").head, Convolutions)
    for shape, family in ((SCHEMA, "convolutions"), ((8, 8), "residual")):
        with pytest.raises(InvalidInput, match="family"):
            choose(shape, 2, 10, family)
    with pytest.raises(InvalidInput, match="shape"):
        choose((8,), 2, 10)


@pytest.mark.parametrize("size", [8, 28, 32])
def test_convolutions_take_any_size(size: int) -> None:
    """Catches a network that fits one size of picture alone."""
    model = Convolutions(1, 10)
    some = torch.rand(3, size, size, generator=generator())
    assert model(some).shape == (3, 10)
    assert model.losses(some, torch.tensor([1, 2, 3])).shape == (3,)
