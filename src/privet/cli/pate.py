"""`privet pate`: teachers vote with noise, and a student learns from public rows and what they answered."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import typer

from privet.cli import console
from privet.cli import pate_options as own
from privet.cli import train_options as options
from privet.cli.options import DEFAULT_LEDGER, Budget, LedgerLocation
from privet.cli.taught import TaughtCommand, TaughtGroup
from privet.cli.teach import help_of
from privet.core.errors import InvalidInput

if TYPE_CHECKING:
    from privet.core.guarantee import Guarantee
    from privet.report import TrainingCard
    from privet.runs.pate.inputs import PateInputs
    from privet.runs.pate.plan import PatePlan
    from privet.runs.pate.request import PateRequest

__all__ = ["about", "aggregate", "pate", "run", "vote"]

_LEAST_KEY = 16


class _Pate(TaughtGroup):
    """Whatever is typed first and names no command is the data of a run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        helps = [*self.get_help_option_names(ctx)]
        if args and args[0] not in self.commands and args[0] not in helps:
            args = ["run", *args]
        return super().parse_args(ctx, args)


pate = typer.Typer(cls=_Pate, no_args_is_help=True)


def about() -> None:
    """Teachers learn from private rows, each from its own; they vote on public rows; noise is added to the votes; and a
    student, which may be published, learns from the answers.

    All rows in one place; a named set. What a run can be told is in the help of: pate run

    privet pate train.csv --public public.csv --target readmitted --teachers 250 --epsilon 1

    privet pate mnist --data-dir data --teachers 250

    Rows in several places, each with a teacher of its own; the centre sees votes, and no rows:

    privet pate vote hospital-a.csv --public public.csv --schema patients.schema.toml --out a.votes

    privet pate aggregate a.votes b.votes c.votes --public public.csv --schema patients.schema.toml --epsilon 1
    """


def run(
    context: typer.Context,
    data: own.Data = "",
    public: own.Public = None,
    target: own.Target = None,
    schema: options.Schema = None,
    test: options.Test = None,
    user: own.User = None,
    classes: own.Classes = None,
    data_dir: options.DataDir = None,
    download: options.Download = False,
    rows: options.Rows = None,
    teachers: own.Teachers = 250,
    teacher: own.TeacherKind = "ridge",
    student: own.StudentKind = "auto",
    epsilon: own.Epsilon = None,
    delta: options.Delta = None,
    questions: own.Questions = None,
    answers: own.Answers = None,
    noise: own.Noise = None,
    threshold: own.Threshold = None,
    threshold_noise: own.ThresholdNoise = None,
    sanitise: own.Sanitise = False,
    budget: Budget = None,
    ledger: LedgerLocation = DEFAULT_LEDGER,
    hold_out: own.HoldOut = 0.1,
    score_share: own.ScoreShare = 0.05,
    beside: own.Beside = None,
    out: own.Out = None,
    resume: options.Resume = False,
    jobs: own.Jobs = 1,
    ray: own.RayAddress = None,
    cache: options.Cache = None,
    seed: options.Seed = None,
) -> None:
    """Train teachers on private rows, ask them about public ones, and train a student on the answers.

    Every question is paid for, answered or not; how many there are is fixed before any vote is seen. Without a schema,
    bounds and values are read from the public file, which is free.

    privet pate run train.csv --public public.csv --target readmitted --teachers 250 --epsilon 1

    privet pate run mnist --data-dir data --questions 600 --noise 40 --threshold 200 --threshold-noise 150
    """
    from privet.runs.pate.request import parse_pate_request

    if not data and not resume:
        raise InvalidInput("data", "is missing", "name a file of private rows, or digits, mnist, adult")
    _done(context, parse_pate_request(_given(context)), out, resume=resume)


def vote(
    context: typer.Context,
    data: own.Silo,
    public: own.PublicFile,
    schema: options.Schema = None,
    target: own.Target = None,
    user: own.User = None,
    classes: own.Classes = None,
    teachers: own.Teachers = 1,
    teacher: own.TeacherKind = "ridge",
    people_key: own.PeopleKey = None,
    out: own.VotesOut = None,
    jobs: own.Jobs = 1,
    cache: options.Cache = None,
) -> None:
    """At a silo: train its teachers on its rows, and write their votes on all public rows.

    The file holds what single teachers say: it is as private as the rows, and for the centre alone. No noise is in it.

    privet pate vote hospital-a.csv --public public.csv --schema patients.schema.toml --out a.votes
    """
    from privet.runs.pate.request import parse_pate_request

    given = _given(context)
    given.pop("people_key", None)
    _vote(parse_pate_request(given), people_key, out)


def aggregate(
    context: typer.Context,
    votes: own.VotesFiles = None,
    public: own.Public = None,
    schema: options.Schema = None,
    target: own.Target = None,
    test: options.Test = None,
    user: own.User = None,
    classes: own.Classes = None,
    rows: options.Rows = None,
    student: own.StudentKind = "auto",
    epsilon: own.Epsilon = None,
    delta: options.Delta = None,
    questions: own.Questions = None,
    answers: own.Answers = None,
    noise: own.Noise = None,
    threshold: own.Threshold = None,
    threshold_noise: own.ThresholdNoise = None,
    sanitise: own.Sanitise = False,
    budget: Budget = None,
    ledger: LedgerLocation = DEFAULT_LEDGER,
    beside: own.Beside = None,
    out: own.Out = None,
    resume: options.Resume = False,
    cache: options.Cache = None,
    seed: options.Seed = None,
) -> None:
    """At the centre: add noise to the silos' votes, release the answers, and train a student on them.

    The centre is trusted with raw votes. Each person's records must be in one silo.

    privet pate aggregate a.votes b.votes c.votes --public public.csv --schema patients.schema.toml --epsilon 1
    """
    from privet.runs.pate.request import parse_pate_request

    if not votes and not resume:
        raise InvalidInput("votes", "are missing", "name the files that silos wrote with: privet pate vote")
    _done(context, parse_pate_request(_given(context)), out, resume=resume)


def _given(context: typer.Context) -> dict[str, object]:
    return {name: value for name, value in context.params.items() if value is not None or name == "epsilon"}


def _done(context: typer.Context, wanted: PateRequest, out: Path | None, *, resume: bool) -> None:
    from privet.cli.run_start import started
    from privet.runs.directory import default_directory
    from privet.runs.pate.pipeline import PateRun
    from privet.runs.pate.request import PateRequest
    from privet.runs.pate.training import write_pate_outputs

    if resume and out is None:
        raise InvalidInput("out", "is missing", "name the folder of the run that was stopped")
    folder = default_directory(wanted.data or "silos", out)
    with started(context, wanted, folder, PateRequest.from_json, resume=resume) as begun:
        place, wanted, command = begun
        result = PateRun(wanted, place, command, resume, confirm=_show_plan, tell=_tell).done()
        with console.progress_bar("Writing the report …") as progress:
            card = write_pate_outputs(place, result, progress)
    _show(folder, wanted, card)


def _tell(text: str) -> None:
    """What is being done now, on a terminal."""
    if sys.stderr.isatty():
        click.echo(text, err=True)


def _show_plan(wanted: PateRequest, inputs: PateInputs, bill: PatePlan, guarantee: Guarantee) -> None:
    from privet.report.account import guarantee_warnings
    from privet.report.words import headline
    from privet.runs.pate.card_builder import pate_choices
    from privet.runs.scoring import score_advice

    console.line(headline(guarantee), "bold")
    if len(bill.lines) > 1:
        console.bullets(tuple(what for what, _ in bill.lines))
    console.show_rows(("choice", "value", "why"), [(each.name, each.value, each.why) for each in pate_choices(bill)])
    if bill.scoring is not None and (advice := score_advice(bill.scoring, inputs.rows, wanted.hold_out)):
        console.line(advice, "yellow")
    console.bullets(tuple(f"Beware: {each}." for each in guarantee_warnings(guarantee, inputs.rows)), "yellow")
    if wanted.seed is not None:
        console.line("The noise is seeded, and protects nobody: this is a test.", "bold red")


def _show(folder: Path, wanted: PateRequest, card: TrainingCard) -> None:
    from privet.report import shareable
    from privet.report.origin import INTERVALS, format_score, short_interval
    from privet.report.words import headline, up

    shared = shareable(card)
    console.line()
    console.line(headline(card.privacy.guarantee.value), "bold green")
    scores = [each.value for each in shared.scores]
    if scores:
        rows = [(each.name, format_score(each.value, each.share), short_interval(each), each.on) for each in scores]
        console.show_rows(("score", "value", "interval", "on"), rows, right=("value",))
        console.line(INTERVALS, "dim")
    console.bullets(tuple(card.privacy.notes.value[:1]))
    for found in (each.value for each in shared.findings):
        console.line(
            f"{found.what[:1].upper()}{found.what[1:]}: ε ≤ {up(found.epsilon)}, but for a chance of {found.failure:g}."
        )
        if found.epsilon >= card.privacy.guarantee.value.epsilon.upper:
            console.line("That is no less than the guarantee, which is the better statement.", "yellow")
    console.line(f"{folder}/report.html and answers.csv may be shared; {folder}/internal.html must not.")
    data = wanted.data if wanted.data and not Path(wanted.data).exists() else "DATA"
    console.line(f"privet predict {shlex.quote(str(folder))} {data}", "dim")


def _vote(wanted: PateRequest, people_key: Path | None, out: Path | None) -> None:
    import tempfile

    from privet.data import Table
    from privet.runs.pate.inputs import PateInputs, cached_features
    from privet.runs.pate.teachers import public_digest, teacher_votes
    from privet.runs.pate.vote_file import VoteFile, key_hash, people_hashes, silo_name
    from privet.runs.payment import rows_digest

    place = Path(wanted.data).with_suffix(".votes") if out is None else out
    if place.exists():
        raise InvalidInput("out", f"is {str(place)!r}, which exists", "name another file")
    key = None if people_key is None else _secret(people_key)
    with console.waiting("Reading …"):
        inputs = PateInputs.of(wanted)
    if inputs.private is None:
        raise InvalidInput("data", "was not read")
    people: frozenset[str] = frozenset()
    if key is not None:
        if not isinstance(inputs.private, Table):
            raise InvalidInput("people_key", "is for tables with users", "leave it out")
        people = people_hashes(inputs.private, key)
    with console.waiting("Training and voting …"), tempfile.TemporaryDirectory() as spare:
        front, kept = inputs.front(), Path(wanted.cache or spare)
        asked = cached_features(front, inputs.public, kept)
        cast = teacher_votes(wanted, inputs.private, front, asked, len(inputs.classes), kept)
    hashed = None if key is None else key_hash(key)
    user = inputs.private.schema.user if isinstance(inputs.private, Table) else None
    silo = silo_name(key, rows_digest(inputs.private))
    VoteFile(cast, inputs.classes, public_digest(inputs.public, inputs.classes), silo, user, people, hashed).write(
        place
    )
    with console.after(f"the votes {str(place)!r} were written"):
        console.line(f"{place}: {wanted.teachers:,} × {len(cast):,} votes", "bold")
        console.line(
            "They are as private as the rows: for the centre, which adds the noise, and for nobody else.", "red"
        )


def _secret(path: Path) -> bytes:
    try:
        found = path.read_bytes().strip()
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput(
            "people_key", f"is {str(path)!r}, which cannot be read: {reason}", "check the path"
        ) from None
    if len(found) < _LEAST_KEY:
        problem = f"is {str(path)!r}, which holds fewer than {_LEAST_KEY} characters"
        raise InvalidInput("people_key", problem, "make a long one, such as: openssl rand -hex 32")
    return found


pate.callback(help=help_of(about))(about)
for _command in (run, vote, aggregate):
    pate.command(_command.__name__, cls=TaughtCommand, help=help_of(_command))(_command)
