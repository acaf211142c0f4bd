"""What clippers promise beyond distances, and mechanisms rest on: answers that are whole, and answers that only rise.

No test here draws anything that matters: losses are summed over exact laws.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng
from privet.mechanisms import (
    BoundedSum,
    Categories,
    Count,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    Histogram,
    LaplaceMechanism,
    Norm,
    Reach,
    RunningSums,
    SparseVector,
    VectorSum,
)
from tests.mechanisms.examples import USER
from tests.mechanisms.laws import above_threshold_law

TIGHT = 1e-9
SINGLE: dict[str, Any] = {
    "count": Count(),
    "up": BoundedSum(0, 1),
    "down": BoundedSum(-1, 0),
    "both": BoundedSum(-1, 1),
}


@pytest.mark.parametrize("made", SINGLE)
def test_a_session_of_mixed_questions_loses_what_is_stated(made: str) -> None:
    """A run of twenty "no" to one clipper's answers and a "yes" to another's, with every row that may come or go: all
    that a session takes stays within ε. What it refuses is refused for a reason: with the noise for counts, a "no" to
    sums that fall and a "yes" to one that rises lose 3ε/2 in the limit, and more than 1.3ε here.

    Catches a plan made for counts, with half of the noise, that is asked about sums of negative numbers.
    """
    plan = SparseVector.for_epsilon(1.0, SINGLE[made], threshold=0)
    scale, noise = (float(value) / plan.grid.moves("linf") for value in plan.scales)

    def is_taken(clip: Any) -> bool:
        try:
            plan.start(rng=SeededRng(1)).ask(clip([1.0]))
        except InvalidInput:
            return False
        return True

    def moves(clip: Any) -> set[int]:
        """What one row that comes adds, of the values that matter."""
        return {int(clip([row]).value) for row in (-1, 0, 1)}

    def loss(first: int, last: int) -> float:
        """Between runs whose answers move by so much, in tenths, for the threshold that tells them apart best."""
        fine, worst = 10, 0.0
        for public in (0, 2 * fine, 5 * fine, 10 * fine):
            one, other = [0] * 20 + [-10 * fine], [first * fine] * 20 + [(last - 10) * fine]
            here, there = (above_threshold_law(run, public, scale * fine, noise * fine) for run in (one, other))
            worst = max(worst, abs(math.log(here[20] / there[20])))
        return worst

    taken = {name: clip for name, clip in SINGLE.items() if is_taken(clip)}
    assert made in taken
    for no, yes in itertools.product(taken.values(), repeat=2):
        assert max(loss(first, last) for first in moves(no) for last in moves(yes)) <= 1.0 + TIGHT
    if SINGLE[made].reach.monotone:
        assert set(taken) == {"count": {"count"}, "up": {"count", "up"}}[made]
        assert loss(-1, 1) > 1.3
    else:
        assert set(taken) == set(SINGLE)


def test_whole_answers_are_whole() -> None:
    """One user's row moves two fractions by 2 in L1, and the nearest whole numbers by 3. What was made for whole
    answers of the same distance takes no fractions: they would lose 3ε/2. On the grid for fractions they do not.

    Catches a mechanism for counts that rounds the sums of fractions to whole numbers and charges nothing for it.
    """
    counts, sums = Histogram(Categories(("a", "b")), USER, 2), VectorSum(2, 2.0, Norm.L1, USER)
    here = sums([[0.49, 0.49]], ["p"])
    there = sums([[0.49, 0.49], [1.02, 0.98]], ["p", "q"])
    assert all(getattr(counts.reach, norm) == getattr(sums.reach, norm) for norm in ("l0", "l1", "l2", "linf"))

    def moved(grid: Any) -> int:
        return int(np.abs(grid.steps(there.value) - grid.steps(here.value)).sum())

    laplace, gaussian = LaplaceMechanism.for_epsilon(1.0, counts), GaussianMechanism.for_epsilon(1.0, 1e-5, counts)
    assert moved(laplace.grid) / (laplace.scale / laplace.grid.step) == pytest.approx(1.5)
    others = (
        DiscreteLaplaceMechanism.for_epsilon(1.0, counts),
        DiscreteGaussianMechanism.for_epsilon(1.0, 1e-5, counts),
        ExponentialMechanism.for_epsilon(1.0, counts),
        RunningSums.for_epsilon(1.0, 1e-5, counts),
    )
    for mechanism in (laplace, gaussian, *others):
        with pytest.raises(InvalidInput, match="may hold fractions"):
            mechanism.release(there, rng=SeededRng(1))
    right = LaplaceMechanism.for_epsilon(1.0, sums)
    assert moved(right.grid) / (right.scale / right.grid.step) <= 1.0
    right.release(there, rng=SeededRng(1))
    right.release(Reach(USER, l0=2, l1=2, linf=2, dimension=2, whole=True).of(np.array([3, 4])), rng=SeededRng(1))
