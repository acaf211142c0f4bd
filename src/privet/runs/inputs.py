"""The data of a run: what is public of it, and then its rows."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core.errors import InvalidInput
from privet.data import (
    NAMES,
    Category,
    ColumnKind,
    Images,
    Learning,
    Schema,
    Source,
    Table,
    learning,
    load_schema,
    named,
    read,
    require_vouched,
)
from privet.runs.facts import PublicFacts
from privet.runs.methods.table import METHODS
from privet.runs.overlap import require_other_file, require_other_records, require_other_rows
from privet.runs.request import TrainRequest

__all__ = [
    "Data",
    "TrainingInputs",
    "arrays_in",
    "images_of",
    "learning_plan",
    "require_labels",
    "schema_of",
    "with_schema",
]

Data = Table | Images
_NAMED = {("x", "y"): "the arrays x and y", ("x",): "an array x"}
_SAVED = {
    ("x", "y"): "save them with numpy.savez(path, x=pictures, y=labels)",
    ("x",): "save pictures with numpy.savez(path, x=pictures)",
}
_PAID_SCORE = "leave it out: a part of the rows is held out, and the score is paid for"


@dataclass(frozen=True, eq=False)
class TrainingInputs:
    """A data set: what is public of it, and its rows."""

    facts: PublicFacts
    source: Source | None = None
    """A table whose schema is not known yet."""
    train: Data | None = field(default=None, repr=False)
    """The private rows, where they could be read already."""
    test: Data | None = field(default=None, repr=False)
    """Public rows to evaluate on."""

    @property
    def needs_schema(self) -> bool:
        """Whether a schema has to be learned before anything else."""
        return self.source is not None and not self.facts.is_schema_released

    @staticmethod
    def of(request: TrainRequest) -> TrainingInputs:
        """Open the data; a named set and a table with a public schema are read at once."""
        if request.data in NAMES:
            return _named(request)
        path = Path(request.data)
        if not path.exists():
            problem = f"is {request.data!r}, which is neither a file nor one of {', '.join(NAMES)}"
            raise InvalidInput("data", problem, "check the path")
        if path.suffix == ".npz":
            return _pictures(request, path)
        return _table(request, path)


def learning_plan(inputs: TrainingInputs, request: TrainRequest, epsilon: float, delta: float) -> Learning:
    """Return the plan to learn the schema of a table for (ε, δ)."""
    if inputs.source is None:
        raise InvalidInput("schema", "is known already")
    kinds = dict(_kind(column, kind) for column, kind in request.kinds)
    # Which scores there are follows from the target's kind, so that kind is public: a category, unless it is said.
    kinds.setdefault(request.target or "", ColumnKind.CATEGORY)
    if not request.schema_share:
        raise InvalidInput("schema_share", "is 0, and there is no schema", "give --schema, or a share such as 0.1")
    return learning(
        inputs.source,
        request.target,
        epsilon=epsilon,
        delta=delta,
        kinds=kinds,
        user=request.user,
        most_rows_per_user=request.rows_per_user,
    )


def with_schema(inputs: TrainingInputs, request: TrainRequest, schema: Schema) -> TrainingInputs:
    """The same data with a schema that was learned: its rows are read by it."""
    facts = replace(
        inputs.facts,
        schema=schema,
        classes=schema.classes,
        rows=request.rows or schema.rows,
        is_schema_released=True,
        has_test_rows=request.test is not None,
    )
    test = None if request.test is None else _test(request, schema)
    require_labels(test, schema.classes)
    return replace(inputs, facts=facts, train=read(request.data, schema), test=test)


def _named(request: TrainRequest) -> TrainingInputs:
    for name in ("schema", "target", "test", "rows", "user", "kinds", "classes"):
        if getattr(request, name):
            raise InvalidInput(name, f"is given, and {request.data} has its own", "leave it out")
    found = named(request.data, request.data_dir, download=request.download)
    train, test = found.train, found.test
    if isinstance(train, Table):
        schema = train.schema
        facts = PublicFacts(request.data, schema, schema.classes, None, 1, schema.rows, has_test_rows=True)
    else:
        shape = train.x.shape[1:]
        facts = PublicFacts(request.data, None, train.classes, shape, train.peak, train.rows, has_test_rows=True)
    return TrainingInputs(facts, train=train, test=test)


def _table(request: TrainRequest, path: Path) -> TrainingInputs:
    if request.classes:
        raise InvalidInput("classes", "are for pictures", "list the target's values in a schema")
    if request.schema is None:
        source = Source.of(path)
        if request.target is None:
            raise InvalidInput("target", "is missing", "name the column that is to be predicted")
        source.require([request.target], "the target")
        if request.test is not None:
            require_other_records(request.data, request.test, "test", _PAID_SCORE)
        facts = PublicFacts(path.name, None, (), None, 1, None, has_test_rows=request.test is not None)
        return TrainingInputs(facts, source=source)
    for name in ("kinds", "user", "rows_per_user"):
        if getattr(request, name):
            raise InvalidInput(name, "is given, and so is a schema", "say it in the schema")
    schema = schema_of(request.schema, request.target, request.rows)
    if schema.user is not None and schema.most_rows_per_user is None:
        problem = "names a user, and not how many rows of each are used"
        raise InvalidInput("schema", problem, "add most_rows_per_user = 3, or another number, at its top")
    if request.test is not None:
        require_other_file(request.data, request.test, "test", _PAID_SCORE)
    # Where every record makes a report of its own, one without a target makes one, too.
    train = read(path, schema, every_row=not METHODS[request.method].has_central_trust)
    test = None if request.test is None else _test(request, schema)
    require_labels(test, schema.classes)
    # With input perturbation, nobody may look at rows as they are.
    if test is not None and METHODS[request.method].has_central_trust:
        require_other_rows(_labelled(train), _labelled(test), "test", _PAID_SCORE)
    facts = PublicFacts(path.name, schema, schema.classes, None, 1, schema.rows, has_test_rows=test is not None)
    return TrainingInputs(facts, train=train, test=test)


def schema_of(place: str | None, target: str | None, rows: int | None) -> Schema:
    """The schema of a file, with a target and a number of rows that were given beside it."""
    schema = load_schema(place or "")
    require_vouched(schema, place or "")
    if target is not None:
        schema = replace(schema, target=target)
    if rows is not None:
        schema = replace(schema, rows=rows)
    if schema.label is None:
        raise InvalidInput("target", "is missing", "name the column that is to be predicted, here or in the schema")
    if isinstance(schema.label, Category) and len(schema.classes) < 2:
        problem = f"is {schema.target!r}, which has fewer than two values in the schema"
        raise InvalidInput("target", problem, "list all of its values there")
    return schema


def require_labels(test: Data | None, classes: tuple[str, ...]) -> None:
    """Refuse test rows, which are public, of which none has a label that is known."""
    if test is not None and not len(test):
        what = f"none of the labels {', '.join(classes)}" if classes else "no number to be predicted"
        raise InvalidInput("test", f"has {what}", "check the labels: they are compared by their names")


def _labelled(data: Data) -> tuple[npt.NDArray[Any], ...]:
    return (data.x,) if data.y is None else (data.x, data.y)


def _test(request: TrainRequest, schema: Schema) -> Table:
    # Whose a public row is does not matter, and every one of them counts.
    plain = replace(schema, user=None, most_rows_per_user=None)
    return read(request.test or "", plain)


def _pictures(request: TrainRequest, path: Path) -> TrainingInputs:
    for name in ("schema", "target", "user", "kinds"):
        if getattr(request, name):
            raise InvalidInput(name, "is for tables", "leave it out")
    if len(request.classes) < 2:
        raise InvalidInput("classes", "are missing", "list all labels of the pictures: --classes cat,dog")
    train = images_of(path, request.classes, request.rows)
    if request.test is not None:
        require_other_file(request.data, request.test, "test", _PAID_SCORE)
    test = None if request.test is None else images_of(Path(request.test), request.classes, None, "test")
    require_labels(test, request.classes)
    if test is not None and test.x.shape[1:] != train.x.shape[1:]:
        raise InvalidInput("test", "has pictures of another shape", "give pictures like those to learn from")
    if test is not None:
        require_other_rows(_labelled(train), _labelled(test), "test", _PAID_SCORE)
    facts = PublicFacts(
        path.name, None, request.classes, train.x.shape[1:], train.peak, request.rows, has_test_rows=test is not None
    )
    return TrainingInputs(facts, train=train, test=test)


def arrays_in(path: Path, names: tuple[str, ...], argument: str) -> list[npt.NDArray[Any]]:
    """Arrays of a file that `numpy.savez` wrote; whatever is wrong with the file is one line."""
    try:
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as found:
            return [found[name] for name in names]
    # What a file may be that was cut, changed, locked or packed otherwise, or one that is none of numpy's.
    except (
        OSError,
        ValueError,
        KeyError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
        RuntimeError,
        SyntaxError,
    ):
        problem = f"is {str(path)!r}, which does not hold {_NAMED[names]}"
        raise InvalidInput(argument, problem, _SAVED[names]) from None


def images_of(path: Path, classes: tuple[str, ...], rows: int | None, argument: str = "data") -> Images:
    """Pictures `x` (whole numbers up to 255) and labels `y`, each the name of a class."""
    x, y = arrays_in(path, ("x", "y"), argument)
    if x.dtype != np.uint8 or x.ndim not in (3, 4) or y.ndim != 1 or len(y) != len(x):
        problem = f"is {str(path)!r}, whose x is {x.dtype} of shape {x.shape[1:]} a picture"
        raise InvalidInput(
            argument, problem, "give uint8 [n, height, width] or [n, colours, height, width], and n labels"
        )
    codes = _codes(y, classes)
    known = codes >= 0
    return Images(x[known], codes[known], classes, rows)


def _codes(labels: npt.NDArray[Any], classes: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """The place of each label among the classes; -1 where it is none of them, and the picture is left out."""
    places = {name: place for place, name in enumerate(classes)}
    return np.array([places.get(_spelt(label), -1) for label in labels.tolist()], dtype=np.int64)


def _spelt(label: object) -> str:
    """A label by itself: one that is no number elsewhere turns all others into 1.0, 2.0, …"""
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label) if whole and isinstance(label, float) else label).strip()


def _kind(column: str, kind: str) -> tuple[str, ColumnKind]:
    known = {each.value: each for each in ColumnKind if each is not ColumnKind.UNKNOWN}
    if kind not in known:
        raise InvalidInput("kind", f"of {column!r} is {kind!r}", f"use one of: {', '.join(known)}")
    return column, known[kind]
