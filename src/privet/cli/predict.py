"""`privet predict`: what a trained model says of new rows."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from privet.cli import console
from privet.core.errors import InvalidInput

if TYPE_CHECKING:
    from torch import Tensor

    from privet.training.models import Described

__all__ = ["predict"]


def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    data: Annotated[
        str, typer.Argument(help="Rows like those of the run: a file; or a named set, whose test part is used.")
    ],
    out: Annotated[Path | None, typer.Option(help="A CSV file; the terminal, if left out.")] = None,
    probabilities: Annotated[bool, typer.Option("--probabilities", help="One column for each class, too.")] = False,
    data_dir: Annotated[Path | None, typer.Option(envvar="PRIVET_DATA", help="Where named sets lie.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file --out.")] = False,
) -> None:
    """Predict with a model that privet train wrote: one line for each row, in the order of the rows.

    This costs no privacy: the model was paid for, and the new rows are yours. What it says of them is about them.

    privet predict runs/readmission new_patients.csv --out predicted.csv --probabilities
    """
    from privet.runs.scoring import model_outputs
    from privet.training.models import restore

    if out is not None and out.exists() and not force:
        raise InvalidInput("out", f"is {str(out)!r}, which exists", "name another file, or add --force")
    with console.waiting("Reading …"):
        model, described = restore(run)
        rows = _rows(data, data_dir, described)
    with console.waiting("Predicting …"):
        outputs = model_outputs(model, rows)
    if probabilities and not described.classes:
        raise InvalidInput("probabilities", "is for classes, and the model predicts a number", "leave it out")
    text = _written(outputs, described, probabilities=probabilities)
    if out is None:
        click.echo(text, nl=False)
        return
    from privet.core.atomic_write import write_atomically

    write_atomically(out, text, "out")
    console.line(f"{len(rows):,} predictions in {out}")


def _rows(data: str, data_dir: Path | None, described: Described) -> Tensor:
    import numpy as np
    import torch

    from privet.data import NAMES, Images, named, read
    from privet.runs.inputs import arrays_in

    schema = described.table
    if data in NAMES:
        test = named(data, data_dir).test
        fits = (
            test.x.shape[1:] == described.shape
            if isinstance(test, Images)
            else schema is not None and test.schema.without_sources().features == schema.without_sources().features
        )
        if not fits:
            raise InvalidInput("data", f"is {data}, and the model learned from something else", "give rows like those")
        return torch.from_numpy(test.x)
    if schema is not None:
        return torch.from_numpy(read(data, schema, labelled=False).x)
    (x,) = arrays_in(Path(data), ("x",), "data")
    if x.dtype != np.uint8 or x.shape[1:] != described.shape:
        problem = f"holds {x.dtype} of shape {x.shape[1:]}, and the model learned from uint8 of {described.shape}"
        raise InvalidInput("data", problem, "give pictures like those")
    return torch.from_numpy(x)


def _written(outputs: Tensor, described: Described, *, probabilities: bool) -> str:
    from privet.data import Number
    from privet.runs.scoring import predictions

    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n")
    if not described.classes:
        schema = described.table
        label = None if schema is None else schema.label
        name = label.name if label is not None else "value"
        write.writerow([name])
        values = predictions(outputs).numpy()
        numbers = label.unscaled(values) if isinstance(label, Number) else values
        write.writerows([f"{number:.6g}"] for number in numbers)
        return text.getvalue()
    schema = described.table
    name = (schema.target if schema is not None else None) or "class"
    write.writerow([name, *([f"p({each})" for each in described.classes] if probabilities else [])])
    shares = outputs.softmax(1).tolist() if probabilities and len(outputs) else [[]] * len(outputs)
    places = outputs.argmax(1).tolist() if len(outputs) else []
    for place, row in zip(places, shares, strict=True):
        write.writerow([described.classes[place], *(f"{share:.6f}" for share in row)])
    return text.getvalue()
