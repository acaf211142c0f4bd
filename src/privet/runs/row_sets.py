"""The rows of a run as tensors: those to learn from, those held out, and public ones."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from privet.core import InvalidInput, Whose
from privet.data import Number, Table, hold_out
from privet.runs.inputs import Data, TrainingInputs
from privet.runs.payment import public_rows_digest
from privet.runs.request import TrainRequest
from privet.runs.scoring import LabeledRows
from privet.training import DataKind
from privet.training.models import Model, Pictures

__all__ = ["HELD", "OWN_ROWS", "TEST", "LabeledRows", "RowSets", "features_of", "split_rows"]

TEST, HELD, OWN_ROWS = "the test file", "held-out private rows", "the rows it was trained on"
_KEY = "privet train"


@dataclass(frozen=True, eq=False)
class RowSets:
    """Row sets of a run, in the form that a model's head takes: tables as read, or features of pictures."""

    train: LabeledRows
    """Empty where the private rows are elsewhere."""
    held: LabeledRows | None
    test: LabeledRows | None
    data: Data | None = field(default=None, repr=False)
    """The rows of `train` as they were read."""
    public: Tensor | None = field(default=None, repr=False)
    """Features of the public rows without labels."""
    votes: npt.NDArray[np.int32] | None = field(default=None, repr=False)
    """[public rows, teachers]: votes that came from elsewhere."""

    @property
    def named(self) -> list[tuple[LabeledRows, str]]:
        """All row sets that there are, each with its name."""
        every = ((self.test, TEST), (self.held, HELD), (self.train, OWN_ROWS))
        return [(rows, name) for rows, name in every if rows is not None]


def split_rows(request: TrainRequest, inputs: TrainingInputs, model: Model, cache: Path) -> RowSets:
    """Return the row sets of a run, with the held-out rows separate.

    Rows are held out by a keyed hash of their contents, so that adding or removing a row moves no other.

    Args:
        request: The request of the run.
        inputs: The data of the run.
        model: The model, whose `front` computes features.
        cache: Directory in which features of images are cached.

    Raises:
        InvalidInput: The data was not read.
    """
    facts, data = inputs.facts, inputs.train
    public = None if inputs.public is None else features_of(model.front, inputs.public, cache)
    test = None
    if inputs.test is not None:
        digest, by_user = public_rows_digest(inputs.test, facts.classes), facts.whose is Whose.USER
        test = replace(_rows(inputs, model, inputs.test, cache), digest=digest, by_user=by_user)
    if data is None:
        if inputs.votes is None:
            raise InvalidInput("data", "was not read")
        return RowSets(LabeledRows(torch.zeros(0), torch.zeros(0), None), None, test, None, public, inputs.votes)
    share = request.training_share(facts)
    train, held = (data, None) if share == 1 else _split(data, 1 - share)
    held_rows = None if held is None else _rows(inputs, model, held, cache)
    return RowSets(_rows(inputs, model, train, cache), held_rows, test, train, public)


@torch.no_grad()
def features_of(front: nn.Module, x: npt.NDArray[Any], cache: Path) -> Tensor:
    """Return the features of rows; those of pictures are cached in a file that only its owner can read.

    Args:
        front: Feature extractor of the model.
        x: The rows.
        cache: Directory of the cache.
    """
    rows = torch.from_numpy(x)
    features: Tensor = front.cached(rows, cache) if isinstance(front, Pictures) else front(rows)
    return features


def _split(data: Data, share: float) -> tuple[Data, Data]:
    if isinstance(data, Table):
        return hold_out(data, share, key=_KEY)
    return hold_out(data, share, key=_KEY)


def _rows(inputs: TrainingInputs, model: Model, data: Data, cache: Path) -> LabeledRows:
    y, facts = torch.from_numpy(np.asarray(data.y)), inputs.facts
    if facts.kind is not DataKind.TABLE:
        return LabeledRows(features_of(model.front, data.x, cache), y, None)
    label = None if facts.schema is None else facts.schema.label
    users = data.users if isinstance(data, Table) else None
    return LabeledRows(torch.from_numpy(data.x), y, label if isinstance(label, Number) else None, users)
