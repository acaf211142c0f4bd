"""`privet train`: from a table or pictures to a private model and a page that explains it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import typer

from privet.cli import console
from privet.cli import train_options as options
from privet.cli.options import DEFAULT_LEDGER, Budget, LedgerLocation
from privet.core.errors import InvalidInput

if TYPE_CHECKING:
    from privet.report import TrainingCard
    from privet.runs.callbacks import PlannedRun
    from privet.runs.request import TrainRequest

__all__ = ["train"]


def train(
    context: typer.Context,
    data: options.Data = "digits",
    target: options.Target = None,
    schema: options.Schema = None,
    test: options.Test = None,
    data_dir: options.DataDir = None,
    download: options.Download = False,
    rows: options.Rows = None,
    kind: options.Kind = None,
    user: options.User = None,
    rows_per_user: options.RowsPerUser = None,
    classes: options.Classes = None,
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = None,
    method: options.Method = "dp-sgd",
    compare: options.Compare = None,
    tune: options.Tune = None,
    budget: Budget = None,
    ledger: LedgerLocation = DEFAULT_LEDGER,
    schema_share: options.SchemaShare = 0.1,
    model: options.Model = "auto",
    features: options.Features = "auto",
    clip: options.Clip = None,
    batch_size: options.BatchSize = None,
    epochs: options.Epochs = None,
    learning_rate: options.LearningRate = None,
    hold_out: options.HoldOut = 0.2,
    score_share: options.ScoreShare = 0.05,
    audit: options.Audit = False,
    canaries: options.Canaries = 1000,
    out: options.Out = None,
    resume: options.Resume = False,
    yes: options.Yes = False,
    log: options.Log = None,
    log_internal: options.LogInternal = False,
    cache: options.Cache = None,
    seed: options.Seed = None,
) -> None:
    """Train a private model, and write a folder with the model, its card and a page that explains the guarantee.

    Nothing about the rows is used unpaid: bounds, values, classes and the number of rows come from a public schema; or
    a tenth of ε learns them. Scores are on a public test file, or are paid for.

    Digits, in a minute; a table with a schema, charged to a budget; MNIST; three methods side by side:

    privet train

    privet train patients.csv --target readmitted --schema patients.schema.toml --budget clinic --out runs/readmission

    privet train mnist --data-dir data --features scattering --epsilon 1

    privet train adult --data-dir data --epsilon 1 --compare none,output,objective

    With canaries, so that anybody can check the guarantee; see: privet audit RUN

    privet train digits --epsilon 4 --audit

    After Ctrl-C, or a crash; nothing is paid for twice:

    privet train --resume --out runs/readmission
    """
    from privet.cli.train_parse import asked_of

    _train(context, asked_of(context.params), out, resume=resume, yes=yes)


def _train(context: typer.Context, request: TrainRequest, out: Path | None, *, resume: bool, yes: bool) -> None:
    from privet.cli import training_bar
    from privet.cli.run_start import started
    from privet.runs.callbacks import RunCallbacks
    from privet.runs.directory import default_directory
    from privet.runs.outputs import write_outputs
    from privet.runs.pipeline import TrainingRun
    from privet.runs.request import TrainRequest

    if resume and out is None:
        raise InvalidInput("out", "is missing", "name the folder of the run that was stopped")
    folder = default_directory(request.data, out)
    with started(context, request, folder, TrainRequest.from_json, resume=resume, fields={"kind": "kinds"}) as begun:
        directory, request, command = begun
        with training_bar.bar() as on_step:
            callbacks = RunCallbacks(
                on_message=_tell,
                on_plan=lambda planned: _confirm(planned, yes=yes),
                on_completed_plan=_show_choices,
                on_step=on_step,
            )
            result = TrainingRun(request, directory, command, resume, callbacks).execute()
        with console.progress_bar("Writing the report …") as progress:
            card = write_outputs(directory, result, progress)
    _show(folder, request, card)


def _tell(text: str) -> None:
    """What is being done now, on a terminal."""
    if sys.stderr.isatty():
        click.echo(text, err=True)


def _confirm(planned: PlannedRun, *, yes: bool) -> None:
    """Show what the run will cost, before it is charged; several methods are asked about."""
    from privet.report.account import guarantee_warnings
    from privet.report.words import headline
    from privet.runs.scoring import score_advice

    request, facts, plan = planned.request, planned.facts, planned.plan
    console.line(headline(planned.guarantee), "bold")
    if len(plan.lines) > 1:
        console.bullets(tuple(what for what, _ in plan.lines))
    _show_choices(planned)
    if plan.scoring is not None and (
        advice := score_advice(plan.scoring, facts.rows, request.hold_out, needed=plan.tuning is not None)
    ):
        console.line(advice, "yellow")
    warnings = guarantee_warnings(planned.guarantee, facts.rows)
    console.bullets(tuple(f"Beware: {warning}." for warning in warnings), "yellow")
    if request.seed is not None:
        console.line("The noise is seeded, and protects nobody: this is a test.", "bold red")
    methods = len(request.private_methods)
    if methods > 1 and not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            problem = f"is needed: {methods} methods are paid for together"
            raise InvalidInput("yes", problem, "look at the total above, and add --yes")
        if not click.confirm(f"{methods} methods are paid for together. Go on?", err=True):
            raise InvalidInput("compare", "was not confirmed", "nothing was charged")


def _show_choices(planned: PlannedRun) -> None:
    rows = [(choice.name, choice.value, choice.why) for choice in planned.choices]
    console.show_rows(("choice", "value", "why"), rows)


def _show(folder: Path, request: TrainRequest, card: TrainingCard) -> None:
    """The guarantee, and the scores that may be shared."""
    from privet.report import shareable
    from privet.report.origin import INTERVALS, format_score, short_interval
    from privet.report.verdict import worst_verdict
    from privet.report.words import headline

    shared = shareable(card)
    others = [each.value for each in shared.compared if each.value.method != shared.method.value]
    scores = [(shared.method.value, each.value) for each in shared.scores]
    scores += [(each.method, each.score) for each in others]
    console.line()
    guarantee = card.privacy.guarantee.value
    console.line(headline(guarantee), worst_verdict([each.value for each in shared.evidence], guarantee).style)
    if scores:
        rows = [
            (name, each.name, format_score(each.value, each.share), short_interval(each), each.on)
            for name, each in scores
        ]
        console.show_rows(("method", "score", "value", "interval", "on"), rows, right=("value",))
        console.line(INTERVALS, "dim")
    if shared.evidence:
        _show_evidence(card)
    console.line(f"{folder}/report.html may be shared; {folder}/internal.html must not.")
    data = "DATA" if Path(request.data).exists() else request.data
    console.line(f"privet predict {shlex.quote(str(folder))} {data}", "dim")


def _show_evidence(card: TrainingCard) -> None:
    """What canaries prove; red where it refutes the guarantee, and the command fails; yellow where it would if what it
    assumes holds."""
    from privet.cli.run import FAILED
    from privet.report.verdict import evidence_warnings, powerless_canaries, verdict_of
    from privet.report.words import down, up

    guarantee = card.privacy.guarantee.value
    rows = [
        (
            each.value.attack,
            down(each.value.epsilon),
            up(guarantee.epsilon.upper),
            f"{100 * each.value.confidence:g} %",
            "REFUTED" if each.value.refutes(guarantee) else verdict_of(each.value, guarantee).value,
        )
        for each in card.evidence
    ]
    head = ("evidence", "ε at least", "ε at most", "confidence", "the guarantee")
    console.show_rows(head, rows, right=head[1:4])
    found = [each.value for each in card.evidence]
    for told in powerless_canaries([each.value for each in card.canaries], found):
        console.line(told, "dim")
    for told in evidence_warnings(found, guarantee):
        console.line(told, "bold yellow")
    if any(each.value.refutes(guarantee) for each in card.evidence):
        console.line("Evidence lies above the guarantee: what was done is not what was priced.", "bold red")
        raise typer.Exit(FAILED)
