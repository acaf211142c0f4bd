"""Attack the model of a run: which rows were in its training data, and what does it show of its classes?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from privet.attacks import Outcome, Shadows, blind_baseline, membership, target
from privet.core import Guarantee, Internal, InvalidInput, checked
from privet.report import Attacked, write_internal
from privet.runs.attacks.image_attacks import invert_classes
from privet.runs.attacks.outcomes import (
    above_limit,
    guarantee_limit,
    nonmembers_needed,
    summarize_attack,
    usable_rates,
)
from privet.runs.attacks.rows import AttackedRun, open_attacked_run
from privet.runs.attacks.shadow_models import ShadowCheckpoint, plain_learner, same_plan_learner, train_shadow_models

__all__ = ["AttackResult", "attack_run"]

_RATES = (0.001, 0.01)
_HIDDEN = ".attack"


@dataclass(frozen=True, eq=False)
class AttackResult:
    """How far membership attacks on a run got. All of it is about real rows: it must not be shared."""

    attacks: tuple[Attacked, ...]
    """Each attack: true-positive rates, AUC and curve."""
    guarantee: Guarantee
    limits: tuple[tuple[float, float], ...]
    """For each false-positive rate, the largest true-positive rate that the guarantee allows."""
    exceeding: tuple[str, ...]
    """Attacks whose lower confidence bound lies above what the guarantee allows."""
    unusable_rates: tuple[float, ...]
    """Rates for which there are too few non-members."""
    outsiders: str
    """Who the non-members are."""
    left_out: tuple[int, int]
    """Members and non-members that were left out because other rows have the same values."""
    unknown: int
    """Non-members whose label is none of the run's classes."""
    shadow_models: int
    """How many were trained."""
    inversion_note: str
    """Why no image was inverted, where none was."""
    has_canaries: bool
    """Whether the run has canaries, by which it can be audited."""


def attack_run(
    folder: Path,
    *,
    data: str | None = None,
    outsiders: str | None = None,
    data_dir: Path | None = None,
    shadows: int = 16,
    like_run: bool = False,
    budget_minutes: float | None = None,
    rates: Sequence[float] | None = None,
    resume: bool = False,
    on_message: Callable[[str], None] = lambda message: None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> AttackResult:
    """Try to find out who was in the training data of a run, and write what came of it to its internal report.

    Args:
        folder: The run.
        data: The rows that it was trained on, where they are elsewhere now.
        outsiders: Rows that it never saw: a file or a named set. By default the run's test or held-out rows.
        data_dir: Where named sets are.
        shadows: How many shadow models are trained, an even number; 0 leaves out the attacks that need some.
        like_run: Whether they are trained by the run's own plan, with its noise.
        budget_minutes: Stop training shadow models after so many minutes.
        rates: False-positive rates to report; by default 0.1 % and 1 %, as far as there are non-members enough.
        resume: Whether to continue an attack that was interrupted, with the shadow models that it trained.
        on_message: Told what is being done.
        on_progress: Told how many shadow models are trained, and later how much of the page is drawn.

    Returns:
        What the attacks came to; all of it is private.

    Raises:
        InvalidInput: The run has no classes, its rows are missing or others, or an argument is wrong.
    """
    wanted = _checked_rates(rates)
    if shadows < 0 or shadows % 2:
        raise InvalidInput("shadows", f"is {shadows}", "take an even number, such as 16: each row is in half of them")
    if budget_minutes is not None:
        checked.positive("budget_minutes", budget_minutes)
    for name, is_given in (("like_run", like_run), ("budget_minutes", budget_minutes is not None)):
        if is_given and not shadows:
            raise InvalidInput(name, "is for shadow models, and --shadows is 0", "leave one of them out")
    if not folder.is_dir():
        raise InvalidInput("run", f"is {str(folder)!r}, which is no folder", "name a folder that `privet train` wrote")
    on_message("Reading the run and its rows …")
    run = open_attacked_run(folder, data, outsiders, data_dir)
    count = int((~run.pool.inside).sum())
    usable = usable_rates(wanted, count)
    if rates is not None and len(usable) < len(wanted):
        least = min(wanted)
        problem = f"asks for {least:g}, and there are {count:,} outsiders"
        needed = f"it takes {nonmembers_needed(least):,} of them or more: give more --outsiders"
        raise InvalidInput("alarms", problem, needed)
    _require_finite(run)
    models = None
    if shadows:
        on_message("Training shadow models …")
        models = _shadow_models(run, folder, shadows, like_run, budget_minutes, resume, on_progress)
    on_message("Attacking …")
    return _written(run, folder, models, _outcomes(run, models), wanted, usable, like_run, on_message, on_progress)


def _written(
    run: AttackedRun,
    folder: Path,
    models: Shadows | None,
    outcomes: list[Outcome],
    wanted: tuple[float, ...],
    usable: tuple[float, ...],
    like_run: bool,
    on_message: Callable[[str], None],
    on_progress: Callable[[int, int], None],
) -> AttackResult:
    count = 0 if models is None else models.models
    attacks = summarize_attack(outcomes, usable, shadows=count, notes=_notes(like_run))
    limit = guarantee_limit(run.card)
    exceeding = above_limit(outcomes, limit)
    on_message("Inverting the model …")
    picture, note = invert_classes(run)
    pictures = () if picture is None else (Internal(picture),)
    on_message("Writing the report …")
    write_internal(
        folder, replace(run.card, attacks=tuple(map(Internal, attacks)), pictures=pictures), progress=on_progress
    )
    if models is not None:
        ShadowCheckpoint(folder / _HIDDEN).clear()
    return AttackResult(
        tuple(attacks),
        run.card.privacy.guarantee.value,
        tuple((rate, limit(rate)) for rate in usable),
        tuple(exceeding),
        tuple(rate for rate in wanted if rate not in usable),
        run.outside,
        run.left_out,
        run.unknown,
        count,
        note,
        bool(run.card.canaries),
    )


def _outcomes(run: AttackedRun, models: Shadows | None) -> list[Outcome]:
    """Every attack, the baseline that never sees the model last."""
    return [*membership(target(run.head, run.classes), run.pool, models), blind_baseline(run.pool)]


def _checked_rates(rates: Sequence[float] | None) -> tuple[float, ...]:
    chosen = _RATES if rates is None else tuple(sorted(set(rates)))
    if not chosen or not all(0 < rate < 1 for rate in chosen):
        raise InvalidInput("alarms", f"is {rates!r}", "give rates between 0 and 1, with commas: 0.001,0.01")
    return chosen


def _require_finite(run: AttackedRun) -> None:
    """Before shadow models are trained, which would be for nothing."""
    if not bool(target(run.head, run.classes).scores(run.pool.inputs).isfinite().all()):
        raise InvalidInput("run", "has a model whose scores are NaN or infinite", "find out why, and train it again")


def _shadow_models(
    run: AttackedRun,
    folder: Path,
    models: int,
    like_run: bool,
    minutes: float | None,
    resume: bool,
    on_progress: Callable[[int, int], None],
) -> Shadows:
    make = same_plan_learner if like_run else plain_learner
    make(run, "privet")  # says what is wrong, before anything is trained
    return train_shadow_models(
        lambda key: make(run, key),
        run.pool,
        run.classes,
        models=models,
        kept=ShadowCheckpoint(folder / _HIDDEN),
        resume=resume,
        kind="by the run's plan" if like_run else "plain",
        minutes=minutes,
        progress=on_progress,
    )


def _notes(like_run: bool) -> dict[str, str]:
    how = "shadow models by the run's own plan" if like_run else "shadow models without privacy"
    by_shadows = ("calibrated loss", "shadow classifier", "LiRA", "LiRA, offline", "RMIA")
    return {
        "label-only": "sees labels alone, of each row and of noisy versions of it",
        "loss threshold": "a low loss is taken for a member's",
        "blind baseline": "never sees the model: what it finds, the rows tell by themselves",
        **dict.fromkeys(by_shadows, how),
    }
