"""The page of an audit: what is claimed, what evidence says of it, and the figures of both."""

from __future__ import annotations

from collections.abc import Sequence

from privet.core.disclosure import Public, Shareable
from privet.core.errors import InvalidInput
from privet.core.guarantee import Evidence, digits_up
from privet.core.release import Release
from privet.core.scores import Canaries
from privet.report.card import RunCard, require_shareable
from privet.report.curves import Curves
from privet.report.figures.attack import attack
from privet.report.figures.attacked import adversaries, canary_scores
from privet.report.figures.profile import profile
from privet.report.frame import bullets, drawn, escaped, framed, table
from privet.report.standing import Standing, alarms, between, powerless, verdict, worst
from privet.report.words import headline, protected, proven_by, up

__all__ = ["audit_page"]


def audit_page(
    card: RunCard,
    curves: Curves,
    evidence: Sequence[Shareable[Evidence]],
    *,
    what: str,
    canaries: Sequence[Shareable[Canaries]] = (),
    remarks: Sequence[str] = (),
) -> str:
    """A page for sharing: evidence of made-up inputs, public or a part of what was released; `remarks` stand below it,
    and are about how it was counted."""
    require_shareable(card)
    for each in (*evidence, *canaries):
        if not isinstance(each, (Public, Release)):
            raise InvalidInput("evidence", "is neither Public nor a Release, so it may not be shown", "leave it out")
    guarantee = card.guarantee.value
    shown = [adversaries(evidence, guarantee), *canary_scores(canaries)]
    figures = [figure for figure in (*shown, attack(card, curves), profile(card, curves)) if figure is not None]
    found = [each.value for each in evidence]
    stands = worst(found, guarantee)
    notes = (*powerless([each.value for each in canaries], found), *remarks)
    upper, delta = up(guarantee.epsilon.upper), digits_up(guarantee.delta)
    told = "Evidence lies above the claim: what was done is not what was priced."
    rows = [
        (
            each.attack,
            between(each, guarantee),
            f"{100 * each.confidence:g} %",
            f"{each.trials:,}",
            verdict(each, guarantee),
            "; ".join(each.assumptions) or "nothing",
        )
        for each in found
    ]
    head = ("attack", "ε lies between", "confidence", "trials", "the claim", "assumes")
    body = [
        "<main>",
        f'{stands.header}<p class="kind">Audit of {escaped(what)}</p>',
        f"<h1>claimed ε ≤ {upper} <small>at δ = {delta}</small></h1>",
        f'<p class="unit">Protects {escaped(protected(guarantee.unit))}.</p>',
        f'<p class="assumptions">{escaped(proven_by(guarantee))}</p>',
        f'<p class="alarm"><strong>Refuted:</strong> {escaped(told)}</p>' if stands is Standing.REFUTES else "",
        *(f'<p class="doubt"><strong>Look closer:</strong> {escaped(each)}</p>' for each in alarms(found, guarantee)),
        "</header>",
        '<div class="wide"><section aria-labelledby="evidence"><h2 id="evidence">Evidence</h2>',
        table("Lower bounds on ε from attacks, beside the proven upper one", head, rows),
        *(f'<p class="note">{escaped(each)}</p>' for each in notes),
        "</section>",
        '<section aria-labelledby="tried"><h2 id="tried">What was tried</h2>',
        table("Settings", ("what", "value"), card.described.value) if card.described.value else "",
        bullets((*card.conditions.value, *card.notes.value)),
        "</section></div>",
        '<section class="figures" aria-label="Figures" style="margin-top: 16px">',
        *map(drawn, figures),
        "</section>",
        "</main>",
    ]
    footer = "Made by Privet. All of this page is known without the data, or was paid for."
    title = f"Audit of {what}: {headline(guarantee)}"
    return framed(title, filter(None, body), figures, footer=footer, styles=("page.css", "training.css"))
