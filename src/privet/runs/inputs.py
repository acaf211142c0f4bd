"""The data of a run: what is public of it, and then its rows."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput
from privet.data import (
    NAMES,
    Category,
    ColumnKind,
    Identifier,
    Images,
    Learning,
    Schema,
    Source,
    Table,
    draft,
    learning,
    load_schema,
    named,
    read,
    require_vouched,
)
from privet.ensemble import shuffled_order
from privet.runs.facts import PublicFacts
from privet.runs.methods.registry import METHODS
from privet.runs.overlap import require_other_file, require_other_records, require_other_rows
from privet.runs.pate.vote_file import gather_votes, public_digest
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
_OTHER_PUBLIC = "ask about rows that need no protection"
_PEAK = 255
"""The largest value of a pixel in a file."""
_ASKED = 0.9
"""The part of a named set's public rows that is asked about; the others test the model."""
_PAID_SCORE = "leave it out: a part of the rows is held out, and the score is paid for"


@dataclass(frozen=True, eq=False)
class TrainingInputs:
    """A data set: its public facts, and its rows."""

    facts: PublicFacts
    source: Source | None = None
    """A table whose schema is not known yet."""
    train: Data | None = field(default=None, repr=False)
    """The private rows, where they could be read already."""
    test: Data | None = field(default=None, repr=False)
    """Public rows to evaluate on."""
    public: npt.NDArray[Any] | None = field(default=None, repr=False)
    """Public rows without labels."""
    votes: npt.NDArray[np.int32] | None = field(default=None, repr=False)
    """[public rows, teachers]: what teachers of other places say of every public row; private."""

    @property
    def needs_schema(self) -> bool:
        """Whether a schema has to be learned first."""
        return self.source is not None and not self.facts.is_schema_released

    @staticmethod
    def of(request: TrainRequest) -> TrainingInputs:
        """Open the data. A named data set, and a table with a public schema, are read at once.

        Args:
            request: The request of the run.

        Raises:
            InvalidInput: A file is missing or damaged, or an option does not fit it.
        """
        if request.data in NAMES:
            return _named(request)
        if METHODS[request.method].asks_public_rows and request.public is None:
            raise InvalidInput("public", "is missing", "name a file of public rows, about which teachers are asked")
        for name, path in (("data", request.data), ("public", request.public), ("test", request.test)):
            if path and not Path(path).exists():
                names = f"neither a file nor one of {', '.join(NAMES)}" if name == "data" else "no file"
                raise InvalidInput(name, f"is {path!r}, which is {names}", "check the path")
        for name, other, advice in (("public", request.public, _OTHER_PUBLIC), ("test", request.test, _PAID_SCORE)):
            if other is not None:
                require_other_file(request.data, other, name, advice)
        is_images = Path(request.public or request.data).suffix == ".npz"
        inputs = _pictures(request) if is_images else _table(request)
        require_labels(inputs.test, inputs.facts.classes)
        _require_other_rows(inputs, METHODS[request.method].has_central_trust)
        return _with_votes(inputs, request)


def learning_plan(inputs: TrainingInputs, request: TrainRequest, epsilon: float, delta: float) -> Learning:
    """Return the plan for learning the schema of a table under (ε, δ).

    Args:
        inputs: The data of the run.
        request: The request of the run.
        epsilon: ε that may be spent.
        delta: δ that may be spent.

    Raises:
        InvalidInput: The schema is known already, or no budget is set aside for it.
    """
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
    """Return the data with a learned schema, by which its rows are read.

    Args:
        inputs: The data of the run, without a schema.
        request: The request of the run.
        schema: The learned schema.

    Raises:
        InvalidInput: A file is damaged, or no test row has a known label.
    """
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
    for name in ("schema", "target", "public", "votes", "test", "rows", "user", "kinds", "classes"):
        if getattr(request, name):
            raise InvalidInput(name, f"is given, and {request.data} has its own", "leave it out")
    parts = named(request.data, request.data_dir, download=request.download)
    train, test, public = parts.train, parts.test, None
    if METHODS[request.method].asks_public_rows:
        order = shuffled_order(len(test), key="privet pate")
        asked = round(_ASKED * len(order))
        public, test = test.x[order[:asked]], test.take(order[asked:])
    if isinstance(train, Table):
        facts = PublicFacts(request.data, train.schema, train.schema.classes, None, 1, train.schema.rows)
    else:
        facts = PublicFacts(request.data, None, train.classes, train.x.shape[1:], train.peak, train.rows)
    return _inputs(facts, train, test, public)


def _inputs(
    facts: PublicFacts, train: Data | None, test: Data | None, public: npt.NDArray[Any] | None
) -> TrainingInputs:
    facts = replace(facts, has_test_rows=test is not None, public_rows=0 if public is None else len(public))
    return TrainingInputs(facts, train=train, test=test, public=public)


def _table(request: TrainRequest) -> TrainingInputs:
    method, path = METHODS[request.method], Path(request.data)
    if request.classes and not method.asks_public_rows:
        raise InvalidInput("classes", "are for pictures", "list the target's values in a schema")
    if request.schema is None and request.target is None:
        raise InvalidInput("target", "is missing", "name the column that is to be predicted")
    if request.schema is None and not method.asks_public_rows:
        source = Source.of(path)
        source.require([request.target or ""], "the target")
        if request.test is not None:
            require_other_records(request.data, request.test, "test", _PAID_SCORE)
        facts = PublicFacts(path.name, None, (), None, 1, None, has_test_rows=request.test is not None)
        return TrainingInputs(facts, source=source)
    schema = _drafted(request) if request.schema is None else _public_schema(request)
    # Where every record makes a report of its own, one without a target makes one, too.
    train = read(path, schema, every_row=not method.has_central_trust) if request.data else None
    test = None if request.test is None else _test(request, schema)
    public = None if request.public is None else read(request.public, schema, labelled=False).x
    facts = PublicFacts(request.title, schema, schema.classes, None, 1, schema.rows)
    return _inputs(replace(facts, is_schema_drafted=request.schema is None), train, test, public)


def _public_schema(request: TrainRequest) -> Schema:
    for name in ("kinds", "user", "rows_per_user", "classes"):
        if getattr(request, name):
            raise InvalidInput(name, "is given, and so is a schema", "say it in the schema")
    schema = schema_of(request.schema, request.target, request.rows)
    if METHODS[request.method].asks_public_rows:
        if not schema.classes:
            problem = f"is {schema.target!r}, a number"
            raise InvalidInput("target", problem, "teachers vote for classes: use another method for numbers")
    elif schema.user is not None and schema.most_rows_per_user is None:
        problem = "names a user, and not how many rows of each are used"
        raise InvalidInput("schema", problem, "add most_rows_per_user = 3, or another number, at its top")
    return schema


def _drafted(request: TrainRequest) -> Schema:
    """Read a schema from the public file, which needs no protection."""
    path, target = request.public or "", request.target or ""
    header = draft(path).schema
    has_target = header.find(target) is not None
    drafted = draft(path, target).schema if has_target else header
    columns: list[Any] = [
        column if isinstance(column, Identifier) else replace(column, source="public data")
        for column in drafted.columns
        if column.name not in (target, request.user)
    ]
    label = drafted.find(target) if has_target else None
    values = request.classes or (label.values if isinstance(label, Category) else ())
    if len(values) < 2:
        where = "has no values to choose from in the public file" if has_target else "is not in the public file"
        raise InvalidInput("target", f"is {target!r}, which {where}", "list its values: --classes no,yes")
    if request.user is not None:
        columns.append(Identifier(request.user))
    source = "domain limit" if request.classes else "public data"
    columns.append(Category(target, tuple(values), source=source))
    return Schema(
        tuple(columns),
        target,
        user=request.user,
        most_rows_per_user=request.rows_per_user,
        rows=request.rows,
        missing=drafted.missing,
        separator=drafted.separator,
    )


def _require_other_rows(inputs: TrainingInputs, has_central_trust: bool) -> None:
    """Refuse public rows that are the private ones; under local trust, nobody may read those to compare."""
    train, test = inputs.train, inputs.test
    if train is None or not has_central_trust:
        return
    if inputs.public is not None:
        require_other_rows((train.x,), (inputs.public,), "public", _OTHER_PUBLIC)
    if test is not None:
        require_other_rows(_labelled(train), _labelled(test), "test", _PAID_SCORE)


def _with_votes(inputs: TrainingInputs, request: TrainRequest) -> TrainingInputs:
    if not request.votes or inputs.public is None:
        return inputs
    facts = inputs.facts
    votes, are_disjoint = gather_votes(
        [Path(path) for path in request.votes],
        facts.classes,
        public_digest(inputs.public, facts.classes),
        len(inputs.public),
        None if facts.schema is None else facts.schema.user,
    )
    facts = replace(facts, voting_teachers=votes.shape[1], are_silos_disjoint=are_disjoint)
    return replace(inputs, facts=facts, votes=votes)


def schema_of(place: str | None, target: str | None, rows: int | None) -> Schema:
    """Return the schema of a file.

    Args:
        place: Path of the schema.
        target: Name of the target column, which replaces the schema's.
        rows: Public number of rows, which replaces the schema's.

    Raises:
        InvalidInput: The schema cannot be read, is not vouched for, or has no target, or one of fewer than two classes.
    """
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
    """Refuse public test rows of which none has a known label.

    Args:
        test: The test rows, or None.
        classes: Names of the classes; none for regression.

    Raises:
        InvalidInput: No test row has a known label.
    """
    if test is not None and not len(test):
        what = f"none of the labels {', '.join(classes)}" if classes else "no number to be predicted"
        raise InvalidInput("test", f"has {what}", "check the labels: they are compared by their names")


def _labelled(data: Data) -> tuple[npt.NDArray[Any], ...]:
    return (data.x,) if data.y is None else (data.x, data.y)


def _test(request: TrainRequest, schema: Schema) -> Table:
    # Whose a public row is does not matter, and every one of them counts.
    plain = replace(schema, user=None, most_rows_per_user=None)
    return read(request.test or "", plain)


def _pictures(request: TrainRequest) -> TrainingInputs:
    for name in ("schema", "target", "user", "kinds"):
        if getattr(request, name):
            raise InvalidInput(name, "is for tables", "leave it out")
    if len(request.classes) < 2:
        raise InvalidInput("classes", "are missing", "list all labels of the pictures: --classes cat,dog")
    train = images_of(Path(request.data), request.classes, request.rows) if request.data else None
    test = None if request.test is None else images_of(Path(request.test), request.classes, None, "test")
    public = None if request.public is None else _unlabeled_images(Path(request.public))
    pictures = {"data": None if train is None else train.x, "public": public, "test": None if test is None else test.x}
    shapes = {name: x.shape[1:] for name, x in pictures.items() if x is not None}
    shape = next(iter(shapes.values()))
    for name, other in shapes.items():
        if other != shape:
            raise InvalidInput(name, "has pictures of another shape", "give pictures like those to learn from")
    facts = PublicFacts(request.title, None, request.classes, shape, _PEAK, request.rows)
    return _inputs(facts, train, test, public)


def _unlabeled_images(path: Path) -> npt.NDArray[Any]:
    (x,) = arrays_in(path, ("x",), "public")
    if x.dtype != np.uint8 or x.ndim not in (3, 4):
        problem = f"is {str(path)!r}, whose x is {x.dtype} of shape {x.shape[1:]} a picture"
        raise InvalidInput("public", problem, "give uint8 [n, height, width] or [n, colours, height, width]")
    return x


def arrays_in(path: Path, names: tuple[str, ...], argument: str) -> list[npt.NDArray[Any]]:
    """Return arrays of a file that `numpy.savez` wrote.

    Args:
        path: The file.
        names: Names of the arrays.
        argument: Name of the argument that an error is about.

    Raises:
        InvalidInput: The file is damaged, or lacks an array.
    """
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
    """Return the images of a file: `x` (integers up to 255) and labels `y`, each the name of a class.

    Args:
        path: The file.
        classes: Names of the classes; images with other labels are left out.
        rows: Public number of rows, or None.
        argument: Name of the argument that an error is about.

    Raises:
        InvalidInput: The file is damaged, or its arrays have a wrong type or shape.
    """
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
    """Return the index of each label among the classes; -1 for other labels, whose pictures are left out."""
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
