"""DP-SGD (Abadi et al. 2016) by a recipe of default heuristics: any model, any unit, canaries and tuning."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privet.core import Approximate, Composed, Event, InvalidInput, Selected
from privet.runs.methods.protocol import FitSession, Method, MethodBudget, MethodPlan, PartialRun, StepProgress

if TYPE_CHECKING:
    from torch import nn

    from privet.core import Release
    from privet.report import Choice
    from privet.runs.facts import PublicFacts
    from privet.runs.request import TrainRequest
    from privet.runs.row_sets import LabeledRows
    from privet.runs.selection import TuningPlan
    from privet.training import Recipe, Run
    from privet.training.models import Model

__all__ = ["DP_SGD", "recipe_of"]

_NAME, _LINE = "dp-sgd", "the model, by DP-SGD"
_RATES, _CLIPS = (0.25, 0.5, 1.0, 2.0, 4.0), (1 / 3, 1.0, 3.0)
"""What tuning tries, in multiples of what the recipe says."""
_PROBE_ROWS = 3
"""Synthetic rows on which a model of the user's own is tried."""


def recipe_of(plan: MethodPlan) -> Recipe:
    """Return the recipe of a complete plan.

    Args:
        plan: The complete plan of DP-SGD.
    """
    from privet.training import Recipe

    return Recipe.from_settings(plan.settings)


def _plan(request: TrainRequest, facts: PublicFacts, share: MethodBudget, model: Model | None) -> MethodPlan:
    if facts.units is None or model is None:
        block = Approximate(share.model_epsilon, share.delta, share.unit.neighbours)
        return MethodPlan(_NAME, block, share.unit, _LINE, is_complete=False)
    beside = () if share.score is None else (share.score,)
    return _as_plan(request, share, _recipe(request, facts, model, share.epsilon, share.delta, beside))


def _as_plan(request: TrainRequest, share: MethodBudget, recipe: Recipe) -> MethodPlan:
    choices = _choices(request, recipe)
    return MethodPlan(_NAME, recipe.plan.event(), share.unit, _LINE, choices, recipe.to_settings())


def _recipe(
    request: TrainRequest,
    facts: PublicFacts,
    model: Model,
    epsilon: float,
    delta: float,
    beside: tuple[Event, ...],
    noise_multiplier: float | None = None,
) -> Recipe:
    from privet.training import DataKind, recipe
    from privet.training.models import Family

    rows = max(round((facts.units or 1) * request.training_share(facts)), 1)
    if request.batch_size is not None and request.batch_size > rows:
        problem = f"is {request.batch_size:,}, above the {rows:,} that are learned from"
        raise InvalidInput("batch_size", problem, "give a smaller one, or leave it out")
    family = model.family
    if ":" in request.model:
        family = Family.RESIDUAL if facts.kind is DataKind.TABLE else Family.CONVOLUTIONS
    return recipe(
        facts.kind,
        rows,
        model.features,
        len(facts.classes),
        epsilon,
        delta,
        family,
        beside=beside,
        clip=request.clip,
        batch_size=request.batch_size,
        epochs=request.epochs,
        learning_rate=request.learning_rate,
        noise_multiplier=noise_multiplier,
    )


def _choices(request: TrainRequest, recipe: Recipe) -> tuple[Choice, ...]:
    from privet.report import Choice, epoch_count
    from privet.runs.plan import ASKED, RULE

    plan = recipe.plan
    rate = (plan.batch_size or 0) / (plan.population or 1)

    def choice(name: str, value: str, given: object) -> Choice:
        return Choice(name, value, RULE if given is None else ASKED)

    return (
        choice("batch size, on average", f"{plan.batch_size:,}", request.batch_size),
        choice("epochs", epoch_count(recipe.epochs), request.epochs),
        choice("steps", f"{recipe.steps:,}", request.epochs),
        choice("clip", f"{plan.clip:g}", request.clip),
        choice("learning rate, falling to zero", f"{recipe.learning_rate:.4g}", request.learning_rate),
        Choice("sampling", f"Poisson, rate {rate:.6g}", "what the accountant prices"),
        Choice("noise multiplier", f"{plan.noise_multiplier:.10g}", "the least that keeps ε"),
        Choice("average of the weights", f"decay {plan.average:.4g}", RULE),
    )


def _variants(
    request: TrainRequest, facts: PublicFacts, share: MethodBudget, model: Model, trials_mean: float
) -> TuningPlan:
    """Learning rates and clips around the recipe's, each with the least noise that keeps (ε, δ) for the best."""
    from privet.accounting import least
    from privet.core import Trials
    from privet.runs.selection import TuningPlan

    trials = Trials.with_mean(trials_mean)
    base = _recipe(request, facts, model, share.epsilon, share.delta, ())

    def one_run(noise: float) -> Event:
        training = replace(base.plan, epsilon=None, noise_multiplier=noise).event()
        return training if share.score is None else Composed((training, share.score))

    noise = least(
        lambda noise: Selected(one_run(noise), trials), epsilon=share.epsilon, delta=share.delta, unit=share.unit
    )
    clips = _CLIPS if request.clip is None else (1.0,)
    rates = _RATES if request.learning_rate is None else (1.0,)
    candidates = []
    for clip in clips:
        clipped = replace(request, clip=base.plan.clip * clip)
        recipe = _recipe(clipped, facts, model, share.epsilon, share.delta, (), noise)
        for rate in rates:
            candidate = replace(recipe, learning_rate=recipe.learning_rate * rate)
            candidates.append(_as_plan(request, share, candidate))
    return TuningPlan(trials, tuple(candidates), one_run(noise))


def _fit(plan: MethodPlan, rows: LabeledRows, session: FitSession) -> Release[nn.Module]:
    """Train by the plan's recipe, with a checkpoint where the session has a directory.

    Guarantee: that of the recipe's plan (`privet.training.DPSGD`) for the session's unit. Canaries are further rows
    that are sampled, clipped and noised like any other; the model learns nothing of them.
    """
    from privet.training import UserRows, train_steps

    recipe = recipe_of(plan)
    model = session.trainable()
    canaries = None if session.canaries is None else session.canaries.plan(model)
    optimizer = recipe.optimizer(model) if canaries is None else canaries.optimizer(recipe)
    whole: Any = model if canaries is None else canaries.planted
    dataset: Any = (rows.x, rows.y) if canaries is None else canaries.dataset((rows.x, rows.y))
    ids = rows.users if canaries is None else canaries.users(rows.users)
    users = None if ids is None else UserRows(ids, session.facts.rows_per_user)
    given: dict[str, Any] = {"users": users, "rng": session.rng}
    checkpoint = None if session.directory is None else session.directory.checkpoint
    if session.resume and checkpoint is not None and checkpoint.exists():
        given["resume"] = checkpoint
    elif session.directory is not None:
        given["journal"] = session.directory.journal
    run = recipe.plan.attach(whole, optimizer, dataset, **given)
    after_step = None if session.on_step is None else _reporter(recipe, run, session, session.on_step)
    take_step = recipe.step_of(run, model, optimizer)
    if canaries is not None:
        take_step = canaries.step_of(recipe, run, model)
    try:
        train_steps(run, take_step, after_step=after_step, checkpoint=checkpoint)
        if session.canaries is not None and canaries is not None:
            session.canaries.record(canaries, run)
        release = run.release()
    finally:
        run.close()
    if canaries is not None:
        release = canaries.planted.strip(release)
    release.value.eval()
    return release


def _reporter(
    recipe: Recipe, run: Run, session: FitSession, on_step: Callable[[StepProgress], None]
) -> Callable[[float], None]:
    """Return what is called after each step with its loss: it writes the logs and tells the session."""
    from privet.training import Progress
    from privet.training.loggers import Logbook

    book = Logbook(recipe.plan, session.logs, whose=session.facts.whose, scores=session.public_scores)

    def after_step(loss: float) -> None:
        step, clipped = run.steps, run.clipped
        if book.due(step):
            book.internal(step, {"loss": loss} if clipped is None else {"loss": loss, "clipped": clipped})
        book(Progress(step, run.total, run.model))
        epoch = step * recipe.epochs / recipe.steps
        on_step(StepProgress(step, run.total, epoch, loss, clipped, run.model, lambda: book.reached(step).epsilon))

    return after_step


def _check_model(plan: MethodPlan, model: nn.Module, rows: LabeledRows) -> None:
    """Refuse a model that couples or keeps rows, by synthetic rows, before anything is paid for."""
    import torch

    from privet.training import Attributes

    like = rows.x.new_zeros(1, *rows.x.shape[1:]), rows.y.new_zeros(1)
    explained = recipe_of(plan).plan.explain(model, like)
    if explained.refusals:
        raise InvalidInput("model", f"cannot be trained privately: {explained.refusals[0]}")
    probe, attributes = copy.deepcopy(model).eval(), []
    before = Attributes.of(probe)
    with torch.no_grad():
        for value in (0.0, 1.0):  # also a code of every category
            before.put_back()
            probe(like[0].new_full((_PROBE_ROWS, *like[0].shape[1:]), value))
            attributes.append(Attributes.of(probe))
    if names := attributes[0].differing(attributes[1]):
        problem = f"keeps something of the rows that it scores, in {', '.join(names)}"
        raise InvalidInput("model", problem, "return it, or do not keep it")


def _growth(plan: MethodPlan) -> PartialRun:
    recipe = recipe_of(plan)
    steps_per_epoch = (recipe.plan.population or 1) / (recipe.plan.batch_size or 1)

    def event_after(epoch: int) -> Event:
        steps = min(max(round(epoch * steps_per_epoch), 1), recipe.steps)
        return replace(recipe.plan, steps=steps).event()

    return PartialRun(recipe.epochs, event_after)


DP_SGD = Method(
    name=_NAME,
    title="DP-SGD",
    plan=_plan,
    fit=_fit,
    protects_users=True,
    takes_canaries=True,
    variants=_variants,
    check_model=_check_model,
    growth=_growth,
)
