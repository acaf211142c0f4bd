"""A training card as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from privet.core.guarantee import digits_up
from privet.report.attack_records import Attacked, Estimate
from privet.report.origin import interval, origin, rounded
from privet.report.standing import alarms, verdict
from privet.report.training_card import TrainingCard, is_tainted
from privet.report.words import down, headline, proven_by, up

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

__all__ = ["attack_rows", "show"]


def show(card: TrainingCard) -> Group:
    """What to print with Rich: the guarantee, the scores, what was paid for, the plan, and how to do it again.

    What is internal is shown as such; give `shareable(card)` to leave it out.
    """
    from rich.console import Group

    return Group(*_lines(card))


def _lines(card: TrainingCard) -> Iterable[RenderableType]:
    from rich.text import Text

    guarantee = card.privacy.guarantee.value
    yield Text(headline(guarantee), style="bold yellow" if card.privacy.warnings.value else "bold green")
    yield Text(f"{card.data.value}: {card.model.value}, by {card.method.value}")
    if is_tainted(card):
        yield Text("The noise came from a seeded generator, which protects nobody.", style="bold red")
    yield from (Text(f"Beware: {warning}.", style="yellow") for warning in card.privacy.warnings.value)
    yield from (Text(f"INTERNAL: {remark.value}.", style="yellow") for remark in card.internal_remarks)
    if card.scores:
        yield _table(
            "Scores",
            ("what", "value", "on", "origin", "interval"),
            [
                (
                    score.value.name,
                    rounded(score.value.value, score.value.share),
                    score.value.on,
                    origin(score),
                    interval(score.value),
                )
                for score in card.scores
            ],
        )
    if card.findings:
        yield _table(
            "What it cost these data: no guarantee",
            ("what", "ε at most", "δ", "chance to be too small", "origin"),
            [
                (
                    each.value.what,
                    up(each.value.epsilon),
                    digits_up(each.value.delta),
                    "–" if each.value.failure is None else digits_up(each.value.failure),
                    origin(each),
                )
                for each in card.findings
            ],
        )
    if trials := (*card.compared, *card.stored):
        yield _table(
            "Compared",
            ("run", "method", "ε at most", "δ", "score", "origin", "interval"),
            [
                (
                    each.value.run,
                    each.value.method,
                    up(each.value.epsilon),
                    digits_up(each.value.delta),
                    f"{each.value.score.name} {rounded(each.value.score.value, each.value.score.share)}",
                    origin(each),
                    interval(each.value.score),
                )
                for each in trials
            ],
        )
    bill = [(line.what, up(line.guarantee.epsilon.upper)) for line in card.bill.value]
    yield _table("What was paid for", ("what", "ε at most"), [*bill, ("together", up(guarantee.epsilon.upper))])
    plan = [(choice.name, choice.value, choice.why) for choice in card.choices.value]
    yield _table("The plan", ("setting", "value", "why"), plan)
    yield Text("What it means", style="bold")
    yield from (Text(f"· {sentence}") for sentence in card.privacy.meaning.value.sentences)
    yield Text(proven_by(guarantee), style="dim")
    yield from _evidence(card)
    yield Text(f"To do it again: {card.command.value}")


def _evidence(card: TrainingCard) -> Iterable[RenderableType]:
    """Lower bounds on ε, red where one refutes the guarantee, yellow where one would if what it assumes holds; and
    attacks on real members, which are internal."""
    from rich.text import Text

    guarantee = card.privacy.guarantee.value
    if not card.evidence and not card.attacks:
        yield Text("No attack was run.", style="dim")
    if card.evidence:
        yield _table(
            "Evidence",
            ("attack", "ε at least", "confidence", "the guarantee", "origin"),
            [
                (
                    each.value.attack,
                    down(each.value.epsilon),
                    f"{100 * each.value.confidence:g} %",
                    verdict(each.value, guarantee),
                    origin(each),
                )
                for each in card.evidence
            ],
        )
    if any(each.value.refutes(guarantee) for each in card.evidence):
        yield Text("Evidence lies above the guarantee: do not rely on this run.", style="bold red")
    for told in alarms([each.value for each in card.evidence], guarantee):
        yield Text(told, style="bold yellow")
    if card.attacks:
        yield _table("Membership attacks (INTERNAL)", *attack_rows([each.value for each in card.attacks]))


def attack_rows(attacks: Sequence[Attacked]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Membership attacks as a table: few false alarms first, AUC second."""
    rates = list(dict.fromkeys(rate.at or 0.0 for each in attacks for rate in each.hits))

    def shown(found: Estimate | None, *, share: bool) -> str:
        if found is None:
            return "–"
        return f"{rounded(found.value, share)} ({rounded(found.lower, share)} to {rounded(found.upper, share)})"

    rows = []
    for each in attacks:
        hits = {rate.at: rate for rate in each.hits}
        rows.append((each.attack, *(shown(hits.get(rate), share=True) for rate in rates), shown(each.auc, share=False)))
    return ("attack", *(f"found at {100 * rate:g} % accused" for rate in rates), "AUC"), rows


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in head:
        made.add_column(column)
    for row in rows:
        made.add_row(*map(Text, row))
    return made
