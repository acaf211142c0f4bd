"""Attacks on tables in a folder: the file that holds them, and their page where no run has one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from privet.core import Internal, InvalidInput, write_atomically
from privet.report.figures.tables import table_figures
from privet.report.frame import RUN_STYLES, escape, page_html
from privet.report.runs import INTERNAL_CARD, INTERNAL_PAGE, read_card, write_internal
from privet.report.table_records import Tables
from privet.report.tables_file import TABLES, read_tables
from privet.report.training_page import INTERNAL_FOOTER, INTERNAL_MARK
from privet.report.write import require_ours, require_writable_folder

__all__ = ["require_tables_folder", "tables_page", "write_tables"]

_TITLE = "Attacks on tables"
_HEAD = 4000


def tables_page(tables: Internal[Tables]) -> str:
    """Return the internal page on attacks on tables; it is marked as internal at its top and on every printed page.

    Args:
        tables: The attacks.

    Returns:
        The page, as HTML.
    """
    figures = table_figures(tables)
    body = [
        f'<header><p class="kind">{escape(_TITLE)}</p><h1>What an attacker can learn</h1></header>',
    ]
    title = f"INTERNAL: {_TITLE}"
    return page_html(title, body, figures, footer=INTERNAL_FOOTER, mark=INTERNAL_MARK, styles=RUN_STYLES)


def require_tables_folder(folder: Path) -> None:
    """Create a folder for attacks on tables, or check before the work that results can be added to it.

    Args:
        folder: The folder, which may be that of a run.

    Raises:
        InvalidInput: The folder cannot be written, or holds a run's internal page without the `internal.json` from
            which that page could be written again.
    """
    require_writable_folder(folder, "out")
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
    """Add attacks on tables to the internal page of a folder, and to its `internal-tables.json`.

    Args:
        folder: The folder of a run, or one for attacks on tables alone.
        tables: The attacks.
        progress: Called with the number of finished steps and their total.

    Returns:
        The path of the internal page.

    Raises:
        InvalidInput: The folder cannot be written: see `require_tables_folder`.
    """
    require_tables_folder(folder)
    page = folder / INTERNAL_PAGE
    earlier = read_tables(folder)
    whole = tables if earlier is None else Internal(earlier.value.plus(tables.value))
    run = read_card(folder, internal=True) if (folder / INTERNAL_CARD).exists() else None
    write_atomically(folder / TABLES, whole.value.to_json() + "\n", "out", private=True)
    if run is None:
        write_atomically(page, tables_page(whole), "out", private=True)
    else:
        write_internal(folder, run, progress=progress)
    return page
