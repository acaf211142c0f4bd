"""`privet schema`: what is public about a table, drafted and checked."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from privet.cli import console
from privet.cli.exit_codes import FAILED
from privet.cli.groups import command_group
from privet.cli.numbers import WHOLE
from privet.core import InvalidInput

if TYPE_CHECKING:
    from privet.data import BoundsSource, Schema

__all__ = ["about", "check", "confirm", "draft", "schema"]

_READ = (
    "This draft was read from private data: its bounds, values and columns can tell what is in single rows, "
    "and have no noise. No command accepts it before `privet schema confirm`. Do not share it."
)
_INTERNAL = "INTERNAL: read from private rows without noise; do not share"
_Table = Annotated[Path, typer.Argument(metavar="FILE", help="The table: CSV, also gzipped, or Parquet.")]


def about() -> None:
    """Say what is public about a table: its columns, their bounds and values, and what is to be predicted.

    Draft it from the file, state where every bound and list of values comes from, and check the file against it:

    privet schema draft patients.csv --target readmitted

    privet schema confirm patients.schema.toml

    privet schema check patients.schema.toml patients.csv
    """


def draft(
    file: _Table,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column that is to be predicted.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write; beside the table, if left out.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a first version of a schema, for a person to confirm. It is read from the rows, without noise.

    privet schema draft patients.csv --target readmitted --out patients.schema.toml
    """
    from privet.core import write_atomically
    from privet.data import draft as draft_schema
    from privet.data import schema_file_of

    place = schema_file_of(file) if out is None else out
    if place.is_dir():
        raise InvalidInput("out", f"is {str(place)!r}, which is a folder", "name a file in it")
    if place.exists() and not force:
        raise InvalidInput("out", f"is {str(place)!r}, which exists", "name another, or write over it with --force")
    if place.exists() and place.samefile(file):
        raise InvalidInput("out", f"is {str(place)!r}, the table itself", "name another file")
    with console.waiting("Looking through the rows …"):
        proposal = draft_schema(file, target)
    write_atomically(place, proposal.to_toml(), "out", private=True)
    with console.after(f"the draft {str(place)!r} was written"):
        click.secho(_READ, fg="red", bold=True, err=True)
        columns = len(proposal.schema.columns)
        console.line(f"{place}: {columns} {'column' if columns == 1 else 'columns'} to confirm", "bold")
        if proposal.warnings:
            console.line("What to look at first is said at its beginning.")
        console.line(f"Correct it from public knowledge, then run: privet schema confirm {place}", "dim")


def confirm(
    file: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema, as TOML; sources are written into it.")],
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who vouches for the sources. Asked for if left out.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=SOURCE", help="Answer for one column; repeat it for others."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Ask again for columns that have a source.")] = False,
) -> None:
    """State where each column's bounds or values come from, column by column. Reads no data.

    A source is one of: codebook (documentation of the data), domain limit (what is possible at all), public data (other
    rows, which need no protection), learned under the budget. Who vouched, when and for what is written into the schema
    after each answer, appears on every card, and is an assumption of every guarantee. Correct bounds in the file first;
    answer "none" for a column whose bounds are not public: train without --schema learns bounds under the budget.

    privet schema confirm patients.schema.toml

    privet schema confirm patients.schema.toml --by "Ada Lovelace" --source "age=domain limit" --source ward=codebook
    """
    from privet.cli.schema_confirm import confirm_columns

    confirm_columns(file, by, source or [], again)


def check(
    schema_file: Annotated[Path, typer.Argument(metavar="SCHEMA", help="The schema, as TOML.")],
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A table that is to fit it.")] = None,
    internal: Annotated[
        bool,
        typer.Option("--internal", help="Check the rows, too: computed without noise, for the owner of the rows."),
    ] = False,
    batch_size: Annotated[
        int | None, typer.Option(click_type=WHOLE, help="With --internal: are there as many rows as in a batch?")
    ] = None,
) -> None:
    """See whether a schema can be read and used, and whether a file has its columns. Exit code 1 if not.

    Columns that no command accepts are named, with the reason: no source, nobody who vouches for it, or a change after
    somebody did. `privet schema confirm` adds what is missing.

    Of the file only the header is read, which is public. With --internal the owner of the data also learns which cells
    fall outside of the schema; the rules of the schema take care of these, and no run fails for them.

    privet schema check patients.schema.toml patients.csv
    """
    if internal and file is None:
        raise InvalidInput("internal", "is given without a file", "name the table as well")
    if batch_size is not None and not internal:
        raise InvalidInput("batch_size", "is given without --internal, and rows are not counted", "leave it out")
    from privet.data import check_rows, header_problems, load_schema

    loaded = load_schema(schema_file)
    if file is not None and (problems := header_problems(loaded, file)):
        console.line(f"{file.name} does not fit the schema", "bold red")
        console.bullets(tuple(f"{problem}." for problem in problems))
        raise typer.Exit(FAILED)
    refused = _show(loaded, schema_file, file, internal)
    if file is not None and internal:
        with console.waiting("Looking through the rows …"):
            checked = check_rows(file, loaded, batch_size)
        console.line()
        console.line(_INTERNAL, "bold red")
        console.show_rows(checked.columns, checked.rows, right=checked.columns[2:])
        console.bullets(checked.remarks)
        console.line(_INTERNAL, "bold red")
    if refused:
        raise typer.Exit(FAILED)


def _show(schema: Schema, schema_file: Path, file: Path | None, internal: bool) -> bool:
    """Show the columns. Return whether any of them would be refused."""
    from privet.data import Category, refusal_of, states_bounds

    reasons = {column.name: refusal_of(column) for column in schema.columns if states_bounds(column)}
    refused = [f"{name!r} {reason}." for name, reason in reasons.items() if reason is not None]
    fits = "The schema can be read" + ("." if file is None else f", and {file.name} has its columns.")
    console.line(fits, "bold yellow" if refused else "bold green")
    sources = dict(schema.sources())
    kinds = [type(column).__name__.lower() for column in schema.columns]
    rows = [
        (
            column.name,
            kind,
            f"{len(column.values)} values" if isinstance(column, Category) else _bounds(column),
            _role(schema, column.name),
            _source(sources.get(column.name)),
        )
        for column, kind in zip(schema.columns, kinds, strict=True)
    ]
    console.show_rows(("column", "kind", "holds", "used as", "source"), rows)
    if refused:
        console.line("No command accepts these columns:", "bold red")
        console.bullets(tuple(refused))
        console.line(f"Check them, then run: privet schema confirm {shlex.quote(str(schema_file))}", "bold red")
    if schema.rows is None:
        console.line("The number of rows is not stated: a run would have to estimate it, at a privacy cost.", "yellow")
    if schema.target is None:
        console.line("No target is stated: name it in the schema, or with --target.", "yellow")
    if file is not None and not internal:
        console.line("Of the file only the header was read.", "dim")
    return bool(refused)


def _source(source: BoundsSource | None) -> str:
    if source is None:
        return ""
    return source.kind.value if source.by is None else f"{source.kind.value} ({source.by}, {source.on})"


def _bounds(column: object) -> str:
    from privet.data import Number

    return f"{column.low:g} to {column.high:g}" if isinstance(column, Number) else ""


def _role(schema: Schema, name: str) -> str:
    if name == schema.target:
        return "the target"
    if name == schema.user:
        return "whose a row is"
    return "the model" if name in [column.name for column in schema.features] else "nothing: left out"


schema = command_group(about, draft, confirm, check)
