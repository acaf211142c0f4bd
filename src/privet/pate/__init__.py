"""PATE: teachers' votes, aggregators that add noise to them, what that costs, and what it cost these data."""

from __future__ import annotations

from privet.pate.aggregators import Aggregator, Confident, GNMax, Interactive, LNMax
from privet.pate.plan import Labels, Plan, least_noise, most_questions
from privet.pate.votes import Votes

__all__ = [
    "Aggregator",
    "Confident",
    "GNMax",
    "Interactive",
    "LNMax",
    "Labels",
    "Plan",
    "Votes",
    "least_noise",
    "most_questions",
]
