"""`privet predict`: what a trained model says of new rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from privet.cli import console
from privet.core import InvalidInput

if TYPE_CHECKING:
    import polars as pl

__all__ = ["csv_of", "predict"]


def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    data: Annotated[
        str, typer.Argument(help="Rows like those of the run: a file; or a named set, whose test part is used.")
    ],
    out: Annotated[Path | None, typer.Option(help="A CSV file; the terminal, if left out.")] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="One column for each class, too.")] = False,
    data_dir: Annotated[Path | None, typer.Option(envvar="PRIVET_DATA", help="Where named sets are.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file --out.")] = False,
) -> None:
    """Predict with a model that privet train wrote: one line for each row, in the order of the rows.

    This uses no budget: the model was released before, and the new rows are yours. What it says of them is about them.

    privet predict runs/readmission new_patients.csv --out predicted.csv --probabilities
    """
    from privet.core import write_atomically
    from privet.runs import predict_rows
    from privet.training.models import restore

    if out is not None and out.exists() and not force:
        raise InvalidInput("out", f"is {str(out)!r}, which exists", "name another file, or add --force")
    with console.waiting("Reading and predicting …"):
        model, described = restore(run)
        frame = predict_rows(model, described, data, data_dir=data_dir, probabilities=probabilities)
    text = csv_of(frame)
    if out is None:
        click.echo(text, nl=False)
        return
    write_atomically(out, text, "out")
    console.line(f"{len(frame):,} predictions in {out}")


def csv_of(frame: pl.DataFrame) -> str:
    """Return predictions as CSV: classes as they are called, numbers in six digits, probabilities in six decimals."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    for first, *shares in frame.iter_rows():
        writer.writerow([first if isinstance(first, str) else f"{first:.6g}", *(f"{share:.6f}" for share in shares)])
    return text.getvalue()
