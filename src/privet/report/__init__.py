"""Typed cards of data, and the renderers that turn a card into JSON, text or a page."""

from __future__ import annotations

from privet.core import Canaries, Internal, Public, Score, Shareable, Trial, Typed
from privet.report.account import guarantee_warnings as guarantee_warnings
from privet.report.account import price_description, price_run
from privet.report.account import weaknesses as weaknesses
from privet.report.answer_table import INTERVAL_COVERAGE, answer_columns, answer_rows, format_rounded, has_intervals
from privet.report.answers_page import answers_page
from privet.report.attack_records import Attacked, Estimate, Picture, Point, Remembered
from privet.report.audit_page import audit_page as audit_page
from privet.report.card import RunCard, require_shareable
from privet.report.card_json import document
from privet.report.card_tables import attack_table as attack_table
from privet.report.charges import require_charged
from privet.report.curves import Curves, curves_of
from privet.report.notebook import RENDERERS as RENDERERS
from privet.report.origin import INTERVALS as INTERVALS
from privet.report.origin import format_score as format_score
from privet.report.origin import short_interval as short_interval
from privet.report.page import page
from privet.report.private_score import ScoreMechanism
from privet.report.private_score import share_of as share_of
from privet.report.run_names import name_runs
from privet.report.runs import CARD as CARD
from privet.report.runs import INTERNAL_CARD as INTERNAL_CARD
from privet.report.runs import INTERNAL_PAGE as INTERNAL_PAGE
from privet.report.runs import REPORT as REPORT
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
from privet.report.score_intervals import CONFIDENCE as CONFIDENCE
from privet.report.score_intervals import EXACT as EXACT
from privet.report.score_intervals import NOISE_AND_SAMPLING as NOISE_AND_SAMPLING
from privet.report.score_intervals import SAMPLING as SAMPLING
from privet.report.score_intervals import SAMPLING_INDEPENDENT as SAMPLING_INDEPENDENT
from privet.report.score_intervals import SELECTED as SELECTED
from privet.report.score_intervals import share_interval as share_interval
from privet.report.signing import SIGNATURE as SIGNATURE
from privet.report.signing import NotGenuine, Signed, make_key, sign, verify
from privet.report.single_accountant import curve_of as curve_of
from privet.report.single_accountant import single_accountant as single_accountant
from privet.report.survey_page import (
    ESTIMATE_COLUMNS,
    estimate_notes,
    estimate_page,
    estimate_rows,
    report_counts,
)
from privet.report.table_records import Linked, Recovered, Tables
from privet.report.tables_page import require_tables_folder as require_tables_folder
from privet.report.tables_page import tables_page, write_tables
from privet.report.terminal import show
from privet.report.training_card import TrainingCard, internal_fields, shareable
from privet.report.training_page import internal_page, report_page
from privet.report.training_price import growth_of, price_lines, trial_of
from privet.report.training_price import nearby_deltas as nearby_deltas
from privet.report.training_records import PATE as PATE
from privet.report.training_records import BillLine, Charged, Choice, Consensus, Finding, Growth, Measure, Series
from privet.report.trust_page import trust_page
from privet.report.verdict import Verdict as Verdict
from privet.report.verdict import evidence_warnings as evidence_warnings
from privet.report.verdict import powerless_canaries as powerless_canaries
from privet.report.verdict import verdict_of as verdict_of
from privet.report.verdict import worst_verdict as worst_verdict
from privet.report.words import ACCOUNTANTS as ACCOUNTANTS
from privet.report.words import counted as counted
from privet.report.words import down as down
from privet.report.words import epoch_count as epoch_count
from privet.report.words import event_text as event_text
from privet.report.words import headline as headline
from privet.report.words import listed as listed
from privet.report.words import percent as percent
from privet.report.words import protected as protected
from privet.report.words import proven_by as proven_by
from privet.report.words import up as up
from privet.report.words import why_not as why_not
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
