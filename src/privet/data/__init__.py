"""Tables with a public schema, pictures and named sets; reading, splitting, and learning a schema privately."""

from __future__ import annotations

from privet.data.bounds_source import BoundsSource, SourceKind
from privet.data.columns import Category, Column, Identifier, Missing, Number, Outside, seal_of, states_bounds
from privet.data.confirmation import SchemaConfirmation, open_columns, parse_sources, require_writable_schema
from privet.data.draft import Draft, draft
from privet.data.learn import Learning, learn, learning
from privet.data.read import read
from privet.data.schema import Schema, Task
from privet.data.schema_check import RowCheck, check_rows, header_problems
from privet.data.schema_file import (
    is_vouched,
    load_schema,
    refusal_of,
    require_vouched,
    schema_file_of,
    with_sources,
)
from privet.data.schema_questions import ColumnKind
from privet.data.sets import NAMES, Named, adult_schema, named
from privet.data.source import Source
from privet.data.split import held_out, hold_out
from privet.data.table import Images, Table

__all__ = [
    "NAMES",
    "BoundsSource",
    "Category",
    "Column",
    "ColumnKind",
    "Draft",
    "Identifier",
    "Images",
    "Learning",
    "Missing",
    "Named",
    "Number",
    "Outside",
    "RowCheck",
    "Schema",
    "SchemaConfirmation",
    "Source",
    "SourceKind",
    "Table",
    "Task",
    "adult_schema",
    "check_rows",
    "draft",
    "header_problems",
    "held_out",
    "hold_out",
    "is_vouched",
    "learn",
    "learning",
    "load_schema",
    "named",
    "open_columns",
    "parse_sources",
    "read",
    "refusal_of",
    "require_vouched",
    "require_writable_schema",
    "schema_file_of",
    "seal_of",
    "states_bounds",
    "with_sources",
]
