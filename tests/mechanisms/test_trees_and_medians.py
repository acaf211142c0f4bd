"""Running sums and smooth medians against the exact law of all that they release together."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from privet.core.random import SeededRng
from privet.mechanisms import Categories, Cells, Histogram, Reach, RunningSums, SmoothMedian, tree
from tests.mechanisms.examples import REPLACE, USER
from tests.mechanisms.laws import hockey_stick, laplace_mass, shifted_delta


def shifts(plan: RunningSums, monkeypatch: pytest.MonkeyPatch) -> Any:
    """By how much noise would have to move for one step more: a column for each step.

    The running sums are A·steps + B·noise, of which A and B are found by asking for one of each at a time. B has a row
    and a draw for each step and is invertible, so that the sums tell neither more nor less than B⁻¹A·steps + noise.
    """
    size = plan.reach.dimension
    single = Reach(plan.reach.unit, linf=plan.reach.linf, whole=True)

    def sums(steps: Any, noise: Any) -> Any:
        drawn = iter(noise.tolist())
        monkeypatch.setattr(tree, "discrete_gaussian", lambda sigma, shape, rng: next(drawn))
        session = plan.start(rng=SeededRng(1))
        return np.array([session.add(single.of(step)).value for step in steps.tolist()])

    none, ones = np.zeros(size, dtype=np.int64), np.eye(size, dtype=np.int64)
    steps = np.array([sums(one, none) for one in ones]).T
    noise = np.array([sums(none, one) for one in ones]).T
    found = np.rint(np.linalg.solve(noise, steps)).astype(np.int64)
    assert (noise @ found == steps).all()
    return found


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7, 8, 12])
@pytest.mark.parametrize("rows", [1, 2])
def test_running_sums_lose_what_is_stated(steps: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever steps a user's rows are in, δ at ε of all running sums together is at most δ; the most partial sums
    that hold one step are as many as `levels` says, and noise for one level fewer would exceed δ.

    Catches an event that charges for one level too few, a partial sum that is counted on two levels, and noise that is
    not renewed.
    """
    of, delta = Histogram(Categories(tuple(range(steps))), USER, rows), 1e-3
    plan = RunningSums.for_epsilon(1.0, delta, of)
    held = shifts(plan, monkeypatch)
    assert set(held.ravel().tolist()) <= {0, 1}
    assert held.sum(0).max() == plan.levels

    def spent(plan: RunningSums) -> float:
        rowsets = itertools.combinations_with_replacement(range(steps), rows)
        lost = {tuple(sorted(filter(None, held[:, list(mine)].sum(1).tolist()))) for mine in rowsets}
        return max(shifted_delta(plan.sigma / plan.grid.step, shift, 1.0) for shift in lost)

    assert spent(plan) <= delta
    if plan.levels > 1:
        assert spent(replace(plan, sigma=plan.sigma * math.sqrt(1 - 1 / plan.levels))) > delta


def far_enough(epsilon: float, delta: float) -> float:
    """β of Nissim, Raskhodnikova & Smith 2007, Lemma 2.6, for Laplace noise of scale 2S/ε."""
    return epsilon / (2 * math.log(2 / delta))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.3, 1e-6), (3.0, 0.1)])
def test_smooth_sensitivity_changes_as_slowly_as_the_paper_says(epsilon: float, delta: float) -> None:
    """Over all neighbours of five rows in six cells it changes by a factor of at most e^β, β being the paper's and not
    the mechanism's own; some neighbours come near, so that no more noise is added than is needed.

    Catches a β that is doubled.
    """
    rows, cells = 5, 6
    mechanism = SmoothMedian(epsilon, delta, Histogram(Cells(0, cells, cells, missing=0.0), REPLACE))
    smooth = {
        data: mechanism._measure(np.bincount(data, minlength=cells))[2]
        for data in itertools.combinations_with_replacement(range(cells), rows)
    }
    fastest = max(
        math.log(value / smooth[tuple(sorted((*data[:i], new, *data[i + 1 :])))])
        for data, value in smooth.items()
        for i, new in itertools.product(range(rows), range(cells))
    )
    assert 0.5 * far_enough(epsilon, delta) < fastest <= far_enough(epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.3, 1e-6), (3.0, 1e-9)])
def test_noise_that_follows_a_smooth_sensitivity_is_within_its_price(epsilon: float, delta: float) -> None:
    """Medians as far apart as S allows, and an S that changes by e^β, up or down: δ at ε is at most δ, summed over
    the masses. With 2β it is above; the larger δ is, the more of it the proof of `release` leaves unused.

    Catches a β that is doubled, and noise of scale S/ε.
    """
    mechanism = SmoothMedian(epsilon, delta, Histogram(Cells(0, 9, 9, missing=0.0), REPLACE))

    def spent(beta: float, share: float = 2.0) -> float:
        worst = 0.0
        for smooth, up in itertools.product((1.0, 4.0, 30.0), (-1, 0, 1)):
            here, there = (share / epsilon * value for value in (smooth, smooth * math.exp(up * beta)))
            x = np.arange(-math.ceil(50 * max(here, there)), math.ceil(50 * max(here, there)) + 1)
            law = laplace_mass(here, x)
            for apart in {0, math.floor(smooth / 2), math.floor(smooth)}:
                worst = max(worst, hockey_stick(law, laplace_mass(there, x - apart), epsilon))
        return worst

    assert spent(mechanism.beta) <= delta
    assert spent(2 * mechanism.beta) > delta
    assert spent(mechanism.beta, share=1.0) > delta
