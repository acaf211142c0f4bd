"""`privet attack`: try to find out who was in the training data of a run, and say how far one got."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from privet.cli import console
from privet.cli.numbers import WHOLE
from privet.core import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

    from privet.runs import AttackResult

__all__ = ["attack"]

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
    from privet.cli.exit_codes import INTERRUPTED
    from privet.runs import attack_run

    rates = _rates(alarms)
    try:
        with console.progress_bar("Attacking …") as progress:
            result = attack_run(
                run,
                data=data,
                outsiders=outsiders,
                data_dir=data_dir,
                shadows=shadows,
                like_run=like_run,
                budget_minutes=budget_minutes,
                rates=rates,
                resume=resume,
                on_progress=progress,
            )
    except KeyboardInterrupt:
        options = {"data": data, "outsiders": outsiders, "data-dir": data_dir, "shadows": shadows}
        again = _again(run, options | {"budget-minutes": budget_minutes, "alarms": alarms}, like_run=like_run)
        click.echo(f"privet: stopped; shadow models that are done are kept. Go on with: {again}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    _show(run, result)
    if result.shadow_models < shadows:
        console.line(
            f"Time was up after {result.shadow_models} of {shadows} shadow models (--budget-minutes).", "yellow"
        )


def _rates(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        rates = tuple(sorted({float(part) for part in text.split(",") if part.strip()}))
    except ValueError:
        rates = ()
    if not rates or not all(0 < rate < 1 for rate in rates):
        raise InvalidInput("alarms", f"is {text!r}", "give rates between 0 and 1, with commas: 0.001,0.01")
    return rates


def _again(run: Path, options: Mapping[str, object], *, like_run: bool) -> str:
    """The command that goes on with this attack."""
    given = [word for name, value in options.items() if value is not None for word in (f"--{name}", str(value))]
    return shlex.join(["privet", "attack", str(run), *given, *(["--like-run"] if like_run else []), "--resume"])


def _show(run: Path, result: AttackResult) -> None:
    from privet.report import attack_table, headline, listed, percent
    from privet.runs import nonmembers_needed

    console.line(headline(result.guarantee), "bold green")
    console.line("INTERNAL: scored on real members; do not share.", "bold red")
    table = attack_table(result.attacks)
    limit = ("limit of the guarantee", *(f"at most {percent(tpr)}" for _, tpr in result.limits), "–")
    console.show_rows(table.head, [*table.rows, limit], right=table.head[1:])
    members, others = result.attacks[0].members, result.attacks[0].outsiders
    console.line(f"{members:,} members; {others:,} outsiders: {result.outsiders}.", "dim")
    inside, outer = result.left_out
    if inside or outer:
        told = f"{inside:,} members and {outer:,} outsiders were left out"
        console.line(f"{told}: other rows have the same values, so that the model cannot tell them apart.", "dim")
    if result.unknown:
        console.line(f"{result.unknown:,} outsiders were left out: their label is none of the run's classes.", "dim")
    if result.unusable_rates:
        rates = [f"{100 * rate:g} % (it takes {nonmembers_needed(rate):,})" for rate in result.unusable_rates]
        console.line(f"There are too few outsiders for false alarms of {listed(rates)}.", "dim")
    if result.inversion_note:
        console.line(result.inversion_note, "dim")
    _conclude(run, result)
    console.line(f"{run}/internal.html has the curves; it must not be shared. {run}/report.html is as it was.")


def _conclude(run: Path, result: AttackResult) -> None:
    """What follows; where the rows tell by themselves who was in, a curve above the limit is no reason for an audit."""
    from privet.report import listed
    from privet.report.figures import baseline_warning

    differ = baseline_warning(result.attacks)
    if differ:
        console.line(differ, "bold yellow")
    if not result.exceeding:
        console.line("No lower confidence bound lies above the limit of the guarantee.", "green")
    elif differ:
        console.line(
            f"That {listed(result.exceeding)} found more than the guarantee allows may come from that.", "yellow"
        )
    else:
        told = f"{listed(result.exceeding)} found more than the guarantee allows"
        audit = f"privet audit {shlex.quote(str(run))}" if result.has_canaries else "privet train … --audit"
        console.line(
            f"{told}, beyond chance if rows were independent trials. "
            f"Look closer: audit the run with canaries ({audit}).",
            "bold red",
        )
