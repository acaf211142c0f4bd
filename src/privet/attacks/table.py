"""Table of all membership attacks by name, which `membership`, the command line and the contract tests read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from privet.attacks.counting import Reals
from privet.attacks.label_only import label_only
from privet.attacks.lira import lira
from privet.attacks.loss_threshold import calibrated_loss, loss_threshold
from privet.attacks.rmia import rmia
from privet.attacks.shokri import shokri
from privet.attacks.target import Access
from privet.attacks.view import AttackerView

__all__ = ["MEMBERSHIP_ATTACKS", "MembershipAttack"]


@dataclass(frozen=True)
class MembershipAttack:
    """Membership attack: how it scores the examples of a pool, and what access it needs."""

    score: Callable[[AttackerView], Reals]
    """Return a score for each example; higher means that it was a member."""
    access: Access = Access.SCORES
    """Least access to the model that the attack needs."""
    needs_shadows: bool = False

    def applies(self, view: AttackerView) -> bool:
        """Return whether the attacker's view is sufficient for this attack.

        Args:
            view: What the attacker sees.
        """
        sees_enough = self.access is Access.LABELS or view.target.access is not Access.LABELS
        return sees_enough and (view.shadows is not None or not self.needs_shadows)


MEMBERSHIP_ATTACKS: dict[str, MembershipAttack] = {
    "label-only": MembershipAttack(lambda view: label_only(view.right), Access.LABELS),
    "loss threshold": MembershipAttack(lambda view: loss_threshold(view.losses)),
    "calibrated loss": MembershipAttack(
        lambda view: calibrated_loss(loss_threshold(view.losses), view.reference_losses), needs_shadows=True
    ),
    "shadow classifier": MembershipAttack(
        lambda view: shokri(view.outputs, view.pool.labels, view.shadow_models), needs_shadows=True
    ),
    "LiRA": MembershipAttack(lambda view: lira(view.confidences, view.shadow_models), needs_shadows=True),
    "LiRA, offline": MembershipAttack(
        lambda view: lira(view.confidences, view.shadow_models, online=False), needs_shadows=True
    ),
    "RMIA": MembershipAttack(lambda view: rmia(view.confidences, view.shadow_models), needs_shadows=True),
}
"""Attacks in the order in which they are run and shown."""
