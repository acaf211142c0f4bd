"""The file in which a folder holds attacks on tables."""

from __future__ import annotations

from pathlib import Path

from privet.core import Internal, InvalidInput
from privet.report.table_records import Tables

__all__ = ["TABLES", "read_tables"]

TABLES = "internal-tables.json"


def read_tables(folder: Path) -> Internal[Tables] | None:
    """Return the attacks on tables in a folder, or None if it has none."""
    path = folder / TABLES
    if not path.exists():
        return None
    try:
        return Internal(Tables.from_json(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, InvalidInput, TypeError):
        problem = f"is {str(folder)!r}, of which {TABLES} cannot be read"
        raise InvalidInput("out", problem, "remove that file, and attack again") from None
