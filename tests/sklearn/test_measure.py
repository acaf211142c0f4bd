"""`PrivateScorer.measure`: the score of `release` with its interval, charged like it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privet.accounting import epsilon as price
from privet.core.errors import BudgetExceeded
from privet.core.random import SeededRng
from privet.core.unit import Unit
from privet.ledger import Ledger, State
from privet.report.score_intervals import NOISE_AND_SAMPLING, noisy_parts, noisy_share
from privet.sklearn import private_scorer
from tests.sklearn.test_search import Says

HALF, QUARTER = 0.025, 0.0125
NUMBERS = {"target_bounds": (0, 10), "source": "domain limit"}


@pytest.mark.parametrize("given", [{}, NUMBERS])
def test_measure_is_the_release_with_its_interval(given: dict[str, Any]) -> None:
    """Exactly, for one draw. Fails when the interval covers the noise or the sampling alone, gives either all of the
    error, gives one draw that of both, or uses anything but the two noisy sums."""
    scorer = private_scorer(0.5, **given)
    x, y = np.zeros((300, 1)), np.arange(300) % 4
    found = scorer.measure(Says(1), x, y, rng=SeededRng(3))
    assert found.value.value == scorer.release(Says(1), x, y, rng=SeededRng(3)).value
    right, wrong = map(float, scorer._drawn(Says(1), x, y, SeededRng(3)).value)
    reach = scorer.mechanism.noise.interval(1 - QUARTER)
    ends = (noisy_parts if given else noisy_share)(right, wrong, reach, HALF)
    assert (found.value.lower, found.value.upper) == pytest.approx(ends)
    assert (found.value.confidence, found.value.covers) == (0.95, NOISE_AND_SAMPLING)
    assert found.guarantee is not None
    assert replace(found.guarantee, assumptions=()) == price(scorer.event, 0.0, unit=Unit())
    assert ("limits of the domain" in str(found.guarantee.assumptions)) == bool(given)


def test_measure_covers_what_it_says() -> None:
    """300 seeded tables of 200 rows, of which each is right with a chance of 0.7. A miss is a 5 % event at most: more
    than 32 of 300 come by chance with a probability below 1e-4. The noise alone, of ± 9 rows, misses about 100."""
    drawn = np.random.default_rng(7)
    scorer, missed = private_scorer(0.5), 0
    for seed in range(300):
        y = (drawn.random(200) < 0.7).astype(int)
        score = scorer.measure(Says(1), np.zeros((200, 1)), y, rng=SeededRng(seed)).value
        missed += not (score.lower or 0.0) <= 0.7 <= (score.upper or 0.0)
    assert missed <= 32


@pytest.mark.parametrize("given", [{}, NUMBERS])
def test_measure_half_width_is_that_of_the_widest_case(given: dict[str, Any]) -> None:
    """Fails when the announced width is not that of the interval around half of the rows."""
    scorer = private_scorer(0.5, **given)
    low, high = scorer.mechanism.interval(200.0, 200.0)
    assert scorer.half_width(400) == (high - low) / 2


def test_measure_is_charged_before_it_is_drawn(tmp_path: Path) -> None:
    """Fails when a score with an interval is free, or is drawn where the budget refuses it."""
    with Ledger(tmp_path / "ledger.db") as ledger:
        ledger.create("clinic", epsilon=0.7, delta=0.0)
        scorer = private_scorer(0.5, ledger=tmp_path / "ledger.db", budget="clinic")
        scorer.measure(Says(1), np.zeros((9, 1)), np.ones(9))
        (entry,) = ledger.show("clinic").entries
        assert entry.state is State.COMMITTED
        assert ledger.budget("clinic").epsilon_left == pytest.approx(0.2)

        class Watched(Says):
            asked = 0

            def predict(self, rows: Any) -> Any:
                self.asked += 1
                return super().predict(rows)

        model = Watched(1)
        with pytest.raises(BudgetExceeded):
            scorer.measure(model, np.zeros((9, 1)), np.ones(9))
        assert model.asked == 0
