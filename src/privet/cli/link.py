"""`privet link`: re-identify people in a table without names, by a table with names."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privet.cli import console
from privet.cli.options import AsJson
from privet.core import InvalidInput, MissingExtra, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privet.report import Linked

__all__ = ["link"]

_WITH = "The table with names that somebody has."
_ON = "Columns of both by which people are looked for, with commas: zip,birth,sex."
_SENSITIVE = "A column of the published table, to see whom it is known of without a row of their own."
_ID = "A column of both that says who is who, to check the claims: for the owner of both."
_SCORED = (
    "Score rows that differ in some columns, and claim the best where it stands out. All pairs are scored. Columns are "
    "taken for independent: those that go together (zip, city) claim too much; what follows from another is left out."
)
_MISSING = (
    "Words for cells that say nothing, with commas, in place of ?,NA,N/A,null,None,nan; empty ones and * always do."
)
_INSIDE = "With --scored: how probable it is beforehand that somebody is in the published table."
_OUT = "Add the result to the internal report in this folder."
_HOW, _CHECK = "How to look", "What to look for"


def link(
    published: Annotated[Path, typer.Argument(metavar="PUBLISHED", help="A table without names: CSV or Parquet.")],
    known: Annotated[Path, typer.Option("--with", metavar="FILE", help=_WITH)],
    on: Annotated[str | None, typer.Option(metavar="COLUMNS", help=_ON, rich_help_panel=_HOW)] = None,
    scored: Annotated[bool, typer.Option("--scored", help=_SCORED, rich_help_panel=_HOW)] = False,
    inside: Annotated[float, typer.Option(metavar="P", help=_INSIDE, rich_help_panel=_HOW)] = 0.5,
    missing: Annotated[str | None, typer.Option(metavar="WORDS", help=_MISSING, rich_help_panel=_HOW)] = None,
    sensitive: Annotated[str | None, typer.Option(metavar="COLUMN", help=_SENSITIVE, rich_help_panel=_CHECK)] = None,
    person: Annotated[str | None, typer.Option("--id", metavar="COLUMN", help=_ID, rich_help_panel=_CHECK)] = None,
    confidence: Annotated[float, typer.Option(help="Of each interval.", rich_help_panel=_CHECK)] = 0.95,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help=_OUT)] = None,
    as_json: AsJson = False,
) -> None:
    """Link two tables: whose row is this?

    A table without names is not anonymous if its other columns tell people apart. Every person of the table with names
    is looked for in the published one by columns that both have. Cells agree if they are equal, or if a coarsened one
    (130**, 30-39, 65+) of either table covers the other or overlaps it. A row is claimed where no other one could be
    that person's, and nobody else could be its person. What comes out is about real people: it is internal.

    privet link visits.csv --with voters.csv --on zip,birth,sex --sensitive disease

    privet link visits.csv --with patients.csv --on zip,birth,sex --id patient --out runs/visits
    """
    for package in ("polars", "torch"):
        if find_spec(package) is None:
            raise MissingExtra(package, "train")
    from privet.attacks import MISSING, LinkageScoring
    from privet.attacks import link as link_tables
    from privet.runs import LinkageFiles, columns_of, renamed, told

    checked.confidence("confidence", confidence)
    how = LinkageScoring(inside=inside) if scored else None
    if inside != 0.5 and not scored:
        raise InvalidInput("inside", "is for scores", "add --scored, or leave it out")
    if out is not None:
        from privet.report import require_tables_folder

        with renamed():
            require_tables_folder(out)
    silent = MISSING if missing is None else tuple(missing.split(","))
    with console.waiting("Reading the tables …"):
        files = LinkageFiles(published, known)
        names = columns_of(on, files, (sensitive, person))
        one, other = files.tables(names, sensitive, person)
    with console.progress_bar("Linking …") as progress, renamed():
        linkage = link_tables(
            one,
            other,
            names,
            sensitive=sensitive,
            person=person,
            scoring=how,
            missing=silent,
            confidence=confidence,
            progress=progress,
        )
    prior = inside if scored else None
    record = files.record(linkage, scored=scored, confidence=confidence, inside=prior, person=person)
    page = None if out is None else _write_page(out, record)
    if as_json:
        console.show_json({"internal": True} | json.loads(record.to_json()))
        return
    _show(record, [*files.silent, *told(linkage)], same=published.resolve() == known.resolve())
    if page is not None:
        console.line(f"{page} has it, too; it must not be shared.")


def _write_page(out: Path, record: Linked) -> Path:
    """Add the record to those of the folder's internal report."""
    from privet.report import Internal, Tables, write_tables
    from privet.runs import renamed

    with renamed(), console.progress_bar("Writing the page …") as progress:
        return write_tables(out, Internal(Tables((record,))), progress=progress)


def _show(record: Linked, sentences: Sequence[str], *, same: bool) -> None:
    """Show the counts, and what follows from them."""
    from privet.report.figures import linked_rows

    console.line("INTERNAL: counted on real people; do not share.", "bold red")
    console.show_rows(("what", "how many"), linked_rows(record), right=("how many",))
    for sentence in sentences:
        console.line(sentence, "bold")
    if same:
        note = "Both are the same file: this says how far its rows differ, and nothing of what others have."
        console.line(note, "yellow")
