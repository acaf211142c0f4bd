"""HTML for pages: one file that needs nothing else, no server, no network, no second file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files

from privet.report.figures import Figure
from privet.report.write import MARK

__all__ = ["RUN_STYLES", "alert", "bullets", "escape", "figure_html", "page_html", "table"]

RUN_STYLES = ("page.css", "training.css")
"""The style sheets of pages about runs."""

_MOST_COLUMNS = 4
"""As many columns as fit beside each other on a phone."""


def page_html(
    title: str,
    body: Iterable[str],
    figures: Sequence[Figure],
    *,
    footer: str,
    mark: str = "",
    below: Iterable[str] = (),
    figures_label: str = "Figures",
    styles: Sequence[str] = ("page.css",),
) -> str:
    """Return a whole page. Its content-security policy forbids every request.

    Args:
        title: The title of the document.
        body: Markup above the figures.
        figures: The figures, which are drawn in the reader's browser.
        footer: The text at the end of the page.
        mark: Markup before everything else, such as a warning not to share the page.
        below: Markup below the figures.
        figures_label: What a screen reader calls the section with the figures.
        styles: The names of the style sheets.
    """
    specs = {figure.id: figure.spec for figure in figures if figure.spec is not None}
    # `<` is written as an escape, so that no text can end the element.
    data = json.dumps(specs, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c")
    scripts = (_plotly(), _asset("page.js"))
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            MARK,
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(title)}</title>",
            f"<style>\n{''.join(map(_asset, styles))}</style>",
            "</head>",
            "<body>",
            mark,
            "<main>",
            *filter(None, body),
            f'<section class="figures" aria-label="{figures_label}">',
            *map(figure_html, figures),
            "</section>",
            *filter(None, below),
            "</main>",
            f"<footer>{escape(footer)}</footer>",
            f'<script type="application/json" id="figures">{data}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>",
            "</html>",
            "",
        ]
    )


def figure_html(figure: Figure) -> str:
    """Return a figure, its description in words, and its numbers as a table."""
    drawing = (
        f'<div class="plot" id="{figure.id}" role="img" tabindex="0" aria-labelledby="{figure.id}-title" '
        f'aria-describedby="{figure.id}-words"></div>'
        if figure.spec is not None
        else ""
    )
    numbers = table(figure.title, figure.head, figure.rows) if figure.rows else ""
    opened = f"<details><summary>The numbers</summary>{numbers}</details>" if numbers else ""
    return (
        f'<figure><h2 id="{figure.id}-title">{escape(figure.title)}</h2>{drawing}'
        f'<figcaption id="{figure.id}-words">{escape(figure.alternative)}</figcaption>{opened}</figure>'
    )


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose first column names its rows; a narrow screen stacks the cells of one with many columns."""
    many = len(head) > _MOST_COLUMNS
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    names = [f' data-head="{escape(name)}"' if many else "" for name in head]
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td{name}>{escape(cell)}</td>" for name, cell in zip(names[1:], row[1:], strict=True))
        + "</tr>"
        for row in rows
    )
    start = '<table class="many">' if many else "<table>"
    return f"{start}<caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def bullets(items: Iterable[str]) -> str:
    """Return a bulleted list."""
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def alert(kind: str, label: str, text: str) -> str:
    """Return a paragraph that stands out: of the class `kind`, and beginning with a label in bold type."""
    return f'<p class="{kind}"><strong>{label}:</strong> {escape(text)}</p>'


def escape(value: str) -> str:
    """Return a text as markup that shows it; a number and its per cent sign stay on one line."""
    return html.escape(value).replace(" %", "\u00a0%")


def _policy(scripts: Iterable[str]) -> str:
    """Allow no request to anywhere, and of scripts only the two that this page carries, by their hashes."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
