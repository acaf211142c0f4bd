"""From a finished run to its card."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from math import ceil
from typing import Any

import numpy as np

from privet.accounting.default_delta import default_delta, is_near_one_unit
from privet.core.disclosure import Shareable, Typed
from privet.core.event import Composed, Event
from privet.core.guarantee import Guarantee, digits_up
from privet.core.randomness import Randomness
from privet.core.release import Release
from privet.core.unit import Whose
from privet.data import Table
from privet.report import (
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
    priced,
    tried,
)
from privet.report.training_records import Charged
from privet.report.words import epoch_count
from privet.runs.inputs import TrainingInputs
from privet.runs.pipeline import RunResult, TrainedModel
from privet.runs.plan import METHOD_TITLES, RunPlan
from privet.runs.provenance import record_rows
from privet.runs.request import MethodName, TrainRequest
from privet.runs.scoring import accuracy_margin, expected_interval
from privet.training.models import Model
from privet.training.recipe import Kind, Recipe

__all__ = ["build_card", "large_delta_remark", "plan_choices", "versions"]

_METHOD = METHOD_TITLES | {MethodName.NONE: "none"}
_LEARNED = "follows from what was learned: see the plan"
_RULE = "a rule from public experience"


def build_card(done: RunResult) -> TrainingCard:
    """The card; everything on it says where it comes from."""
    asked, bill, inputs = done.asked, done.bill, done.inputs
    privacy, lines = priced(
        bill.lines,
        bill.delta,
        unit=bill.unit,
        population=None if _learned(done) and not asked.rows else inputs.units,
        rests_on=() if inputs.schema is None else inputs.schema.assumptions,
        conditions=_conditions(done),
        notes=_notes(done),
    )
    main = done.trained[0]
    seeded = asked.seed is not None
    return TrainingCard(
        command=Public(done.command),
        made=Public(datetime.now(UTC).isoformat(timespec="seconds")),
        data=Public(inputs.name),
        model=Public(_LEARNED if _learned(done) else _model(done)),
        method=Public(_METHOD[asked.method]),
        choices=_choices(done),
        privacy=privacy,
        bill=lines,
        growth=_growth(done, privacy.guarantee.value),
        randomness=Public(Randomness.SEEDED if seeded else Randomness.SECURE),
        versions=Public(versions()),
        ledger=None if done.budget is None else Public(Charged(*done.budget)),
        rows=_rows(done),
        schema=_schema(done),
        scores=_scores(main),
        history=_history(done),
        compared=_compared(done),
        evidence=() if main.audited is None else main.audited.evidence,
        canaries=() if main.audited is None else (main.audited.canaries,),
        remembered=record_rows(asked, inputs),
        internal_remarks=_remarks(done),
    )


def _choices(done: RunResult) -> Shareable[tuple[Choice, ...]]:
    """Public; or of what was released, where the plan follows from what was learned or selected."""
    found = plan_choices(done.asked, done.inputs, done.bill, done.recipe)
    learned = _learned(done)
    if learned is not None:
        found += (Choice("model", _model(done), "follows from what was learned"),)
    if done.bill.tuning is not None:
        learned = done.trained[0].release
    return Public(found) if learned is None else learned.map(lambda _: found)


def _remarks(done: RunResult) -> tuple[Internal[str], ...]:
    """That δ is large for these data, where their number is private: whether it is tells of that number."""
    data = done.inputs.train
    if _learned(done) is None or done.asked.rows is not None or data is None:
        return ()
    users = data.users if isinstance(data, Table) and done.inputs.whose is Whose.USER else None
    return large_delta_remark(done.bill.delta, len(data) if users is None else len(np.unique(users)))


def large_delta_remark(delta: float, units: int) -> tuple[Internal[str], ...]:
    """Return a remark for the internal report if δ is not well below 1 over a private number of units."""
    if not is_near_one_unit(delta, units):
        return ()
    said = f"δ = {digits_up(delta)} is not well below 1/n for the {units:,} units in these data (a private number)"
    return (Internal(f"{said}: give --delta {default_delta(units):g} or less to the next run"),)


def _learned(done: RunResult) -> Release[Any] | None:
    """What was released before the plan was made, on which model, size and rows may depend."""
    return done.schema or done.rows


def plan_choices(
    asked: TrainRequest, inputs: TrainingInputs, bill: RunPlan, recipe: Recipe | None
) -> tuple[Choice, ...]:
    """What was chosen, and why; all of it public."""
    found = [Choice("δ", digits_up(bill.delta), bill.why)]
    methods = len(asked.private)
    if methods > 1:
        why = f"a part of δ: alone, a method would have all that {methods} share, and a little less noise"
        found.append(Choice("δ of each model", digits_up(bill.shares[1]), why))

    def choice(name: str, value: str, given: object) -> None:
        found.append(Choice(name, value, _RULE if given is None else "asked for"))

    if inputs.schema is not None:
        where = "learned privately" if inputs.paid else "public"
        found.append(Choice("schema", f"{len(inputs.schema.features)} columns to learn from", where))
    if bill.tuning is not None:
        tried, law = len(bill.tuning.recipes), bill.tuning.trials
        found.append(Choice("settings that are tried", f"{tried}: learning rates and clips", "a public list"))
        long = f"{law.mean:.3g} on average, 95 % of the time at most {law.quantile(0.95)}"
        found.append(Choice("runs", long, "a random number, which stays secret"))
    if recipe is not None:
        plan = recipe.plan
        choice("batch size, on average", f"{plan.batch_size:,}", asked.batch_size)
        choice("epochs", epoch_count(recipe.epochs), asked.epochs)
        choice("steps", f"{recipe.steps:,}", asked.epochs)
        choice("clip", f"{plan.clip:g}", asked.clip)
        choice("learning rate, falling to zero", f"{recipe.learning_rate:.4g}", asked.learning_rate)
        found.append(Choice("sampling", f"Poisson, rate {_rate(recipe):.6g}", "what the accountant prices"))
        found.append(Choice("noise multiplier", f"{plan.noise_multiplier:.10g}", "the least that keeps ε"))
        found.append(Choice("average of the weights", f"decay {plan.average:.4g}", _RULE))
    if asked.audit:
        found.append(Choice("canaries", f"{asked.canaries:,}", "asked for: --audit"))
    if bill.scoring is not None:
        whose = "user's id" if inputs.whose is Whose.USER else "row"
        found.append(Choice("rows held out for the score", f"{asked.hold_out:.0%}", f"by a keyed hash of the {whose}"))
        found.append(Choice("ε for the score", f"{bill.scoring.epsilon:g}", f"{asked.score_share:.0%} of ε"))
        label = None if inputs.schema is None else inputs.schema.label
        found.append(expected_interval(bill.scoring, inputs.rows, asked.hold_out, label))
    return tuple(found)


def _rate(recipe: Recipe) -> float:
    return (recipe.plan.batch_size or 0) / (recipe.plan.population or 1)


def _model(done: RunResult) -> str:
    model: Model = done.model
    numbers = sum(each.numel() for each in model.head.parameters()) or sum(
        each.numel() for each in model.head.buffers()
    )
    family = done.described.family
    name = {"convex": "linear", "convolutions": "convolutions with tanh units"}.get(family, family)
    on = ""
    if done.inputs.kind is Kind.PICTURES:
        on = " on scattering features" if done.described.scattering else " on pixels"
    return f"{name}{on}, {numbers:,} numbers"


def _conditions(done: RunResult) -> tuple[str, ...]:
    found = []
    if not done.inputs.paid and done.inputs.schema is not None:
        rows = " and the number of rows" if done.inputs.rows is not None else ""
        found.append(f"Which columns there are, their kinds{rows} are known without the rows.")
    if done.inputs.kind is Kind.PICTURES:
        found.append("Shape, classes and number of pictures are known without the pictures.")
    if done.inputs.test is not None:
        found.append("The test file is public: nothing in it needs protection.")
    if done.inputs.whose is Whose.USER:
        found.append("Every row has the id of the person it is about.")
    elif done.inputs.kind is Kind.TABLE:
        found.append("One row is about one person, and one person is in one row.")
    if done.described.own:
        found.append("The model's code looks at each row by itself.")
    return tuple(found)


def _notes(done: RunResult) -> tuple[str, ...]:
    found = []
    if done.bill.block is not None:
        found.append(
            f"DP-SGD's plan was made after something was learned, and so it is priced as at most "
            f"ε = {done.bill.block.epsilon:g} at δ = {digits_up(done.bill.block.delta)}, whatever was learned."
        )
    if done.bill.tuning is not None:
        found.append(
            "The model is the best of a random number of runs, by a score that each of them released: that score looks "
            "a little better than it is. How many runs there were is not told."
        )
    if len(done.asked.private) > 1:
        found.append(
            "Methods that are compared share δ, and each has a model of its own at the ε that was asked for: together "
            "they cost more than one, and each is a little worse than it would be alone."
        )
    if done.asked.audit:
        found.append(
            f"{done.asked.canaries:,} made-up canaries stood among the rows, each put in by a fair coin: rows of which "
            "the model learns nothing, as each has a coordinate of its own on which no prediction depends. Batches "
            "were larger by them; sampling, clip, noise, the number that sums are divided by and the guarantee of real "
            "rows are what they are without."
        )
    if len(done.bill.lines) > 1:
        found.append("The lines of the bill are composed: together they cost less than their sum.")
    return tuple(found)


def _growth(done: RunResult, guarantee: Guarantee) -> Public[Growth] | None:
    recipe = done.recipe
    if recipe is None or done.bill.block is not None or done.bill.tuning is not None:
        return None
    own = recipe.plan.event()
    others = [event for _, event in done.bill.lines]
    others.remove(own)
    epochs = max(ceil(round(recipe.epochs, 9)), 1)
    each = (recipe.plan.population or 1) / (recipe.plan.batch_size or 1)

    def after(epoch: int) -> Event:
        if epoch >= epochs:
            return done.bill.event
        steps = min(max(round(epoch * each), 1), recipe.steps)
        part = replace(recipe.plan, steps=steps).event()
        return Composed((part, *others)) if others else part

    found = growth_of(after, epochs, guarantee)
    # The last of them need not be whole.
    return Public(replace(found, epochs=(*found.epochs[:-1], round(recipe.epochs, 2))))


def _rows(done: RunResult) -> Typed[int] | None:
    if done.rows is not None:
        return done.rows
    if done.schema is not None:
        return None  # it stands in the schema, which was paid for
    return None if done.inputs.rows is None else Public(done.inputs.rows)


def _schema(done: RunResult) -> Typed[str] | None:
    if done.schema is not None:
        return done.schema
    return None if done.inputs.schema is None else Public(done.inputs.schema.to_toml())


def _scores(main: TrainedModel) -> tuple[Typed[Score], ...]:
    paid = () if main.paid is None else (main.paid,)
    return (*main.public, *paid, *map(Internal, main.internal))


def _history(done: RunResult) -> tuple[Typed[Series], ...]:
    seen, recipe = done.followed, done.recipe
    if recipe is None or not seen.steps:
        return ()
    epochs = tuple(step * recipe.epochs / recipe.steps for step in seen.steps)
    on = "batches of private rows"
    found: list[Typed[Series]] = [
        Internal(Series(Measure.LOSS, on, epochs, tuple(seen.losses))),
        Internal(Series(Measure.CLIPPED, on, epochs, tuple(seen.clipped))),
    ]
    main = done.trained[0].release
    if seen.scores and main is not None and len(done.inputs.classes) > 1:
        test = done.inputs.test
        margin = None if test is None or done.inputs.whose is Whose.USER else accuracy_margin(len(test))
        series = Series(Measure.ACCURACY, "the test file", epochs, tuple(seen.scores), margin)
        found.append(main.map(lambda _: series))
    return tuple(found)


def _compared(done: RunResult) -> tuple[Typed[Trial], ...]:
    found: list[Typed[Trial]] = []
    for each in done.trained:
        name, method = METHOD_TITLES[each.method], _METHOD[each.method]
        if each.release is None:
            first = each.internal[0]
            found.append(Internal(Trial(name, method, float("inf"), 0.0, first)))
            continue
        best = each.public[0] if each.public else each.paid
        if best is not None:
            found.append(tried(name, method, best, done.bill.delta))
    return tuple(found)


def versions() -> tuple[tuple[str, str], ...]:
    """Of the packages that matter."""
    found = []
    for name in ("privet", "torch", "numpy", "polars"):
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return tuple(found)
