"""`privet attack`: try to find out who was in the training data of a run, and say how far one got."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from privet.cli import console
from privet.cli.numbers import WHOLE
from privet.core import checked
from privet.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from privet.attacks.outcome import Outcome
    from privet.attacks.shadows import Shadows
    from privet.report.attack_records import Attacked
    from privet.runs.attacks.rows import AttackedRun

__all__ = ["attack"]

_ALARMS = (0.001, 0.01)
_HIDDEN = ".attack"
_DATA = "The rows it learned from, where they lie elsewhere now."
_OUTSIDERS = "Rows it never saw: a file, or a named set, whose test part is used; else the run's test or held-out rows."
_BUDGET = "Stop training shadow models after so many minutes."
_RATES = "Rates of false alarms, with commas; 0.001,0.01 if left out, as far as outsiders suffice."
_WHO, _HOW = "Who was in, and who was not", "How hard to try"


def attack(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    data: Annotated[str | None, typer.Option(metavar="FILE", help=_DATA, rich_help_panel=_WHO)] = None,
    outsiders: Annotated[str | None, typer.Option(metavar="FILE", help=_OUTSIDERS, rich_help_panel=_WHO)] = None,
    data_dir: Annotated[
        Path | None, typer.Option(envvar="PRIVET_DATA", help="Where named sets lie.", rich_help_panel=_WHO)
    ] = None,
    shadows: Annotated[
        int,
        typer.Option(
            click_type=WHOLE, help="Shadow models, an even number; 0: attacks without any.", rich_help_panel=_HOW
        ),
    ] = 16,
    like_run: Annotated[
        bool,
        typer.Option("--like-run", help="Train them by the run's own plan, with its noise.", rich_help_panel=_HOW),
    ] = False,
    budget_minutes: Annotated[float | None, typer.Option(metavar="M", help=_BUDGET, rich_help_panel=_HOW)] = None,
    alarms: Annotated[str | None, typer.Option(metavar="RATES", help=_RATES, rich_help_panel=_HOW)] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on after a stop, with the shadow models that were trained.")
    ] = False,
) -> None:
    """Attack the model of a run: which rows were in its training data?

    Members are the rows that it learned from, outsiders are others. Every attack is tried that the model's scores
    allow: labels alone, a threshold on the loss, and by shadow models the calibrated loss, a classifier, LiRA and RMIA;
    and a baseline that never sees the model. A model of pictures is inverted, too: what does it show of its classes?
    What comes out is about real rows, so it goes into internal.html alone.

    privet attack runs/readmission

    privet attack runs/readmission --shadows 64 --like-run --budget-minutes 30
    """
    from privet.cli.run import INTERRUPTED
    from privet.runs.attacks.outcomes import nonmembers_needed, usable_rates
    from privet.runs.attacks.rows import open_attacked_run

    rates = _rates(alarms)
    if shadows < 0 or shadows % 2:
        raise InvalidInput("shadows", f"is {shadows}", "take an even number, such as 16: each row is in half of them")
    if budget_minutes is not None:
        checked.positive("budget_minutes", budget_minutes)
    for name, given in (("like_run", like_run), ("budget_minutes", budget_minutes is not None)):
        if given and not shadows:
            raise InvalidInput(name, "is for shadow models, and --shadows is 0", "leave one of them out")
    if not run.is_dir():
        raise InvalidInput("run", f"is {str(run)!r}, which is no folder", "name a folder that `privet train` wrote")
    with console.waiting("Reading the run and its rows …"):
        found = open_attacked_run(run, data, outsiders, data_dir)
    count = int((~found.pool.inside).sum())
    within = usable_rates(rates, count)
    if alarms is not None and len(within) < len(rates):
        least = min(rates)
        problem = f"asks for {least:g}, and there are {count:,} outsiders"
        raise InvalidInput(
            "alarms", problem, f"it takes {nonmembers_needed(least):,} of them or more: give more --outsiders"
        )
    _require_numbers(found)
    try:
        models = _shadows(found, run, shadows, like_run, budget_minutes, resume=resume) if shadows else None
    except KeyboardInterrupt:
        options = {"data": data, "outsiders": outsiders, "data-dir": data_dir, "shadows": shadows}
        again = _again(run, options | {"budget-minutes": budget_minutes, "alarms": alarms}, like_run=like_run)
        click.echo(f"privet: stopped; shadow models that are done are kept. Go on with: {again}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    _attack(run, found, models, rates, within, like_run=like_run)
    if models is not None and models.models < shadows:
        console.line(f"Time was up after {models.models} of {shadows} shadow models (--budget-minutes).", "yellow")


def _attack(
    run: Path,
    found: AttackedRun,
    models: Shadows | None,
    rates: tuple[float, ...],
    within: tuple[float, ...],
    *,
    like_run: bool,
) -> None:
    """All attacks, the page, and what they came to; `within` are the rates for which there are outsiders enough."""
    from privet.report import Internal, write_internal
    from privet.report.words import listed
    from privet.runs.attacks.image_attacks import invert_classes
    from privet.runs.attacks.outcomes import above_limit, guarantee_limit, nonmembers_needed, summarize_attack

    with console.waiting("Attacking …"):
        outcomes = _outcomes(found, models)
        made = summarize_attack(
            outcomes, within, shadows=0 if models is None else models.models, notes=_notes(like_run)
        )
        limit = guarantee_limit(found.card)
        exceeding = above_limit(outcomes, limit)
    with console.waiting("Inverting the model …"):
        picture, why = invert_classes(found)
    pictures = () if picture is None else (Internal(picture),)
    with console.progress_bar("Writing the report …") as progress:
        card = replace(found.card, attacks=tuple(map(Internal, made)), pictures=pictures)
        write_internal(run, card, progress=progress)
    if models is not None:
        _clear(run)
    _show(found, made, [(rate, limit(rate)) for rate in within])
    missing = [rate for rate in rates if rate not in within]
    if missing:
        told = listed([f"{100 * rate:g} % (it takes {nonmembers_needed(rate):,})" for rate in missing])
        console.line(f"There are too few outsiders for false alarms of {told}.", "dim")
    if why:
        console.line(why, "dim")
    _conclude(run, found, made, exceeding)
    console.line(f"{run}/internal.html has the curves; it must not be shared. {run}/report.html is as it was.")


def _rates(text: str | None) -> tuple[float, ...]:
    if text is None:
        return _ALARMS
    try:
        found = tuple(sorted({float(part) for part in text.split(",") if part.strip()}))
    except ValueError:
        found = ()
    if not found or not all(0 < rate < 1 for rate in found):
        raise InvalidInput("alarms", f"is {text!r}", "give rates between 0 and 1, with commas: 0.001,0.01")
    return found


def _again(run: Path, options: Mapping[str, object], *, like_run: bool) -> str:
    """The command that goes on with this attack."""
    given = [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    return shlex.join(["privet", "attack", str(run), *given, *(["--like-run"] if like_run else []), "--resume"])


def _require_numbers(found: AttackedRun) -> None:
    """Before shadow models are trained, which would be for nothing."""
    from privet.attacks.target import target

    if not bool(target(found.head, found.classes).scores(found.pool.inputs).isfinite().all()):
        raise InvalidInput("run", "has a model whose scores are NaN or infinite", "find out why, and train it again")


def _shadows(
    found: AttackedRun, run: Path, models: int, like_run: bool, minutes: float | None, *, resume: bool
) -> Shadows:
    from privet.runs.attacks.shadow_models import (
        ShadowCheckpoint,
        plain_learner,
        same_plan_learner,
        train_shadow_models,
    )

    make = same_plan_learner if like_run else plain_learner
    make(found, "privet")  # says what is wrong, before anything is trained
    with console.progress_bar("Training shadow models …") as progress:
        return train_shadow_models(
            lambda key: make(found, key),
            found.pool,
            found.classes,
            models=models,
            kept=ShadowCheckpoint(run / _HIDDEN),
            resume=resume,
            kind="by the run's plan" if like_run else "plain",
            minutes=minutes,
            progress=progress,
        )


def _outcomes(found: AttackedRun, models: Shadows | None) -> list[Outcome]:
    """Every attack, the baseline that never sees the model last."""
    from privet.attacks.blind import blind
    from privet.attacks.membership import membership
    from privet.attacks.target import target

    return [*membership(target(found.head, found.classes), found.pool, models), blind(found.pool)]


def _notes(like_run: bool) -> dict[str, str]:
    how = "shadow models by the run's own plan" if like_run else "shadow models without privacy"
    by_shadows = ("calibrated loss", "shadow classifier", "LiRA", "LiRA, offline", "RMIA")
    return {
        "label-only": "sees labels alone, of each row and of noisy versions of it",
        "loss threshold": "a low loss is taken for a member's",
        "blind baseline": "never sees the model: what it finds, the rows tell by themselves",
        **dict.fromkeys(by_shadows, how),
    }


def _clear(run: Path) -> None:
    from privet.runs.attacks.shadow_models import ShadowCheckpoint

    ShadowCheckpoint(run / _HIDDEN).clear()


def _show(found: AttackedRun, made: Sequence[Attacked], limits: Sequence[tuple[float, float]]) -> None:
    from privet.report.shown import attack_rows
    from privet.report.words import headline, percent

    console.line(headline(found.card.privacy.guarantee.value), "bold green")
    console.line("INTERNAL: scored on real members; do not share.", "bold red")
    head, rows = attack_rows(made)
    limit = ("limit of the guarantee", *(f"at most {percent(tpr)}" for _, tpr in limits), "–")
    console.show_rows(head, [*rows, limit], right=head[1:])
    members, others = made[0].members, made[0].outsiders
    console.line(f"{members:,} members; {others:,} outsiders: {found.outside}.", "dim")
    inside, outer = found.left_out
    if inside or outer:
        told = f"{inside:,} members and {outer:,} outsiders were left out"
        console.line(f"{told}: other rows have the same values, so that the model cannot tell them apart.", "dim")
    if found.unknown:
        console.line(f"{found.unknown:,} outsiders were left out: their label is none of the run's classes.", "dim")


def _conclude(run: Path, found: AttackedRun, made: Sequence[Attacked], exceeding: Sequence[str]) -> None:
    """What follows; where the rows tell by themselves who was in, a curve above the limit is no reason for an audit."""
    from privet.report.figures.attacked import differing
    from privet.report.words import listed

    differ = differing(made)
    if differ:
        console.line(differ, "bold yellow")
    if not exceeding:
        console.line("No lower confidence bound lies above the limit of the guarantee.", "green")
    elif differ:
        console.line(f"That {listed(exceeding)} found more than the guarantee allows may come from that.", "yellow")
    else:
        told = (
            f"{listed(exceeding)} found more than the guarantee allows, beyond chance if rows were independent trials."
        )
        audit = f"privet audit {shlex.quote(str(run))}" if found.card.canaries else "privet train … --audit"
        console.line(f"{told} Look closer: audit the run with canaries ({audit}).", "bold red")
