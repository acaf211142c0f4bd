"""The respondent's side: seal a report, and hand it to the first server."""

from __future__ import annotations

from privet.local.shuffling.carried import carried
from privet.local.shuffling.mix import MixRefused, Taken
from privet.local.shuffling.onion import seal
from privet.local.shuffling.plan import MixPlan
from privet.local.shuffling.server import posted

__all__ = ["send"]

_PATIENCE = 30.0
_TAKEN = {201: Taken.ACCEPTED, 200: Taken.DUPLICATE, 400: Taken.BAD}


def send(plan: MixPlan, report: bytes, *, source: tuple[str, int] | None = None) -> Taken:
    """Send one report, inside of a layer for each stop; raises `MixRefused` where the batch is closed.

    The report must be randomized already: it is worth the plan's ε by itself, whatever becomes of the batch. `source`
    is the address to send from, where a machine has several. What the plan does not price is refused (see `carried`),
    and the id of a survey's report stays behind.

    **Each call is one person.** Every layer is made with a key of its own and no id travels, so that nobody on the way
    could tell a report that is sent again from that of someone with the same answers: it would count as another person,
    on whose number the price rests. Call this once for each report; `privet mix send` keeps notes of what it has sent.
    """
    sealed = seal(carried(plan, report), [stop.key for stop in plan.stops], plan.payload, plan.name)
    status, words = posted(plan.servers[0], "/report", sealed, patience=_PATIENCE, source=source)
    if status not in _TAKEN:
        raise MixRefused(words or f"the first server answered {status}")
    return _TAKEN[status]
