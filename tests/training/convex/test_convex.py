"""Output and objective perturbation: the theorems' numbers against densities, minima and draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from privet.accounting import epsilon as price
from privet.accounting.analytic_gaussian import analytic_gaussian_sigma
from privet.core.errors import InvalidInput
from privet.core.event import Approximate, Composed
from privet.core.random import SeededRng
from privet.core.unit import Neighbours, Unit
from privet.training.convex import ConvexLoss, LogCosh, ObjectivePerturbation, OutputPerturbation, Softmax
from privet.training.convex.linear import within
from privet.training.convex.minimum import approach, tolerance

DELTA = 1e-5


def data(rows: int, width: int, classes: int, seed: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, width))
    return x, (x[:, :classes].argmax(1) if classes else x[:, 0])


def exact(loss: ConvexLoss, x: npt.NDArray[Any], y: npt.NDArray[Any], regularization: float) -> npt.NDArray[Any]:
    return approach(loss, x, y, regularization, np.zeros((loss.outputs, x.shape[1])), 1e-10)


@pytest.mark.parametrize(("loss", "classes"), [(Softmax(2), 2), (Softmax(5), 5), (LogCosh(), 0)])
def test_one_row_moves_the_minimum_by_no_more_than_the_clip(loss: ConvexLoss, classes: int) -> None:
    """Fails if the divisor Λ, the gradient's bound or the shortening of rows were wrong."""
    x, y = data(40, 6, classes, 1)
    worst = 0.0
    for regularization in (0.1, 5.0):
        rows = within(x, 3.0)
        least = exact(loss, rows, y, regularization)
        for scale in (1.0, 1e6):
            for target in range(max(classes, 2)):
                extra = within(np.full((1, 6), scale), 3.0)
                label = [target] if classes else [1e5 * (-1) ** target]
                more = exact(
                    loss, np.concatenate([rows, extra]), np.concatenate([y, label]).astype(y.dtype), regularization
                )
                moved = float(np.linalg.norm(more - least)) * regularization / loss.lipschitz
                worst = max(worst, moved)
    assert worst <= 1.0
    # The bound is tight where there are no other rows and Λ is large: the gradient at 0 is all that moves the minimum.
    none = np.zeros((0, 7))
    alone = exact(loss, within(np.full((1, 6), 1e6), 3.0), np.array([0 if classes else 10**5]), 1e4)
    limit = np.sqrt(1 - 1 / classes) if classes else 1.0
    assert np.linalg.norm(alone - exact(loss, none, np.zeros(0, dtype=int), 1e4)) * 1e4 == pytest.approx(
        limit, rel=1e-3
    )


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_the_density_of_a_regression_keeps_the_block(epsilon: float) -> None:
    """The exact density of the minimum, in one dimension, on neighbouring data: fails at 0.8 of the noise."""
    plan = ObjectivePerturbation(LogCosh(), epsilon, DELTA, regularization=40.0 / epsilon)
    block = _block(plan)
    ratio = [_worst(plan, plan.noise * factor, block.epsilon) / block.delta for factor in (1.0, 0.8)]
    assert ratio[0] <= 1.0 < ratio[1]


def test_the_density_of_a_weak_penalty_keeps_the_block() -> None:
    """The same where the determinant takes nine tenths of ε: fails with the noise of a determinant that is forgotten.

    The worst target is one that few minima reach: there the curvature is largest, and so is the noise that led there.
    """
    plan = ObjectivePerturbation(LogCosh(), 0.5, DELTA, regularization=1.0 / np.expm1(0.45))
    block = _block(plan)
    forgotten = analytic_gaussian_sigma(block.epsilon, block.delta / 2)
    assert _worst(plan, plan.noise, block.epsilon) <= block.delta < _worst(plan, forgotten, block.epsilon)


def _block(plan: ObjectivePerturbation) -> Approximate:
    assert isinstance(plan.event, Composed)
    first = plan.event.events[0]
    assert isinstance(first, Approximate)
    return first


def _worst(plan: ObjectivePerturbation, sigma: float, epsilon: float) -> float:
    """The largest δ over a few neighbours, by integrating (f - e^ε f')⁺ over θ."""
    regularization = plan.regularization
    theta = np.linspace(-14, 14, 200_001) * sigma / regularization
    width = theta[1] - theta[0]
    found = 0.0
    far = sigma / regularization
    for target in (-1e3, -0.5, 0.0, 0.5, 2 * far, 3 * far, 4 * far, 1e3):
        slope, bend = np.tanh(theta - target), 1.0 - np.tanh(theta - target) ** 2
        densities = []
        for extra in (0.0, 1.0):
            force = regularization * theta + extra * slope
            log = -0.5 * (force / sigma) ** 2 - np.log(sigma * np.sqrt(2 * np.pi))
            densities.append(np.exp(log) * (regularization + extra * bend))
        for f, g in (densities, densities[::-1]):
            assert f.sum() * width == pytest.approx(1.0, abs=1e-9)
            found = max(found, float(np.maximum(f - np.exp(epsilon) * g, 0.0).sum() * width))
    return found


def test_the_density_of_two_classes_keeps_the_block() -> None:
    """The same for the softmax, where only the difference of the two weights matters; fails at 0.85 of the noise.

    The worst row is one of a class among 2,000 of the other class: its slope is steep wherever the minimum may be.
    """
    plan = ObjectivePerturbation(Softmax(2), 1.0, DELTA, regularization=30.0)
    block = _block(plan)
    sigma, strong = plan.noise, plan.regularization
    u = np.linspace(-28, 14, 600_001) * sigma / strong  # (θ_1 - θ_2)/√2: another direction carries no data
    width = u[1] - u[0]
    p = 1.0 / (1.0 + np.exp(-np.sqrt(2.0) * u))
    deltas = []
    for factor in (1.0, 0.85):
        densities = []
        for extra in (0.0, 1.0):
            force = strong * u + 2_000 * np.sqrt(2.0) * p - extra * np.sqrt(2.0) * (1.0 - p)
            bend = strong + (2_000 + extra) * 2.0 * p * (1.0 - p)
            densities.append(
                np.exp(-0.5 * (force / (factor * sigma)) ** 2) / (factor * sigma * np.sqrt(2 * np.pi)) * bend
            )
        both = (densities, densities[::-1])
        deltas.append(max(float(np.maximum(f - np.exp(block.epsilon) * g, 0.0).sum() * width) for f, g in both))
    assert deltas[0] <= block.delta < deltas[1]


@pytest.mark.parametrize("method", [OutputPerturbation, ObjectivePerturbation])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_price_is_what_was_asked_for(method: Any, epsilon: float) -> None:
    """Fails if a part of the event were forgotten."""
    plan = method(Softmax(10), epsilon, DELTA, regularization=100.0)
    assert 0.9 * epsilon <= price(plan.event, DELTA, unit=plan.unit).epsilon.upper <= epsilon


@pytest.mark.parametrize("seed", [1, 2])
def test_without_rows_the_model_is_noise_of_the_stated_size(seed: int) -> None:
    """Fails if the noise were 5 % off: 4,000 weights, within 4.5 standard errors; false alarms 7e-6 each."""
    x, y = np.zeros((0, 1999)), np.zeros(0, dtype=int)
    output = OutputPerturbation(Softmax(2), 1.0, DELTA, regularization=50.0)
    objective = ObjectivePerturbation(Softmax(2), 1.0, DELTA, regularization=50.0)
    multiplier = output.event.noise_multiplier
    expected: dict[OutputPerturbation | ObjectivePerturbation, float] = {
        output: multiplier * output.loss.lipschitz / 50.0,
        objective: objective.noise / 50.0,
    }
    for plan, size in expected.items():
        weight = plan.fit(x, y, source="none", rng=SeededRng(seed)).value.weight
        assert weight.std() == pytest.approx(size, rel=4.5 / np.sqrt(2 * weight.size))


def test_the_solver_reaches_its_tolerance_on_awkward_rows() -> None:
    """Separable classes, a tiny Λ and copies of one row: fails if a solver's own opinion were trusted."""
    loss = Softmax(3)
    x = within(np.concatenate([np.eye(3) * 1e4, np.ones((500, 3))]), 1.0)
    y = np.concatenate([np.arange(3), np.zeros(500)]).astype(int)
    theta = approach(loss, x, y, 1e-3, np.zeros((3, 4)), tolerance(loss))
    _, slopes = loss.slopes(x @ theta.T, y)
    assert np.linalg.norm(slopes.T @ x + 1e-3 * theta) <= tolerance(loss)


def test_rows_that_are_no_numbers_change_nothing() -> None:
    """NaN, infinity and labels out of range neither raise nor move the model by more than a row may."""
    x, y = data(30, 4, 3, 2)
    bad_x = np.concatenate([x, [[np.nan] * 4, [np.inf] * 4, [1e308] * 4]])
    bad_y = np.concatenate([y, [0, 1, 99]])
    plan = OutputPerturbation(Softmax(3), 1.0, DELTA, regularization=10.0)
    clean = plan.fit(x, y, source="a", rng=SeededRng(3)).value.weight
    dirty = plan.fit(bad_x, bad_y, source="a", rng=SeededRng(3)).value.weight
    assert np.isfinite(dirty).all()
    assert np.linalg.norm(dirty - clean) <= np.sqrt(2) / 10.0 * 1.001  # one row is finite, two are blank


def test_rows_are_never_longer_than_one() -> None:
    """Fails if rows were divided by a rounded norm."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(20_000, 9)) * 10.0 ** rng.integers(-300, 300, size=(20_000, 1))
    rows = within(x, 0.01).astype(np.longdouble)
    assert float((rows**2).sum(1).max()) <= 1.0


@pytest.mark.parametrize("method", [OutputPerturbation, ObjectivePerturbation])
def test_what_has_no_proof_is_refused(method: Any) -> None:
    with pytest.raises(InvalidInput, match="unit"):
        method(Softmax(2), 1.0, DELTA, 1.0, unit=Unit(neighbours=Neighbours.REPLACE))
    with pytest.raises(InvalidInput, match="epsilon"):
        method(Softmax(2), 0.0, DELTA, 1.0)
    with pytest.raises(InvalidInput, match="delta"):
        method(Softmax(2), 1.0, 0.0, 1.0)


def test_a_lambda_that_takes_all_of_epsilon_is_refused() -> None:
    with pytest.raises(InvalidInput, match="takes all of epsilon"):
        ObjectivePerturbation(Softmax(2), 0.1, DELTA, regularization=0.5)


def test_both_methods_learn() -> None:
    """On 4,000 easy rows at ε = 2, both are right nine times out of ten."""
    x, y = data(5_000, 8, 2, 7)
    for method in (OutputPerturbation, ObjectivePerturbation):
        plan = method(Softmax(2), 2.0, DELTA, regularization=20.0, radius=4.0)
        model = plan.fit(x[:4000], y[:4000], source="easy", rng=SeededRng(1)).value
        assert (model.scores(x[4000:]).argmax(1) == y[4000:]).mean() > 0.9
