"""Tables with a public schema, images and named data sets; read and split them, and learn a schema privately."""

from __future__ import annotations

from privet.data.bounds_source import BoundsSource, SourceKind
from privet.data.bounds_source import assumptions_of as assumptions_of
from privet.data.columns import Category, Column, Identifier, Missing, Number, Outside, seal_of, states_bounds
from privet.data.confirmation import SchemaConfirmation, open_columns, parse_sources, require_writable_schema
from privet.data.csv_file import first_bytes as first_bytes
from privet.data.csv_file import opened as opened
from privet.data.draft import Draft, draft
from privet.data.footer import footer_of as footer_of
from privet.data.frames import is_frame as is_frame
from privet.data.frames import write_rows as write_rows
from privet.data.learn import Learning, learn, learning
from privet.data.read import read
from privet.data.read import user_keys_of as user_keys_of
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
from privet.data.source import spelling as spelling
from privet.data.source import texts_of as texts_of
from privet.data.split import SPLIT_VERSION as SPLIT_VERSION
from privet.data.split import hashes as hashes
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
