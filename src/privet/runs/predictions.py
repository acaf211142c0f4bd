"""What the model of a run says of new rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from privet.core import InvalidInput
from privet.data import NAMES, Images, Number, named, read
from privet.runs.inputs import arrays_in
from privet.runs.scoring import model_outputs, predictions
from privet.training.models import Model, ModelDescription

if TYPE_CHECKING:
    import polars as pl

__all__ = ["predict_rows"]


def predict_rows(
    model: Model,
    described: ModelDescription,
    data: str,
    *,
    data_dir: str | Path | None = None,
    probabilities: bool = False,
) -> pl.DataFrame:
    """Predict with the model of a run. This costs no privacy: it is post-processing of the model.

    Args:
        model: The model.
        described: How it was built: classes and schema.
        data: A file with rows like those of the run, or a named set, whose test part is used.
        data_dir: Where named sets are.
        probabilities: Whether to add a column p(class) for each class.

    Returns:
        One row for each row of the data, in its order; the first column is named like the target.

    Raises:
        InvalidInput: The rows are not like those of the run.
    """
    import polars as pl

    if probabilities and not described.classes:
        raise InvalidInput("probabilities", "is for classes, and the model predicts a number", "leave it out")
    outputs = model_outputs(model, _rows(data, data_dir, described))
    schema = described.table
    if not described.classes:
        label = None if schema is None else schema.label
        values = predictions(outputs).numpy()
        numbers = label.unscaled(values) if isinstance(label, Number) else values
        return pl.DataFrame({label.name if label is not None else "value": numbers})
    name = (schema.target if schema is not None else None) or "class"
    places = outputs.argmax(1).tolist() if len(outputs) else []
    columns = {name: pl.Series(name, [described.classes[place] for place in places], dtype=pl.String)}
    if probabilities:
        shares = outputs.softmax(1) if len(outputs) else torch.zeros(0, len(described.classes))
        for place, label_name in enumerate(described.classes):
            columns[f"p({label_name})"] = pl.Series(f"p({label_name})", shares[:, place].tolist(), dtype=pl.Float64)
    return pl.DataFrame(columns)


def _rows(data: str, data_dir: str | Path | None, described: ModelDescription) -> Tensor:
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
