"""Stealing: equations give a linear model away, questions a copy of any other, and what defences change of that."""

from __future__ import annotations

from typing import TypeVar

import pytest
import torch
from torch import nn

from privet.attacks import (
    Access,
    CopyTraining,
    GuardedTarget,
    TooManyQuestions,
    copy_model,
    fidelity,
    fidelity_curve,
    solve_linear_model,
    target,
)
from privet.core.errors import InvalidInput
from privet.ensemble.seeding import generator, initial_weights

FEATURES, CLASSES = 12, 4


Network = TypeVar("Network", bound=nn.Module)


def drawn(model: Network) -> Network:
    model.load_state_dict(initial_weights(model, generator("tests", "target")))
    return model


LINEAR = drawn(nn.Linear(FEATURES, CLASSES))
DEEP = drawn(nn.Sequential(nn.Linear(FEATURES, 16), nn.Tanh(), nn.Linear(16, CLASSES)))
ROWS = torch.randn(3000, FEATURES, generator=generator("tests", "rows"))
STUDENT = CopyTraining(nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, CLASSES)), steps=200)


def test_equations_give_linear_weights_away() -> None:
    """Fails when weights are off by more than rounding, more questions are asked than features + 5, or probabilities
    do not give the same copy as scores."""
    wanted = (LINEAR.weight - LINEAR.weight.mean(0)).detach()
    for decimals in (None, 12):
        seen = GuardedTarget(target(LINEAR, CLASSES), decimals=decimals, limit=FEATURES + 5)
        found = solve_linear_model(seen, FEATURES)
        assert float((found.weight.detach() - wanted).abs().max()) < 1e-5
        assert seen.asked == FEATURES + 5
        assert fidelity(target(LINEAR, CLASSES), found, ROWS).value > 0.999


def test_what_is_not_linear_is_not_solved() -> None:
    """Fails when a network, or a model that rounds, passes for a linear one."""
    for seen in (target(DEEP, CLASSES), GuardedTarget(target(LINEAR, CLASSES), decimals=2)):
        with pytest.raises(InvalidInput, match="is not linear, or rounds its answers"):
            solve_linear_model(seen, FEATURES)


def test_more_questions_make_a_better_copy() -> None:
    """Fails when a copy learns from its questions' order rather than the answers, or when scores are not used where
    they are shown: with the same few questions they teach more than labels."""
    plain, asked, rest = target(DEEP, CLASSES), ROWS[:1000], ROWS[1000:]
    held_out = (rest, plain.labels(rest))
    curve = fidelity_curve(plain, asked, (20, 1000), STUDENT, held_out=held_out)
    assert curve.fidelity[1].lower > max(0.9, curve.fidelity[0].upper)
    shy = GuardedTarget(plain, access=Access.LABELS)
    by_labels = fidelity_curve(shy, asked, (200,), STUDENT, held_out=held_out).fidelity[0]
    by_scores = fidelity_curve(plain, asked, (200,), STUDENT, held_out=held_out).fidelity[0]
    assert by_scores.lower > by_labels.value
    assert shy.asked == 200
    assert fidelity(plain, copy_model(plain, asked, STUDENT), rest) == curve.fidelity[1]


def test_guards_show_no_more_than_they_say() -> None:
    """Fails when a limit lets a row through, a refused question is counted, or labels, rounding or gradients leak."""
    seen = GuardedTarget(target(DEEP, CLASSES), decimals=1, limit=10)
    said = seen.scores(ROWS[:6]).exp()
    tenths = (said * 10).round() / 10
    assert bool((((said - tenths).abs() < 1e-9) | ((said - 0.05).abs() < 1e-9)).all())
    with pytest.raises(TooManyQuestions, match="answers 4 more of its 10 rows, and was asked for 5"):
        seen.labels(ROWS[:5])
    assert seen.labels(ROWS[:4]).shape == (4,)
    assert seen.asked == 10
    with pytest.raises(InvalidInput, match="shows scores and no gradients"):
        seen.module()
    with pytest.raises(InvalidInput, match="shows labels alone"):
        GuardedTarget(target(DEEP, CLASSES), access=Access.LABELS).scores(ROWS[:1])
    with pytest.raises(InvalidInput, match="a guarded target shows labels or scores"):
        GuardedTarget(target(DEEP, CLASSES), access=Access.WEIGHTS)
    with pytest.raises(InvalidInput, match="the target shows labels alone; ask for labels"):
        GuardedTarget(target(DEEP, CLASSES, Access.LABELS))
    with pytest.raises(InvalidInput, match="counts go up to 4000; there are 3000 questions"):
        fidelity_curve(seen, ROWS, (4000,), STUDENT, held_out=(ROWS, seen.labels(ROWS[:0])))
    with pytest.raises(InvalidInput, match="questions are none"):
        copy_model(target(DEEP, CLASSES), ROWS[:0], STUDENT)
