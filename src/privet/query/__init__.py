"""Private answers about tables: a little language of questions, plans that share a budget, answers with intervals."""

from __future__ import annotations

from privet.query.answer_store import AnswerStore
from privet.query.answers import Answer, Row
from privet.query.ask import Account, Reply, ask
from privet.query.conditions import All, AnyOf, CellComparison, Condition, IsMissing, Not, OneOf, Op
from privet.query.files import answers_file, load_query_schema
from privet.query.parser import parse
from privet.query.plan import QueryPlan, columns_read, parse_questions, plan
from privet.query.questions import (
    CountMeasure,
    CovarianceMeasure,
    HistogramMeasure,
    MaximumMeasure,
    MeanMeasure,
    MinimumMeasure,
    QuantileMeasure,
    Question,
    SumMeasure,
    TopKMeasure,
    VarianceMeasure,
)
from privet.query.tokens import MalformedQuestion

__all__ = [
    "Account",
    "All",
    "Answer",
    "AnswerStore",
    "AnyOf",
    "CellComparison",
    "Condition",
    "CountMeasure",
    "CovarianceMeasure",
    "HistogramMeasure",
    "IsMissing",
    "MalformedQuestion",
    "MaximumMeasure",
    "MeanMeasure",
    "MinimumMeasure",
    "Not",
    "OneOf",
    "Op",
    "QuantileMeasure",
    "QueryPlan",
    "Question",
    "Reply",
    "Row",
    "SumMeasure",
    "TopKMeasure",
    "VarianceMeasure",
    "answers_file",
    "ask",
    "columns_read",
    "load_query_schema",
    "parse",
    "parse_questions",
    "plan",
]
