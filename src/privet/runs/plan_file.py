"""The plan in the folder of a finished run: what attacks and audits use, in place of deriving one again."""

from __future__ import annotations

from pathlib import Path

from privet.core import InvalidInput, write_atomically
from privet.report import TrainingCard
from privet.runs.plan import RunPlan

__all__ = ["PLAN", "read_plan", "write_plan"]

PLAN = "plan.json"


def write_plan(folder: Path, plan: RunPlan) -> None:
    """Store the plan of a run. It may be shared: it holds only public and released values.

    Args:
        folder: Run directory.
        plan: The plan.
    """
    write_atomically(folder / PLAN, plan.to_json() + "\n", "out")


def read_plan(folder: Path, card: TrainingCard, argument: str = "run") -> RunPlan:
    """Return the plan that a run was charged for.

    Args:
        folder: The folder of a finished run.
        card: Its card.
        argument: What an error is about.

    Raises:
        InvalidInput: There is no plan, or it is not the one that the card states.
    """
    try:
        text = (folder / PLAN).read_text(encoding="utf-8")
    except FileNotFoundError:
        problem = f"needs the plan of {str(folder)!r}, which has no {PLAN}: an earlier version made it"
        raise InvalidInput(argument, problem, "train it again, or leave this out") from None
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput(argument, f"cannot read {PLAN}: {reason}", "check the folder") from None
    plan = RunPlan.from_json(text)
    if plan.event != card.privacy.event.value or plan.unit != card.privacy.guarantee.value.unit:
        problem = f"has a {PLAN} that is not the plan of its card"
        raise InvalidInput(argument, problem, "get the folder again from whoever made the run")
    return plan
