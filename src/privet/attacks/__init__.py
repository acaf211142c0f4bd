"""Attacks: what somebody of today can find out from what was released."""

from __future__ import annotations

from privet.attacks.counting import at_least, at_most
from privet.attacks.membership import calibrated, label_only, lira, loss_threshold, rmia
from privet.attacks.outcome import Interval, Outcome
from privet.attacks.shadows import Shadows, confidences, shadows

__all__ = [
    "Interval",
    "Outcome",
    "Shadows",
    "at_least",
    "at_most",
    "calibrated",
    "confidences",
    "label_only",
    "lira",
    "loss_threshold",
    "rmia",
    "shadows",
]
