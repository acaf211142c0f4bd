"""What teachers learn from, what they are asked about, and what a student is tried on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from privet.core.errors import InvalidInput
from privet.core.unit import Unit, Whose
from privet.data import NAMES, Category, Identifier, Schema, Table, draft, named, read
from privet.ensemble import shuffled_order
from privet.runs.inputs import Data, arrays_in, images_of, require_labels, schema_of
from privet.runs.overlap import require_other_file, require_other_rows
from privet.runs.pate.request import PateRequest
from privet.training.models import Family, Pictures, choose

__all__ = ["PateInputs", "cached_features"]

_OTHER_PUBLIC, _OTHER_TEST = "ask about rows that need no protection", "test on rows that need no protection"
_ASKED = 0.9
"""Of a named set's public part: the others test the student."""


@dataclass(frozen=True, eq=False)
class PateInputs:
    """Private rows, public rows, and what is public of both."""

    name: str
    classes: tuple[str, ...]
    schema: Schema | None
    shape: tuple[int, ...] | None
    """Of a picture."""
    peak: int
    rows: int | None
    """A public number of private rows."""
    public: npt.NDArray[Any] = field(repr=False)
    """Rows that anybody may see."""
    private: Data | None = field(default=None, repr=False)
    """None where votes come as files."""
    test: Data | None = field(default=None, repr=False)
    drafted: bool = False
    """Whether the schema was read from the public file."""

    @property
    def unit(self) -> Unit:
        """What is protected: a row, or a user, all of whose rows are with one teacher."""
        by_user = self.schema is not None and self.schema.user is not None
        return Unit(whose=Whose.USER if by_user else Whose.EXAMPLE)

    @property
    def rows_per_user(self) -> int | None:
        """How many rows a unit has, if that is bounded."""
        return 1 if self.unit.whose is Whose.EXAMPLE or self.schema is None else self.schema.most_rows_per_user

    def front(self) -> nn.Module:
        """Features that no private row has touched."""
        return choose(self.schema or self.shape or (), len(self.classes), 1, Family.LINEAR, peak=self.peak).front

    @staticmethod
    def of(wanted: PateRequest) -> PateInputs:
        """Read everything."""
        if wanted.data in NAMES:
            return _named(wanted)
        if wanted.public is None:
            raise InvalidInput("public", "is missing", "name a file of public rows, about which teachers are asked")
        _require_file("data", wanted.data)
        _require_file("public", wanted.public)
        require_other_file(wanted.data, wanted.public, "public", _OTHER_PUBLIC)
        if wanted.test is not None:
            _require_file("test", wanted.test)
            require_other_file(wanted.data, wanted.test, "test", _OTHER_TEST)
        found = _pictures(wanted) if Path(wanted.public).suffix == ".npz" else _table(wanted)
        require_labels(found.test, found.classes)
        _require_others(found)
        return found


def _require_others(found: PateInputs) -> None:
    """Public rows, which have no labels, and test rows are not the private ones again."""
    private = found.private
    if private is None:
        return
    require_other_rows((private.x,), (found.public,), "public", _OTHER_PUBLIC)
    if found.test is not None and private.y is not None and found.test.y is not None:
        require_other_rows((private.x, private.y), (found.test.x, found.test.y), "test", _OTHER_TEST)


def cached_features(front: nn.Module, rows: npt.NDArray[Any], cache: Path) -> Tensor:
    """Features of rows; those of pictures are kept in a file that its owner alone can read."""
    found = torch.from_numpy(rows)
    with torch.no_grad():
        features: Tensor = front.cached(found, cache) if isinstance(front, Pictures) else front(found)
    return features


def _named(wanted: PateRequest) -> PateInputs:
    for name in ("schema", "target", "public", "test", "rows", "user", "classes"):
        if getattr(wanted, name):
            raise InvalidInput(name, f"is given, and {wanted.data} has its own", "leave it out")
    found = named(wanted.data, wanted.data_dir, download=wanted.download)
    order = shuffled_order(len(found.test), key="privet pate")
    asked = round(_ASKED * len(order))
    private, test = found.train, found.test.take(order[asked:])
    public = found.test.x[order[:asked]]
    if isinstance(private, Table):
        schema = private.schema
        return PateInputs(wanted.data, schema.classes, schema, None, 1, schema.rows, public, private, test)
    shape = private.x.shape[1:]
    return PateInputs(wanted.data, private.classes, None, shape, private.peak, private.rows, public, private, test)


def _table(wanted: PateRequest) -> PateInputs:
    drafted = wanted.schema is None
    schema = _drafted(wanted) if drafted else _classes(schema_of(wanted.schema, wanted.target, wanted.rows), wanted)
    private = read(wanted.data, schema) if wanted.data else None
    plain = replace(schema, user=None, most_rows_per_user=None)
    test = None if wanted.test is None else read(wanted.test, plain)
    public = read(wanted.public or "", schema, labelled=False).x
    return PateInputs(wanted.title, schema.classes, schema, None, 1, schema.rows, public, private, test, drafted)


def _drafted(wanted: PateRequest) -> Schema:
    """The public file needs no protection, so that bounds and values may be read from it."""
    if wanted.target is None:
        raise InvalidInput("target", "is missing", "name the column that is to be predicted")
    path = wanted.public or ""
    header = draft(path).schema
    has = header.find(wanted.target) is not None
    found = draft(path, wanted.target).schema if has else header
    columns: list[Any] = [
        column if isinstance(column, Identifier) else replace(column, source="public data")
        for column in found.columns
        if column.name != wanted.target
    ]
    label = found.find(wanted.target) if has else None
    values = wanted.classes or (label.values if isinstance(label, Category) else ())
    if len(values) < 2:
        where = "has no values to choose from in the public file" if has else "is not in the public file"
        problem = f"is {wanted.target!r}, which {where}"
        raise InvalidInput("target", problem, "list its values: --classes no,yes")
    if wanted.user is not None:
        columns = [column for column in columns if column.name != wanted.user]
        columns.append(Identifier(wanted.user))
    source = "domain limit" if wanted.classes else "public data"
    columns.append(Category(wanted.target, tuple(values), source=source))
    return Schema(
        tuple(columns),
        wanted.target,
        user=wanted.user,
        rows=wanted.rows,
        missing=found.missing,
        separator=found.separator,
    )


def _classes(schema: Schema, wanted: PateRequest) -> Schema:
    for name in ("user", "classes"):
        if getattr(wanted, name):
            raise InvalidInput(name, "is given, and so is a schema", "say it in the schema")
    if not schema.classes:
        problem = f"is {schema.target!r}, a number"
        raise InvalidInput("target", problem, "teachers vote for classes: use privet train for numbers")
    return schema


def _pictures(wanted: PateRequest) -> PateInputs:
    for name in ("schema", "target", "user"):
        if getattr(wanted, name):
            raise InvalidInput(name, "is for tables", "leave it out")
    if len(wanted.classes) < 2:
        raise InvalidInput("classes", "are missing", "list all labels of the pictures: --classes cat,dog")
    public = _only_pictures(Path(wanted.public or ""))
    private = images_of(Path(wanted.data), wanted.classes, wanted.rows) if wanted.data else None
    test = None if wanted.test is None else images_of(Path(wanted.test), wanted.classes, None, "test")
    _same_shape(public, (("data", private), ("test", test)))
    return PateInputs(wanted.title, wanted.classes, None, public.shape[1:], 255, wanted.rows, public, private, test)


def _same_shape(public: npt.NDArray[Any], others: Sequence[tuple[str, Data | None]]) -> None:
    for name, data in others:
        if data is not None and data.x.shape[1:] != public.shape[1:]:
            raise InvalidInput(name, "has pictures of another shape than --public", "give pictures like those")


def _only_pictures(path: Path) -> npt.NDArray[Any]:
    (x,) = arrays_in(path, ("x",), "public")
    if x.dtype != np.uint8 or x.ndim not in (3, 4):
        problem = f"is {str(path)!r}, whose x is {x.dtype} of shape {x.shape[1:]} a picture"
        raise InvalidInput("public", problem, "give uint8 [n, height, width] or [n, colours, height, width]")
    return x


def _require_file(argument: str, path: str) -> None:
    if path and not Path(path).exists():
        names = f" nor one of {', '.join(NAMES)}" if argument == "data" else ""
        raise InvalidInput(argument, f"is {path!r}, which is no file{names}", "check the path")
