"""Attacks on tables in a folder: what it keeps of them, and their page where no run has one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from privet.core.atomic_write import write_atomically
from privet.core.disclosure import Internal
from privet.core.errors import InvalidInput
from privet.report.figures.tables import table_figures
from privet.report.frame import drawn, escaped, framed
from privet.report.runs import INTERNAL_CARD, INTERNAL_PAGE, read_card, require_ours, write_internal
from privet.report.table_records import Tables
from privet.report.tables_file import TABLES, read_tables
from privet.report.training_page import INTERNAL_FOOTER, INTERNAL_MARK

__all__ = ["require_place", "tables_page", "write_tables"]

_TITLE = "Attacks on tables"
_HEAD = 4000


def tables_page(tables: Internal[Tables]) -> str:
    """A page of its own, for those who may see the rows; marked at its top and on every printed page."""
    figures = table_figures(tables)
    body = [
        INTERNAL_MARK,
        "<main>",
        f'<header><p class="kind">{escaped(_TITLE)}</p><h1>What others can find out</h1></header>',
        '<section class="figures" aria-label="Figures">',
        *map(drawn, figures),
        "</section>",
        "</main>",
    ]
    return framed(f"INTERNAL: {_TITLE}", body, figures, footer=INTERNAL_FOOTER, styles=("page.css", "training.css"))


def require_place(folder: Path) -> None:
    """Raise now, before the work, where a folder cannot keep attacks on tables or a run's page would be lost; makes it.

    A run's internal page cannot be written anew without its `internal.json`: it is left alone then.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InvalidInput("out", f"is {str(folder)!r}, which cannot be made: {reason}", "name another") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidInput("out", f"is {str(folder)!r}, which cannot be written", "choose another folder")
    page = folder / INTERNAL_PAGE
    require_ours(page)
    read_tables(folder)
    if (folder / INTERNAL_CARD).exists():
        read_card(folder, internal=True)
    elif page.exists() and f"INTERNAL: {_TITLE}".encode() not in page.read_bytes()[:_HEAD]:
        problem = f"is {str(folder)!r}, where {INTERNAL_PAGE} is a run's and {INTERNAL_CARD} is not beside it"
        raise InvalidInput("out", problem, "name another folder, or put it back, so that the page is not lost")


def write_tables(
    folder: Path, tables: Internal[Tables], *, progress: Callable[[int, int], None] = lambda done, total: None
) -> Path:
    """Add attacks on tables to a folder's `internal.html`, which is a run's, or one of their own; for its owner's eyes.

    `internal-tables.json` keeps them, so that they stay where the run's page is written anew.
    """
    require_place(folder)
    page = folder / INTERNAL_PAGE
    kept = read_tables(folder)
    whole = tables if kept is None else Internal(kept.value.plus(tables.value))
    run = read_card(folder, internal=True) if (folder / INTERNAL_CARD).exists() else None
    write_atomically(folder / TABLES, whole.value.to_json() + "\n", "out", private=True)
    if run is None:
        write_atomically(page, tables_page(whole), "out", private=True)
    else:
        write_internal(folder, run, progress=progress)
    return page
