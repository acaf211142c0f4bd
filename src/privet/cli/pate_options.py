"""What `privet pate` can be told, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli.numbers import WHOLE

__all__ = [
    "Answers",
    "Beside",
    "Classes",
    "Data",
    "Epsilon",
    "HoldOut",
    "Jobs",
    "Noise",
    "Out",
    "PeopleKey",
    "Public",
    "PublicFile",
    "Questions",
    "RayAddress",
    "Sanitise",
    "ScoreShare",
    "Silo",
    "StudentKind",
    "Target",
    "TeacherKind",
    "Teachers",
    "Threshold",
    "ThresholdNoise",
    "User",
    "VotesFiles",
    "VotesOut",
]

_DATA, _PRIVACY, _TEACHERS, _RUN, _SCORES = "The data", "Privacy", "Teachers and student", "The run", "Scores"

Data = Annotated[
    str,
    typer.Argument(help="The private rows: CSV, Parquet, an .npz of pictures, or digits, mnist, fashion-mnist, adult."),
]
Silo = Annotated[str, typer.Argument(metavar="FILE", help="This silo's private rows: CSV, Parquet or .npz.")]
VotesFiles = Annotated[list[str] | None, typer.Argument(metavar="VOTES...", help="The files that silos' votes are in.")]
Public = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Public rows of the same form: what is asked about.", rich_help_panel=_DATA),
]
PublicFile = Annotated[str, typer.Option(metavar="FILE", help="The public rows that all silos are asked about.")]
Target = Annotated[str | None, typer.Option(help="The column to predict.", metavar="COLUMN", rich_help_panel=_DATA)]
User = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Without a schema: whose each row is; users are protected.", rich_help_panel=_DATA
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(help="All labels, with commas: of pictures, or where no file says them.", rich_help_panel=_DATA),
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        help="The ε of everything, whatever the votes are; 1, unless questions and noise are given.",
        rich_help_panel=_PRIVACY,
    ),
]
Questions = Annotated[
    int | None,
    typer.Option(click_type=WHOLE, help="How many; as many as ε pays for, if left out.", rich_help_panel=_PRIVACY),
]
Answers = Annotated[
    int | None,
    typer.Option(click_type=WHOLE, help="With --threshold: stop after so many.", rich_help_panel=_PRIVACY),
]
Noise = Annotated[
    float | None,
    typer.Option(help="σ on every count of votes; the least that keeps ε, if left out.", rich_help_panel=_PRIVACY),
]
Threshold = Annotated[
    int | None,
    typer.Option(
        click_type=WHOLE,
        help="Answer only where about so many teachers agree, by a noisy test that is charged.",
        rich_help_panel=_PRIVACY,
    ),
]
ThresholdNoise = Annotated[float | None, typer.Option(help="σ of that test.", rich_help_panel=_PRIVACY)]
Sanitise = Annotated[
    bool,
    typer.Option(
        "--sanitise", help="Release, with noise, what it cost these data; paid from ε.", rich_help_panel=_PRIVACY
    ),
]
Teachers = Annotated[
    int, typer.Option(click_type=WHOLE, help="How many; each learns from its own rows.", rich_help_panel=_TEACHERS)
]
TeacherKind = Annotated[
    str, typer.Option(help="What a teacher is: ridge, kernel, network or forest.", rich_help_panel=_TEACHERS)
]
StudentKind = Annotated[
    str,
    typer.Option(
        help="auto; propagated (pictures: answers spread); weighed (tables: noisy counts); supervised.",
        rich_help_panel=_TEACHERS,
    ),
]
Jobs = Annotated[int, typer.Option(click_type=WHOLE, help="Processes that train teachers.", rich_help_panel=_RUN)]
RayAddress = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Train on a Ray cluster: auto, or ray://head:10001; local starts one here.",
        rich_help_panel=_RUN,
    ),
]
HoldOut = Annotated[
    float, typer.Option(help="The part of the private rows to score on, without --test.", rich_help_panel=_SCORES)
]
ScoreShare = Annotated[
    float, typer.Option(help="The part of ε that a score on private rows costs; 0: none.", rich_help_panel=_SCORES)
]
Beside = Annotated[
    list[str] | None,
    typer.Option(metavar="RUN", help="Show this run on the page, too; may be repeated.", rich_help_panel=_SCORES),
]
Out = Annotated[Path | None, typer.Option(help="The run's folder; runs/NAME, if left out.", rich_help_panel=_RUN)]
VotesOut = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Where to write; beside the rows, as .votes, if left out.")
]
PeopleKey = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A secret that all silos share and the centre does not have: with it, people in two silos are noticed.",
    ),
]
