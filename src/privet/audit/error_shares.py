"""One α for all tests of a report: a reader of many bounds sees the worst of them."""

from __future__ import annotations

from privet.core import checked

__all__ = ["ALPHA", "KINDS", "confidence_per_test"]

ALPHA = 0.05
"""The probability that any test of a report claims too much."""
KINDS = 4
"""Canaries in one run, the same step by step, the ladder's adversaries, and attacks' curves. Each kind has an equal
share of ALPHA whether or not a report contains it, so that a test that is added later does not weaken the others."""


def confidence_per_test(tests: int = 1) -> float:
    """Return the confidence that each of several tests of one kind needs for the whole report to have error ALPHA.

    Args:
        tests: The number of tests of this kind in the report.

    Raises:
        InvalidInput: If `tests` is below 1.

    >>> confidence_per_test(), confidence_per_test(5)
    (0.9875, 0.9975)
    """
    return 1 - ALPHA / (KINDS * checked.count("tests", tests))
