"""What a step lets out beside the noisy sum: the noisy count of an adaptive clip, refusals, and the plan's price."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.training import DPSGD, Adaptive, Automatic, Flat, Performance, PerLayer
from privet.training.clipping import Clipping
from privet.training.engine.squares import Squares
from privet.training.noise import Noise
from tests.training.conftest import Attach, squared
from tests.training.models import filled, normal

ROWS = normal(9, 4).float()


def net() -> nn.Module:
    return filled(nn.Linear(4, 2)).float()


def noted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """The noisy count and the divisor of every step."""
    found: list[tuple[float, float]] = []
    following = Adaptive.next_clip

    def next_clip(self: Adaptive, clip: float, noisy_count: float, divisor: float) -> float:
        found.append((noisy_count, divisor))
        return following(self, clip, noisy_count, divisor)

    monkeypatch.setattr(Adaptive, "next_clip", next_clip)
    return found


def run_adaptive(attach: Attach, count_noise: float, steps: int, clip: float = 1.0, **more: Any) -> None:
    model = net()
    clipping = Adaptive(count_noise=count_noise, rate=1e-9)
    run = attach(model, ROWS, clip=clip, clipping=clipping, steps=steps, rng=SeededRng(4), **more)
    for x in run.batches():
        run.step(squared(model, x))


def test_adaptive_count_has_the_noise_that_is_priced(attach: Attach, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the count that moves the clip has no noise, half of it, or the same in every step.

    Of 400 normals the mean square is within 35 % of the variance but for five deviations of a χ²: 6e-7.
    """
    found = noted(monkeypatch)
    run_adaptive(attach, 1000.0, 400)
    counts = np.array([count for count, _ in found])
    assert len(np.unique(counts)) == 400
    assert np.mean(counts**2) == pytest.approx(1000.0**2, rel=0.35)
    assert abs(np.mean(counts[1:] * counts[:-1])) < 0.3 * 1000.0**2


@pytest.mark.parametrize(("clip", "each"), [(1e6, 0.5), (1e-6, -0.5)])
def test_adaptive_count_moves_by_a_half_for_each_unit(
    attach: Attach, monkeypatch: pytest.MonkeyPatch, clip: float, each: float
) -> None:
    """Fails when the count is not Σ (b − ½), which a unit moves by ½ at most, as the leaf is priced."""
    found = noted(monkeypatch)
    run_adaptive(attach, 1e-9, 3, clip)
    for count, _ in found:
        assert count == pytest.approx(each * len(ROWS), abs=1e-6)


def test_adaptive_divisor_is_public(attach: Attach, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the share within the clip is computed over the rows that a batch has, whose number is private."""
    found = noted(monkeypatch)
    run_adaptive(attach, 10.0, 6, batch_size=4, sample_rate=0.4)
    assert [divisor for _, divisor in found] == [4] * 6


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "clipping", [Flat(), Automatic(), PerLayer(), Adaptive()], ids=lambda each: type(each).__name__
)
def test_clipping_of_an_unknown_norm_leaves_nothing(clipping: Clipping, value: float) -> None:
    """Fails when a gradient whose norm overflowed, or is unknown, is taken for a short one and kept whole."""
    squares = Squares(torch.tensor([value, 4.0]), torch.zeros(2))
    found = clipping.factors([squares, None], 1.0, [0, 0])
    factor = found.by_parameter[0]
    assert factor is not None
    assert float(factor[0]) == 0.0
    assert 0 < float(factor[1]) <= 0.5
    assert not bool(found.unclipped[0])


def test_lattice_counts_the_units_of_all_micro_batches(attach: Attach) -> None:
    """Fails when each micro-batch by itself is held against the most units whose rounding was priced."""
    model = net()
    plan = DPSGD(noise_multiplier=1.0, delta=1e-5, batch_size=9, sample_rate=1.0, steps=1, noise=Noise.LATTICE)
    performance = Performance(micro_batch=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for most in (9, 8):
        run = plan.attach(model, optimizer, ROWS, performance=performance, rng=SeededRng(1))
        assert run._step.grid is not None
        run._step.grid = replace(run._step.grid, most=most)
        with nullcontext() if most == 9 else pytest.raises(InvalidInput, match="batch_size is far below"):
            for x in run.batches():
                run.step(squared(model, x))
        run.close()


def test_release_of_a_stopped_run_costs_the_whole_plan() -> None:
    """Fails when a run that stops early is priced for the steps that it made: when to stop depends on what was seen."""
    plan = DPSGD(noise_multiplier=1.0, batch_size=4, sample_rate=0.5, steps=40, delta=1e-3)
    model = net()
    run = plan.attach(model, torch.optim.SGD(model.parameters(), lr=0.1), ROWS, rng=SeededRng(1))
    for x in run.batches():
        if run.step(squared(model, x)):
            break
    release = run.release()
    assert run.steps == 1
    assert release.guarantee is not None
    assert release.guarantee.epsilon == plan.guarantee().epsilon
    assert release.event == plan.event()
