"""A run's plan once more, on embedded digits with canaries, before every adversary: an audit of the code that made the
run, and not of the run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from privet.audit import audit_ladder
from privet.core import Event, Evidence, Guarantee, InvalidInput, Whose
from privet.report import TrainingCard
from privet.runs.methods.dp_sgd import DP_SGD, recipe_of
from privet.runs.plan_file import read_plan
from privet.training import DPSGD

__all__ = ["ELSEWHERE", "LadderResult", "climb_ladder"]

ELSEWHERE = "the same plan, on embedded digits: another run"
_RUNGS = 5
_CANARIES = "audit it by canaries of its own: privet train … --audit"


@dataclass(frozen=True)
class LadderResult:
    """What the plan claims by itself, and what each adversary could prove of another run of it."""

    event: Event
    guarantee: Guarantee
    """Of the plan, at the run's δ."""
    evidence: tuple[Evidence, ...]
    sees: tuple[str, ...]
    """What each of them is granted."""
    elsewhere: str = ELSEWHERE
    """What the evidence assumes where it stands beside the run."""

    @property
    def where(self) -> str:
        """On which rows the plan was tried."""
        return self.elsewhere.removeprefix("the same plan, ").removesuffix(": another run")

    @property
    def refuted(self) -> bool:
        """Whether a bound that assumes nothing lies above what the plan claims."""
        return any(each.refutes(self.guarantee) for each in self.evidence)

    @property
    def beside_the_run(self) -> tuple[Evidence, ...]:
        """The same on the run's own page, where it is no proof of that run."""
        return tuple(replace(each, assumptions=(*each.assumptions, self.elsewhere)) for each in self.evidence)


def climb_ladder(run: Path, card: TrainingCard, *, canaries: int, confidence: float) -> LadderResult:
    """Audit the run's plan against every adversary. They share one α: all bounds hold together with `confidence`.

    Args:
        run: Run directory.
        card: Card of the run.
        canaries: Number of canaries.
        confidence: Confidence of all bounds together.

    Raises:
        InvalidInput: The run has no stored plan of DP-SGD for single rows.
    """
    plan = replace(_plan(run, card), delta=card.privacy.guarantee.value.delta)
    with _quietly():
        found = audit_ladder(plan, canaries=canaries, confidence=1 - (1 - confidence) / _RUNGS)
    evidence = tuple(replace(rung.evidence, attack=rung.name) for rung in found.rungs)
    sees = tuple(f"{rung.name}: sees {rung.sees}." for rung in found.rungs)
    return LadderResult(plan.event(), found.guarantee, evidence, sees)


def _plan(run: Path, card: TrainingCard) -> DPSGD:
    """The plan of DP-SGD that is stored with the run."""
    plan = read_plan(run, card)
    if plan.tuning is not None or plan.methods[0].method != DP_SGD.name:
        problem = "has no canaries, and no plan of DP-SGD that could be tried again"
        raise InvalidInput("run", problem, "train it with: privet train … --audit")
    if card.privacy.guarantee.value.unit.whose is not Whose.EXAMPLE:
        problem = "protects all rows of a user, and the ladder's adversaries are about single rows"
        raise InvalidInput("run", problem, _CANARIES)
    return recipe_of(plan.plan_of(DP_SGD.name)).plan


@contextmanager
def _quietly() -> Iterator[None]:
    """Of a large δ the page tells, in words."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="delta is", category=UserWarning)
        yield
