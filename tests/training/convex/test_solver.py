"""The solver: it ends, near enough to the minimum, whatever the one that it asks first may say."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import OptimizeResult

from privet.core.errors import InvalidInput
from privet.training.convex import ConvexLoss, LogCosh, Softmax, minimum
from privet.training.convex.linear import within
from privet.training.convex.minimum import approach, tolerance


def awkward() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    x = within(np.concatenate([np.eye(3) * 1e4, np.ones((500, 3))]), 1.0)
    return x, np.concatenate([np.arange(3), np.zeros(500)]).astype(np.int64)


def gradient(
    loss: ConvexLoss, x: npt.NDArray[Any], y: npt.NDArray[Any], strong: float, theta: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = loss.slopes(x @ theta.T, y)[1].T @ x + strong * theta
    return found


@pytest.mark.parametrize("loss", [Softmax(3), LogCosh()])
@pytest.mark.parametrize("said", [0.0, 1.0, np.nan, np.inf])
def test_a_solver_that_stops_early_is_not_believed(
    loss: ConvexLoss, said: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says "success" at its start, anywhere, or nowhere: catches a tolerance that nobody checks."""

    def stops(_: Any, start: npt.NDArray[np.float64], **options: Any) -> OptimizeResult:
        del options
        return OptimizeResult(x=start + said, success=True, message="converged")

    x, y = awkward()
    start = np.zeros((loss.outputs, 4))
    monkeypatch.setattr(minimum, "minimize", stops)
    with np.errstate(all="ignore"):
        theta = approach(loss, x, y, 0.5, start, tolerance(loss))
    assert np.linalg.norm(gradient(loss, x, y, 0.5, theta)) <= tolerance(loss)
    assert np.linalg.norm(gradient(loss, x, y, 0.5, start)) > 100 * tolerance(loss)


@pytest.mark.parametrize("row", [[np.nan, 0.0], [np.inf, 0.0], [1e200, 0.0], [0.8, 0.7]])
def test_rows_that_nobody_shortened_are_refused(row: list[float]) -> None:
    """Catches `within` left out, with which a row moves a minimum by more than its share, and the solver never ends."""
    with pytest.raises(InvalidInput, match="longer than 1"):
        approach(LogCosh(), np.array([[0.1, 0.1], row]), np.zeros(2), 1.0, np.zeros((1, 2)), 1e-3)


@pytest.mark.parametrize("loss", [Softmax(3), LogCosh()])
@pytest.mark.parametrize("target", [np.nan, np.inf, -np.inf, -1.0, 99.0])
def test_targets_that_are_none_end_too(loss: ConvexLoss, target: float) -> None:
    """Catches an index that no class has, and a NaN that goes round for ever."""
    x, y = awkward()
    answers = y.astype(np.float64)
    answers[7] = target
    theta = approach(loss, x, answers, 0.5, np.zeros((loss.outputs, 4)), tolerance(loss))
    others = np.delete(np.arange(len(x)), 7)
    # All rows but that one pull with what they leave of the gradient: that is one row's share at most.
    rest = np.linalg.norm(gradient(loss, x[others], y[others], 0.5, theta))
    assert rest <= loss.lipschitz + tolerance(loss)


def test_what_cannot_be_reached_ends() -> None:
    """Catches a loop without an end: no gradient in float64 is as small as 1e-30."""
    x, y = awkward()
    with pytest.raises(InvalidInput, match="float64"):
        approach(Softmax(3), x[:5], y[:5], 5.0, np.zeros((3, 4)), 1e-30)
    with pytest.raises(InvalidInput, match="tilt"):
        approach(Softmax(3), x, y, 5.0, np.full((3, 4), np.nan), 1e-3)
