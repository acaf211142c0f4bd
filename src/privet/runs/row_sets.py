"""The rows of a run as tensors: those to learn from, those held out, and public ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from privet.core.errors import InvalidInput
from privet.core.unit import Whose
from privet.data import Number, Table, hold_out
from privet.runs.inputs import Data, TrainingInputs
from privet.runs.payment import public_rows_digest
from privet.runs.plan import training_share
from privet.runs.request import TrainRequest
from privet.runs.scoring import ScoredRows
from privet.training.models import Model, Pictures
from privet.training.recipe import Kind

__all__ = ["HELD", "OWN_ROWS", "TEST", "RowSets", "split_rows"]

TEST, HELD, OWN_ROWS = "the test file", "held-out private rows", "the rows it was trained on"
_KEY = "privet train"


@dataclass(frozen=True, eq=False)
class RowSets:
    """Tables as they were read, and features of pictures: what a model's head takes."""

    train: ScoredRows
    held: ScoredRows | None
    test: ScoredRows | None

    @property
    def named(self) -> list[tuple[ScoredRows, str]]:
        """All that there are, with what they are called."""
        every = ((self.test, TEST), (self.held, HELD), (self.train, OWN_ROWS))
        return [(rows, name) for rows, name in every if rows is not None]


def split_rows(asked: TrainRequest, inputs: TrainingInputs, model: Model, cache: Path) -> RowSets:
    """Rows are held out by a keyed hash of what is in them, so that one that comes or goes moves no other."""
    data = inputs.train
    if data is None:
        raise InvalidInput("data", "was not read")
    share = training_share(asked, inputs)
    train, held = (data, None) if share == 1 else _split(data, 1 - share)
    test = None
    if inputs.test is not None:
        digest, by_user = public_rows_digest(inputs.test, inputs.classes), inputs.whose is Whose.USER
        test = replace(_rows(inputs, model, inputs.test, cache), digest=digest, by_user=by_user)
    return RowSets(
        _rows(inputs, model, train, cache), None if held is None else _rows(inputs, model, held, cache), test
    )


def _split(data: Data, share: float) -> tuple[Data, Data]:
    if isinstance(data, Table):
        return hold_out(data, share, key=_KEY)
    return hold_out(data, share, key=_KEY)


def _rows(inputs: TrainingInputs, model: Model, data: Data, cache: Path) -> ScoredRows:
    x, y = torch.from_numpy(data.x), torch.from_numpy(np.asarray(data.y))
    if inputs.kind is Kind.TABLE:
        label = None if inputs.schema is None else inputs.schema.label
        users = data.users if isinstance(data, Table) else None
        return ScoredRows(x, y, label if isinstance(label, Number) else None, users)
    with torch.no_grad():
        return ScoredRows(
            model.front.cached(x, cache) if isinstance(model.front, Pictures) else model.front(x), y, None
        )
