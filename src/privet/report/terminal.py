"""A training card as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from privet.report.card_tables import (
    CardTable,
    attack_table,
    evidence_table,
    finding_table,
    plan_table,
    score_table,
    spending_table,
    trial_table,
)
from privet.report.training_card import TrainingCard, is_tainted
from privet.report.verdict import evidence_warnings
from privet.report.words import SEEDED, headline, proven_by

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

__all__ = ["show"]


def show(card: TrainingCard) -> Group:
    """Return a card for printing with Rich: the guarantee, the metrics, the privacy spent, the plan, the evidence.

    Args:
        card: The card. Internal values are marked as such; give `shareable(card)` to leave them out.
    """
    from rich.console import Group

    return Group(*_lines(card))


def _lines(card: TrainingCard) -> Iterable[RenderableType]:
    from rich.text import Text

    guarantee = card.privacy.guarantee.value
    yield Text(headline(guarantee), style="bold yellow" if card.privacy.warnings.value else "bold green")
    yield Text(f"{card.data.value}: {card.model.value}, by {card.method.value}")
    if is_tainted(card):
        yield Text(SEEDED, style="bold red")
    yield from (Text(f"Warning: {warning}.", style="yellow") for warning in card.privacy.warnings.value)
    yield from (Text(f"INTERNAL: {remark.value}.", style="yellow") for remark in card.internal_remarks)
    if card.scores:
        yield _rich(score_table(card))
    if card.findings:
        yield _rich(finding_table(card))
    if trials := (*card.compared, *card.stored):
        yield _rich(trial_table(trials).only("run", "method", "ε at most", "δ", "metric", "interval", "origin"))
    yield _rich(spending_table(card))
    yield _rich(plan_table(card))
    yield Text("What an attacker can learn", style="bold")
    yield from (Text(f"· {sentence}") for sentence in card.privacy.meaning.value.sentences)
    yield Text(proven_by(guarantee), style="dim")
    yield from _evidence(card)
    yield Text(f"To run it again: {card.command.value}")


def _evidence(card: TrainingCard) -> Iterable[RenderableType]:
    """Yield lower bounds on ε, red if one refutes the guarantee, yellow if one would under its assumptions; then
    attacks on real members, which are internal."""
    from rich.text import Text

    guarantee = card.privacy.guarantee.value
    if not card.evidence and not card.attacks:
        yield Text("No attack was run.", style="dim")
    if card.evidence:
        table = evidence_table(card.evidence, guarantee)
        yield _rich(table.only("attack", "ε at least", "confidence", "the guarantee", "origin"))
    if any(each.value.refutes(guarantee) for each in card.evidence):
        yield Text("Evidence lies above the guarantee: do not rely on this run.", style="bold red")
    for warning in evidence_warnings([each.value for each in card.evidence], guarantee):
        yield Text(warning, style="bold yellow")
    if card.attacks:
        yield _rich(attack_table([each.value for each in card.attacks]))


def _rich(table: CardTable) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rich = Table(title=table.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.head:
        rich.add_column(column)
    for row in table.rows:
        rich.add_row(*map(Text, row))
    return rich
