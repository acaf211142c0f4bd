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
from privet.runs.request import TrainRequest
from privet.runs.scoring import LabeledRows
from privet.training.models import Model, Pictures
from privet.training.recipe import DataKind

__all__ = ["HELD", "OWN_ROWS", "TEST", "LabeledRows", "RowSets", "split_rows"]

TEST, HELD, OWN_ROWS = "the test file", "held-out private rows", "the rows it was trained on"
_KEY = "privet train"


@dataclass(frozen=True, eq=False)
class RowSets:
    """Tables as they were read, and features of pictures: what a model's head takes."""

    train: LabeledRows
    held: LabeledRows | None
    test: LabeledRows | None

    @property
    def named(self) -> list[tuple[LabeledRows, str]]:
        """All that there are, with what they are called."""
        every = ((self.test, TEST), (self.held, HELD), (self.train, OWN_ROWS))
        return [(rows, name) for rows, name in every if rows is not None]


def split_rows(request: TrainRequest, inputs: TrainingInputs, model: Model, cache: Path) -> RowSets:
    """Rows are held out by a keyed hash of what is in them, so that one that comes or goes moves no other."""
    data = inputs.train
    if data is None:
        raise InvalidInput("data", "was not read")
    facts = inputs.facts
    share = request.training_share(has_test_rows=facts.has_test_rows)
    train, held = (data, None) if share == 1 else _split(data, 1 - share)
    test = None
    if inputs.test is not None:
        digest, by_user = public_rows_digest(inputs.test, facts.classes), facts.whose is Whose.USER
        test = replace(_rows(inputs, model, inputs.test, cache), digest=digest, by_user=by_user)
    return RowSets(
        _rows(inputs, model, train, cache), None if held is None else _rows(inputs, model, held, cache), test
    )


def _split(data: Data, share: float) -> tuple[Data, Data]:
    if isinstance(data, Table):
        return hold_out(data, share, key=_KEY)
    return hold_out(data, share, key=_KEY)


def _rows(inputs: TrainingInputs, model: Model, data: Data, cache: Path) -> LabeledRows:
    x, y = torch.from_numpy(data.x), torch.from_numpy(np.asarray(data.y))
    facts = inputs.facts
    if facts.kind is DataKind.TABLE:
        label = None if facts.schema is None else facts.schema.label
        users = data.users if isinstance(data, Table) else None
        return LabeledRows(x, y, label if isinstance(label, Number) else None, users)
    with torch.no_grad():
        return LabeledRows(
            model.front.cached(x, cache) if isinstance(model.front, Pictures) else model.front(x), y, None
        )
