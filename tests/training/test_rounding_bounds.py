"""Bounds on rounding: the error of a sum of gradients and the slack of squared norms, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import isqrt

import pytest
import torch
from torch import Tensor

from privet.training.engine.squares import squares_of_rows
from privet.training.lattice import error_bound
from privet.training.native import loops

LEAST = {torch.float32: Fraction(1, 2**149), torch.float64: Fraction(1, 2**1074)}
UNIT = {torch.float32: Fraction(1, 2**24), torch.float64: Fraction(1, 2**53)}


def gamma(terms: int, unit: Fraction) -> Fraction:
    return terms * unit / (1 - terms * unit)


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
def test_error_bound_is_never_below_its_theorem(precision: torch.dtype) -> None:
    """Catches a term that is rounded inward or left out: γ without its denominator, or what underflows.

    The right side of the theorem, in exact fractions; the bound is above it, and by twice what underflows at most.
    """
    largest = 2**21 if precision == torch.float32 else 2**50  # γ is a third more than its numerator there
    for clip, examples, rows, dimension, cancellation in product(
        (1e-300, 1e-44, 1e-38, 1.0), (1, 7, 60_000, largest), (1, 2), (1, 10**6), (1.0, 1024.0)
    ):
        found = error_bound(
            clip, examples=examples, dimension=dimension, rows=rows, precision=precision, cancellation=cancellation
        )
        inner = Fraction(cancellation) * gamma(examples * rows + 1, UNIT[precision])
        outer = gamma(examples * (rows + 1), UNIT[torch.float64])
        lost = isqrt(dimension) * examples * rows * LEAST[precision]
        exact = examples * Fraction(clip) * (inner + outer * (1 + inner)) + lost
        assert exact <= Fraction(found)
        assert Fraction(found) <= (exact + lost) * (1 + Fraction(1, 2**40)) + LEAST[torch.float64]


def exact_squares(rows: Tensor) -> list[Fraction]:
    return [sum((Fraction(each) ** 2 for each in row), Fraction(0)) for row in rows.tolist()]


@pytest.mark.parametrize("width", [1, 31, 64, 65, 200, 1024])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_slack_of_squares_covers_their_rounding(
    dtype: torch.dtype, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches slack that is forgotten where the compiled loops are not used: a norm that came out too small clips too
    little. Rows of every size down to those whose squares vanish; by exact fractions."""
    monkeypatch.setattr(loops, "takes_rows", lambda *rows: False)
    drawn = torch.Generator().manual_seed(width)
    for size in (1e-30, 1e-23, 1e-20, 1e-6, 1.0, 1e6):
        rows = (torch.randn(20, width, generator=drawn, dtype=torch.float64) * size).to(dtype)
        found = squares_of_rows(rows)
        exact = exact_squares(rows)
        tops = [Fraction(v) + Fraction(s) for v, s in zip(found.value.tolist(), found.slack.tolist(), strict=True)]
        assert all(top >= true for top, true in zip(tops, exact, strict=True))
    # The rounding is there, so that slack is needed: without it the test above would say nothing.
    ones = torch.full((1, 64), 1 + 2.0**-12 + 2.0**-23, dtype=torch.float32)
    assert squares_of_rows(ones).slack.item() > 0
