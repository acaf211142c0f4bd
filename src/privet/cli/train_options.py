"""What `privet train` can be told, and its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privet.cli.numbers import WHOLE
from privet.runs.methods.table import METHODS

__all__ = [
    "Audit",
    "BatchSize",
    "Cache",
    "Canaries",
    "Classes",
    "Clip",
    "Compare",
    "Data",
    "DataDir",
    "Delta",
    "Download",
    "Epochs",
    "Epsilon",
    "Features",
    "HoldOut",
    "Kind",
    "LearningRate",
    "Log",
    "LogInternal",
    "Method",
    "Model",
    "Out",
    "Resume",
    "Rows",
    "RowsPerUser",
    "Schema",
    "SchemaShare",
    "ScoreShare",
    "Seed",
    "Target",
    "Test",
    "Tune",
    "User",
    "Yes",
]

_DATA, _PRIVACY, _MODEL, _RUN, _SCORES = "The data", "Privacy", "The model", "The run", "Scores and evidence"
_METHODS = ", ".join(method.name for method in METHODS.values() if method.is_private)

Data = Annotated[
    str, typer.Argument(help="A CSV or Parquet file, an .npz of pictures, or digits, mnist, fashion-mnist, adult.")
]
Target = Annotated[str | None, typer.Option(help="The column to predict.", metavar="COLUMN", rich_help_panel=_DATA)]
Schema = Annotated[
    Path | None,
    typer.Option(help="What is public of the table (TOML); see: privet schema draft.", rich_help_panel=_DATA),
]
Test = Annotated[
    Path | None,
    typer.Option(help="A public test file of the same form: scores on it are free.", rich_help_panel=_DATA),
]
DataDir = Annotated[
    Path | None, typer.Option(envvar="PRIVET_DATA", help="Where named sets lie.", rich_help_panel=_DATA)
]
Download = Annotated[bool, typer.Option("--download", help="Fetch a named set, and check it.", rich_help_panel=_DATA)]
Rows = Annotated[
    int | None,
    typer.Option(click_type=WHOLE, help="About how many rows there are, if that is public.", rich_help_panel=_DATA),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=KIND",
        help="Without a schema: a column is a number, category or identifier.",
        rich_help_panel=_DATA,
    ),
]
User = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Without a schema: whose each row is.", rich_help_panel=_DATA),
]
RowsPerUser = Annotated[
    int | None,
    typer.Option(click_type=WHOLE, help="With --user: rows of each that are used.", rich_help_panel=_DATA),
]
Classes = Annotated[str | None, typer.Option(help="For an .npz: all labels, with commas.", rich_help_panel=_DATA)]
Epsilon = Annotated[
    float, typer.Option(help="The ε of a method with all that it needs; --compare adds more.", rich_help_panel=_PRIVACY)
]
Delta = Annotated[
    float | None,
    typer.Option(
        help="The δ; by default 1/(10 n), rounded down to one digit, for a public n, and else 1e-6.",
        rich_help_panel=_PRIVACY,
    ),
]
Method = Annotated[str, typer.Option(help=f"How: {_METHODS}.", rich_help_panel=_PRIVACY)]
Compare = Annotated[
    str | None,
    typer.Option(
        help="Further methods on the same split, with commas: each is charged; none is internal.",
        rich_help_panel=_PRIVACY,
    ),
]
Tune = Annotated[
    float | None,
    typer.Option(
        metavar="K",
        help="Try about K settings (a random number of them) and release the best, by private selection.",
        rich_help_panel=_PRIVACY,
    ),
]
SchemaShare = Annotated[
    float,
    typer.Option(help="The part of ε and δ that learns a schema, if none is given.", rich_help_panel=_PRIVACY),
]
Model = Annotated[
    str,
    typer.Option(help="auto, linear, residual, convolutions, or module.py:factory.", rich_help_panel=_MODEL),
]
Features = Annotated[str, typer.Option(help="Of pictures: auto, scattering or pixels.", rich_help_panel=_MODEL)]
Clip = Annotated[float | None, typer.Option(help="By a rule, if left out.", rich_help_panel=_MODEL)]
BatchSize = Annotated[
    int | None, typer.Option(click_type=WHOLE, help="By a rule, if left out.", rich_help_panel=_MODEL)
]
Epochs = Annotated[float | None, typer.Option(help="By a rule, if left out.", rich_help_panel=_MODEL)]
LearningRate = Annotated[float | None, typer.Option(help="By a rule, if left out.", rich_help_panel=_MODEL)]
HoldOut = Annotated[
    float, typer.Option(help="The part of the rows to score on, without --test.", rich_help_panel=_SCORES)
]
ScoreShare = Annotated[
    float, typer.Option(help="The part of ε that a score on private rows costs; 0: none.", rich_help_panel=_SCORES)
]
Audit = Annotated[
    bool,
    typer.Option(
        "--audit",
        help="Put made-up canaries among the rows, and set what they prove beside ε; costs nothing.",
        rich_help_panel=_SCORES,
    ),
]
Canaries = Annotated[
    int, typer.Option(click_type=WHOLE, help="With --audit: how many there are.", rich_help_panel=_SCORES)
]
Out = Annotated[Path | None, typer.Option(help="The run's folder; runs/NAME, if left out.", rich_help_panel=_RUN)]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the run in --out, after a stop.", rich_help_panel=_RUN)
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask before several methods are paid for.", rich_help_panel=_RUN)
]
Log = Annotated[
    list[str] | None,
    typer.Option(help="csv, tensorboard, or mlflow:EXPERIMENT; may be repeated.", rich_help_panel=_RUN),
]
LogInternal = Annotated[
    bool,
    typer.Option(
        "--log-internal", help="Keep losses on private rows, too, in logs of their own.", rich_help_panel=_RUN
    ),
]
Cache = Annotated[
    Path | None,
    typer.Option(help="Keep features of pictures here; they are as private as these.", rich_help_panel=_RUN),
]
Seed = Annotated[
    int | None,
    typer.Option(click_type=WHOLE, help="For tests alone: seeded noise protects nobody.", rich_help_panel=_RUN),
]
