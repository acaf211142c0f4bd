"""The rows of a run: those that it was trained on, and others that it never saw."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from privet.attacks.pool import Pool, twins
from privet.cli.training.asked import Asked
from privet.cli.training.inputs import Inputs, images_of, with_schema
from privet.cli.training.parts import HELD, TEST, parts_of
from privet.cli.training.remembered import require_same_rows
from privet.core.errors import InvalidInput
from privet.data import NAMES, Images, Table, named, read
from privet.report import Remembered, TrainingCard, load
from privet.report.runs import INTERNAL_CARD
from privet.training.models import Described, Model, Pictures, restore

__all__ = ["Attackable", "attackable", "remembered_inputs"]

_Rows = tuple[Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class Attackable:
    """A run, and everything that an attack on its members needs. All of it is private."""

    card: TrainingCard
    """With what is internal, where that is there."""
    head: nn.Module = field(repr=False)
    """The model that was released, from features on."""
    described: Described
    pool: Pool = field(repr=False)
    outside: str
    """Who the outsiders are."""
    left_out: int
    """Outsiders that are members too, by their values, and so were left out."""
    asked: Asked | None
    inputs: Inputs | None = field(repr=False)
    """What the run was asked for and read, where it remembers."""

    @property
    def classes(self) -> int:
        """How many there are."""
        return len(self.described.classes)


def attackable(run: Path, data: str | None, outsiders: str | None, data_dir: Path | None) -> Attackable:
    """Find members and outsiders: by what the run remembers, and by what is given.

    Raises where the run has no classes, where rows are not those of the run, and where given outsiders are members.
    """
    model, described = restore(run)
    if not described.classes:
        problem = f"is {str(run)!r}, which predicts a number"
        raise InvalidInput("run", problem, "attack a run with classes: these attacks compare their scores")
    card = load(run, internal=(run / INTERNAL_CARD).exists())
    asked = inputs = None
    with tempfile.TemporaryDirectory(prefix="privet-") as cache:
        place = Path(cache)
        others = None if outsiders is None else _read("outsiders", outsiders, data_dir, described, model, place)
        if card.remembered is None:
            members, others, outside = _given(run, data, data_dir, outsiders, others, described, model, place)
        else:
            asked, inputs = _found(card.remembered.value, described, data, data_dir)
            if inputs.train is not None:
                require_same_rows(card.remembered.value, inputs.train)
            parts = parts_of(asked, inputs, model, place)
            own = parts.test if parts.test is not None else parts.held
            outside = TEST if parts.test is not None else HELD
            members = _features(model, parts.train.x, parts.train.y, described, done=described.shape is not None)
            if others is not None:
                outside = f"the rows of {Path(outsiders or '').name}"
            elif own is None:
                problem = "are missing: the run held no rows out, and had no test file"
                raise InvalidInput("outsiders", problem, "give a file of rows that the run never saw")
            else:
                others = _features(model, own.x, own.y, described, done=described.shape is not None)
    both = twins(members, others)
    if outsiders is None and both.any():
        # Rows of few values meet by chance; nobody can say of them whether they were in.
        if both.all():
            problem = f"are {len(both):,}, and all of them look like members to the model"
            raise InvalidInput("outsiders", problem, "give others: with so few values nothing can be told apart")
        keep = torch.from_numpy(~both)
        others = others[0][keep], others[1][keep]
    left_out = int(both.sum()) if outsiders is None else 0
    pool = Pool.of(members, others)
    return Attackable(card, model.head.eval(), described, pool, outside, left_out, asked, inputs)


def _given(
    run: Path,
    data: str | None,
    data_dir: Path | None,
    outsiders: str | None,
    others: _Rows | None,
    described: Described,
    model: Model,
    place: Path,
) -> tuple[_Rows, _Rows, str]:
    """Members and outsiders of a folder that does not remember its rows, such as one that was shared."""
    if data is None or others is None:
        name = "data" if data is None else "outsiders"
        problem = f"is missing, and {str(run)!r} does not remember its rows"
        raise InvalidInput(name, problem, "give --data with the rows it learned from, and --outsiders with others")
    members = _read("data", data, data_dir, described, model, place)
    return members, others, f"the rows of {Path(outsiders or '').name}"


def remembered_inputs(card: TrainingCard, described: Described) -> tuple[Asked | None, Inputs | None]:
    """What the run was asked for, and its data as they lie now; nothing where it does not remember."""
    if card.remembered is None:
        return None, None
    return _found(card.remembered.value, described, None, None)


def _found(
    remembered: Remembered, described: Described, data: str | None, data_dir: Path | None
) -> tuple[Asked, Inputs]:
    asked = _asked(Asked.from_json(remembered.asked), data, data_dir)
    return asked, _inputs(asked, described)


def _asked(asked: Asked, data: str | None, data_dir: Path | None) -> Asked:
    changed = asked if data is None else replace(asked, data=data)
    changed = changed if data_dir is None else replace(changed, data_dir=str(data_dir))
    if changed.data not in NAMES and not Path(changed.data).exists():
        problem = f"is {changed.data!r}, which is not there any more"
        raise InvalidInput("data", problem, "say where the rows lie now: --data FILE")
    return changed


def _inputs(asked: Asked, described: Described) -> Inputs:
    found = Inputs.of(asked)
    schema = described.table
    return with_schema(found, asked, schema) if found.source is not None and schema is not None else found


def _read(argument: str, given: str, data_dir: Path | None, described: Described, model: Model, place: Path) -> _Rows:
    """Rows of a file like those of the run, or of the test part of a named set."""
    found: Table | Images
    if given in NAMES:
        found = named(given, data_dir).test
    elif not Path(given).exists():
        problem = f"is {given!r}, which is neither a file nor one of {', '.join(NAMES)}"
        raise InvalidInput(argument, problem, "check the path")
    elif described.table is not None:
        found = read(given, replace(described.table, user=None, most_rows_per_user=None))
    else:
        found = images_of(Path(given), described.classes, None)
    shape = (
        described.shape if described.shape is not None else (len(described.table.features) if described.table else 0,)
    )
    if found.y is None or tuple(found.x.shape[1:]) != tuple(shape):
        problem = f"holds rows of shape {tuple(found.x.shape[1:])}, and the run learned from {tuple(shape)}"
        raise InvalidInput(argument, problem, "give rows like those")
    x = torch.from_numpy(found.x)
    if described.shape is not None and isinstance(model.front, Pictures):
        x = model.front.cached(x, place)
        return _features(model, x, torch.from_numpy(found.y), described, done=True)
    return _features(model, x, torch.from_numpy(found.y), described, done=False)


@torch.no_grad()
def _features(model: Model, x: Tensor, y: Tensor, described: Described, *, done: bool) -> _Rows:
    """What the model's head takes, of rows whose class is known."""
    known = (y >= 0) & (y < len(described.classes))
    rows, labels = x[known], y[known].long()
    return (rows if done else model.front(rows)), labels
