"""The rows of a run: those that it was trained on, and others that it never saw."""

from __future__ import annotations

import shlex
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from privet.attacks import Pool, overlapping_rows
from privet.core import InvalidInput
from privet.data import NAMES, Images, Table, named, read
from privet.report import CARD, INTERNAL_CARD, PATE, Remembered, TrainingCard, load
from privet.runs.directory import RunDirectory
from privet.runs.inputs import TrainingInputs, arrays_in, images_of, with_schema
from privet.runs.provenance import require_same_rows
from privet.runs.request import TrainRequest
from privet.runs.row_sets import HELD, TEST, split_rows
from privet.training.models import Model, ModelDescription, Pictures, restore

__all__ = ["AttackedRun", "open_attacked_run", "require_finished"]

_Rows = tuple[Tensor, Tensor]
_FEWEST = 4
"""Of both: half of them teach the blind baseline."""


@dataclass(frozen=True, eq=False)
class AttackedRun:
    """A run, and everything that an attack on its members needs. All of it is private."""

    card: TrainingCard
    """With what is internal, where that is there."""
    model: Model = field(repr=False)
    """The model that was released, from rows and pictures on."""
    described: ModelDescription
    pool: Pool = field(repr=False)
    """By features: what the model's head takes."""
    outside: str
    """Who the outsiders are."""
    left_out: tuple[int, int]
    """Members and outsiders that are not the only ones of their values, and so were left out."""
    unknown: int
    """Outsiders whose label is none of the run's classes."""
    folder: Path
    """Of the run."""
    means: dict[int, Tensor] = field(repr=False)
    """The mean picture of the members of each class, on [0, 1]; none of tables."""

    @property
    def head(self) -> nn.Module:
        """The model from features on."""
        return self.model.head

    @property
    def classes(self) -> int:
        """Number of classes."""
        return len(self.described.classes)


@dataclass(frozen=True, eq=False)
class _Side:
    """Members or outsiders, as the model's head takes them; pictures also as they were."""

    rows: _Rows
    raw: _Rows | None
    unknown: int = 0


def open_attacked_run(run: Path, data: str | None, outsiders: str | None, data_dir: Path | None) -> AttackedRun:
    """Find members and non-members: by what the run has recorded, and by the given files.

    Args:
        run: Run directory.
        data: Path or name of the rows that the run was trained on; None for the recorded ones.
        outsiders: Path or name of rows that the run was not trained on; None for the run's test or held-out rows.
        data_dir: Directory of named data sets.

    Raises:
        InvalidInput: The run has no classes, rows are not those of the run, or given non-members are members.
    """
    require_finished(run)
    model, described = restore(run)
    if not described.classes:
        problem = f"is {str(run)!r}, which predicts a number"
        raise InvalidInput("run", problem, "attack a run with classes: these attacks compare their scores")
    card = load(run, internal=(run / INTERNAL_CARD).exists())
    with tempfile.TemporaryDirectory(prefix="privet-") as cache:
        place = Path(cache)
        others = None if outsiders is None else _read("outsiders", outsiders, data_dir, described, model, place)
        outside = "" if outsiders is None else f"the rows of {Path(outsiders).name}"
        if card.remembered is not None:
            asked, inputs = _found(card.remembered.value, described, data, data_dir)
            if inputs.train is not None:
                require_same_rows(card.remembered.value, inputs.train)
            members, own, whose = _own(asked, inputs, model, described, place)
        elif card.method.value == PATE and card.data.value in NAMES and data in (None, card.data.value):
            members, own, whose = _of_teachers(card.data.value, data_dir, model, described, place)
        else:
            members, own, whose = _given(run, data, data_dir, others, described, model, place), None, ""
        if others is None and own is None:
            problem = "are missing: the run held no rows out, and had no test file"
            raise InvalidInput("outsiders", problem, "give a file of rows that the run never saw")
    found = others or own or members
    inside, outer, left_out = _apart(members.rows, found.rows, given=others is not None)
    return AttackedRun(
        card,
        model.eval(),
        described,
        Pool.of(inside, outer),
        outside or whose,
        left_out,
        found.unknown,
        run,
        _means(members.raw, described),
    )


def require_finished(run: Path) -> None:
    """Refuse a run that was started and not finished: it has no model and no card yet, and can be resumed.

    Args:
        run: Run directory.

    Raises:
        InvalidInput: The run is unfinished.
    """
    if RunDirectory(run).unfinished and not (run / CARD).exists():
        again = f"privet train --resume --out {shlex.quote(str(run))}"
        problem = f"is {str(run)!r}, which is unfinished"
        raise InvalidInput("run", problem, f"go on with: {again}")


def _apart(members: _Rows, others: _Rows, *, given: bool) -> tuple[_Rows, _Rows, tuple[int, int]]:
    """Both without rows that nobody can tell apart; given outsiders that are members are refused.

    Rows of few values meet by chance. If outsiders alone lost theirs, common values would be members' values, and if
    both lost those that meet a row of the other side, the smaller side would lose more. So where any two meet, a row
    stays if it is the only one of its values on both sides together: which rows stay then does not depend on who was
    in, so that members and outsiders of one population stay alike.
    """
    shared = int(overlapping_rows(members, others).sum())
    if not shared:
        return members, others, (0, 0)
    if given:
        problem = f"hold {shared:,} of {len(others[1]):,} that are members, too"
        raise InvalidInput("outsiders", problem, "leave them out of the file: nothing can tell them apart")
    features = torch.cat([members[0], others[0]]).flatten(1).double() + 0.0  # −0 is 0
    every = torch.cat([features, torch.cat([members[1], others[1]]).double()[:, None]], 1)
    _, which, counts = torch.unique(every, dim=0, return_inverse=True, return_counts=True)
    inside, outer = (counts[which] == 1).split([len(members[1]), len(others[1])])
    for side, name in ((inside, "members"), (outer, "outsiders")):
        if int(side.sum()) < _FEWEST:
            problem = f"are too few: of {len(side):,} {name} {int(side.sum()):,} have values that no other row has"
            raise InvalidInput("outsiders", problem, "give others: with so few values nothing can be told apart")
    left_out = int((~inside).sum()), int((~outer).sum())
    return (members[0][inside], members[1][inside]), (others[0][outer], others[1][outer]), left_out


def _means(raw: _Rows | None, described: ModelDescription) -> dict[int, Tensor]:
    if raw is None:
        return {}
    pictures, labels = raw
    known = [label for label in range(len(described.classes)) if bool((labels == label).any())]
    return {label: pictures[labels == label].double().mean(0) / described.peak for label in known}


def _own(
    asked: TrainRequest, inputs: TrainingInputs, model: Model, described: ModelDescription, place: Path
) -> tuple[_Side, _Side | None, str]:
    """Members and outsiders of a run that remembers its rows."""
    parts = split_rows(asked, inputs, model, place)
    done = described.shape is not None
    members = _side(model, parts.train.x, parts.train.y, described, done=done)
    if done:
        raw = split_rows(asked, inputs, Model(nn.Identity(), model.head, model.family), place).train
        members = replace(members, raw=(raw.x, raw.y))
    rows = parts.test if parts.test is not None else parts.held
    own = None if rows is None else _side(model, rows.x, rows.y, described, done=done)
    return members, own, TEST if parts.test is not None else HELD


def _of_teachers(
    name: str, data_dir: Path | None, model: Model, described: ModelDescription, place: Path
) -> tuple[_Side, _Side | None, str]:
    """Of a run of PATE on a named set: its teachers' rows, and public rows that they were not asked about."""
    request = TrainRequest(data=name, method="pate", data_dir=None if data_dir is None else str(data_dir))
    inputs = TrainingInputs.of(request)
    if inputs.train is None or inputs.test is None:
        raise InvalidInput("data", "was not read")
    members, others = (_side_of(data, described, model, place) for data in (inputs.train, inputs.test))
    return members, others, f"rows of the test part of {name} that the teachers were not asked about"


def _given(
    run: Path,
    data: str | None,
    data_dir: Path | None,
    others: _Side | None,
    described: ModelDescription,
    model: Model,
    place: Path,
) -> _Side:
    """Members of a folder that does not remember its rows, such as one that was shared."""
    if data is None or others is None:
        name = "data" if data is None else "outsiders"
        problem = f"is missing, and {str(run)!r} does not remember its rows"
        raise InvalidInput(name, problem, "give --data with the rows it learned from, and --outsiders with others")
    return _read("data", data, data_dir, described, model, place)


def _found(
    remembered: Remembered, described: ModelDescription, data: str | None, data_dir: Path | None
) -> tuple[TrainRequest, TrainingInputs]:
    asked = _asked(TrainRequest.from_json(remembered.asked), described, data, data_dir)
    return asked, _inputs(asked, described)


def _asked(asked: TrainRequest, described: ModelDescription, data: str | None, data_dir: Path | None) -> TrainRequest:
    changed = asked if data is None else replace(asked, data=data)
    changed = changed if data_dir is None else replace(changed, data_dir=str(data_dir))
    if changed.data not in NAMES and not Path(changed.data).exists():
        problem = f"is {changed.data!r}, which is not there any more"
        raise InvalidInput("data", problem, "say where the rows lie now: --data FILE")
    if changed.schema is not None and not Path(changed.schema).exists() and described.table is not None:
        # The model has the same schema.
        changed = replace(changed, schema=None, target=described.table.target)
    return changed


def _inputs(asked: TrainRequest, described: ModelDescription) -> TrainingInputs:
    found = TrainingInputs.of(asked)
    schema = described.table
    return with_schema(found, asked, schema) if found.source is not None and schema is not None else found


def _read(
    argument: str, given: str, data_dir: Path | None, described: ModelDescription, model: Model, place: Path
) -> _Side:
    """Rows of a file like those of the run, or of a named set: its test part, for outsiders."""
    found: Table | Images
    unknown = 0
    if given in NAMES:
        whole = named(given, data_dir)
        found = whole.train if argument == "data" else whole.test
    elif not Path(given).exists():
        problem = f"is {given!r}, which is neither a file nor one of {', '.join(NAMES)}"
        raise InvalidInput(argument, problem, "check the path")
    elif described.table is not None:
        found = read(given, replace(described.table, user=None, most_rows_per_user=None))
    else:
        found = images_of(Path(given), described.classes, None, argument)
        _, labels = arrays_in(Path(given), ("x", "y"), argument)
        unknown = len(labels) - len(found.x)
    shape = (
        described.shape if described.shape is not None else (len(described.table.features) if described.table else 0,)
    )
    if found.y is None or tuple(found.x.shape[1:]) != tuple(shape):
        problem = f"holds rows of shape {tuple(found.x.shape[1:])}, and the run learned from {tuple(shape)}"
        raise InvalidInput(argument, problem, "give rows like those")
    side = _side_of(found, described, model, place)
    return replace(side, unknown=side.unknown + unknown)


def _side_of(found: Table | Images, described: ModelDescription, model: Model, place: Path) -> _Side:
    x, y = torch.from_numpy(found.x), torch.from_numpy(np.asarray(found.y))
    if described.shape is None:
        return _side(model, x, y, described, done=False)
    if isinstance(model.front, Pictures):
        side = _side(model, model.front.cached(x, place), y, described, done=True)
    else:
        side = _side(model, x, y, described, done=False)
    return replace(side, raw=(x, y))


@torch.no_grad()
def _side(model: Model, x: Tensor, y: Tensor, described: ModelDescription, *, done: bool) -> _Side:
    """What the model's head takes, of rows whose class is known."""
    known = (y >= 0) & (y < len(described.classes))
    rows, labels = x[known], y[known].long()
    return _Side((rows if done else model.front(rows), labels), None, int((~known).sum()))
