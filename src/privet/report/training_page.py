"""A training card as two pages: one for sharing, which cannot take anything internal, and one for the data's owners."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence

from privet.core.disclosure import Internal
from privet.core.guarantee import digits_up
from privet.report.card import RunCard, require_shareable
from privet.report.curves import Curves
from privet.report.figures import Figure
from privet.report.figures.accuracy import accuracy_by_epsilon
from privet.report.figures.attack import attack
from privet.report.figures.attacked import adversaries, attack_curves, canary_scores, differing
from privet.report.figures.epochs import followed, growth_by_epoch
from privet.report.figures.ladder import ladder
from privet.report.figures.profile import profile
from privet.report.figures.tables import table_figures
from privet.report.figures.teachers import accuracy_by_teachers, consensus
from privet.report.frame import bullets, drawn, escaped, framed, table
from privet.report.origin import interval, origin, rounded
from privet.report.shown import attack_rows
from privet.report.standing import alarms, between, powerless, verdict, worst
from privet.report.table_records import Tables
from privet.report.training_card import TrainingCard, is_tainted
from privet.report.training_records import Finding, Measure
from privet.report.words import down, headline, is_open, percent, protected, proven_by, up

__all__ = ["INTERNAL_FOOTER", "INTERNAL_MARK", "internal_page", "report_page", "states"]

_STYLES = ("page.css", "training.css")
_INTERNAL = "INTERNAL: some of this was computed on private rows and not paid for. Not to be shared."
INTERNAL_MARK = f'<p class="mark">{escaped(_INTERNAL)}</p><div class="stamp" aria-hidden="true">INTERNAL</div>'
"""What every internal page begins with."""
INTERNAL_FOOTER = f"Made by Privet. {_INTERNAL}"
_NO_ATTACK = (
    "No attack was run against this model. The guarantee is proven and does not rest on one; attacks and audits show "
    "how much of it an attacker of today can use."
)


def report_page(card: TrainingCard, curves: Curves) -> str:
    """The page for sharing. Raises if the card has anything internal: give it `shareable(card)`."""
    require_shareable(card)
    return _page(card, curves, "", "Made by Privet. All of this page is known without the data, or was paid for.")


def internal_page(card: TrainingCard, curves: Curves, tables: Internal[Tables] | None = None) -> str:
    """The page for those who may see the rows: everything, marked at its top and on every printed page; `tables` are
    attacks on tables, which are kept beside the card."""
    return _page(card, curves, INTERNAL_MARK, INTERNAL_FOOTER, () if tables is None else table_figures(tables))


def _page(card: TrainingCard, curves: Curves, mark: str, footer: str, more: Sequence[Figure] = ()) -> str:
    shown = [*_figures(card, curves), *more]
    title = f"{'INTERNAL: ' if mark else ''}{card.data.value}: {headline(card.privacy.guarantee.value)}"
    body = [
        mark,
        "<main>",
        *_header(card),
        '<div class="columns">',
        _section("means", "What it means for an attacker", bullets(card.privacy.meaning.value.sentences)),
        _section("holds", "What was assumed", *_assumed(card.privacy)),
        _section("numbers", "Key numbers", table("The run and its guarantee", ("what", "value"), _key_numbers(card))),
        "</div>",
        '<section class="figures" aria-label="Figures">',
        *map(drawn, shown),
        "</section>",
        '<div class="wide">',
        *_below(card),
        "</div>",
        "</main>",
    ]
    return framed(title, filter(None, body), shown, footer=footer, styles=_STYLES)


def states(text: str, card: TrainingCard) -> bool:
    """Whether a page, whichever version made it, promises at its top what the card does, and nothing else."""
    shown = text.partition("<script")[0]
    return shown.count("<h1") == 1 and _promise(card) in shown


def _promise(card: TrainingCard) -> str:
    guarantee = card.privacy.guarantee.value
    upper, delta = up(guarantee.epsilon.upper), digits_up(guarantee.delta)
    holds = math.isfinite(guarantee.epsilon.upper)
    promise = f"ε ≤ {upper}" if holds else "no finite ε was found" if is_open(guarantee) else f"ε = {upper}"
    return f"<h1{'' if holds else ' class=none'}>{promise} <small>at δ = {delta}</small></h1>"


def _header(card: TrainingCard) -> list[str]:
    guarantee = card.privacy.guarantee.value
    holds = math.isfinite(guarantee.epsilon.upper)
    kind = f"A model trained on {card.data.value} by {card.method.value}"
    if card.method.value == "none":
        kind = f"A model trained on {card.data.value} without privacy"
    seeded = "The noise came from a seeded generator: whoever knows the seed can take it away. This protects nobody."
    return [
        worst([each.value for each in card.evidence], guarantee).header,
        f'<p class="kind">{escaped(kind)}</p>',
        _promise(card),
        f'<p class="unit">Protects {escaped(protected(guarantee.unit))}.</p>' if holds else "",
        f'<p class="assumptions">{escaped(proven_by(guarantee))}</p>',
        f'<p class="alarm"><strong>Seeded:</strong> {escaped(seeded)}</p>' if is_tainted(card) else "",
        *_refuted(card),
        *(f'<p class="warning"><strong>Beware:</strong> {escaped(text)}.</p>' for text in card.privacy.warnings.value),
        *(
            f'<p class="warning"><strong>INTERNAL:</strong> {escaped(remark.value)}.</p>'
            for remark in card.internal_remarks
        ),
        "</header>",
    ]


def _refuted(card: TrainingCard) -> Iterable[str]:
    """What proves that the guarantee does not hold, in red; what may come of missing noise, in amber."""
    guarantee = card.privacy.guarantee.value
    for each in card.evidence:
        if each.value.refutes(guarantee):
            told = (
                f"{each.value.attack} found ε ≥ {down(each.value.epsilon)} with {100 * each.value.confidence:g} % "
                "confidence, above what is claimed. What was done is not what was priced: do not rely on this run."
            )
            yield f'<p class="alarm"><strong>Refuted:</strong> {escaped(told)}</p>'
    for told in alarms([each.value for each in card.evidence], guarantee):
        yield f'<p class="doubt"><strong>Look closer:</strong> {escaped(told)}</p>'


def _section(name: str, title: str, *inside: str) -> str:
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{escaped(title)}</h2>{"".join(inside)}</section>'


def _assumed(privacy: RunCard) -> Iterable[str]:
    assumptions = [f"{text[:1].upper()}{text[1:]}." for text in privacy.guarantee.value.assumptions]
    yield bullets((*privacy.conditions.value, *assumptions))
    yield from (f'<p class="note">{escaped(note)}</p>' for note in privacy.notes.value)


def _key_numbers(card: TrainingCard) -> list[tuple[str, str]]:
    guarantee = card.privacy.guarantee.value
    rows = [] if card.rows is None else [("rows", f"{card.rows.value:,} ({origin(card.rows)})")]
    scores = [
        (
            f"{score.value.name} on {score.value.on}",
            f"{rounded(score.value.value, score.value.share)}; {interval(score.value)} ({origin(score)})",
        )
        for score in card.scores
    ]
    return [
        *scores,
        ("ε at most", up(guarantee.epsilon.upper)),
        ("ε at least", down(guarantee.epsilon.lower)),
        ("δ", digits_up(guarantee.delta)),
        *(
            (found.value.what, f"ε ≤ {up(found.value.epsilon)}{_failing(found.value)} ({origin(found)})")
            for found in card.findings
        ),
        *rows,
        ("model", card.model.value),
        *card.privacy.described.value,
        *(
            (
                f"members found at {100 * found.false_positive_rate:g} % false positives",
                f"at most {percent(found.true_positive_rate)}",
            )
            for found in card.privacy.meaning.value.attacks
        ),
    ]


def _failing(found: Finding) -> str:
    return "" if found.failure is None else f", but for a chance of {digits_up(found.failure)}"


def _figures(card: TrainingCard, curves: Curves) -> Sequence[Figure]:
    found = (
        growth_by_epoch(card.growth.value) if card.growth is not None else None,
        *(followed(measure, card.history) for measure in Measure),
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
    return [figure for figure in found if figure is not None]


def _below(card: TrainingCard) -> Iterable[str]:
    if card.scores:
        rows = [
            (
                score.value.name,
                rounded(score.value.value, score.value.share),
                interval(score.value),
                score.value.on,
                origin(score),
            )
            for score in card.scores
        ]
        yield _section(
            "scores", "Scores", table("How good the model is", ("what", "value", "interval", "on", "origin"), rows)
        )
    bill = [(line.what, up(line.guarantee.epsilon.upper), digits_up(line.guarantee.delta)) for line in card.bill.value]
    total = card.privacy.guarantee.value
    caption = "Each line by itself at this δ; the whole is priced as one, and costs less than their sum"
    whole = ("everything together", up(total.epsilon.upper), digits_up(total.delta))
    yield _section("bill", "What was paid for", table(caption, ("what", "ε at most", "δ"), [*bill, whole]))
    choices = [(choice.name, choice.value, choice.why) for choice in card.choices.value]
    yield _section("plan", "The plan", table("Every setting, and why", ("setting", "value", "why"), choices))
    yield _section("evidence", "Evidence", _evidence(card), *_attacks(card), *_pictures(card))
    yield _section("again", "To do it again", f"<pre>{escaped(card.command.value)}</pre>", _record(card))


def _evidence(card: TrainingCard) -> str:
    if not card.evidence:
        return f"<p>{escaped(_NO_ATTACK)}</p>" if not card.attacks else ""
    guarantee = card.privacy.guarantee.value
    rows = [
        (
            each.value.attack,
            down(each.value.epsilon),
            digits_up(each.value.delta),
            f"{100 * each.value.confidence:g} %",
            f"{each.value.trials:,}",
            between(each.value, guarantee),
            verdict(each.value, guarantee),
            "; ".join(each.value.assumptions) or "nothing",
            origin(each),
        )
        for each in card.evidence
    ]
    head = (
        "attack", "ε at least", "δ", "confidence", "trials", "ε lies between", "the guarantee", "assumes", "origin",
    )  # fmt: skip
    notes = powerless([each.value for each in card.canaries], [each.value for each in card.evidence])
    shown = table("What attacks found: lower bounds on ε", head, rows)
    return shown + "".join(f'<p class="note">{escaped(each)}</p>' for each in notes)


def _attacks(card: TrainingCard) -> Iterable[str]:
    """What attacks on real members found, few false alarms first."""
    if not card.attacks:
        return
    found = [each.value for each in card.attacks]
    if told := differing(found):
        yield f'<p class="warning"><strong>Beware:</strong> {escaped(told)}</p>'
    head, rows = attack_rows(found)
    confidence = found[0].confidence
    caption = (
        f"INTERNAL: membership attacks by real members, with intervals of {100 * confidence:g} % each; the guarantee's "
        "limit for the same rates stands among the key numbers"
    )
    more = [(f"{e.members:,} and {e.outsiders:,}", f"{e.shadows:,}" if e.shadows else "none", e.note) for e in found]
    whole = [(*row, *rest) for row, rest in zip(rows, more, strict=True)]
    yield table(caption, (*head, "members and outsiders", "shadow models", "how"), whole)


def _pictures(card: TrainingCard) -> Iterable[str]:
    for found in card.pictures:
        each = found.value
        yield (
            f'<figure class="rebuilt"><img alt="{escaped(each.about)}" src="data:image/png;base64,{escaped(each.png)}">'
            f"<figcaption>INTERNAL: {escaped(each.title)}. {escaped(each.about)}</figcaption></figure>"
        )


def _record(card: TrainingCard) -> str:
    rows = [("made", card.made.value), ("randomness", card.randomness.value.value), *card.versions.value]
    if card.ledger is not None:
        charged = card.ledger.value
        rows += [
            ("budget", charged.budget),
            ("ledger entries", ", ".join(charged.entries)),
            ("chain head", charged.head),
        ]
    else:
        rows += [("ledger", "none: nobody keeps the running bill of this data set")]
    shown = table("Where it comes from", ("what", "value"), rows)
    if card.schema is None:
        return f'<div class="hash">{shown}</div>'
    text = card.schema.value
    digest = hashlib.sha256(text.encode()).hexdigest()
    summary = f"The schema ({origin(card.schema)}), sha256 {digest}"
    return (
        f'<div class="hash">{shown}</div>'
        f'<details><summary class="hash">{escaped(summary)}</summary><pre>{escaped(text)}</pre></details>'
    )
