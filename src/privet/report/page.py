"""A run's card as one HTML page that needs nothing else: no server, no network, no second file."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from collections.abc import Iterable, Sequence
from importlib.resources import files

from privet.report.card import RunCard, require_shareable
from privet.report.curves import Curves
from privet.report.figures import Figure, figures
from privet.report.words import down, headline, is_open, percent, protected, proven_by, up
from privet.report.write import MARK

__all__ = ["page"]


def page(card: RunCard, curves: Curves) -> str:
    """The shareable page: the guarantee, what it means, five figures, and the same numbers as tables.

    Everything on it is public or paid for; a card with anything else is refused. The page's own content-security
    policy forbids it every request.
    """
    require_shareable(card)
    drawn = figures(card, curves)
    specs = {figure.id: figure.spec for figure in drawn if figure.spec is not None}
    # `<` is written as an escape, so that no text can end the element.
    data = json.dumps(specs, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c")
    scripts = (_plotly(), _asset("page.js"))
    title = headline(card.guarantee.value)
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
            f"<title>{_text(title)}</title>",
            f"<style>\n{_asset('page.css')}</style>",
            "</head>",
            "<body>",
            "<main>",
            *_opening(card),
            '<section class="figures" aria-label="Figures">',
            *(_figure(figure) for figure in drawn),
            "</section>",
            "</main>",
            "<footer>Made by Privet. Everything on this page is known without the data.</footer>",
            f'<script type="application/json" id="figures">{data}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>",
            "</html>",
            "",
        ]
    )


def _opening(card: RunCard) -> list[str]:
    guarantee = card.guarantee.value
    upper, delta = up(guarantee.epsilon.upper), f"{guarantee.delta:g}"
    holds = math.isfinite(guarantee.epsilon.upper)
    promise = f"ε ≤ {upper}" if holds else "no finite ε was found" if is_open(guarantee) else f"ε = {upper}"
    return [
        "<header>",
        '<p class="kind">Privacy guarantee of a described run</p>',
        f"<h1{'' if holds else ' class=none'}>{promise} <small>at δ = {delta}</small></h1>",
        f'<p class="unit">Protects {_text(protected(guarantee.unit))}.</p>' if holds else "",
        f'<p class="assumptions">{_text(proven_by(guarantee))}</p>',
        *(f'<p class="warning"><strong>Beware:</strong> {_text(text)}.</p>' for text in card.warnings.value),
        "</header>",
        '<div class="columns">',
        '<section aria-labelledby="means"><h2 id="means">What it means</h2>',
        _list(card.meaning.value.sentences),
        "</section>",
        f'<section aria-labelledby="holds"><h2 id="holds">{"It holds if" if holds else "The run"}</h2>',
        _list(card.conditions.value if holds else ()),
        *(f'<p class="note">{_text(note)}</p>' for note in card.notes.value),
        "</section>",
        '<section aria-labelledby="numbers"><h2 id="numbers">Key numbers</h2>',
        _table("The run and its guarantee", ("what", "value"), _key_numbers(card)),
        "</section>",
        "</div>",
    ]


def _key_numbers(card: RunCard) -> list[tuple[str, str]]:
    guarantee = card.guarantee.value
    return [
        ("ε at most", up(guarantee.epsilon.upper)),
        ("ε at least", down(guarantee.epsilon.lower)),
        ("δ", f"{guarantee.delta:g}"),
        *card.described.value,
        *(
            (
                f"members found at {100 * attack.false_positive_rate:g} % false positives",
                f"at most {percent(attack.true_positive_rate)}",
            )
            for attack in card.meaning.value.attacks
        ),
    ]


def _figure(figure: Figure) -> str:
    drawing = (
        f'<div class="plot" id="{figure.id}" role="img" tabindex="0" aria-labelledby="{figure.id}-title" '
        f'aria-describedby="{figure.id}-words"></div>'
        if figure.spec is not None
        else ""
    )
    table = _table(figure.title, figure.head, figure.rows) if figure.rows else ""
    numbers = f"<details><summary>The numbers</summary>{table}</details>" if table else ""
    return (
        f'<figure><h2 id="{figure.id}-title">{_text(figure.title)}</h2>{drawing}'
        f'<figcaption id="{figure.id}-words">{_text(figure.alternative)}</figcaption>{numbers}</figure>'
    )


def _table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{_text(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{_text(row[0])}</th>' + "".join(f"<td>{_text(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    return f"<table><caption>{_text(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _list(items: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{_text(item)}</li>" for item in items) + "</ul>"


def _text(value: str) -> str:
    # A number and its per cent sign stay on one line.
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
