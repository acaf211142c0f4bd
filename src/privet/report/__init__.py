"""Typed cards of data, and the renderers that turn a card into JSON, text or a page."""

from __future__ import annotations

from privet.core.disclosure import Internal, Public, Shareable, Typed
from privet.core.scores import Canaries, Score, Trial
from privet.report.account import price_description, price_run
from privet.report.answer_table import INTERVAL_COVERAGE, answer_columns, answer_rows, format_rounded, has_intervals
from privet.report.answers_page import answers_page
from privet.report.attack_records import Attacked, Estimate, Picture, Point, Remembered
from privet.report.card import RunCard, require_shareable
from privet.report.card_json import document
from privet.report.charges import require_charged
from privet.report.curves import Curves, curves_of
from privet.report.notebook import RENDERERS as RENDERERS
from privet.report.page import page
from privet.report.private_score import ScoreMechanism
from privet.report.run_names import name_runs
from privet.report.runs import (
    Comparison,
    compare,
    compare_page,
    load,
    read_card,
    require_folder,
    trials_of,
    write_internal,
    write_run,
)
from privet.report.signing import NotGenuine, Signed, make_key, sign, verify
from privet.report.survey_page import (
    ESTIMATE_COLUMNS,
    estimate_notes,
    estimate_page,
    estimate_rows,
    report_counts,
)
from privet.report.table_records import Linked, Recovered, Tables
from privet.report.tables_page import tables_page, write_tables
from privet.report.terminal import show
from privet.report.training_card import TrainingCard, internal_fields, shareable
from privet.report.training_page import internal_page, report_page
from privet.report.training_price import growth_of, price_lines, trial_of
from privet.report.training_records import BillLine, Charged, Choice, Consensus, Finding, Growth, Measure, Series
from privet.report.trust_page import trust_page
from privet.report.write import require_writable, write_page

__all__ = [
    "ESTIMATE_COLUMNS",
    "INTERVAL_COVERAGE",
    "Attacked",
    "BillLine",
    "Canaries",
    "Charged",
    "Choice",
    "Comparison",
    "Consensus",
    "Curves",
    "Estimate",
    "Finding",
    "Growth",
    "Internal",
    "Linked",
    "Measure",
    "NotGenuine",
    "Picture",
    "Point",
    "Public",
    "Recovered",
    "Remembered",
    "RunCard",
    "Score",
    "ScoreMechanism",
    "Series",
    "Shareable",
    "Signed",
    "Tables",
    "TrainingCard",
    "Trial",
    "Typed",
    "answer_columns",
    "answer_rows",
    "answers_page",
    "compare",
    "compare_page",
    "curves_of",
    "document",
    "estimate_notes",
    "estimate_page",
    "estimate_rows",
    "format_rounded",
    "growth_of",
    "has_intervals",
    "internal_fields",
    "internal_page",
    "load",
    "make_key",
    "name_runs",
    "page",
    "price_description",
    "price_lines",
    "price_run",
    "read_card",
    "report_counts",
    "report_page",
    "require_charged",
    "require_folder",
    "require_shareable",
    "require_writable",
    "shareable",
    "show",
    "sign",
    "tables_page",
    "trial_of",
    "trials_of",
    "trust_page",
    "verify",
    "write_internal",
    "write_page",
    "write_run",
    "write_tables",
]
