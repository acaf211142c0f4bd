"""Callbacks of a run: progress, and the plan before it is charged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privet.core import Guarantee
    from privet.report import Choice
    from privet.runs.facts import PublicFacts
    from privet.runs.methods.protocol import StepProgress
    from privet.runs.plan import RunPlan
    from privet.runs.request import TrainRequest

__all__ = ["PlannedRun", "RunCallbacks"]


@dataclass(frozen=True)
class PlannedRun:
    """A run before it is charged, or after a release that completes its plan."""

    request: TrainRequest
    facts: PublicFacts
    plan: RunPlan
    guarantee: Guarantee

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Settings of the run, each with its reason; all of it is public."""
        from privet.runs.plan_choices import plan_choices

        return plan_choices(self.request, self.facts, self.plan)


@dataclass(frozen=True)
class RunCallbacks:
    """Functions that a run calls. The defaults do nothing, so that every plan is accepted."""

    on_message: Callable[[str], None] = lambda message: None
    """Called with a progress message, which may be shown to anyone."""
    on_plan: Callable[[PlannedRun], None] = lambda planned: None
    """Called with the plan and its cost before anything is charged. An exception ends the run; nothing is spent."""
    on_completed_plan: Callable[[PlannedRun], None] = lambda planned: None
    """Called with the plan after a release has completed it."""
    on_step: Callable[[StepProgress], None] = lambda progress: None
    """Called after each training step. The loss is private."""
    on_page: Callable[[int, int], None] = lambda done, total: None
    """Called with the number of finished parts of the report, and their total."""
