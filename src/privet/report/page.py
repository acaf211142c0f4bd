"""A run's card as one HTML page that needs nothing else: no server, no network, no second file."""

from __future__ import annotations

import math
from collections.abc import Iterable

from privet.core import Guarantee, digits_up
from privet.report.card import RunCard, require_shareable
from privet.report.curves import Curves
from privet.report.figures import figures
from privet.report.frame import alert, bullets, escape, page_html, table
from privet.report.words import attack_limit_rows, guarantee_rows, headline, is_open, protected, proven_by, up

__all__ = ["guarantee_html", "notes_html", "page", "promise_html", "section"]


def page(card: RunCard, curves: Curves) -> str:
    """Return the shareable page of a described run: the guarantee, what it means, five figures, and their numbers.

    Args:
        card: The card; everything on it is known without the data.
        curves: The curves of the card, from `curves_of`.

    Raises:
        InvalidInput: The card has an internal value.
    """
    require_shareable(card)
    footer = "Made by Privet. Everything on this page is known without the data."
    return page_html(headline(card.guarantee.value), _opening(card), figures(card, curves), footer=footer)


def promise_html(guarantee: Guarantee) -> str:
    """Return the heading of a page: the stated ε and δ."""
    upper, delta = up(guarantee.epsilon.upper), digits_up(guarantee.delta)
    holds = math.isfinite(guarantee.epsilon.upper)
    promise = f"ε ≤ {upper}" if holds else "no finite ε was found" if is_open(guarantee) else f"ε = {upper}"
    return f"<h1{'' if holds else ' class=none'}>{promise} <small>at δ = {delta}</small></h1>"


def guarantee_html(guarantee: Guarantee, warnings: Iterable[str] = ()) -> list[str]:
    """Return the lines of a page's header below the heading: the unit, the proof, and warnings."""
    holds = math.isfinite(guarantee.epsilon.upper)
    return [
        f'<p class="unit">Protects {escape(protected(guarantee.unit))}.</p>' if holds else "",
        f'<p class="assumptions">{escape(proven_by(guarantee))}</p>',
        *(alert("warning", "Warning", f"{text}.") for text in warnings),
    ]


def section(name: str, title: str, *inside: str) -> str:
    """Return a section of a page with a heading."""
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(title)}</h2>{"".join(inside)}</section>'


def notes_html(notes: Iterable[str]) -> str:
    """Return remarks, a paragraph each."""
    return "".join(f'<p class="note">{escape(note)}</p>' for note in notes)


def _opening(card: RunCard) -> list[str]:
    guarantee, meaning = card.guarantee.value, card.meaning.value
    holds = math.isfinite(guarantee.epsilon.upper)
    numbers = [*guarantee_rows(guarantee), *card.described.value, *attack_limit_rows(meaning)]
    return [
        '<header><p class="kind">Privacy guarantee of a described run</p>',
        promise_html(guarantee),
        *guarantee_html(guarantee, card.warnings.value),
        "</header>",
        '<div class="columns">',
        section("means", "What an attacker can learn", bullets(meaning.sentences)),
        section(
            "holds",
            "It holds if" if holds else "The run",
            bullets(card.conditions.value if holds else ()),
            notes_html(card.notes.value),
        ),
        section("numbers", "Key numbers", table("The run and its guarantee", ("what", "value"), numbers)),
        "</div>",
    ]
