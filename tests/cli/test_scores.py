"""Scores on private rows: paid for in full, with the noise that was paid for, whatever a model says."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from privet.accounting import epsilon
from privet.cli.training.scores import Rows, Scoring, auc, measured
from privet.core.event import Composed, DiscreteLaplace
from privet.core.random import SecureRng, SeededRng
from privet.core.unit import Unit, Whose
from privet.data import Number


class Says(nn.Module):
    """A model that says what its inputs are."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows


def _rows(right: int, wrong: int, users: np.ndarray | None = None) -> Rows:
    outputs = torch.tensor([[0.0, 1.0]] * right + [[1.0, 0.0]] * wrong).reshape(-1, 2)
    return Rows(outputs, torch.ones(right + wrong, dtype=torch.long), None, users)


@pytest.mark.parametrize(("rows", "scale"), [(1, 2.0), (3, 6.0)])
def test_the_noise_follows_from_the_rows_that_one_unit_owns(rows: int, scale: float) -> None:
    """Catches noise for one row where a user owns several, halved noise, and ε that is split where it need not be."""
    unit = Unit() if rows == 1 else Unit(whose=Whose.USER)
    scoring = Scoring(0.5, unit, rows, classes=2)
    assert isinstance(scoring.event, DiscreteLaplace)
    assert scoring.event.scale == pytest.approx(scale)
    assert epsilon(scoring.event, 0.0, unit=unit).epsilon.upper <= 0.5


def test_one_row_moves_the_counts_by_one() -> None:
    """Catches an accuracy whose divisor, or whose noise, depends on the rows: replayed with the same random bits."""
    scoring = Scoring(1.0, Unit(), 1, classes=2)

    def accuracy(right: int, wrong: int) -> float:
        release = scoring.release(Says(), _rows(right, wrong), rng=SeededRng(4), source="test", on="rows")
        assert release.event == scoring.event
        return float(release.value.value or 0.0)

    base, more = accuracy(300, 100), accuracy(301, 100)
    assert base != 0.75
    # (301 + a)/(401 + a + b) for the noise (a, b) that made the first: two unknowns, and whole numbers.
    fits = [
        (a, b)
        for a in range(-40, 41)
        for b in range(-40, 41)
        if (300 + a) / (400 + a + b) == pytest.approx(base, abs=1e-12)
        and (301 + a) / (401 + a + b) == pytest.approx(more, abs=1e-12)
    ]
    assert fits


def test_users_count_with_no_more_rows_than_they_may() -> None:
    """Catches a user whose hundred rows outweigh all others."""
    owners = np.array([0] * 100 + list(range(1, 51)))
    outputs = torch.tensor([[1.0, 0.0]] * 100 + [[0.0, 1.0]] * 50)
    rows = Rows(outputs, torch.ones(150, dtype=torch.long), None, owners)
    scoring = Scoring(40.0, Unit(whose=Whose.USER), 1, classes=2)
    found = scoring.release(Says(), rows, rng=SecureRng(), source="test", on="rows").value
    assert found.value == pytest.approx(50 / 51, abs=0.05)


def test_errors_of_numbers_are_a_sum_and_a_count() -> None:
    """Catches an ε that is spent twice, and an error that is not in the target's own units."""
    scoring = Scoring(2.0, Unit(), 1, classes=0)
    assert isinstance(scoring.event, Composed)
    assert epsilon(scoring.event, 0.0).epsilon.upper == pytest.approx(2.0)
    label = Number("age", 0.0, 100.0)
    rows = Rows(torch.full((4000,), 0.2), torch.zeros(4000), label)
    found = scoring.release(Says(), rows, rng=SeededRng(1), source="test", on="rows").value
    assert found.value == pytest.approx(10.0, abs=0.5)
    assert measured(Says(), rows, 0, "rows")[0].value == pytest.approx(10.0)


@pytest.mark.parametrize("classes", [0, 2])
def test_no_rows_and_no_numbers_raise_nothing(classes: int) -> None:
    """Catches an error that would tell an empty hold-out, or a model that says NaN, from others."""
    none = Rows(torch.zeros(0, 2) if classes else torch.zeros(0), torch.zeros(0, dtype=torch.long), None)
    nan = Rows(torch.full((5, 2) if classes else (5,), float("nan")), torch.zeros(5, dtype=torch.long), None)
    for rows in (none, nan):
        score = Scoring(1.0, Unit(), 1, classes).release(Says(), rows, rng=SeededRng(1), source="test", on="rows")
        assert score.value.name in ("accuracy", "mean absolute error")
        measured(Says(), rows, classes, "rows")


def test_the_area_under_the_curve() -> None:
    """Catches ties that count in full, and an area that is turned round."""
    assert auc(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0, 1, 1])) == 1.0
    assert auc(torch.tensor([2.0, 1.0, 0.0]), torch.tensor([0, 1, 1])) == 0.0
    assert auc(torch.tensor([1.0, 1.0]), torch.tensor([0, 1])) == 0.5
