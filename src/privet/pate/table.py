"""Every aggregator, by name: one row each, which contract tests read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privet.pate.aggregator import Aggregator
from privet.pate.confident import Confident
from privet.pate.gnmax import GNMax
from privet.pate.interactive import Interactive
from privet.pate.lnmax import LNMax

__all__ = ["AGGREGATORS"]

AGGREGATORS: dict[str, Callable[[float, tuple[int, int], int], Aggregator]] = {
    "lnmax": lambda noise, shape, teachers: LNMax(noise),
    "gnmax": lambda noise, shape, teachers: GNMax(noise),
    "confident": lambda noise, shape, teachers: Confident(2 * teachers // 3, 3 * noise, noise),
    "interactive": lambda noise, shape, teachers: Interactive(
        teachers // 3, 3 * noise, noise, np.full(shape, 1 / shape[1])
    ),
}
"""How to build each from its noise, for votes of the shape (queries, labels) by so many teachers.

Thresholds are moderate ones, as tests and first plans want them: two thirds of the teachers agree, or a third of them
disagree with a student that knows nothing.
"""
