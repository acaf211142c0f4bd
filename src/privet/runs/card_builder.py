"""From a finished run to its card."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from math import ceil
from typing import Any

import numpy as np

from privet.accounting import default_delta, is_near_one_unit
from privet.core import (
    Approximate,
    Composed,
    Event,
    Guarantee,
    Randomness,
    Release,
    Shareable,
    Typed,
    Whose,
    digits_up,
)
from privet.data import Table
from privet.report import (
    Charged,
    Choice,
    Growth,
    Internal,
    Measure,
    Public,
    Score,
    Series,
    TrainingCard,
    Trial,
    growth_of,
    price_lines,
    trial_of,
)
from privet.runs.fit_stage import TrainedModel
from privet.runs.methods.registry import METHODS
from privet.runs.pipeline import RunResult
from privet.runs.plan_choices import plan_choices
from privet.runs.provenance import record_rows
from privet.runs.scoring import accuracy_margin
from privet.training import DataKind
from privet.training.models import Model

__all__ = ["build_card"]

_LEARNED = "follows from what was learned: see the plan"


def build_card(result: RunResult) -> TrainingCard:
    """Return the card of a run; each value on it is typed by its origin.

    Args:
        result: Result of the run.
    """
    request, plan, facts = result.request, result.plan, result.inputs.facts
    sections = METHODS[request.method].card_sections(result)
    privacy, lines = price_lines(
        plan.lines,
        plan.delta,
        unit=plan.unit,
        population=None if _learned(result) and not request.rows else facts.units,
        rests_on=() if facts.schema is None else facts.schema.assumptions,
        conditions=(*_conditions(result), *sections.conditions),
        notes=(*sections.notes, *_notes(result)),
    )
    main = result.trained[0]
    compared = _compared(result) if sections.compared is None else sections.compared
    return TrainingCard(
        command=Public(result.command),
        made=Public(datetime.now(UTC).isoformat(timespec="seconds")),
        data=Public(facts.name),
        model=Public(_LEARNED if _learned(result) else _model(result)),
        method=Public(METHODS[request.method].title),
        choices=_choices(result),
        privacy=privacy,
        bill=lines,
        growth=_growth(result, privacy.guarantee.value),
        randomness=Public(Randomness.SECURE if request.seed is None else Randomness.SEEDED),
        versions=Public(_versions()),
        ledger=None if result.budget is None else Public(Charged(*result.budget)),
        rows=_rows(result),
        schema=_schema(result),
        scores=_scores(main),
        history=_history(result),
        compared=compared,
        stored=sections.stored,
        teachers=sections.teachers,
        consensus=sections.consensus,
        findings=sections.findings,
        evidence=() if main.audited is None else main.audited.evidence,
        canaries=() if main.audited is None else (main.audited.canaries,),
        remembered=record_rows(request, result.inputs),
        internal_remarks=_remarks(result),
    )


def _choices(result: RunResult) -> Shareable[tuple[Choice, ...]]:
    """Public; or of what was released, where the plan follows from what was learned or selected."""
    choices = plan_choices(result.request, result.inputs.facts, result.plan, result.main_plan)
    learned = _learned(result)
    if learned is not None:
        choices += (Choice("model", _model(result), "follows from what was learned"),)
    if result.plan.tuning is not None:
        learned = result.trained[0].release
    return Public(choices) if learned is None else learned.map(lambda _: choices)


def _remarks(result: RunResult) -> tuple[Internal[str], ...]:
    """That δ is large for these data, where their number is private: whether it is tells of that number."""
    data, facts, delta = result.inputs.train, result.inputs.facts, result.plan.delta
    is_public = facts.rows is not None and (_learned(result) is None or result.request.rows is not None)
    if is_public or data is None or not METHODS[result.request.method].has_central_trust:
        return ()
    users = data.users if isinstance(data, Table) and facts.whose is Whose.USER else None
    units = len(data) if users is None else len(np.unique(users))
    if not is_near_one_unit(delta, units):
        return ()
    problem = f"δ = {digits_up(delta)} is not well below 1/n for the {units:,} units in these data (a private number)"
    return (Internal(f"{problem}: give --delta {default_delta(units):g} or less to the next run"),)


def _learned(result: RunResult) -> Release[Any] | None:
    """What was released before the plan was made, on which model, size and rows may depend."""
    return result.schema or result.rows


def _model(result: RunResult) -> str:
    model: Model = result.model
    if result.described.family == "kernel":
        return f"kernel ridge regression, {result.described.support:,} public rows"
    numbers = sum(each.numel() for each in model.head.parameters()) or sum(
        each.numel() for each in model.head.buffers()
    )
    family = result.described.family
    name = {"convex": "linear", "convolutions": "convolutions with tanh units"}.get(family, family)
    on = ""
    if result.inputs.facts.kind is DataKind.PICTURES:
        on = " on scattering features" if result.described.scattering else " on pixels"
    return f"{name}{on}, {numbers:,} numbers"


def _conditions(result: RunResult) -> tuple[str, ...]:
    facts, conditions = result.inputs.facts, []
    if facts.is_schema_drafted:
        conditions.append("The schema was read from the public rows.")
    elif not facts.is_schema_released and facts.schema is not None:
        rows = " and the number of rows" if facts.rows is not None else ""
        conditions.append(f"Which columns there are, their kinds{rows} are known without the rows.")
    if facts.kind is DataKind.PICTURES:
        conditions.append("Shape, classes and number of pictures are known without the pictures.")
    if facts.has_test_rows:
        conditions.append("The test file is public: nothing in it needs protection.")
    if facts.whose is Whose.USER:
        conditions.append("Every row has the id of the person it is about.")
    elif facts.kind is DataKind.TABLE:
        conditions.append("One row is about one person, and one person is in one row.")
    if result.described.own:
        conditions.append("The model's code looks at each row by itself.")
    return tuple(conditions)


def _notes(result: RunResult) -> tuple[str, ...]:
    notes = []
    blocks = [(METHODS[plan.method].title, plan.event) for plan in result.plan.methods if not plan.is_complete]
    notes += [
        f"{title}'s plan was made after something was learned, and so it is priced as at most "
        f"ε = {event.epsilon:g} at δ = {digits_up(event.delta)}, whatever was learned."
        for title, event in blocks
        if isinstance(event, Approximate)
    ]
    if result.plan.tuning is not None:
        notes.append(
            "The model is the best of a random number of runs, by a score that each of them released: that score looks "
            "a little better than it is. How many runs there were is not told."
        )
    if len(result.request.private_methods) > 1:
        notes.append(
            "Methods that are compared share δ, and each has a model of its own at the ε that was asked for: together "
            "they cost more than one, and each is a little worse than it would be alone."
        )
    if result.request.audit:
        notes.append(
            f"{result.request.canaries:,} made-up canaries stood among the rows, each put in by a fair coin: rows of "
            "which the model learns nothing, as each has a coordinate of its own on which no prediction depends. "
            "Batches were larger by them; sampling, clip, noise, the number that sums are divided by and the guarantee "
            "of real rows are what they are without."
        )
    if len(result.plan.lines) > 1:
        notes.append("The lines of the bill are composed: together they cost less than their sum.")
    return tuple(notes)


def _growth(result: RunResult, guarantee: Guarantee) -> Public[Growth] | None:
    """ε by epochs, of the first method that has some and whose plan was complete when it was charged."""
    plans = [plan for plan in result.plan.methods if plan.is_complete and METHODS[plan.method].growth is not None]
    if result.plan.tuning is not None or not plans:
        return None
    growth = METHODS[plans[0].method].growth
    if growth is None:
        return None
    partial = growth(plans[0])
    others = [event for _, event in result.plan.lines]
    others.remove(plans[0].event)
    epochs = max(ceil(round(partial.epochs, 9)), 1)

    def after(epoch: int) -> Event:
        if epoch >= epochs:
            return result.plan.event
        part = partial.event_after(epoch)
        return Composed((part, *others)) if others else part

    by_epochs = growth_of(after, epochs, guarantee, partial.counted)
    # The last of them need not be whole.
    return Public(replace(by_epochs, epochs=(*by_epochs.epochs[:-1], round(partial.epochs, 2))))


def _rows(result: RunResult) -> Typed[int] | None:
    if result.rows is not None:
        return result.rows
    if result.schema is not None:
        return None  # it stands in the schema, which was paid for
    return None if result.inputs.facts.rows is None else Public(result.inputs.facts.rows)


def _schema(result: RunResult) -> Typed[str] | None:
    if result.schema is not None:
        return result.schema
    return None if result.inputs.facts.schema is None else Public(result.inputs.facts.schema.to_toml())


def _scores(main: TrainedModel) -> tuple[Typed[Score], ...]:
    paid = () if main.paid is None else (main.paid,)
    return (*main.public, *paid, *map(Internal, main.internal))


def _history(result: RunResult) -> tuple[Typed[Series], ...]:
    seen = result.history
    if not seen.epochs:
        return ()
    epochs = tuple(seen.epochs)
    on = "batches of private rows"
    curves: list[Typed[Series]] = [
        Internal(Series(Measure.LOSS, on, epochs, tuple(seen.losses))),
        Internal(Series(Measure.CLIPPED, on, epochs, tuple(seen.clipped))),
    ]
    main = result.trained[0].release
    if seen.scores and main is not None and len(result.inputs.facts.classes) > 1:
        test = result.inputs.test
        margin = None if test is None or result.inputs.facts.whose is Whose.USER else accuracy_margin(len(test))
        series = Series(Measure.ACCURACY, "the test file", epochs, tuple(seen.scores), margin)
        curves.append(main.map(lambda _: series))
    return tuple(curves)


def _compared(result: RunResult) -> tuple[Typed[Trial], ...]:
    trials: list[Typed[Trial]] = []
    for each in result.trained:
        title = METHODS[each.method].title
        if each.release is None:
            trials.append(Internal(Trial("no privacy", title, float("inf"), 0.0, each.internal[0])))
            continue
        best = each.public[0] if each.public else each.paid
        if best is not None:
            trials.append(trial_of(title, title, best, result.plan.delta))
    return tuple(trials)


def _versions() -> tuple[tuple[str, str], ...]:
    """Of the packages that matter."""
    versions = []
    for name in ("privet", "torch", "numpy", "polars"):
        try:
            versions.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return tuple(versions)
