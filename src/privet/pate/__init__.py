"""PATE: teachers' votes, aggregators that add noise to them, what that costs, and what it cost these data."""

from __future__ import annotations

from privet.pate.aggregator import Aggregator
from privet.pate.confident import Confident
from privet.pate.data_dependent import DataDependent, data_dependent
from privet.pate.data_dependent import question_cost as question_cost
from privet.pate.gnmax import GNMax
from privet.pate.gnss import Gnss
from privet.pate.interactive import Interactive
from privet.pate.lnmax import LNMax
from privet.pate.plan import Labels, Plan, least_noise, most_questions
from privet.pate.sanitization import SanitizedEpsilon, SmoothCeiling
from privet.pate.table import AGGREGATORS
from privet.pate.votes import Votes
from privet.pate.votes import vote_reach as vote_reach

__all__ = [
    "AGGREGATORS",
    "Aggregator",
    "Confident",
    "DataDependent",
    "GNMax",
    "Gnss",
    "Interactive",
    "LNMax",
    "Labels",
    "Plan",
    "SanitizedEpsilon",
    "SmoothCeiling",
    "Votes",
    "data_dependent",
    "least_noise",
    "most_questions",
]
