"""What a run will cost, line by line, before any row is looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

from privet.accounting import default_delta, least
from privet.accounting.analytic_gaussian import analytic_gaussian_sigma
from privet.core.errors import InvalidInput
from privet.core.event import Approximate, Composed, Event, Selected
from privet.core.guarantee import three_digits_down
from privet.core.trials import Trials
from privet.core.unit import Unit, Whose
from privet.data import Learning, Number
from privet.mechanisms import Count, DiscreteLaplaceMechanism
from privet.runs.inputs import TrainingInputs
from privet.runs.request import FeaturesName, MethodName, TrainRequest
from privet.runs.scoring import PrivateScoring
from privet.training.convex import (
    InputPerturbation,
    LogCosh,
    Loss,
    ObjectivePerturbation,
    OutputPerturbation,
    Softmax,
)
from privet.training.models import Described, Family, Model, decided
from privet.training.recipe import Kind, Recipe, recipe

__all__ = [
    "METHOD_TITLES",
    "RADIUS",
    "ConvexPlan",
    "RunPlan",
    "TuningPlan",
    "choose_delta",
    "convex_plan",
    "describe_model",
    "training_share",
]

_COUNT_SHARE = 0.02
"""The part of ε that counts the rows, where a schema does not say how many there are."""
_CONVEX_NOISE = 0.5
"""The deviation that output perturbation may add to a score."""
_DETERMINANT = 0.1
"""The part of ε that objective perturbation's determinant may take, about."""
_RATES, _CLIPS = (0.25, 0.5, 1.0, 2.0, 4.0), (1 / 3, 1.0, 3.0)
"""What --tune tries, in multiples of what the rules say."""
RADIUS = sqrt(2.0)
"""Features have a length of 1 at most, and the intercept is 1."""
_PLURAL = {Kind.TABLE: "tables", Kind.PICTURES: "pictures"}
ConvexPlan = OutputPerturbation | ObjectivePerturbation


def choose_delta(asked: float | None, units: int | None) -> tuple[float, str]:
    """Return δ and why: as asked, or the default for a public n."""
    if asked is not None:
        return asked, "asked for"
    why = "default: the number of rows is not public" if units is None else f"default: below 1/(10 · {units:,} rows)"
    return default_delta(units), why


def training_share(asked: TrainRequest, inputs: TrainingInputs) -> float:
    """The part of the private rows that is learned from; the others are held out, where a score is paid for."""
    if asked.method is MethodName.INPUT:
        return 1.0  # nobody may see rows as they are, not even to score a model
    return 1.0 if inputs.test is not None or asked.test is not None or not asked.score_share else 1 - asked.hold_out


def describe_model(asked: TrainRequest, inputs: TrainingInputs, rows: int) -> Described:
    """The model that is trained, with `auto` decided by public things."""
    pixels = asked.features is FeaturesName.PIXELS or (
        asked.features is FeaturesName.AUTO and asked.model == Family.CONVOLUTIONS.value
    )
    if inputs.kind is Kind.TABLE and asked.features is not FeaturesName.AUTO:
        raise InvalidInput("features", f"is {asked.features.value}, which is for pictures", "leave it out")
    if asked.model == Family.CONVOLUTIONS.value and asked.features is FeaturesName.SCATTERING:
        raise InvalidInput("features", "is scattering, and convolutions see pixels", "leave one of them out")
    names = [each.value for each in Family]
    if asked.model not in names and ":" not in asked.model:
        problem = f"is {asked.model!r}, which is no model"
        raise InvalidInput("model", problem, f"use one of: {', '.join(names)}; or module.py:factory")
    fits = {Family.RESIDUAL: Kind.TABLE, Family.CONVOLUTIONS: Kind.PICTURES}
    wrong = [family for family, kind in fits.items() if asked.model == family.value and inputs.kind is not kind]
    if wrong:
        raise InvalidInput("model", f"is {asked.model}, which is for {_PLURAL[fits[wrong[0]]]}", "use auto or linear")
    found = Described(
        asked.model,
        inputs.classes,
        None if inputs.schema is None else inputs.schema.to_toml(),
        inputs.shape,
        inputs.peak,
        not pixels,
    )
    shape = inputs.schema or inputs.shape or ()
    return found if found.own else replace(found, family=decided(shape, rows, asked.model).value)


@dataclass(frozen=True)
class RunPlan:
    """Every line of it; what depends on a schema or a count that is still to be learned is a block of (ε, δ)."""

    unit: Unit
    delta: float
    why: str
    """Why δ is what it is."""
    lines: tuple[tuple[str, Event], ...]
    first: int
    """How many of the lines are drawn before the plan of the others is made."""
    learning: Learning | None
    counting: DiscreteLaplaceMechanism | None
    scoring: PrivateScoring | None
    """Of each private method by itself."""
    shares: tuple[float, float]
    """(ε, δ) of each model."""
    block: Approximate | None
    """What DP-SGD may cost, where its plan is made after something was learned."""
    recipe: Recipe | None
    """DP-SGD's plan, where it is known beforehand."""
    tuning: TuningPlan | None = None
    """What is tried, where the best of several runs is chosen."""
    randomizing: InputPerturbation | None = None

    @property
    def event(self) -> Event:
        """All of it."""
        events = tuple(event for _, event in self.lines)
        return events[0] if len(events) == 1 else Composed(events)

    @staticmethod
    def of(asked: TrainRequest, inputs: TrainingInputs, model: Model | None) -> RunPlan:
        """The bill; `model` is there where the schema is."""
        if inputs.whose is Whose.USER or asked.user is not None:
            _only_examples(asked)
        if asked.method is MethodName.INPUT:
            return _randomizing(asked, inputs)
        # Users may be as many as rows.
        delta, why = choose_delta(asked.delta, inputs.rows)
        unit = inputs.unit if asked.user is None else Unit(whose=Whose.USER)
        most = asked.rows_per_user or inputs.rows_per_user
        lines: list[tuple[str, Event]] = []
        epsilon, left = asked.epsilon, delta
        learning = counting = scoring = block = None
        if inputs.source is not None and not inputs.paid:
            learning = inputs.learning(asked, delta)
            lines.append(("the schema, learned from the rows", learning.event))
            epsilon, left = epsilon - learning.epsilon, left - learning.delta
        elif inputs.rows is None:
            counting = DiscreteLaplaceMechanism.for_epsilon(asked.epsilon * _COUNT_SHARE, Count(unit, most))
            lines.append(("how many rows there are", counting.event))
            epsilon -= asked.epsilon * _COUNT_SHARE
        if training_share(asked, inputs) < 1:
            classes = 0 if _regression(asked, inputs) else max(len(inputs.classes), 2)
            scoring = PrivateScoring(asked.epsilon * asked.score_share, unit, most, classes)
        after = epsilon - (asked.epsilon * asked.score_share if scoring else 0.0)
        # As it is where it was asked for, and short where it is a part.
        share = left if left == delta and len(asked.private) == 1 else three_digits_down(left / len(asked.private))
        plan = tuning = None
        for method in asked.private:
            if method is MethodName.DPSGD and asked.tune is not None:
                if inputs.units is None or model is None:
                    problem = "is given, and the number of rows is not public"
                    raise InvalidInput("tune", problem, "give --rows, or a schema with rows")
                tuning = _tuning(asked, inputs, model, (epsilon, share), scoring)
                lines.append((f"the best of about {asked.tune:g} models, by DP-SGD, and its score", tuning.event))
                continue
            if method is MethodName.DPSGD:
                if inputs.units is not None and model is not None:
                    beside = () if scoring is None else (scoring.event,)
                    plan = _recipe(asked, inputs, model, inputs.units, epsilon, share, beside)
                    event = plan.plan.event()
                else:
                    event = block = Approximate(after, share, unit.neighbours)
            else:
                event = convex_plan(method, inputs, (after, share)).event
            lines.append((f"the model, by {METHOD_TITLES[method]}", event))
            if scoring is not None:
                lines.append((f"its score on held-out rows ({METHOD_TITLES[method]})", scoring.event))
        first = int(learning is not None or counting is not None)
        shares = after, share
        return RunPlan(unit, delta, why, tuple(lines), first, learning, counting, scoring, shares, block, plan, tuning)

    def planned(self, asked: TrainRequest, inputs: TrainingInputs, model: Model) -> Recipe:
        """DP-SGD's plan, once everything is known that it depends on."""
        if self.recipe is not None:
            return self.recipe
        if self.block is None or inputs.units is None:
            raise InvalidInput("rows", "are not known")
        return _recipe(asked, inputs, model, inputs.units, self.block.epsilon, self.block.delta, ())


@dataclass(frozen=True)
class TuningPlan:
    """A public list of plans that cost the same, and the law of how many of them are tried."""

    trials: Trials
    recipes: tuple[Recipe, ...]
    one: Event
    """What one run costs, its score included."""

    @property
    def event(self) -> Event:
        """What the best of them costs."""
        return Selected(self.one, self.trials)


METHOD_TITLES = {
    MethodName.DPSGD: "DP-SGD",
    MethodName.OUTPUT: "output perturbation",
    MethodName.OBJECTIVE: "objective perturbation",
    MethodName.INPUT: "input perturbation",
    MethodName.NONE: "no privacy",
}


def convex_plan(method: MethodName, inputs: TrainingInputs, shares: tuple[float, float]) -> ConvexPlan:
    """The plan of a convex method; its event depends on (ε, δ) alone."""
    epsilon, delta = shares
    loss: Loss = Softmax(len(inputs.classes)) if len(inputs.classes) > 1 else LogCosh()
    if method is MethodName.OUTPUT:
        # The noise in a score is at most that in the weights, as rows have a length of 1.
        weight = analytic_gaussian_sigma(epsilon, delta) * loss.lipschitz / _CONVEX_NOISE
        return OutputPerturbation(loss, epsilon, delta, weight, RADIUS, inputs.unit)
    if method is MethodName.OBJECTIVE:
        weight = loss.trace / (_DETERMINANT * epsilon)
        return ObjectivePerturbation(loss, epsilon, delta, weight, RADIUS, inputs.unit)
    raise InvalidInput("method", f"is {method.value}, which is no convex method")


def _recipe(
    asked: TrainRequest,
    inputs: TrainingInputs,
    model: Model,
    units: int,
    epsilon: float,
    delta: float,
    beside: tuple[Event, ...],
    noise_multiplier: float | None = None,
) -> Recipe:
    rows = max(round(units * training_share(asked, inputs)), 1)
    if asked.batch_size is not None and asked.batch_size > rows:
        problem = f"is {asked.batch_size:,}, above the {rows:,} that are learned from"
        raise InvalidInput("batch_size", problem, "give a smaller one, or leave it out")
    family = model.family
    if ":" in asked.model:
        family = Family.RESIDUAL if inputs.kind is Kind.TABLE else Family.CONVOLUTIONS
    return recipe(
        inputs.kind,
        rows,
        model.features,
        len(inputs.classes),
        epsilon,
        delta,
        family,
        beside=beside,
        clip=asked.clip,
        batch_size=asked.batch_size,
        epochs=asked.epochs,
        learning_rate=asked.learning_rate,
        noise_multiplier=noise_multiplier,
    )


def _tuning(
    asked: TrainRequest,
    inputs: TrainingInputs,
    model: Model,
    shares: tuple[float, float],
    scoring: PrivateScoring | None,
) -> TuningPlan:
    """Learning rates and clips around the rules', each with the least noise that keeps (ε, δ) for the best of them."""
    trials = Trials.with_mean(asked.tune or 1.0)
    units = inputs.units or 1
    base = _recipe(asked, inputs, model, units, *shares, ())

    def one(noise: float) -> Event:
        training = replace(base.plan, epsilon=None, noise_multiplier=noise).event()
        return training if scoring is None else Composed((training, scoring.event))

    unit = inputs.unit
    noise = least(lambda noise: Selected(one(noise), trials), epsilon=shares[0], delta=shares[1], unit=unit)
    clips = _CLIPS if asked.clip is None else (1.0,)
    rates = _RATES if asked.learning_rate is None else (1.0,)
    found = []
    for clip in clips:
        some = replace(asked, clip=base.plan.clip * clip)
        near = _recipe(some, inputs, model, units, *shares, (), noise)
        found += [replace(near, learning_rate=near.learning_rate * rate) for rate in rates]
    return TuningPlan(trials, tuple(found), one(noise))


def _randomizing(asked: TrainRequest, inputs: TrainingInputs) -> RunPlan:
    """Every record is randomised by itself: nothing else may be asked of the rows."""
    if inputs.schema is None or inputs.paid:
        problem = "is input, which needs a public schema of a table: nobody may learn one from the rows"
        raise InvalidInput("method", problem, "give --schema")
    if asked.compare:
        problem = "names methods that see rows as they are, beside input, whose trust is local"
        raise InvalidInput("compare", problem, "train them by themselves, and use: privet report compare")
    plan = InputPerturbation(inputs.schema, asked.epsilon)
    lines = (("every record, randomised by itself", plan.event),)
    why = "randomised response needs none"
    return RunPlan(plan.unit, 0.0, why, lines, 0, None, None, None, (asked.epsilon, 0.0), None, None, randomizing=plan)


def _regression(asked: TrainRequest, inputs: TrainingInputs) -> bool:
    """Whether a number is predicted, as far as that is public; a target of unknown kind is taken as a category."""
    if inputs.schema is not None:
        return isinstance(inputs.schema.label, Number)
    return dict(asked.kinds).get(asked.target or "") == "number"


def _only_examples(asked: TrainRequest) -> None:
    for method in asked.private:
        if method is not MethodName.DPSGD:
            problem = f"is {method.value}, which protects single rows, and the schema names a user"
            raise InvalidInput("method", problem, "use dp-sgd, which protects users")
