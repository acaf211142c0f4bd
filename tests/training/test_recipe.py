"""The rules: they keep the budget, they follow from public numbers alone, and what they train is good."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
import torch

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.core.unit import Neighbours
from privet.data import Images, named
from privet.training.models import Linear, Pictures, Residual
from privet.training.recipe import DataKind, recipe

CASES = [("table", 30_000, 200, 2), ("pictures", 60_000, 800, 10), ("pictures", 1_400, 144, 10)]


@pytest.mark.parametrize(("kind", "rows", "features", "classes"), CASES)
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_a_recipe_keeps_its_budget(kind: str, rows: int, features: int, classes: int, epsilon: float) -> None:
    """Catches a plan that is changed after it was calibrated, or that counts the rows."""
    plan = recipe(kind, rows, features, classes, epsilon, 1e-5).plan
    guarantee = plan.guarantee(1e-5)
    assert 0.98 * epsilon <= guarantee.epsilon.upper <= epsilon
    assert guarantee.unit.neighbours is Neighbours.ADD_REMOVE


@pytest.mark.parametrize(("kind", "rows", "features", "classes"), CASES)
def test_all_steps_together_add_the_same_noise_to_a_logit(kind: str, rows: int, features: int, classes: int) -> None:
    """Catches a learning rate that forgets the clip, the batch, the number of steps or the schedule."""
    found = recipe(kind, rows, features, classes, 1.0, 1e-5)
    plan = found.plan
    optimizer = found.optimizer(Linear(features, classes))
    rates = []
    for step in range(found.steps):
        found.anneal(optimizer, step)
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == sorted(rates, reverse=True)
    assert plan.noise_multiplier is not None
    assert plan.batch_size is not None
    noise = sqrt(sum(rate**2 for rate in rates)) * plan.noise_multiplier * plan.clip / plan.batch_size
    assert noise == pytest.approx(1.2, rel=0.02)


@pytest.mark.parametrize("rows", [1, 7, 300, 10_000_000])
@pytest.mark.parametrize("kind", list(DataKind))
@pytest.mark.parametrize("classes", [0, 2])
def test_any_number_of_rows_has_a_recipe(rows: int, kind: DataKind, classes: int) -> None:
    """Catches batches larger than the data, and rates that are not finite, at the ends of the scale."""
    found = recipe(kind, rows, 50, classes, 1.0, 1e-8)
    assert 1 <= (found.plan.batch_size or 0) <= rows
    assert (found.plan.batch_size or 0) <= 16384
    assert 0 < found.learning_rate < 1e6
    assert 0 < found.centre_rate <= 0.5
    assert 0 < found.epochs <= 200


def test_fewer_rows_let_the_centre_rest() -> None:
    """Catches a centre that follows noise: with few rows it hardly moves."""
    many, few = recipe("pictures", 60_000, 800, 10, 1.0, 1e-5), recipe("pictures", 1_400, 800, 10, 1.0, 1e-5)
    assert many.centre_rate == pytest.approx(0.5)
    assert few.centre_rate < 0.01


def test_the_centre_has_a_rate_of_its_own() -> None:
    """Catches parameters that no optimizer moves, or that two groups move."""
    found = recipe("table", 30_000, 20, 2, 1.0, 1e-5)
    for model in (Linear(20, 2), Residual(20, 2)):
        groups = found.optimizer(model).param_groups
        assert list(groups[1]["params"]) == list(model.centres())
        assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
        assert groups[1]["initial_lr"] == pytest.approx(found.centre_rate / found.pull)


def test_families_that_do_not_fit_are_refused() -> None:
    """Catches a recipe for a model that nobody has."""
    with pytest.raises(InvalidInput, match="family"):
        recipe("table", 100, 5, 2, 1.0, 1e-3, "convolutions")
    with pytest.raises(InvalidInput, match="kind"):
        recipe("tabel", 100, 5, 2, 1.0, 1e-3)


def test_digits_are_learned() -> None:
    """Catches whatever makes private models bad: at ε = 3 five seeds gave 98.2 %, with a deviation of 0.3 %."""
    pytest.importorskip("sklearn")
    digits = named("digits")
    assert isinstance(digits.train, Images)
    assert isinstance(digits.test, Images)
    front = Pictures(8, 8)
    inputs, held = (front(torch.from_numpy(part.x)) for part in (digits.train, digits.test))
    found = recipe("pictures", len(digits.train), front.features, 10, 3.0, 1e-4)
    targets = torch.from_numpy(digits.train.y)
    steps: list[int] = []
    release = found.fit(Linear(front.features, 10), (inputs, targets), callbacks=[steps.append], rng=SeededRng(1))
    right = (release.value(held).argmax(1).numpy() == digits.test.y).mean()
    assert right > 0.95
    assert steps[-1] == found.steps


def test_numbers_are_learned() -> None:
    """Catches a least-squares recipe that diverges or stands still: the line explains 90 % of the variance."""
    drawn = np.random.default_rng(0)
    inputs = torch.from_numpy(drawn.uniform(-0.5, 0.5, (4000, 4)).astype(np.float32))
    targets = inputs @ torch.tensor([0.8, -0.5, 0.3, 0.0]) + 0.2
    model = Linear(4, 0)
    found = recipe("table", 4000, 4, 0, 3.0, 1e-5)
    release = found.fit(model, (inputs, targets), rng=SeededRng(1))
    left = (release.value(inputs) - targets).var() / targets.var()
    assert left < 0.1
