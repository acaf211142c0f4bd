"""What a plan chose, and why: for the terminal before the charge, and for the card."""

from __future__ import annotations

from privet.core import Whose, digits_up
from privet.report import Choice
from privet.runs.facts import PublicFacts
from privet.runs.methods.protocol import MethodPlan
from privet.runs.methods.registry import METHODS
from privet.runs.plan import RunPlan
from privet.runs.request import TrainRequest
from privet.runs.scoring import expected_interval

__all__ = ["plan_choices"]


def plan_choices(
    request: TrainRequest, facts: PublicFacts, plan: RunPlan, main: MethodPlan | None = None
) -> tuple[Choice, ...]:
    """Return what was chosen, and why; all of it is public, or was released.

    Args:
        request: What was asked for.
        facts: What is public of the data.
        plan: The plan of the run.
        main: The plan of the main method; by default the one in `plan`. Of a tuned run, the selected candidate.
    """
    choices = [Choice("δ", digits_up(plan.delta), plan.delta_reason)]
    methods = len(request.private_methods)
    if methods > 1:
        why = f"a part of δ: alone, a method would have all that {methods} share, and a little less noise"
        choices.append(Choice("δ of each model", digits_up(plan.share.delta), why))
    fits_rows = METHODS[request.method].fits_rows
    if facts.schema is not None and fits_rows:
        where = "learned privately" if facts.is_schema_released else "public"
        choices.append(Choice("schema", f"{len(facts.schema.features)} columns to learn from", where))
    if plan.tuning is not None:
        candidates, law = len(plan.tuning.candidates), plan.tuning.trials
        choices.append(Choice("settings that are tried", f"{candidates}: learning rates and clips", "a public list"))
        long = f"{law.mean:.3g} on average, 95 % of the time at most {law.quantile(0.95)}"
        choices.append(Choice("runs", long, "a random number, which stays secret"))
    plans = [plan.plan_of(each.method) for each in plan.methods]
    for each in plans if main is None or plan.tuning is None else (main, *plans):
        choices += each.choices
    if request.audit:
        choices.append(Choice("canaries", f"{request.canaries:,}", "asked for: --audit"))
    if plan.scoring is not None:
        whose = "user's id" if facts.whose is Whose.USER else "row"
        share = f"{request.hold_out:.0%}"
        if fits_rows:
            choices.append(Choice("rows held out for the score", share, f"by a keyed hash of the {whose}"))
        choices.append(Choice("ε for the score", f"{plan.scoring.epsilon:g}", f"{request.score_share:.0%} of ε"))
        label = None if facts.schema is None else facts.schema.label
        choices.append(expected_interval(plan.scoring, facts.rows, request.hold_out, label))
    return tuple(choices)
