"""The page of an audit: the claim, the evidence, and the figures of both."""

from __future__ import annotations

from collections.abc import Sequence

from privet.core import Canaries, Evidence, InvalidInput, Public, Release, Shareable, digits_up
from privet.report.card import RunCard, require_shareable
from privet.report.card_tables import evidence_table
from privet.report.curves import Curves
from privet.report.figures.attack import attack
from privet.report.figures.attack_results import adversaries, canary_scores
from privet.report.figures.profile import profile
from privet.report.frame import RUN_STYLES, alert, bullets, escape, page_html, table
from privet.report.page import guarantee_html, notes_html, section
from privet.report.training_page import SHAREABLE_FOOTER
from privet.report.verdict import Verdict, evidence_warnings, powerless_canaries, worst_verdict
from privet.report.words import headline, up

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
    """Return a page for sharing: the claimed guarantee, the evidence, and figures of both.

    Args:
        card: The claim.
        curves: The curves of the card, from `curves_of`.
        evidence: Lower bounds on ε from synthetic inputs, public or a part of what was released.
        what: What was audited, for the title.
        canaries: The canaries behind the evidence.
        remarks: Sentences on how the evidence was counted.

    Raises:
        InvalidInput: Something on the page is internal.
    """
    require_shareable(card)
    for item in (*evidence, *canaries):
        if not isinstance(item, (Public, Release)):
            raise InvalidInput("evidence", "is neither Public nor a Release, so it may not be shown", "leave it out")
    guarantee, bounds = card.guarantee.value, [item.value for item in evidence]
    drawn = (adversaries(evidence, guarantee), *canary_scores(canaries), attack(card, curves), profile(card, curves))
    verdict = worst_verdict(bounds, guarantee)
    refuted = "Evidence lies above the claim: what was done is not what was priced."
    lower_bounds = evidence_table(evidence, guarantee).only(
        "attack", "ε lies between", "confidence", "trials", "the guarantee", "assumes"
    )
    notes = (*powerless_canaries([item.value for item in canaries], bounds), *remarks)
    body = [
        f'{verdict.header}<p class="kind">Audit of {escape(what)}</p>',
        f"<h1>claimed ε ≤ {up(guarantee.epsilon.upper)} <small>at δ = {digits_up(guarantee.delta)}</small></h1>",
        *guarantee_html(guarantee),
        alert("alarm", "Refuted", refuted) if verdict is Verdict.REFUTES else "",
        *(alert("doubt", "Look closer", text) for text in evidence_warnings(bounds, guarantee)),
        "</header>",
        '<div class="wide">',
        section(
            "evidence",
            "Evidence",
            table("Lower bounds on ε from attacks, beside the proven upper one", lower_bounds.head, lower_bounds.rows),
            notes_html(notes),
        ),
        section(
            "tried",
            "What was audited",
            table("Settings", ("what", "value"), card.described.value) if card.described.value else "",
            bullets((*card.conditions.value, *card.notes.value)),
        ),
        "</div>",
    ]
    title = f"Audit of {what}: {headline(guarantee)}"
    figures = [figure for figure in drawn if figure is not None]
    return page_html(title, body, figures, footer=SHAREABLE_FOOTER, styles=RUN_STYLES)
