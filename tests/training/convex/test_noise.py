"""The noise that the convex methods draw, against their theorems as they are written on paper."""

from __future__ import annotations

from math import log1p, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.stats import norm

from privet.core.event import Approximate, Composed, Gaussian
from privet.core.random import Rng, SeededRng
from privet.training.convex import (
    ConvexLoss,
    LogCosh,
    ObjectivePerturbation,
    OutputPerturbation,
    Softmax,
    objective,
    output,
)
from privet.training.convex.minimum import approach
from privet.training.lattice import Lattice

DELTA = 1e-5
GAMMA = 3e-4
"""The gradient at which the solver stops, over the Lipschitz constant."""
# The Lipschitz constant, the rank, the trace and the tails, as the theorems have them.
LOSSES: list[tuple[ConvexLoss, tuple[float, int, float, int]]] = [
    (Softmax(2), (sqrt(2.0), 1, 1 / 2, 1)),
    (Softmax(3), (sqrt(2.0), 2, 2 / 3, 2)),
    (Softmax(10), (sqrt(2.0), 9, 9 / 10, 9)),
    (LogCosh(), (1.0, 1, 1.0, 2)),
]
Draws = list[tuple[npt.NDArray[np.float64], float]]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Draws:
    """What exact noise was added to, and its deviation, at the call that draws it."""
    seen: Draws = []
    add = Lattice.add

    def spy(self: Lattice, total: torch.Tensor, sigma: float, rng: Rng) -> torch.Tensor:
        seen.append((total.numpy().copy(), sigma))
        return add(self, total, sigma, rng)

    monkeypatch.setattr(Lattice, "add", spy)
    return seen


def rows(classes: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(30, 4)), rng.integers(0, max(classes, 1), 30)


@pytest.mark.parametrize(("loss", "constants"), LOSSES)
@pytest.mark.parametrize("regularization", [0.01, 300.0])
def test_output_noise_is_that_of_the_theorem(
    loss: ConvexLoss, constants: Any, regularization: float, drawn: Draws
) -> None:
    """σ = multiplier · (L + 2γ)/Λ, and a few millionths for the grid: catches a forgotten γ, which is 6e-4 of it."""
    plan = OutputPerturbation(loss, 1.0, DELTA, regularization)
    plan.fit(*rows(loss.outputs), source="some", rng=SeededRng(1))
    ((_, sigma),) = drawn
    lipschitz = constants[0]
    expected = plan.event.noise_multiplier * (lipschitz + 2 * GAMMA * lipschitz) / regularization
    assert 1.0 <= sigma / expected < 1.0 + 1e-5
    assert _gaussian(1.0 / plan.event.noise_multiplier, 1.0) <= DELTA


def test_output_noise_covers_the_worst_that_a_solver_may_leave(drawn: Draws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neighbours whose solvers stop as far apart as their tolerance allows: fails if either γ were left out."""

    def stops_early(
        loss: ConvexLoss, x: Any, y: Any, strong: float, tilt: npt.NDArray[np.float64], tolerance: float
    ) -> npt.NDArray[np.float64]:
        away = np.ones_like(tilt) / sqrt(tilt.size) * tolerance / strong
        exact = approach(loss, x, y, strong, tilt, 1e-11)
        return exact + away if len(x) else exact - away

    monkeypatch.setattr(output, "approach", stops_early)
    plan = OutputPerturbation(LogCosh(), 1.0, DELTA, 50.0)
    # All features and the intercept are 1: this row moves the minimum along (1, …, 1) by L/Λ.
    for x in (np.zeros((0, 4)), np.ones((1, 4))):
        plan.fit(x, np.full(len(x), 1e5), source="some", rng=SeededRng(1))
    (first, sigma), (second, _) = drawn
    moved = float(np.linalg.norm(first - second))
    covered = sigma / plan.event.noise_multiplier
    assert covered * (1 - 1e-5) < moved <= covered


@pytest.mark.parametrize(("loss", "constants"), LOSSES)
@pytest.mark.parametrize(("share", "epsilon", "delta"), [(0.1, 3.0, DELTA), (0.9, 0.3, DELTA), (0.1, 3.0, 0.9)])
def test_the_tilt_is_that_of_the_theorem(
    loss: ConvexLoss, constants: Any, share: float, epsilon: float, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """k·δ_μ(ε₁ - c) ≤ δ₁ and μ²/2 ≤ ε₁ - c for the tilt that is drawn, and not so for a thousandth less.

    The determinant takes about `share` of ε. Catches a forgotten determinant, a forgotten union over k tails, and a
    forgotten condition on μ, which matters where δ is large.
    """
    lipschitz, rank, trace, tails = constants
    regularization = trace / (rank * np.expm1(share * 0.99 * epsilon / rank))
    plan = ObjectivePerturbation(loss, epsilon, delta, regularization)
    tilts: list[npt.NDArray[np.float64]] = []

    def spy(*asked: Any) -> npt.NDArray[np.float64]:
        tilts.append(asked[4])
        return np.zeros_like(asked[4])

    monkeypatch.setattr(objective, "approach", spy)
    plan.fit(*rows(loss.outputs), source="some", rng=SeededRng(1))
    standard = SeededRng(1).normal(tilts[0].shape)
    sigma = float(tilts[0].flat[0] / standard.flat[0])
    assert tilts[0] == pytest.approx(sigma * standard)
    block, _ = _parts(plan)
    left = block.epsilon - rank * log1p(trace / (rank * regularization))

    def holds(deviation: float) -> bool:
        mu = lipschitz / deviation
        return bool(mu**2 / 2 <= left and tails * _gaussian(mu, left) <= block.delta)

    assert left < (1 - 0.9 * share) * epsilon
    assert holds(sigma)
    assert not holds(sigma * 0.999)


@pytest.mark.parametrize(("loss", "constants"), LOSSES)
def test_where_the_solver_stopped_is_hidden(
    loss: ConvexLoss, constants: Any, drawn: Draws, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given the minimum, solvers stop at most 2γ/Λ apart, which the second part of the event pays for: catches γ/Λ."""

    def stops_early(
        loss: ConvexLoss, x: Any, y: Any, strong: float, tilt: npt.NDArray[np.float64], tolerance: float
    ) -> npt.NDArray[np.float64]:
        del loss, y
        away = np.ones_like(tilt) / sqrt(tilt.size) * tolerance / strong
        return tilt + away if len(x) else tilt - away

    monkeypatch.setattr(objective, "approach", stops_early)
    plan = ObjectivePerturbation(loss, 2.0, DELTA, 60.0)
    x, y = rows(loss.outputs)
    for count in (0, 1):
        plan.fit(x[:count], y[:count], source="some", rng=SeededRng(1))
    (first, sigma), (second, _) = drawn
    _, hiding = _parts(plan)
    assert hiding.noise_multiplier is not None
    moved, covered = float(np.linalg.norm(first - second)), sigma / hiding.noise_multiplier
    assert moved == pytest.approx(2 * GAMMA * constants[0] / 60.0, rel=1e-6)
    assert covered * (1 - 1e-3) < moved <= covered


@pytest.mark.parametrize(("loss", "constants"), LOSSES)
def test_the_constants_are_those_of_the_loss(loss: ConvexLoss, constants: Any) -> None:
    """Slopes and their derivatives at many scores: catches a constant that some example exceeds, or that none reaches.

    The logarithm of det(I + ∇²ℓ/Λ) is within its bound, and reaches it.
    """
    lipschitz, rank, trace, _ = constants
    rng = np.random.default_rng(2)
    wide = rng.choice([0.1, 1.0, 10.0], size=(300, 1))
    scores = np.concatenate([np.zeros((1, loss.outputs)), wide * rng.normal(size=(300, loss.outputs))])
    classes = loss.outputs > 1
    y = rng.integers(0, loss.outputs, len(scores)) if classes else np.concatenate([[0], rng.normal(size=300) * 50])
    steepest = float(np.linalg.norm(loss.slopes(scores, y)[1], axis=1).max())
    assert steepest <= lipschitz <= loss.lipschitz < lipschitz * (1 + 1e-12)
    assert steepest > 0.95 * lipschitz
    step = 1e-5 * np.eye(loss.outputs)
    bends = np.stack([(loss.slopes(scores + h, y)[1] - loss.slopes(scores - h, y)[1]) / 2e-5 for h in step], 2)
    values = np.linalg.eigvalsh((bends + bends.transpose(0, 2, 1)) / 2)
    assert values.max() <= loss.curvature + 1e-8
    assert values.sum(1).max() == pytest.approx(trace, abs=1e-8)
    assert int((values > 1e-8).sum(1).max()) == rank
    for strong in (0.05, 20.0):
        logs = np.log1p(np.maximum(values, 0.0) / strong).sum(1)
        assert logs.max() == pytest.approx(rank * log1p(trace / (rank * strong)), abs=1e-6)


def _parts(plan: ObjectivePerturbation) -> tuple[Approximate, Gaussian]:
    assert isinstance(plan.event, Composed)
    block, hiding = plan.event.events
    assert isinstance(block, Approximate)
    assert isinstance(hiding, Gaussian)
    return block, hiding


def _gaussian(mu: float, epsilon: float) -> float:
    """δ of a Gaussian whose means are μ deviations apart (Balle & Wang 2018, Thm 8)."""
    return float(norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))
