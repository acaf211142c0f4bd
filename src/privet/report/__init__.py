"""What is shown: typed cards of data, and the renderers that turn a card into JSON or a page."""

from __future__ import annotations

from privet.report.account import price_run
from privet.report.as_json import document
from privet.report.card import Public, RunCard, require_shareable
from privet.report.curves import Curves, curves_of
from privet.report.page import page
from privet.report.write import require_writable, write_page

__all__ = [
    "Curves",
    "Public",
    "RunCard",
    "curves_of",
    "document",
    "page",
    "price_run",
    "require_shareable",
    "require_writable",
    "write_page",
]
