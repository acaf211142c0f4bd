"""The tables of a training card, for pages, figures and the terminal alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from privet.core import Evidence, Guarantee, Score, Trial, Typed, digits_up
from privet.report.attack_records import Attacked, Estimate
from privet.report.origin import format_interval, format_score, origin
from privet.report.training_card import TrainingCard
from privet.report.verdict import epsilon_range, verdict_of
from privet.report.words import down, up

__all__ = [
    "CardTable",
    "attack_table",
    "evidence_table",
    "finding_table",
    "format_estimate",
    "plan_table",
    "score_table",
    "spending_table",
    "trial_cells",
    "trial_table",
]


@dataclass(frozen=True)
class CardTable:
    """A table of texts."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def only(self, *columns: str) -> CardTable:
        """Return the same table with these columns alone."""
        places = [self.head.index(column) for column in columns]
        return CardTable(self.title, columns, [tuple(row[place] for place in places) for row in self.rows])


def score_table(card: TrainingCard) -> CardTable:
    """Return how good the model is: every metric with its interval."""
    rows = [(each.value.name, *_score_cells(each.value), origin(each)) for each in card.scores]
    return CardTable("Metrics", ("metric", "value", "interval", "on", "origin"), rows)


def _score_cells(score: Score) -> tuple[str, str, str]:
    return format_score(score.value, score.share), format_interval(score), score.on


def finding_table(card: TrainingCard) -> CardTable:
    """Return the ε that hold for these data alone."""
    rows = [
        (
            each.value.what,
            up(each.value.epsilon),
            digits_up(each.value.delta),
            "–" if each.value.failure is None else digits_up(each.value.failure),
            origin(each),
        )
        for each in card.findings
    ]
    head = ("what", "ε at most", "δ", "chance to be too small", "origin")
    return CardTable("Privacy spent on these data: no guarantee", head, rows)


def trial_table(trials: Iterable[Typed[Trial]]) -> CardTable:
    """Return what was compared: other methods and other runs."""
    rows = [
        (*cells[:4], f"{each.value.score.name} {cells[4]}", *cells[5:])
        for each in trials
        if (cells := trial_cells(each))
    ]
    return CardTable("Compared", ("run", "method", "ε at most", "δ", "metric", "interval", "on", "origin"), rows)


def trial_cells(trial: Typed[Trial]) -> tuple[str, ...]:
    """Return the run of a trial, its method, ε, δ, score, interval, rows and origin."""
    known = trial.value
    return (
        known.run,
        known.method,
        up(known.epsilon),
        digits_up(known.delta),
        *_score_cells(known.score),
        origin(trial),
    )


def spending_table(card: TrainingCard) -> CardTable:
    """Return what the budget was spent on, line by line, and the privacy cost of everything together."""
    lines = [(line.what, *_cost_cells(line.guarantee)) for line in card.bill.value]
    whole = ("everything together", *_cost_cells(card.privacy.guarantee.value))
    return CardTable("Privacy spent", ("what", "ε at most", "δ"), [*lines, whole])


def _cost_cells(guarantee: Guarantee) -> tuple[str, str]:
    return up(guarantee.epsilon.upper), digits_up(guarantee.delta)


def plan_table(card: TrainingCard) -> CardTable:
    """Return every setting of the plan, and why it was chosen."""
    rows = [(choice.name, choice.value, choice.why) for choice in card.choices.value]
    return CardTable("The plan", ("setting", "value", "why"), rows)


def evidence_table(evidence: Iterable[Typed[Evidence]], guarantee: Guarantee) -> CardTable:
    """Return the lower bounds on ε from attacks and audits, and what each says about the guarantee."""
    rows = [
        (
            each.value.attack,
            down(each.value.epsilon),
            digits_up(each.value.delta),
            f"{100 * each.value.confidence:g} %",
            f"{each.value.trials:,}",
            epsilon_range(each.value, guarantee),
            verdict_of(each.value, guarantee).value,
            "; ".join(each.value.assumptions) or "nothing",
            origin(each),
        )
        for each in evidence
    ]
    head = ("attack", "ε at least", "δ", "confidence", "trials", "ε lies between", "the guarantee", "assumes", "origin")
    return CardTable("Evidence", head, rows)


def attack_table(attacks: Sequence[Attacked]) -> CardTable:
    """Return what membership attacks achieved: the TPR at low FPR first, AUC last."""
    rates = list(dict.fromkeys(rate.at or 0.0 for attack in attacks for rate in attack.hits))
    rows = []
    for attack in attacks:
        hits = {rate.at: rate for rate in attack.hits}
        cells = (format_estimate(hits.get(rate)) for rate in rates)
        rows.append((attack.attack, *cells, format_estimate(attack.auc, share=False)))
    head = ("attack", *(f"TPR at {100 * rate:g} % FPR" for rate in rates), "AUC")
    return CardTable("Membership attacks (INTERNAL)", head, rows)


def format_estimate(estimate: Estimate | None, *, share: bool = True) -> str:
    """Return a rate with its interval; a dash if there is none."""
    if estimate is None:
        return "–"
    value, lower, upper = (format_score(end, share) for end in (estimate.value, estimate.lower, estimate.upper))
    return f"{value} ({lower} to {upper})"
