"""The collector's side: what has arrived, as a release under shuffled trust."""

from __future__ import annotations

from collections.abc import Sequence

from privet.core.random import Randomness
from privet.core.release import Release
from privet.local.shuffling.carried import is_carried
from privet.local.shuffling.mix import MixRefused
from privet.local.shuffling.plan import ONE_IN_A_CROWD, MixPlan

__all__ = ["shuffled_release"]


def shuffled_release(plan: MixPlan, reports: Sequence[bytes], *, randomness: Randomness) -> Release[tuple[bytes, ...]]:
    """The multiset of a batch's reports, sorted, as a release; refused where there are too few, or others.

    Guarantee: `plan.event` for one person whose answer becomes any other one (replace), under shuffled trust: (ε, δ) as
    in `plan.guarantee`, by the privacy blanket (Balle, Bell, Gascón & Nissim 2019; proof in
    `privet.accounting.laws.shuffled`). It assumes that `plan.honest` of the reports at least are honest: one from each
    person, by the plan's randomizer; that the servers mix as they should, and do not all collude; and it is
    computational, as it rests on encryption. Where any of that fails, each report is still worth the plan's own ε by
    itself (local trust). `randomness` is that of the reports and of the servers' orders.
    """
    if len(reports) < plan.minimum:
        problem = f"the batch {plan.batch!r} has {len(reports):,} reports, and the plan asks for {plan.minimum:,}"
        raise MixRefused(f"{problem}; a smaller crowd hides less than was promised, so nothing is released")
    strange = sum(not is_carried(plan, report) for report in reports)
    if strange:
        raise MixRefused(f"{strange:,} reports of the batch {plan.batch!r} are not what its plan prices")
    return Release.of(
        tuple(sorted(reports)),
        plan.event,
        unit=ONE_IN_A_CROWD,
        source=plan.batch,
        randomness=randomness,
        guarantee=plan.guarantee,
    )
