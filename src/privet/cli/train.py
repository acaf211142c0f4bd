"""`privet train`: from a table or pictures to a private model and a page that explains it."""

from __future__ import annotations

from typing import Annotated

import typer

from privet.cli import run_options as options
from privet.cli.options import DEFAULT_LEDGER, Budget, LedgerLocation, option
from privet.cli.run_options import DATA, PRIVACY, RUN
from privet.cli.run_training import parse_request, run_training
from privet.runs.methods import METHODS

__all__ = ["train"]

_MODEL, _SCORES = "The model", "Scores and evidence"
_ROWS = "A CSV or Parquet file, an .npz of pictures, or digits, mnist, fashion-mnist, adult."
_KIND = "Without a schema: a column is a number, category or identifier."
_EPSILON = "The ε of a method with all that it needs; --compare adds more."
_METHOD = f"How: {', '.join(method.name for method in METHODS.values() if method.is_private)}."
_COMPARE = "Further methods on the same split, with commas: each is charged; none is internal."
_TUNE = "Try about K settings (a random number of them) and release the best, by private selection."
_SCHEMA_SHARE = "The part of ε and δ that learns a schema, if none is given."
_AUDIT = "Put made-up canaries among the rows, and set what they prove beside ε; costs nothing."
_INTERNAL = "Keep losses on private rows, too, in logs of their own."
_RULE = "By a rule, if left out."


def train(
    context: typer.Context,
    data: Annotated[str, typer.Argument(help=_ROWS)] = "digits",
    target: options.Target = None,
    schema: options.Schema = None,
    public: options.Public = None,
    test: options.Test = None,
    data_dir: options.DataDir = None,
    download: options.Download = False,
    rows: options.Rows = None,
    kind: Annotated[list[str] | None, option(DATA, _KIND, metavar="COLUMN=KIND")] = None,
    user: Annotated[str | None, option(DATA, "Without a schema: whose each row is.", metavar="COLUMN")] = None,
    rows_per_user: Annotated[int | None, option(DATA, "With --user: rows of each that are used.", whole=True)] = None,
    classes: Annotated[str | None, option(DATA, "For an .npz, or for pate: all labels, with commas.")] = None,
    epsilon: Annotated[float, option(PRIVACY, _EPSILON)] = 1.0,
    delta: options.Delta = None,
    method: Annotated[str, option(PRIVACY, _METHOD)] = "dp-sgd",
    compare: Annotated[str | None, option(PRIVACY, _COMPARE)] = None,
    tune: Annotated[float | None, option(PRIVACY, _TUNE, metavar="K")] = None,
    budget: Budget = None,
    ledger: LedgerLocation = DEFAULT_LEDGER,
    schema_share: Annotated[float, option(PRIVACY, _SCHEMA_SHARE)] = 0.1,
    model: Annotated[str, option(_MODEL, "auto, linear, residual, convolutions, or module.py:factory.")] = "auto",
    features: Annotated[str, option(_MODEL, "Of pictures: auto, scattering or pixels.")] = "auto",
    clip: Annotated[float | None, option(_MODEL, _RULE)] = None,
    batch_size: Annotated[int | None, option(_MODEL, _RULE, whole=True)] = None,
    epochs: Annotated[float | None, option(_MODEL, _RULE)] = None,
    learning_rate: Annotated[float | None, option(_MODEL, _RULE)] = None,
    hold_out: options.HoldOut = None,
    score_share: options.ScoreShare = 0.05,
    audit: Annotated[bool, option(_SCORES, _AUDIT, "--audit")] = False,
    canaries: Annotated[int, option(_SCORES, "With --audit: how many there are.", whole=True)] = 1000,
    out: options.Out = None,
    resume: options.Resume = False,
    yes: Annotated[bool, option(RUN, "Do not ask before several methods are paid for.", "--yes", "-y")] = False,
    log: Annotated[list[str] | None, option(RUN, "csv, tensorboard, or mlflow:EXPERIMENT; may be repeated.")] = None,
    log_internal: Annotated[bool, option(RUN, _INTERNAL, "--log-internal")] = False,
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
    run_training(context, parse_request(context.params), out, resume=resume, yes=yes)
