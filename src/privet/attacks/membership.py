"""Membership inference: was this example in the training data? A higher score means a likelier member."""

from __future__ import annotations

from privet.attacks.outcome import Outcome
from privet.attacks.pool import Pool
from privet.attacks.shadows import Shadows
from privet.attacks.table import MEMBERSHIP_ATTACKS
from privet.attacks.target import Target
from privet.attacks.view import AttackerView

__all__ = ["membership"]


def membership(
    target: Target, pool: Pool, shadows: Shadows | None = None, *, versions: int = 24, key: str = "privet"
) -> tuple[Outcome, ...]:
    """Run every attack of `MEMBERSHIP_ATTACKS` that the attacker's view allows.

    Args:
        target: The attacked model.
        pool: Members and non-members.
        shadows: Shadow models with scores for the rows of the pool, in its order.
        versions: The number of noisy versions of each example that the label-only attack queries.
        key: Seed of the noisy versions.

    Returns:
        One outcome for each attack, in the order of the table.
    """
    view = AttackerView(target, pool, shadows, versions, key)
    rows = MEMBERSHIP_ATTACKS.items()
    return tuple(pool.outcome(name, attack.score(view)) for name, attack in rows if attack.applies(view))
