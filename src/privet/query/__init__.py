"""Private answers about tables: a little language of questions, plans that share a budget, answers with intervals."""

from __future__ import annotations

from privet.query.answers import Answer, Row
from privet.query.ask import Account, Reply, ask
from privet.query.conditions import All, AnyOf, Comparison, Condition, Missing, Not, OneOf, Op
from privet.query.files import answers_file, load_query_schema
from privet.query.parser import parse
from privet.query.plan import Plan, columns_read, plan, understood
from privet.query.questions import (
    Count,
    Covariance,
    Histogram,
    Maximum,
    Mean,
    Minimum,
    Quantile,
    Question,
    Sum,
    TopK,
    Variance,
)
from privet.query.stored import Stored
from privet.query.words import MalformedQuestion

__all__ = [
    "Account",
    "All",
    "Answer",
    "AnyOf",
    "Comparison",
    "Condition",
    "Count",
    "Covariance",
    "Histogram",
    "MalformedQuestion",
    "Maximum",
    "Mean",
    "Minimum",
    "Missing",
    "Not",
    "OneOf",
    "Op",
    "Plan",
    "Quantile",
    "Question",
    "Reply",
    "Row",
    "Stored",
    "Sum",
    "TopK",
    "Variance",
    "answers_file",
    "ask",
    "columns_read",
    "load_query_schema",
    "parse",
    "plan",
    "understood",
]
