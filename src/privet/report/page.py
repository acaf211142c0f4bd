"""A run's card as one HTML page that needs nothing else: no server, no network, no second file."""

from __future__ import annotations

import math

from privet.core.guarantee import digits_up
from privet.report.card import RunCard, require_shareable
from privet.report.curves import Curves
from privet.report.figures import figures
from privet.report.frame import bullets, drawn, escaped, framed, table
from privet.report.words import down, headline, is_open, percent, protected, proven_by, up

__all__ = ["page"]


def page(card: RunCard, curves: Curves) -> str:
    """The shareable page: the guarantee, what it means, five figures, and the same numbers as tables.

    Everything on it is public or paid for; a card with anything else is refused. The page's own content-security
    policy forbids it every request.
    """
    require_shareable(card)
    shown = figures(card, curves)
    body = [
        "<main>",
        *_opening(card),
        '<section class="figures" aria-label="Figures">',
        *map(drawn, shown),
        "</section>",
        "</main>",
    ]
    footer = "Made by Privet. Everything on this page is known without the data."
    return framed(headline(card.guarantee.value), body, shown, footer=footer)


def _opening(card: RunCard) -> list[str]:
    guarantee = card.guarantee.value
    upper, delta = up(guarantee.epsilon.upper), digits_up(guarantee.delta)
    holds = math.isfinite(guarantee.epsilon.upper)
    promise = f"ε ≤ {upper}" if holds else "no finite ε was found" if is_open(guarantee) else f"ε = {upper}"
    return [
        "<header>",
        '<p class="kind">Privacy guarantee of a described run</p>',
        f"<h1{'' if holds else ' class=none'}>{promise} <small>at δ = {delta}</small></h1>",
        f'<p class="unit">Protects {escaped(protected(guarantee.unit))}.</p>' if holds else "",
        f'<p class="assumptions">{escaped(proven_by(guarantee))}</p>',
        *(f'<p class="warning"><strong>Beware:</strong> {escaped(text)}.</p>' for text in card.warnings.value),
        "</header>",
        '<div class="columns">',
        '<section aria-labelledby="means"><h2 id="means">What it means</h2>',
        bullets(card.meaning.value.sentences),
        "</section>",
        f'<section aria-labelledby="holds"><h2 id="holds">{"It holds if" if holds else "The run"}</h2>',
        bullets(card.conditions.value if holds else ()),
        *(f'<p class="note">{escaped(note)}</p>' for note in card.notes.value),
        "</section>",
        '<section aria-labelledby="numbers"><h2 id="numbers">Key numbers</h2>',
        table("The run and its guarantee", ("what", "value"), _key_numbers(card)),
        "</section>",
        "</div>",
    ]


def _key_numbers(card: RunCard) -> list[tuple[str, str]]:
    guarantee = card.guarantee.value
    return [
        ("ε at most", up(guarantee.epsilon.upper)),
        ("ε at least", down(guarantee.epsilon.lower)),
        ("δ", digits_up(guarantee.delta)),
        *card.described.value,
        *(
            (
                f"members found at {100 * attack.false_positive_rate:g} % false positives",
                f"at most {percent(attack.true_positive_rate)}",
            )
            for attack in card.meaning.value.attacks
        ),
    ]
