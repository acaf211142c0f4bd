"""A shuffler: mix servers between respondents and collector, so that nobody knows whose report is whose."""

from __future__ import annotations

from privet.local.shuffling.carried import carried, id_of
from privet.local.shuffling.client import send
from privet.local.shuffling.collect import shuffled_release
from privet.local.shuffling.mix import Batch, Counts, MixRefused, Taken
from privet.local.shuffling.onion import MixKey, seal
from privet.local.shuffling.plan import ONE_IN_A_CROWD, MixPlan, Stop, read_plan
from privet.local.shuffling.server import MixServer

__all__ = [
    "ONE_IN_A_CROWD",
    "Batch",
    "Counts",
    "MixKey",
    "MixPlan",
    "MixRefused",
    "MixServer",
    "Stop",
    "Taken",
    "carried",
    "id_of",
    "read_plan",
    "seal",
    "send",
    "shuffled_release",
]
