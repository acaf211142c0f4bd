"""What every page is framed in: one HTML file that needs nothing else, no server, no network, no second file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from importlib.resources import files

from privet.report.figures import Figure
from privet.report.write import MARK

__all__ = ["bullets", "drawn", "escaped", "framed", "table"]

_MOST_COLUMNS = 4
"""As many as fit beside each other on a telephone."""


def framed(
    title: str, body: Iterable[str], figures: Iterable[Figure], *, footer: str, styles: Sequence[str] = ("page.css",)
) -> str:
    """A whole page. `body` is markup; the figures are drawn where `drawn` put them. Its own content-security policy
    forbids it every request."""
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
            f"<title>{escaped(title)}</title>",
            f"<style>\n{''.join(map(_asset, styles))}</style>",
            "</head>",
            "<body>",
            *body,
            f"<footer>{escaped(footer)}</footer>",
            f'<script type="application/json" id="figures">{data}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>",
            "</html>",
            "",
        ]
    )


def drawn(figure: Figure) -> str:
    """A figure, what it says in words, and its numbers as a table."""
    drawing = (
        f'<div class="plot" id="{figure.id}" role="img" tabindex="0" aria-labelledby="{figure.id}-title" '
        f'aria-describedby="{figure.id}-words"></div>'
        if figure.spec is not None
        else ""
    )
    numbers = table(figure.title, figure.head, figure.rows) if figure.rows else ""
    opened = f"<details><summary>The numbers</summary>{numbers}</details>" if numbers else ""
    return (
        f'<figure><h2 id="{figure.id}-title">{escaped(figure.title)}</h2>{drawing}'
        f'<figcaption id="{figure.id}-words">{escaped(figure.alternative)}</figcaption>{opened}</figure>'
    )


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column names its rows; on a narrow screen one with many columns is stacked, cell by cell."""
    many = len(head) > _MOST_COLUMNS
    top = "".join(f'<th scope="col">{escaped(cell)}</th>' for cell in head)
    names = [f' data-head="{escaped(name)}"' if many else "" for name in head]
    body = "".join(
        f'<tr><th scope="row">{escaped(row[0])}</th>'
        + "".join(f"<td{name}>{escaped(cell)}</td>" for name, cell in zip(names[1:], row[1:], strict=True))
        + "</tr>"
        for row in rows
    )
    start = '<table class="many">' if many else "<table>"
    return f"{start}<caption>{escaped(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def bullets(items: Iterable[str]) -> str:
    """A list."""
    return "<ul>" + "".join(f"<li>{escaped(item)}</li>" for item in items) + "</ul>"


def escaped(value: str) -> str:
    """A text that cannot become markup; a number and its per cent sign stay on one line."""
    return html.escape(value).replace(" %", "\u00a0%")


def _policy(scripts: Iterable[str]) -> str:
    """No request to anywhere; of scripts, only the two that this page carries, by their hashes."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _asset(name: str) -> str:
    return files("privet.report").joinpath(name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
