"""Run a training request from the command line: parse it, show its plan and its cost, run it, and show the result."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import typer
from click.core import ParameterSource

from privet.cli import console
from privet.cli.exit_codes import FAILED, INTERRUPTED, TYPED
from privet.cli.options import require_budget
from privet.core import InvalidInput

if TYPE_CHECKING:
    from privet.report import TrainingCard
    from privet.runs import PlannedRun, RunDirectory, TrainRequest

__all__ = ["parse_request", "run_training"]

_NOT_OF_THE_RUN = ("out", "resume", "yes", "people_key")
_FIELDS = {"kind": "kinds"}
"""Options whose field of the request has another name."""


def parse_request(typed: Mapping[str, Any], fixed: Mapping[str, Any] | None = None) -> TrainRequest:
    """Return the request that the parameters of a command stand for.

    Args:
        typed: The parameters by name; those that say where and how it runs are left out.
        fixed: What the command itself says.
    """
    from privet.runs import TrainRequest

    given = {name: value for name, value in typed.items() if name not in _NOT_OF_THE_RUN and value is not None}
    values = {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}
    for name in {"compare", "classes"} & set(values):
        values[name] = _listed(values[name])
    if "kind" in values:
        values["kinds"] = tuple(map(_pair, values.pop("kind")))
    return TrainRequest.of({**values, **(fixed or {})})


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def _pair(text: str) -> tuple[str, str]:
    column, equals, kind = text.rpartition("=")
    if not equals or not column:
        raise InvalidInput("kind", f"is {text!r}", "write COLUMN=KIND, such as age=number")
    return column, kind


def run_training(context: typer.Context, request: TrainRequest, out: Path | None, *, resume: bool, yes: bool) -> None:
    """Run a request, or resume the run in `out`, and show what comes of it.

    Args:
        context: Of the command, which knows what was typed.
        request: What was typed.
        out: The run's folder; None for the first free one below `runs`.
        resume: Whether to resume the run there.
        yes: Whether several methods are paid for without a question.
    """
    from privet.cli import training_bar
    from privet.runs import RunCallbacks, TrainingRun, default_directory, write_outputs

    if resume and out is None:
        raise InvalidInput("out", "is missing", "name the folder of the run that was stopped")
    folder = default_directory(request.data or "silos", out)
    with _started(context, request, folder, resume=resume) as (directory, request, command):
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


@contextmanager
def _started(
    context: typer.Context, request: TrainRequest, folder: Path, *, resume: bool
) -> Iterator[tuple[RunDirectory, TrainRequest, str]]:
    """Give the run's directory, the request and the command; Ctrl-C inside says how to resume."""
    from privet.runs import hold_directory

    command = shlex.join(["privet", *context.meta[TYPED]])
    require_budget(request.budget, request.ledger)
    with hold_directory(folder, resume=resume) as directory, warnings.catch_warnings():
        if resume:
            interrupted = directory.read_interrupted()
            _require_same(context, request, interrupted.request)
            request, command = interrupted.request, interrupted.command
        # Of a large δ the plan and the page tell, in words.
        warnings.filterwarnings("ignore", message="delta is", category=UserWarning)
        try:
            yield directory, request, command
        except KeyboardInterrupt:
            _tell_interrupted(context, folder, directory.unfinished)
            raise typer.Exit(INTERRUPTED) from None


def _tell_interrupted(context: typer.Context, folder: Path, unfinished: bool) -> None:
    if unfinished:
        again = f"{context.command_path} --resume --out {shlex.quote(str(folder))}"
        click.echo(f"privet: stopped; what was drawn is paid for. Go on: {again}", err=True)
    else:
        click.echo("privet: stopped before anything was trained", err=True)


def _require_same(context: typer.Context, typed: TrainRequest, stored: TrainRequest) -> None:
    """What was typed beside --resume must be what the run was begun with."""
    now, before = typed.values(), stored.values()
    for name in context.params:
        if name in _NOT_OF_THE_RUN or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        field = _FIELDS.get(name, name)
        if now[field] != before.get(field):
            problem = "is not what the run was begun with"
            raise InvalidInput(name, problem, "leave it out: a run goes on as it was planned")


def _tell(text: str) -> None:
    """What is being done now, on a terminal."""
    if sys.stderr.isatty():
        click.echo(text, err=True)


def _confirm(planned: PlannedRun, *, yes: bool) -> None:
    """Show what the run will cost, before it is charged; several methods are asked about."""
    from privet.report import guarantee_warnings, headline
    from privet.runs import score_advice

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
    console.bullets(tuple(f"Warning: {warning}." for warning in warnings), "yellow")
    if request.seed is not None:
        console.line("The noise is seeded, and protects nobody: this is a test.", "bold red")
    methods = len(request.private_methods)
    if methods > 1 and not yes:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            problem = f"is needed: {methods} methods are paid for together"
            raise InvalidInput("yes", problem, "look at the total above, and add --yes")
        if not click.confirm(f"{methods} methods are paid for together. Continue?", err=True):
            raise InvalidInput("compare", "was not confirmed", "nothing was charged")


def _show_choices(planned: PlannedRun) -> None:
    rows = [(choice.name, choice.value, choice.why) for choice in planned.choices]
    console.show_rows(("choice", "value", "why"), rows)


def _show(folder: Path, request: TrainRequest, card: TrainingCard) -> None:
    """The guarantee, and the scores that may be shared."""
    from privet.report import INTERVALS, format_score, headline, shareable, short_interval, up, worst_verdict

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
    console.bullets(tuple(card.privacy.notes.value[:1]) if card.teachers is not None else ())
    for finding in (each.value for each in shared.findings):
        what = f"{finding.what[:1].upper()}{finding.what[1:]}"
        console.line(f"{what}: ε ≤ {up(finding.epsilon)}, but for a chance of {finding.failure:g}.")
        if finding.epsilon >= guarantee.epsilon.upper:
            console.line("That is no less than the guarantee, which is the better statement.", "yellow")
    further = "".join(f" and {name}" for name in ("answers.csv",) if (folder / name).exists())
    console.line(f"{folder}/report.html{further} may be shared; {folder}/internal.html must not.")
    data = "DATA" if not request.data or Path(request.data).exists() else request.data
    console.line(f"privet predict {shlex.quote(str(folder))} {data}", "dim")


def _show_evidence(card: TrainingCard) -> None:
    """What canaries prove; red where it refutes the guarantee, and the command fails; yellow where it would if what it
    assumes holds."""
    from privet.report import down, evidence_warnings, powerless_canaries, up, verdict_of

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
