"""Attacks: what somebody of today can find out from what was released."""

from __future__ import annotations

from privet.attacks.counting import at_least, at_most
from privet.attacks.membership import calibrated, label_only, lira, loss_threshold, rmia
from privet.attacks.outcome import Interval, Outcome
from privet.attacks.shadows import Shadows, confidences, shadows
from privet.attacks.target import Access, Model, Target, losses, target

__all__ = [
    "Access",
    "Interval",
    "Model",
    "Outcome",
    "Shadows",
    "Target",
    "at_least",
    "at_most",
    "calibrated",
    "confidences",
    "label_only",
    "lira",
    "loss_threshold",
    "losses",
    "rmia",
    "shadows",
    "target",
]
