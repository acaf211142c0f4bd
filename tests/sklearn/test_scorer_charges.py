"""The charge of a private score: when it is made, that it stays, for whom it is; and how much one row can count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.core.unit import Neighbours, Unit
from privet.ledger import Ledger, State
from privet.mechanisms import DiscreteLaplaceMechanism
from privet.sklearn import private_scorer
from tests.sklearn.test_estimators import classifier, made_up


class Constant:
    """Model that predicts 1, or raises as a model may on some rows."""

    def __init__(self, error: type[Exception] | None = None) -> None:
        self.error = error

    def predict(self, rows: Any) -> Any:
        if self.error is not None:
            raise self.error
        return np.ones(len(rows))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.create("clinic", epsilon=2.0, delta=1e-3)
    return path


def states(place: Path) -> list[State]:
    with Ledger(place) as ledger:
        return [entry.state for entry in ledger.show("clinic").entries]


def test_score_is_charged_before_the_draw_and_kept_after_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a score that is drawn before its charge, or whose charge is given back once it is drawn."""
    seen: list[list[State]] = []
    release = DiscreteLaplaceMechanism.release

    def watched(self: DiscreteLaplaceMechanism, *arguments: Any, **more: Any) -> Any:
        seen.append(states(place))
        return release(self, *arguments, **more)

    monkeypatch.setattr(DiscreteLaplaceMechanism, "release", watched)
    scorer = private_scorer(0.5, ledger=place, budget="clinic")
    scorer.release(Constant(), np.zeros((3, 1)), [1, 1, 0], rng=SeededRng(1))
    assert seen == [[State.DRAWING]]
    assert states(place) == [State.COMMITTED]
    with Ledger(place) as ledger:
        assert ledger.budget("clinic").epsilon_left <= 1.5


def test_score_that_fails_keeps_its_charge(place: Path) -> None:
    """Catches a charge that is given back because a private row made the model raise: the failure itself is seen."""
    scorer = private_scorer(0.5, ledger=place, budget="clinic")
    with pytest.raises(ZeroDivisionError):
        scorer(Constant(ZeroDivisionError), np.zeros((3, 1)), [1, 1, 0])
    assert states(place) == [State.DRAWING]
    with Ledger(place) as ledger:
        assert ledger.budget("clinic").epsilon_left <= 1.5


def test_score_is_refused_by_a_budget_of_another_unit(tmp_path: Path) -> None:
    """Catches a score whose noise is for a row that comes or goes, charged where a replaced row is protected."""
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.create("clinic", epsilon=2.0, delta=1e-3, unit=Unit(neighbours=Neighbours.REPLACE))
    with pytest.raises(InvalidInput, match="protects one example, replace"):
        private_scorer(0.5, ledger=path, budget="clinic")(Constant(), np.zeros((3, 1)), [1, 1, 0])
    assert not states(path)


def test_fit_is_refused_by_a_budget_of_another_unit(tmp_path: Path) -> None:
    """Catches a fit for a row that comes or goes, charged to a budget that protects a replaced row."""
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.create("clinic", epsilon=9.0, delta=1e-3, unit=Unit(neighbours=Neighbours.REPLACE))
    with pytest.raises(InvalidInput, match="protects one example, replace") as caught:
        classifier(ledger=path, budget="clinic", delta=1e-4).fit(*made_up())
    assert caught.value.argument == "budget"
    assert not states(path)


@pytest.mark.parametrize("far", [5.0, -1.0, 1e300, -1e300, float("inf"), float("-inf")])
@pytest.mark.parametrize("side", ["predicted", "true"])
def test_score_of_a_row_beyond_the_bounds_is_that_of_the_bound(far: float, side: str) -> None:
    """Catches an error that is not clamped on one side or on both, so that one row takes away what others got right."""
    scorer, bound = private_scorer(0.5, target_bounds=(0, 4), source="domain limit"), 4.0 if far > 0 else 0.0
    for other in (0.0, 1.0, 4.0):
        pairs = [(far, other), (bound, other)] if side == "predicted" else [(other, far), (other, bound)]
        found, expected = (
            scorer.mechanism.query(scorer._scores(np.array([said]), np.array([true]))).value for said, true in pairs
        )
        assert found.tolist() == expected.tolist()
        assert found == pytest.approx([1 - abs(other - bound) / 4, abs(other - bound) / 4], abs=1e-5)  # but for a grid
    both = scorer.mechanism.query(scorer._scores(np.array([far]), np.array([far]))).value
    assert both == pytest.approx([1.0, 0.0], abs=1e-5)


@pytest.mark.parametrize("far", [5.0, -5.0, 1.7e308, -1.7e308, float("inf"), float("-inf")])
def test_cell_far_beyond_the_bounds_is_the_bound(far: float) -> None:
    """Catches a cell that is scaled before it is clamped: it overflows, and a private row is seen in a warning."""
    from privet.sklearn.rows import Columns

    columns = Columns.of((0, 0.25), None, None, 1)
    assert columns.table([np.array([far, 0.0, 0.25])])[:, 0].tolist() == [1.0 if far > 0 else -1.0, -1.0, 1.0]
