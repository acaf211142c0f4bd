"""A training card as two pages: one for sharing, which refuses internal values, and an internal report."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from privet.core import Internal, digits_up
from privet.report.card import RunCard, require_shareable
from privet.report.card_tables import attack_table, evidence_table, plan_table, score_table, spending_table
from privet.report.curves import Curves
from privet.report.figures import Figure
from privet.report.figures.accuracy import accuracy_by_epsilon
from privet.report.figures.attack import attack
from privet.report.figures.attack_results import adversaries, attack_curves, baseline_warning, canary_scores
from privet.report.figures.epochs import growth_by_epoch, measure_by_epoch
from privet.report.figures.ladder import ladder
from privet.report.figures.profile import profile
from privet.report.figures.tables import table_figures
from privet.report.figures.teachers import accuracy_by_teachers, consensus
from privet.report.frame import RUN_STYLES, alert, bullets, escape, page_html, table
from privet.report.origin import origin
from privet.report.page import guarantee_html, notes_html, promise_html, section
from privet.report.table_records import Tables
from privet.report.training_card import TrainingCard, is_tainted
from privet.report.training_records import Finding, Measure
from privet.report.verdict import evidence_warnings, powerless_canaries, worst_verdict
from privet.report.words import attack_limit_rows, down, guarantee_rows, headline, up

__all__ = ["INTERNAL_FOOTER", "INTERNAL_MARK", "SHAREABLE_FOOTER", "internal_page", "report_page", "states"]

_INTERNAL = "INTERNAL: some of this was computed on private rows and not released under the budget. Not for sharing."
INTERNAL_MARK = f'<p class="mark">{escape(_INTERNAL)}</p><div class="stamp" aria-hidden="true">INTERNAL</div>'
"""The beginning of every internal page."""
INTERNAL_FOOTER = f"Made by Privet. {_INTERNAL}"
SHAREABLE_FOOTER = (
    "Made by Privet. Everything on this page is known without the data, or was released under the budget."
)
_NO_ATTACK = (
    "No attack was run against this model. The guarantee is proven and does not depend on one; attacks and audits show "
    "how much of it an attacker can use today."
)
_SEEDED = "The noise came from a seeded generator: whoever knows the seed can subtract it. This protects nobody."


def report_page(card: TrainingCard, curves: Curves) -> str:
    """Return the page for sharing.

    Args:
        card: The card, without internal values: see `shareable`.
        curves: The curves of `card.privacy`, from `curves_of`.

    Raises:
        InvalidInput: The card has an internal value.
    """
    require_shareable(card)
    return _page(card, curves, "", SHAREABLE_FOOTER)


def internal_page(card: TrainingCard, curves: Curves, tables: Internal[Tables] | None = None) -> str:
    """Return the internal report, for those who may see the rows; it is marked at its top and on every printed page.

    Args:
        card: The card.
        curves: The curves of `card.privacy`, from `curves_of`.
        tables: Attacks on tables, which are stored beside the card.
    """
    return _page(card, curves, INTERNAL_MARK, INTERNAL_FOOTER, () if tables is None else table_figures(tables))


def _page(card: TrainingCard, curves: Curves, mark: str, footer: str, more: Sequence[Figure] = ()) -> str:
    title = f"{'INTERNAL: ' if mark else ''}{card.data.value}: {headline(card.privacy.guarantee.value)}"
    body = [
        *_header(card),
        '<div class="columns">',
        section("means", "What an attacker can learn", bullets(card.privacy.meaning.value.sentences)),
        section("holds", "What was assumed", *_assumed(card.privacy)),
        section("numbers", "Key numbers", table("The run and its guarantee", ("what", "value"), _key_numbers(card))),
        "</div>",
    ]
    below = ['<div class="wide">', *_below(card), "</div>"]
    figures = [*_figures(card, curves), *more]
    return page_html(title, body, figures, footer=footer, mark=mark, below=below, styles=RUN_STYLES)


def states(text: str, card: TrainingCard) -> bool:
    """Return whether a page, whichever version made it, promises at its top what the card does, and nothing else."""
    above = text.partition("<script")[0]
    return above.count("<h1") == 1 and promise_html(card.privacy.guarantee.value) in above


def _header(card: TrainingCard) -> list[str]:
    guarantee = card.privacy.guarantee.value
    how = "without privacy" if card.method.value == "none" else f"by {card.method.value}"
    return [
        worst_verdict([each.value for each in card.evidence], guarantee).header,
        f'<p class="kind">{escape(f"A model trained on {card.data.value} {how}")}</p>',
        promise_html(guarantee),
        alert("alarm", "Seeded", _SEEDED) if is_tainted(card) else "",
        *_refuted(card),
        *guarantee_html(guarantee, card.privacy.warnings.value),
        *(alert("warning", "INTERNAL", f"{remark.value}.") for remark in card.internal_remarks),
        "</header>",
    ]


def _refuted(card: TrainingCard) -> Iterable[str]:
    """Yield what proves that the guarantee does not hold, in red, and what missing noise may explain, in amber."""
    guarantee = card.privacy.guarantee.value
    for evidence in (each.value for each in card.evidence):
        if evidence.refutes(guarantee):
            text = (
                f"{evidence.attack} found ε ≥ {down(evidence.epsilon)} with {100 * evidence.confidence:g} % "
                "confidence, above what is claimed. What was done is not what was priced: do not rely on this run."
            )
            yield alert("alarm", "Refuted", text)
    for text in evidence_warnings([each.value for each in card.evidence], guarantee):
        yield alert("doubt", "Look closer", text)


def _assumed(privacy: RunCard) -> Iterable[str]:
    assumptions = [f"{text[:1].upper()}{text[1:]}." for text in privacy.guarantee.value.assumptions]
    yield bullets((*privacy.conditions.value, *assumptions))
    yield notes_html(privacy.notes.value)


def _key_numbers(card: TrainingCard) -> list[tuple[str, str]]:
    return [
        *(
            (f"{name} on {rows}", f"{value}; {interval} ({source})")
            for name, value, interval, rows, source in score_table(card).rows
        ),
        *guarantee_rows(card.privacy.guarantee.value),
        *(
            (finding.value.what, f"ε ≤ {up(finding.value.epsilon)}{_failure(finding.value)} ({origin(finding)})")
            for finding in card.findings
        ),
        *(() if card.rows is None else (("rows", f"{card.rows.value:,} ({origin(card.rows)})"),)),
        ("model", card.model.value),
        *card.privacy.described.value,
        *attack_limit_rows(card.privacy.meaning.value),
    ]


def _failure(finding: Finding) -> str:
    return "" if finding.failure is None else f", except with probability {digits_up(finding.failure)}"


def _figures(card: TrainingCard, curves: Curves) -> Sequence[Figure]:
    figures = (
        growth_by_epoch(card.growth.value) if card.growth is not None else None,
        *(measure_by_epoch(measure, card.history) for measure in Measure),
        *accuracy_by_epsilon((*card.compared, *card.stored)),
        *accuracy_by_teachers((*card.compared, *card.stored)),
        *consensus(card.consensus),
        adversaries(card.evidence, card.privacy.guarantee.value),
        *canary_scores(card.canaries),
        attack_curves(card.attacks, curves),
        ladder(card.privacy, curves),
        attack(card.privacy, curves),
        profile(card.privacy, curves),
    )
    return [figure for figure in figures if figure is not None]


def _below(card: TrainingCard) -> Iterable[str]:
    scores, spending, plan = score_table(card), spending_table(card), plan_table(card)
    if scores.rows:
        yield section("scores", scores.title, table("How good the model is", scores.head, scores.rows))
    caption = "Each line by itself at this δ; everything is priced together, and costs less than the sum"
    yield section("bill", spending.title, table(caption, spending.head, spending.rows))
    yield section("plan", plan.title, table("Every setting, and why", plan.head, plan.rows))
    yield section("evidence", "Evidence", _evidence(card), *_attacks(card), *_pictures(card))
    yield section("again", "To run it again", f"<pre>{escape(card.command.value)}</pre>", _record(card))


def _evidence(card: TrainingCard) -> str:
    if not card.evidence:
        return f"<p>{escape(_NO_ATTACK)}</p>" if not card.attacks else ""
    bounds = evidence_table(card.evidence, card.privacy.guarantee.value)
    notes = powerless_canaries([each.value for each in card.canaries], [each.value for each in card.evidence])
    return table("Lower bounds on ε from attacks", bounds.head, bounds.rows) + notes_html(notes)


def _attacks(card: TrainingCard) -> Iterable[str]:
    """Yield what attacks on real members achieved, low FPR first."""
    if not card.attacks:
        return
    attacks = [each.value for each in card.attacks]
    if warning := baseline_warning(attacks):
        yield alert("warning", "Warning", warning)
    results = attack_table(attacks)
    caption = (
        f"INTERNAL: membership attacks on real members, with intervals of {100 * attacks[0].confidence:g} % each; the "
        "guarantee's limits at the same FPR are among the key numbers"
    )
    more = [(f"{a.members:,} and {a.outsiders:,}", f"{a.shadows:,}" if a.shadows else "none", a.note) for a in attacks]
    rows = [(*row, *rest) for row, rest in zip(results.rows, more, strict=True)]
    yield table(caption, (*results.head, "members and non-members", "shadow models", "how"), rows)


def _pictures(card: TrainingCard) -> Iterable[str]:
    for picture in (each.value for each in card.pictures):
        source = f"data:image/png;base64,{escape(picture.png)}"
        yield (
            f'<figure class="rebuilt"><img alt="{escape(picture.about)}" src="{source}">'
            f"<figcaption>INTERNAL: {escape(picture.title)}. {escape(picture.about)}</figcaption></figure>"
        )


def _record(card: TrainingCard) -> str:
    rows = [("made", card.made.value), ("randomness", card.randomness.value.value), *card.versions.value]
    if card.ledger is not None:
        charged = card.ledger.value
        entries = ", ".join(charged.entries)
        rows += [("budget", charged.budget), ("ledger entries", entries), ("chain head", charged.head)]
    else:
        rows += [("ledger", "none: the privacy spent on this data set is not recorded anywhere")]
    record = f'<div class="hash">{table("Where it comes from", ("what", "value"), rows)}</div>'
    if card.schema is None:
        return record
    text = card.schema.value
    summary = f"The schema ({origin(card.schema)}), sha256 {hashlib.sha256(text.encode()).hexdigest()}"
    return f'{record}<details><summary class="hash">{escape(summary)}</summary><pre>{escape(text)}</pre></details>'
