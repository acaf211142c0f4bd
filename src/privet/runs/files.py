"""What a run is given in memory, as files of its private directory; and the call, in words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privet.data import Schema, write_rows
from privet.runs.directory import RunDirectory
from privet.runs.request import TrainRequest

__all__ = ["call_of", "files_of"]


def files_of(
    directory: RunDirectory, rows: Mapping[str, Any], schema: str | Path | Schema | None, target: str | None
) -> dict[str, Any]:
    """Return the paths of rows and schema by name; values in memory are written to the run's hidden directory.

    Args:
        directory: Run directory.
        rows: Paths or rows in memory, by argument name; None where an argument is not given.
        schema: Path of a schema, or a schema.
        target: Name of the target column, where rows are a pair of a matrix and targets.
    """
    paths: dict[str, Any] = {}
    for name, data in rows.items():
        if data is not None:
            is_path = isinstance(data, (str, Path))
            paths[name] = str(data) if is_path else str(write_rows(data, directory.hidden, name, target))
    if isinstance(schema, Schema):
        path = directory.hidden / "schema.toml"
        path.write_text(schema.to_toml(), encoding="utf-8")
        paths["schema"] = str(path)
    elif schema is not None:
        paths["schema"] = str(schema)
    return paths


def call_of(request: TrainRequest, directory: RunDirectory) -> str:
    """Return the Python call for the card and the ledger, with the options that differ from the defaults.

    The ledger's location is left out, as it may hold a password, and rows in memory are shown as "…".

    Args:
        request: The request of the run.
        directory: Run directory.
    """
    default = TrainRequest.of({"method": request.method}).values() | {"method": TrainRequest.method}
    told = []
    for name, value in request.values().items():
        if name == "ledger" or value == default[name]:
            continue
        is_in_memory = isinstance(value, str) and value.startswith(str(directory.hidden))
        told.append(f"{name}=…" if is_in_memory else f"{name}={value!r}")
    return f"privet.train({', '.join(told)})"
