"""`privet train`: from a table or pictures to a private model and a page that explains it."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import typer

from privet.cli import console
from privet.cli.numbers import WHOLE
from privet.cli.run import INTERRUPTED, TYPED
from privet.core.errors import InvalidInput

if TYPE_CHECKING:
    from privet.cli.training.asked import Asked
    from privet.cli.training.bill import Bill
    from privet.cli.training.folder import Workplace
    from privet.cli.training.inputs import Inputs
    from privet.cli.training.work import Finished
    from privet.core.guarantee import Guarantee
    from privet.training.recipe import Recipe

__all__ = ["train"]

_DATA, _PRIVACY, _MODEL, _RUN, _SCORES = "The data", "Privacy", "The model", "The run", "Scores"
_METHODS = "dp-sgd, output, objective, input"


def train(
    context: typer.Context,
    data: Annotated[
        str, typer.Argument(help="A CSV or Parquet file, an .npz of pictures, or digits, mnist, fashion-mnist, adult.")
    ] = "digits",
    target: Annotated[
        str | None, typer.Option(help="The column to predict.", metavar="COLUMN", rich_help_panel=_DATA)
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(help="What is public of the table (TOML); see: privet schema draft.", rich_help_panel=_DATA),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="A public test file of the same form: scores on it are free.", rich_help_panel=_DATA),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(envvar="PRIVET_DATA", help="Where named sets lie.", rich_help_panel=_DATA)
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Fetch a named set, and check it.", rich_help_panel=_DATA)
    ] = False,
    rows: Annotated[
        int | None,
        typer.Option(click_type=WHOLE, help="About how many rows there are, if that is public.", rich_help_panel=_DATA),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=KIND",
            help="Without a schema: a column is a number, category or identifier.",
            rich_help_panel=_DATA,
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Without a schema: whose each row is.", rich_help_panel=_DATA),
    ] = None,
    rows_per_user: Annotated[
        int | None,
        typer.Option(click_type=WHOLE, help="With --user: rows of each that are used.", rich_help_panel=_DATA),
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="For an .npz: all labels, with commas.", rich_help_panel=_DATA)
    ] = None,
    epsilon: Annotated[
        float, typer.Option(help="The ε of everything that is released, together.", rich_help_panel=_PRIVACY)
    ] = 1.0,
    delta: Annotated[
        float | None,
        typer.Option(help="The δ; if left out, the power of ten below 1/n for a public n.", rich_help_panel=_PRIVACY),
    ] = None,
    method: Annotated[str, typer.Option(help=f"How: {_METHODS}.", rich_help_panel=_PRIVACY)] = "dp-sgd",
    compare: Annotated[
        str | None,
        typer.Option(
            help="Further methods on the same split, with commas: each is charged; none is internal.",
            rich_help_panel=_PRIVACY,
        ),
    ] = None,
    tune: Annotated[
        float | None,
        typer.Option(
            metavar="K",
            help="Try about K settings (a random number of them) and release the best, by private selection.",
            rich_help_panel=_PRIVACY,
        ),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The budget that is charged; see: privet ledger.", rich_help_panel=_PRIVACY),
    ] = None,
    url: Annotated[
        str,
        typer.Option(envvar="PRIVET_LEDGER", metavar="FILE|URL", help="Where the ledger is.", rich_help_panel=_PRIVACY),
    ] = "privet-ledger.db",
    schema_share: Annotated[
        float,
        typer.Option(help="The part of ε and δ that learns a schema, if none is given.", rich_help_panel=_PRIVACY),
    ] = 0.1,
    model: Annotated[
        str,
        typer.Option(help="auto, linear, residual, convolutions, or module.py:factory.", rich_help_panel=_MODEL),
    ] = "auto",
    features: Annotated[
        str, typer.Option(help="Of pictures: auto, scattering or pixels.", rich_help_panel=_MODEL)
    ] = "auto",
    clip: Annotated[float | None, typer.Option(help="By a rule, if left out.", rich_help_panel=_MODEL)] = None,
    batch_size: Annotated[
        int | None, typer.Option(click_type=WHOLE, help="By a rule, if left out.", rich_help_panel=_MODEL)
    ] = None,
    epochs: Annotated[float | None, typer.Option(help="By a rule, if left out.", rich_help_panel=_MODEL)] = None,
    learning_rate: Annotated[float | None, typer.Option(help="By a rule, if left out.", rich_help_panel=_MODEL)] = None,
    hold_out: Annotated[
        float, typer.Option(help="The part of the rows to score on, without --test.", rich_help_panel=_SCORES)
    ] = 0.2,
    score_share: Annotated[
        float, typer.Option(help="The part of ε that a score on private rows costs; 0: none.", rich_help_panel=_SCORES)
    ] = 0.05,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; runs/NAME, if left out.", rich_help_panel=_RUN)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out, after a stop.", rich_help_panel=_RUN)
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask before several methods are paid for.", rich_help_panel=_RUN)
    ] = False,
    log: Annotated[
        list[str] | None,
        typer.Option(help="csv, tensorboard, or mlflow:EXPERIMENT; may be repeated.", rich_help_panel=_RUN),
    ] = None,
    log_internal: Annotated[
        bool,
        typer.Option(
            "--log-internal", help="Keep losses on private rows, too, in logs of their own.", rich_help_panel=_RUN
        ),
    ] = False,
    cache: Annotated[
        Path | None,
        typer.Option(help="Keep features of pictures here; they are as private as these.", rich_help_panel=_RUN),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="For tests alone: seeded noise protects nobody.", rich_help_panel=_RUN)
    ] = None,
) -> None:
    """Train a private model, and write a folder with the model, its card and a page that explains the guarantee.

    Nothing about the rows is used unpaid: bounds, values, classes and the number of rows come from a public schema; or
    a tenth of ε learns them. Scores are on a public test file, or are paid for.

    Digits, in a minute; a table with a schema, charged to a budget; MNIST; three methods side by side:

    privet train

    privet train patients.csv --target readmitted --schema patients.schema.toml --ledger clinic --out runs/readmission

    privet train mnist --data-dir data --features scattering --epsilon 1

    privet train adult --data-dir data --epsilon 1 --compare none,output,objective

    After Ctrl-C, or a crash; nothing is paid for twice:

    privet train --resume --out runs/readmission
    """
    from privet.cli.training.asked import Asked, FeaturesWord, MethodWord

    asked = Asked(
        data=data,
        target=target,
        schema=None if schema is None else str(schema),
        epsilon=epsilon,
        delta=delta,
        method=_word("method", method, MethodWord),
        compare=tuple(_word("compare", each, MethodWord) for each in _listed(compare)),
        tune=tune,
        model=model,
        features=_word("features", features, FeaturesWord),
        test=None if test is None else str(test),
        data_dir=None if data_dir is None else str(data_dir),
        download=download,
        rows=rows,
        user=user,
        rows_per_user=rows_per_user,
        kinds=tuple(_pair(each) for each in kind or ()),
        classes=_listed(classes),
        clip=clip,
        batch_size=batch_size,
        epochs=epochs,
        learning_rate=learning_rate,
        hold_out=hold_out,
        score_share=score_share,
        schema_share=schema_share,
        ledger=ledger,
        url=url,
        seed=seed,
        log=tuple(log or ()),
        log_internal=log_internal,
        cache=None if cache is None else str(cache),
    )
    _train(context, asked, out, resume=resume, yes=yes)


def _train(context: typer.Context, asked: Asked, out: Path | None, *, resume: bool, yes: bool) -> None:
    from privet.cli.training.folder import Workplace, place_for
    from privet.report import require_folder

    folder, ours = place_for(asked, out), False
    place = Workplace(folder)
    command = shlex.join(["privet", *context.meta[TYPED]])
    if resume:
        if out is None:
            raise InvalidInput("out", "is missing", "name the folder of the run that was stopped")
        typed = asked
        asked, command, _ = place.found()
        _require_same(context, typed, asked)
    else:
        if place.hidden.exists():
            problem = f"is {str(folder)!r}, where a run was stopped"
            raise InvalidInput("out", problem, "go on with --resume, or name another folder")
        ours = not folder.exists()
        require_folder(folder)
    with ExitStack() as unless_begun:
        unless_begun.callback(_tidy, place, ours=ours and not resume)
        try:
            done = _worked(asked, place, command, resume=resume, yes=yes)
            _write(folder, place, done)
        except KeyboardInterrupt:
            _stopped(folder, place)
            raise typer.Exit(INTERRUPTED) from None
    _show(folder, done)


def _tidy(place: Workplace, *, ours: bool) -> None:
    """Leave no folder behind in which nothing was begun."""
    if not place.begun:
        place.clear()
        if ours:
            with suppress(OSError):
                place.folder.rmdir()


def _worked(asked: Asked, place: Workplace, command: str, *, resume: bool, yes: bool) -> Finished:
    from privet.cli.training import bar
    from privet.cli.training.logs import logs_of
    from privet.cli.training.work import Work
    from privet.training.loggers import Logbook

    with ExitStack() as stack:
        logs = logs_of(asked.log, place.folder, resume=resume, internal=asked.log_internal)
        for each in logs:
            stack.callback(each.close)
        return Work(
            asked,
            place,
            command,
            resume,
            confirm=lambda asked, inputs, bill, guarantee: _confirm(asked, inputs, bill, guarantee, yes=yes),
            planned=_show_choices,
            tell=_tell,
            follow=lambda recipe, whose, scores: bar.shown(
                recipe, Logbook(recipe.plan, logs, whose=whose, scores=scores)
            ),
        ).done()


def _tell(text: str) -> None:
    """What is being done now, on a terminal."""
    if sys.stderr.isatty():
        click.echo(text, err=True)


def _confirm(asked: Asked, inputs: Inputs, bill: Bill, guarantee: Guarantee, *, yes: bool) -> None:
    """What the run will cost, before it is charged; several methods are asked about."""
    from privet.report.words import headline

    console.line(headline(guarantee), "bold")
    if len(bill.lines) > 1:
        console.bullets(tuple(what for what, _ in bill.lines))
    _show_choices(asked, inputs, bill, bill.recipe)
    if asked.seed is not None:
        console.line("The noise is seeded, and protects nobody: this is a test.", "bold red")
    if len(asked.private) > 1 and not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            problem = f"is needed: {len(asked.private)} methods are paid for together"
            raise InvalidInput("yes", problem, "look at the total above, and add --yes")
        if not click.confirm(f"{len(asked.private)} methods are paid for together. Go on?", err=True):
            raise InvalidInput("compare", "was not confirmed", "nothing was charged")


def _show_choices(asked: Asked, inputs: Inputs, bill: Bill, recipe: Recipe | None) -> None:
    from privet.cli.training.carded import choices

    chosen = choices(asked, inputs, bill, recipe)
    console.show_rows(("choice", "value", "why"), [(each.name, each.value, each.why) for each in chosen])


def _write(folder: Path, place: Workplace, done: Finished) -> None:
    from privet.cli.training.carded import card_of
    from privet.report import write_run
    from privet.training.models import store

    store(folder, done.model, done.described)
    with console.progress_bar("Writing the report …") as progress:
        write_run(folder, card_of(done), progress=progress)
    place.clear()


def _show(folder: Path, done: Finished) -> None:
    from privet.report.origin import rounded
    from privet.report.words import headline

    console.line()
    console.line(headline(done.guarantee), "bold green")
    rows = []
    for each in done.trained:
        paid = () if each.paid is None else (each.paid,)
        for score in (*each.public, *paid):
            value = rounded(score.value.value, score.value.share)
            rows.append((each.method.value, score.value.name, value, score.value.on))
    if rows:
        console.show_rows(("method", "score", "value", "on"), rows, right=("value",))
    console.line(f"{folder}/report.html may be shared; {folder}/internal.html must not.")
    data = "DATA" if Path(done.asked.data).exists() else done.asked.data
    console.line(f"privet predict {shlex.quote(str(folder))} {data}", "dim")


def _stopped(folder: Path, place: Workplace) -> None:
    where = shlex.quote(str(folder))
    if place.begun:
        click.echo(f"privet: stopped; what was drawn is paid for. Go on: privet train --resume --out {where}", err=True)
    else:
        click.echo("privet: stopped before anything was trained", err=True)


def _require_same(context: typer.Context, typed: Asked, stored: Asked) -> None:
    """What was typed beside --resume must be what the run was begun with."""
    from click.core import ParameterSource

    other = {"kind": "kinds"}
    for name in context.params:
        if name in ("out", "resume", "yes") or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        field = other.get(name, name)
        if getattr(typed, field) != getattr(stored, field):
            problem = "is not what the run was begun with"
            raise InvalidInput(name, problem, "leave it out: a run goes on as it was planned")


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _word(argument: str, text: str, kind: Any) -> Any:
    known = [each.value for each in kind]
    if text not in known:
        raise InvalidInput(argument, f"is {text!r}", f"use one of: {', '.join(known)}")
    return kind(text)


def _pair(text: str) -> tuple[str, str]:
    column, equals, kind = text.rpartition("=")
    if not equals or not column:
        raise InvalidInput("kind", f"is {text!r}", "write COLUMN=KIND, such as age=number")
    return column, kind
