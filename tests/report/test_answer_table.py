"""Tables of answers: what is shown of an interval is never narrower than the interval."""

from __future__ import annotations

import numpy as np
import pytest

from privet.query import Answer, Row
from privet.report import answer_columns, answer_rows, format_rounded


def ends(measure: str, low: float, value: float, high: float) -> tuple[float, float]:
    """Both ends as they are shown."""
    answer = Answer("a question", (), measure, (Row((), value, low, high),), 0.95)
    assert answer_columns(answer) == (measure, "95 % from", "to")
    (cells,) = answer_rows(answer)
    shown = tuple(float(each.replace(",", "")) for each in cells)
    return shown[1], shown[2]


@pytest.mark.parametrize("measure", ["rows", "mean(age)"])
def test_interval_is_rounded_outward(measure: str) -> None:
    """Catches an end that is rounded inward, or to the nearest: what is shown then covers the truth less often."""
    drawn = np.random.default_rng(3)
    for _ in range(500):
        scale = 10 ** drawn.uniform(0 if measure == "rows" else -4, 6)
        value, below, above = drawn.normal(0, 10 * scale), scale * drawn.random(), scale * drawn.random()
        low, high = ends(measure, value - below, value, value + above)
        assert low <= value - below + 1e-6 * (measure == "rows")  # counts: below that are rounding errors
        assert high >= value + above - 1e-6 * (measure == "rows")


def test_interval_of_counts_ends_at_whole_numbers() -> None:
    """Catches counts that are widened by an error of rounding, and ends that are rounded to the nearest."""
    assert ends("rows", 10.4, 12.0, 13.6) == (10, 14)
    assert ends("rows", 10.6, 12.0, 13.4) == (10, 14)
    assert ends("rows", 10.0000000001, 12.0, 13.9999999999) == (10, 14)
    assert ends("rows", 9.9999999999, 12.0, 14.0000000001) == (10, 14)


def test_interval_of_huge_numbers_is_shown() -> None:
    """Catches a number with more digits than decimals have."""
    assert ends("sum(pay)", -3e30, 1.0, 3e30) == (-3e30, 3e30)
    assert format_rounded(1e300, 1.0).startswith("1,000,000")
