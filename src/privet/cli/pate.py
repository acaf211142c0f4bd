"""`privet pate`: teachers vote with noise, and a student learns from public rows and what they answered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click
import typer

from privet.cli import console
from privet.cli import run_options as options
from privet.cli.command_types import HelpfulGroup
from privet.cli.groups import command_group
from privet.cli.options import DEFAULT_LEDGER, Budget, LedgerLocation, option
from privet.cli.run_options import DATA, PRIVACY, RUN
from privet.cli.run_training import parse_request, run_training
from privet.core import InvalidInput

__all__ = ["about", "aggregate", "pate", "run", "vote"]

_LEAST_KEY = 16
_TEACHERS, _SCORES = "Teachers and student", "Scores and evidence"
_ROWS = "The private rows: CSV, Parquet, an .npz of pictures, or digits, mnist, fashion-mnist, adult."
_USERS = "Without a schema: whose each row is; users are protected."
_LABELS = "All labels, with commas: of pictures, or where no file says them."
_COST = "The ε of everything, whatever the votes are; 1, unless questions and noise are given."
_AGREE = "Answer only where about so many teachers agree, by a noisy test that is charged."
_STUDENTS = "auto; propagated (pictures: answers spread); weighed (tables: noisy counts); supervised."
_CLUSTER = "Train on a Ray cluster: auto, or ray://head:10001; local starts one here."
_KEY = "A secret that all silos share and the centre does not have: with it, people in two silos are noticed."

_User = Annotated[str | None, option(DATA, _USERS, metavar="COLUMN")]
_Classes = Annotated[str | None, option(DATA, _LABELS)]
_Epsilon = Annotated[float | None, option(PRIVACY, _COST)]
_Questions = Annotated[int | None, option(PRIVACY, "How many; as many as ε pays for, if left out.", whole=True)]
_Answers = Annotated[int | None, option(PRIVACY, "With --threshold: stop after so many.", whole=True)]
_Noise = Annotated[float | None, option(PRIVACY, "σ on every count of votes; the least that keeps ε, if left out.")]
_Threshold = Annotated[int | None, option(PRIVACY, _AGREE, whole=True)]
_ThresholdNoise = Annotated[float | None, option(PRIVACY, "σ of that test.")]
_Sanitise = Annotated[bool, option(PRIVACY, "Release, with noise, what it cost these data; paid from ε.", "--sanitise")]
_Teachers = Annotated[int, option(_TEACHERS, "How many; each learns from its own rows.", whole=True)]
_Teacher = Annotated[str, option(_TEACHERS, "What a teacher is: ridge, kernel, network or forest.")]
_Student = Annotated[str, option(_TEACHERS, _STUDENTS)]
_Jobs = Annotated[int, option(RUN, "Processes that train teachers.", whole=True)]
_Beside = Annotated[
    list[str] | None, option(_SCORES, "Show this run on the page, too; may be repeated.", metavar="RUN")
]


class _Pate(HelpfulGroup):
    """Whatever is typed first and names no command is the data of a run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in self.get_help_option_names(ctx):
            args = ["run", *args]
        return super().parse_args(ctx, args)


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
    data: Annotated[str, typer.Argument(help=_ROWS)] = "",
    public: options.Public = None,
    target: options.Target = None,
    schema: options.Schema = None,
    test: options.Test = None,
    user: _User = None,
    classes: _Classes = None,
    data_dir: options.DataDir = None,
    download: options.Download = False,
    rows: options.Rows = None,
    teachers: _Teachers = 250,
    teacher: _Teacher = "ridge",
    student: _Student = "auto",
    epsilon: _Epsilon = None,
    delta: options.Delta = None,
    questions: _Questions = None,
    answers: _Answers = None,
    noise: _Noise = None,
    threshold: _Threshold = None,
    threshold_noise: _ThresholdNoise = None,
    sanitise: _Sanitise = False,
    budget: Budget = None,
    ledger: LedgerLocation = DEFAULT_LEDGER,
    hold_out: options.HoldOut = None,
    score_share: options.ScoreShare = 0.05,
    beside: _Beside = None,
    out: options.Out = None,
    resume: options.Resume = False,
    jobs: _Jobs = 1,
    ray: Annotated[str | None, option(RUN, _CLUSTER, "--ray", metavar="ADDRESS")] = None,
    cache: options.Cache = None,
    seed: options.Seed = None,
) -> None:
    """Train teachers on private rows, ask them about public ones, and train a student on the answers.

    Every question is paid for, answered or not; how many there are is fixed before any vote is seen. Without a schema,
    bounds and values are read from the public file, which is free.

    privet pate run train.csv --public public.csv --target readmitted --teachers 250 --epsilon 1

    privet pate run mnist --data-dir data --questions 600 --noise 40 --threshold 200 --threshold-noise 150
    """
    if not data and not resume:
        raise InvalidInput("data", "is missing", "name a file of private rows, or digits, mnist, adult")
    _run(context, out, resume=resume)


def vote(
    context: typer.Context,
    data: Annotated[str, typer.Argument(metavar="FILE", help="This silo's private rows: CSV, Parquet or .npz.")],
    public: Annotated[str, option(None, "The public rows that all silos are asked about.", metavar="FILE")],
    schema: options.Schema = None,
    target: options.Target = None,
    user: _User = None,
    classes: _Classes = None,
    teachers: _Teachers = 1,
    teacher: _Teacher = "ridge",
    people_key: Annotated[Path | None, option(None, _KEY, metavar="FILE")] = None,
    out: Annotated[
        Path | None, option(None, "Where to write; beside the rows, as .votes, if left out.", metavar="FILE")
    ] = None,
    jobs: _Jobs = 1,
    cache: options.Cache = None,
) -> None:
    """At a silo: train its teachers on its rows, and write their votes on all public rows.

    The file holds what single teachers say: it is as private as the rows, and for the centre alone. No noise is in it.

    privet pate vote hospital-a.csv --public public.csv --schema patients.schema.toml --out a.votes
    """
    from privet.runs import vote_at_silo

    path = Path(data).with_suffix(".votes") if out is None else out
    if path.exists():
        raise InvalidInput("out", f"is {str(path)!r}, which exists", "name another file")
    request, key = (
        parse_request(context.params, {"method": "pate"}),
        None if people_key is None else _secret(people_key),
    )
    with console.waiting("Training and voting …"):
        file = vote_at_silo(request, key, path)
    with console.after(f"the votes {str(path)!r} were written"):
        console.line(f"{path}: {file.teachers:,} × {len(file.cast):,} votes", "bold")
        told = "They are as private as the rows: for the centre, which adds the noise, and for nobody else."
        console.line(told, "red")


def aggregate(
    context: typer.Context,
    votes: Annotated[
        list[str] | None, typer.Argument(metavar="VOTES...", help="The files that silos' votes are in.")
    ] = None,
    public: options.Public = None,
    schema: options.Schema = None,
    target: options.Target = None,
    test: options.Test = None,
    user: _User = None,
    classes: _Classes = None,
    rows: options.Rows = None,
    student: _Student = "auto",
    epsilon: _Epsilon = None,
    delta: options.Delta = None,
    questions: _Questions = None,
    answers: _Answers = None,
    noise: _Noise = None,
    threshold: _Threshold = None,
    threshold_noise: _ThresholdNoise = None,
    sanitise: _Sanitise = False,
    budget: Budget = None,
    ledger: LedgerLocation = DEFAULT_LEDGER,
    beside: _Beside = None,
    out: options.Out = None,
    resume: options.Resume = False,
    cache: options.Cache = None,
    seed: options.Seed = None,
) -> None:
    """At the centre: add noise to the silos' votes, release the answers, and train a student on them.

    The centre is trusted with raw votes. Each person's records must be in one silo.

    privet pate aggregate a.votes b.votes c.votes --public public.csv --schema patients.schema.toml --epsilon 1
    """
    if not votes and not resume:
        raise InvalidInput("votes", "are missing", "name the files that silos wrote with: privet pate vote")
    _run(context, out, resume=resume)


def _run(context: typer.Context, out: Path | None, *, resume: bool) -> None:
    typed = {"data": "", **context.params}
    is_open = typed["epsilon"] is None and None not in (typed["questions"], typed["noise"])
    run_training(context, parse_request(typed, {"method": "pate", "any_cost": is_open}), out, resume=resume, yes=False)


def _secret(path: Path) -> bytes:
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput(
            "people_key", f"is {str(path)!r}, which cannot be read: {reason}", "check the path"
        ) from None
    if len(key) < _LEAST_KEY:
        problem = f"is {str(path)!r}, which holds fewer than {_LEAST_KEY} characters"
        raise InvalidInput("people_key", problem, "make a long one, such as: openssl rand -hex 32")
    return key


pate = command_group(about, run, vote, aggregate, kind=_Pate)
