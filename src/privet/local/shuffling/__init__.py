"""A shuffler: mix servers between respondents and collector, so that nobody knows whose report is whose."""

from __future__ import annotations

from privet.local.shuffling.compare import TrustCosts, cost_of_trust, costs_around
from privet.local.shuffling.mix import Batch, BatchCounts, LayerOutcome, MixRefused
from privet.local.shuffling.onion import MixKey, seal
from privet.local.shuffling.plan import ONE_IN_A_CROWD, MixPlan, Stop, read_plan
from privet.local.shuffling.report_format import canonical_report, id_of
from privet.local.shuffling.sending import SentReports, send, send_reports
from privet.local.shuffling.server import MixServer
from privet.local.shuffling.stops import collected_release, create_key_file, open_stop, shuffled_release

__all__ = [
    "ONE_IN_A_CROWD",
    "Batch",
    "BatchCounts",
    "LayerOutcome",
    "MixKey",
    "MixPlan",
    "MixRefused",
    "MixServer",
    "SentReports",
    "Stop",
    "TrustCosts",
    "canonical_report",
    "collected_release",
    "cost_of_trust",
    "costs_around",
    "create_key_file",
    "id_of",
    "open_stop",
    "read_plan",
    "seal",
    "send",
    "send_reports",
    "shuffled_release",
]
