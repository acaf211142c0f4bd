"""A training card as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from privet.core.guarantee import digits_up
from privet.report.origin import interval, origin, rounded
from privet.report.training_card import TrainingCard, is_tainted
from privet.report.words import headline, proven_by, up

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

__all__ = ["show"]


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
    yield Text(f"{card.data.value}: {card.model.value}, by {card.method.value.value}")
    if is_tainted(card):
        yield Text("The noise came from a seeded generator, which protects nobody.", style="bold red")
    yield from (Text(f"Beware: {warning}.", style="yellow") for warning in card.privacy.warnings.value)
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
            ("run", "method", "ε at most", "δ", "score", "origin"),
            [
                (
                    each.value.run,
                    each.value.method.value,
                    up(each.value.epsilon),
                    digits_up(each.value.delta),
                    f"{each.value.score.name} {rounded(each.value.score.value, each.value.score.share)}",
                    origin(each),
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
    yield Text(
        "No attack was run." if not card.evidence else f"Attacks that were run: {len(card.evidence)}.", style="dim"
    )
    yield Text(f"To do it again: {card.command.value}")


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
