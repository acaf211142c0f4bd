"""One α for all tests of a report: whoever looks at many bounds sees the worst of them."""

from __future__ import annotations

from privet.core import checked

__all__ = ["ALPHA", "KINDS", "confidence_per_test"]

ALPHA = 0.05
"""The chance that any test of a report says too much."""
KINDS = 4
"""Canaries in one run, the same step by step, the ladder's adversaries, and attacks' curves: each kind has an equal
part whether or not it is there, so that a test that is added later takes nothing from those before it."""


def confidence_per_test(tests: int = 1) -> float:
    """How sure each of so many tests of one kind must be, for all of the report to be wrong with ALPHA at most.

    >>> confidence_per_test(), confidence_per_test(5)
    (0.9875, 0.9975)
    """
    return 1 - ALPHA / (KINDS * checked.count("tests", tests))
