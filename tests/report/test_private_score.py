"""`ScoreMechanism`: the distance that one unit moves the two sums, the noise on them, and its price."""

from __future__ import annotations

from math import sinh

import numpy as np
import pytest

from privet.accounting import epsilon as price
from privet.core.random import SeededRng
from privet.core.unit import Neighbours, Unit, Whose
from privet.report import ScoreMechanism
from privet.report.private_score import share_of

EPSILON = 0.5
REPLACE = Unit(neighbours=Neighbours.REPLACE)
BY_USER = Unit(whose=Whose.USER)
EDGES = (0.0, 1.0, 0.3, float("nan"), float("inf"), -7.0)


def _moved(mechanism: ScoreMechanism) -> float:
    """The largest L1 distance between the sums of neighboring tables, over all scores at the edges."""
    users = None if mechanism.unit.whose is Whose.EXAMPLE else np.arange(3 + mechanism.rows).clip(max=3)

    def sums(own: float | None) -> np.ndarray:
        scores = [1.0, 0.0, 0.5 if not mechanism.is_binary else 1.0, *([] if own is None else [own] * mechanism.rows)]
        return np.asarray(mechanism.query(scores, None if users is None else users[: len(scores)]).value)

    own = [each for each in EDGES if not mechanism.is_binary or each in (0.0, 1.0)]
    before = own if mechanism.unit == REPLACE else [None]
    return max(float(np.abs(sums(one) - sums(other)).sum()) for one in before for other in own)


@pytest.mark.parametrize("is_binary", [True, False])
@pytest.mark.parametrize(("unit", "rows", "distance"), [(Unit(), 1, 1), (REPLACE, 1, 2), (BY_USER, 3, 3)])
def test_private_score_has_the_noise_of_the_distance_that_a_unit_moves_the_sums(
    is_binary: bool, unit: Unit, rows: int, distance: int
) -> None:
    """Fails when the sensitivity or the noise is halved, or when ε is split between the sums or spent on each.

    The distance is measured on neighboring tables, and the noise on 2,000 draws: its mean size is step / sinh(step /
    scale), with a standard error of 2.2 %; within five of them a false alarm is below 1e-6, and half is far off.
    """
    mechanism = ScoreMechanism(EPSILON, unit, rows, is_binary)
    moved = _moved(mechanism)
    assert moved == pytest.approx(distance, abs=1e-4)
    assert moved <= (mechanism.query([1.0], None if rows == 1 else np.zeros(1)).l1 or 0.0)
    assert price(mechanism.event, 0.0, unit=unit).epsilon.upper == pytest.approx(EPSILON, rel=1e-9)
    rng, step = SeededRng(1), mechanism.noise.grid.step
    empty = np.zeros(0)
    drawn = [mechanism.release(empty, None if rows == 1 else empty, rng=rng, source="t") for _ in range(1000)]
    assert {each.event for each in drawn} == {mechanism.event}
    noise = np.array([each.value for each in drawn])
    assert np.abs(noise).mean() == pytest.approx(step / sinh(step * EPSILON / distance), rel=0.11)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.16  # two draws, and not one for both: five standard errors of 1,000


def test_private_score_is_the_share_of_the_first_sum() -> None:
    """Fails when a sum below 0 makes a share beyond [0, 1], or when nothing at all raises."""
    assert share_of(30.0, 10.0, otherwise=0.5) == 0.75
    assert share_of(30.0, -4.0, otherwise=0.5) == 1.0
    assert share_of(-3.0, -4.0, otherwise=0.5) == 0.5
