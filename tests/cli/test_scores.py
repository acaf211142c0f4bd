"""Scores on private rows: paid for in full, with the noise that was paid for, whatever a model says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from privet.accounting import epsilon
from privet.cli.predict import csv_of
from privet.core.event import DiscreteLaplace
from privet.core.random import SecureRng, SeededRng
from privet.core.unit import Unit, Whose
from privet.data import Category, Number, Schema
from privet.mechanisms import Histogram, VectorSum
from privet.runs import predictions
from privet.runs.facts import PublicFacts
from privet.runs.methods.none import NONE
from privet.runs.methods.protocol import FitSession, MethodBudget
from privet.runs.request import TrainRequest
from privet.runs.scoring import LabeledRows, PrivateScoring, auc, model_outputs, score_exactly
from privet.training.models import Model, ModelDescription, apply_rowwise, choose
from privet.training.models.choose import Family


def unprotected(model: Model, schema: Schema, rows: torch.Tensor, answers: torch.Tensor, classes: int) -> nn.Module:
    """The model that `--compare none` trains."""
    facts = PublicFacts("rows", schema, tuple(map(str, range(classes))), None, 1, 60)
    plan = NONE.plan(TrainRequest(), facts, MethodBudget(1.0, 1e-5, Unit()), model)
    return NONE.fit(plan, LabeledRows(rows, answers, None), FitSession(facts, model, Unit(), "rows")).value


class Says(nn.Module):
    """A model that says what its inputs are."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows


class Shaky(nn.Module):
    """A kernel at its worst: how it rounds a row depends on the row's place and on how many rows there are."""

    calls = 0

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        Shaky.calls += 1
        found = rows + 1e-6 * torch.sin(torch.arange(len(rows)) * 7.0 + len(rows)).reshape(-1, *[1] * (rows.ndim - 1))
        return found * torch.tensor([1.0, -1.0]) if rows.ndim > 1 else found


class Keeps(nn.Module):
    """A model that remembers the last row it saw."""

    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        self.seen.copy_(rows.sum(0))
        return rows


def _rows(right: int, wrong: int, users: np.ndarray | None = None) -> LabeledRows:
    outputs = torch.tensor([[0.0, 1.0]] * right + [[1.0, 0.0]] * wrong).reshape(-1, 2)
    return LabeledRows(outputs, torch.ones(right + wrong, dtype=torch.long), None, users)


@pytest.mark.parametrize(("rows", "scale"), [(1, 2.0), (3, 6.0)])
def test_the_noise_follows_from_the_rows_that_one_unit_owns(rows: int, scale: float) -> None:
    """Catches noise for one row where a user owns several, halved noise, and ε that is split where it need not be."""
    unit = Unit() if rows == 1 else Unit(whose=Whose.USER)
    scoring = PrivateScoring(0.5, unit, rows, classes=2)
    assert isinstance(scoring.event, DiscreteLaplace)
    assert scoring.event.scale == pytest.approx(scale)
    assert epsilon(scoring.event, 0.0, unit=unit).epsilon.upper <= 0.5


def test_one_row_moves_the_counts_by_one() -> None:
    """Catches an accuracy whose divisor, or whose noise, depends on the rows: replayed with the same random bits."""
    scoring = PrivateScoring(1.0, Unit(), 1, classes=2)

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
    rows = LabeledRows(outputs, torch.ones(150, dtype=torch.long), None, owners)
    scoring = PrivateScoring(40.0, Unit(whose=Whose.USER), 1, classes=2)
    found = scoring.release(Says(), rows, rng=SecureRng(), source="test", on="rows").value
    assert found.value == pytest.approx(50 / 51, abs=0.05)


def test_errors_of_numbers_are_one_draw() -> None:
    """Catches an ε that is spent twice or split, and an error that is not in the target's own units."""
    scoring = PrivateScoring(2.0, Unit(), 1, classes=0)
    assert isinstance(scoring.event, DiscreteLaplace)
    assert epsilon(scoring.event, 0.0).epsilon.upper == pytest.approx(2.0)
    label = Number("age", 0.0, 100.0)
    rows = LabeledRows(torch.full((4000,), 0.2), torch.zeros(4000), label)
    found = scoring.release(Says(), rows, rng=SeededRng(1), source="test", on="rows").value
    assert found.value == pytest.approx(10.0, abs=0.5)
    assert score_exactly(Says(), rows, 0, "rows")[0].value == pytest.approx(10.0)


def test_private_error_interval_covers_what_predict_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the private or the public score is of other numbers than `privet predict` writes: of a model whose
    outputs leave the target's range, before they are clamped. 200 seeded repetitions; the interval is conservative."""
    label = Number("age", 0.0, 100.0)
    schema = Schema((Number("a", 0, 9), label), target="age")
    scoring, hits, repetitions = PrivateScoring(1.0, Unit(), 1, classes=0), 0, 200
    for seed in range(repetitions):
        drawn = torch.Generator().manual_seed(seed)
        outputs, y = 1.5 * torch.randn(2000, generator=drawn), torch.rand(2000, generator=drawn) * 2 - 1
        rows = LabeledRows(outputs, y, label)
        monkeypatch.setattr(predictions, "_rows", lambda data, data_dir, described, outputs=outputs: outputs)
        model: Any = Says()
        written = csv_of(predictions.predict_rows(model, ModelDescription("linear", (), schema.to_toml()), ""))
        predicted = np.array([float(line) for line in written.splitlines()[1:]])
        exact = np.abs(predicted - label.unscaled(y.numpy())).mean()
        mean, root = score_exactly(Says(), rows, 0, "rows")
        assert mean.value == pytest.approx(exact, rel=1e-5)
        assert root.value == pytest.approx(np.sqrt(((predicted - label.unscaled(y.numpy())) ** 2).mean()), rel=1e-5)
        score = scoring.release(Says(), rows, rng=SeededRng(seed), source="test", on="rows").value
        assert score.lower is not None
        assert score.upper is not None
        hits += score.lower <= exact <= score.upper
    assert hits >= 0.95 * repetitions


def test_outputs_that_are_no_numbers_are_not_clamped() -> None:
    """Fails when NaN becomes a prediction within the range: a public score of it is no number, and a private one has
    the largest error. Infinite outputs are predicted as the nearer bound."""
    label = Number("age", 0.0, 100.0)
    nan = LabeledRows(torch.full((4000,), torch.nan), torch.zeros(4000), label)
    assert [score.value for score in score_exactly(Says(), nan, 0, "rows")] == [None, None]
    private = (
        PrivateScoring(2.0, Unit(), 1, classes=0).release(Says(), nan, rng=SeededRng(1), source="test", on="rows").value
    )
    assert private.value == pytest.approx(100.0, abs=1.0)
    infinite = LabeledRows(torch.full((40,), torch.inf), torch.zeros(40), label)
    assert [score.value for score in score_exactly(Says(), infinite, 0, "rows")] == [50.0, 50.0]


@pytest.mark.parametrize("classes", [0, 2])
def test_no_rows_and_no_numbers_raise_nothing(classes: int) -> None:
    """Catches an error that would tell an empty hold-out, or a model that says NaN, from others."""
    none = LabeledRows(torch.zeros(0, 2) if classes else torch.zeros(0), torch.zeros(0, dtype=torch.long), None)
    nan = LabeledRows(torch.full((5, 2) if classes else (5,), float("nan")), torch.zeros(5, dtype=torch.long), None)
    for rows in (none, nan):
        score = PrivateScoring(1.0, Unit(), 1, classes).release(
            Says(), rows, rng=SeededRng(1), source="test", on="rows"
        )
        assert score.value.name in ("accuracy", "mean absolute error")
        score_exactly(Says(), rows, classes, "rows")


def test_the_area_under_the_curve() -> None:
    """Catches ties that count in full, and an area that is turned round."""
    assert auc(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0, 1, 1])) == 1.0
    assert auc(torch.tensor([2.0, 1.0, 0.0]), torch.tensor([0, 1, 1])) == 0.0
    assert auc(torch.tensor([1.0, 1.0]), torch.tensor([0, 1])) == 0.5


def _ties(dtype: torch.dtype) -> nn.Module:
    """Two classes whose scores are the same sum in another order, for rows that read the same from both ends."""
    drawn = torch.Generator().manual_seed(3)
    line = nn.Linear(64, 2, bias=False, dtype=dtype)
    with torch.no_grad():
        line.weight[0] = torch.randn(64, generator=drawn, dtype=dtype)
        line.weight[1] = line.weight[0].flip(0)
    return line


def _palindromes(count: int, dtype: torch.dtype) -> torch.Tensor:
    half = torch.randn(count, 32, generator=torch.Generator().manual_seed(count), dtype=dtype)
    return torch.cat([half, half.flip(1)], 1)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 15, 16, 100, 400, 3000])
@pytest.mark.parametrize("kind", ["float32", "float64", "shaky"])
def test_one_row_more_turns_no_other_row_round(count: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replays a score on neighbours, where rounding alone decides every row: catches rows that are scored in batches.

    All that the mechanism is given but the new row is the same, to the last bit, wherever the row comes.
    """
    given: list[np.ndarray] = []
    count_of = Histogram.__call__

    def spy(self: Histogram, values: np.ndarray, users: Any = None) -> Any:
        given.append(values.copy())
        return count_of(self, values, users)

    monkeypatch.setattr(Histogram, "__call__", spy)
    if kind == "shaky":
        model: nn.Module = Shaky()
        x = torch.randn(count + 1, 2, generator=torch.Generator().manual_seed(count)) * 1e-6
    else:
        dtype = getattr(torch, kind)
        model, x = _ties(dtype), _palindromes(count + 1, dtype)
    y = torch.zeros(count + 1, dtype=torch.long)
    scoring = PrivateScoring(1.0, Unit(), 1, classes=2)
    for gone in (None, 0, count // 2, count):
        kept = [place for place in range(count + 1) if place != gone]
        scoring.release(model, LabeledRows(x[kept], y[kept], None), rng=SeededRng(1), source="test", on="rows")
        assert (given[-1] == given[0][kept]).all()
    assert count < 100 or 0.1 < given[0].mean() < 0.9


@pytest.mark.parametrize("count", [1, 15, 400])
def test_one_row_more_moves_no_other_error(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for numbers: the errors that are added up are the same numbers."""
    given: list[np.ndarray] = []
    sum_of = VectorSum.__call__

    def spy(self: VectorSum, values: np.ndarray, users: Any = None) -> Any:
        given.append(values.copy())
        return sum_of(self, values, users)

    monkeypatch.setattr(VectorSum, "__call__", spy)
    x = torch.rand(count + 1, generator=torch.Generator().manual_seed(1))
    for start in (0, 1):
        rows = LabeledRows(x[start:], torch.zeros(count + 1 - start), None)
        PrivateScoring(1.0, Unit(), 1, classes=0).release(Shaky(), rows, rng=SeededRng(1), source="test", on="rows")
    assert (given[0][1:] == given[1]).all()


@pytest.mark.parametrize("family", [Family.LINEAR, Family.RESIDUAL])
def test_rows_alone_are_scored_as_in_a_crowd(family: Family) -> None:
    """Catches rows that get another row's answer; copies of a row are looked at once, however many there are."""
    columns = (Number("a", 0, 9), Category("b", ("x", "y")), Category("sick", ("no", "yes")))
    model = choose(Schema(columns, target="sick"), 2, 500, family).eval()
    drawn = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(generator=drawn)
    x = torch.rand(700, 2, generator=drawn) * 2 - 1
    x[::7, 0] = torch.nan
    x[1::3] = x[1]
    assert apply_rowwise(model, x).allclose(model_outputs(model, x), atol=1e-4)
    Shaky.calls = 0
    found = apply_rowwise(Shaky(), x[1].expand(5000, 2))
    assert (Shaky.calls, found.shape, bool((found == found[0]).all())) == (1, (5000, 2), True)


def test_nothing_of_the_rows_stays_in_the_model() -> None:
    """Catches a model that is scored itself, and leaves with a private row in a buffer."""
    model = Keeps()
    PrivateScoring(1.0, Unit(), 1, 2).release(model, _rows(5, 3), rng=SeededRng(1), source="test", on="rows")
    assert not model.seen.any()


@pytest.mark.parametrize("family", [Family.LINEAR, Family.RESIDUAL])
@pytest.mark.parametrize("classes", [0, 2])
def test_a_record_without_a_target_stops_no_comparison(family: Family, classes: int) -> None:
    """Catches a model without privacy that fails, hangs or is no number for the sake of one row."""
    last = Category("sick", ("no", "yes")) if classes else Number("sick", 0, 1)
    schema = Schema((Number("a", 0, 9), Category("b", ("x", "y")), last), target="sick")
    x = torch.rand(60, 2, generator=torch.Generator().manual_seed(5))
    y = (x[:, 0] > 0.5).long() if classes else x[:, 0].clone()
    missing = y.clone()
    missing[3] = -1 if classes else torch.nan
    outputs = []
    for rows, answers in ((x, missing), (x[missing == y], y[missing == y]), (x[:0], y[:0])):
        model = choose(schema, classes, 60, family)
        plain = unprotected(model, schema, rows, answers, classes)
        outputs.append(plain(model.front(x) if family is Family.LINEAR else x).detach())
        label = None if isinstance(last, Category) else last
        scores = score_exactly(nn.Identity(), LabeledRows(outputs[-1], missing, label), classes, "rows")
        assert all(score.value is not None and np.isfinite(score.value) for score in scores)
    assert (outputs[0] == outputs[1]).all()
    assert outputs[2].isfinite().all()
