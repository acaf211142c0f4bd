"""Group privacy divides ε among the steps: the parts together are at most ε, to the last bit."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from privet.accounting.group import portion


@given(st.floats(1e-12, 1e6), st.integers(1, 1000))
def test_portion_times_count_is_at_most_epsilon(epsilon: float, count: int) -> None:
    """Fails when ε/k is rounded to nearest: about half of all quotients round up, and k of them exceed ε."""
    part = portion(epsilon, count)
    assert count * Fraction(part) <= Fraction(epsilon)
    assert count * Fraction(math.nextafter(math.nextafter(part, math.inf), math.inf)) > Fraction(epsilon)
