"""The plan of a run: its releases, their order and their privacy cost, fixed before any private row is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from privet.accounting import default_delta
from privet.accounting import epsilon as price
from privet.core import Approximate, Composed, Event, Guarantee, InvalidInput, Unit, Whose, three_digits_down
from privet.data import Learning
from privet.mechanisms import Count, DiscreteLaplaceMechanism
from privet.runs.facts import PublicFacts
from privet.runs.inputs import TrainingInputs, learning_plan
from privet.runs.methods.protocol import MethodBudget, MethodPlan
from privet.runs.methods.registry import METHODS
from privet.runs.request import FeaturesName, TrainRequest
from privet.runs.scoring import PrivateScoring
from privet.runs.selection import TuningPlan
from privet.training import DataKind
from privet.training.models import Family, Model, ModelDescription, decided

__all__ = ["ASKED", "RULE", "RunPlan", "choose_delta", "describe_model", "make_plan", "require_within"]

ASKED, RULE = "asked for", "default heuristic (not tuned on your data)"
"""Reasons for a setting."""
_COUNT_SHARE = 0.02
"""Fraction of ε that is spent on counting the rows, where their number is not public."""
_PLURAL = {DataKind.TABLE: "tables", DataKind.PICTURES: "pictures"}
_FORMAT = 1


def choose_delta(asked: float | None, units: int | None) -> tuple[float, str]:
    """Return δ and the reason for it.

    Args:
        asked: Requested δ, which is returned as it is; None for the default.
        units: Public number of rows, from which the default follows; None where it is not public.
    """
    if asked is not None:
        return asked, ASKED
    why = "default: the number of rows is not public" if units is None else f"default: below 1/(10 · {units:,} rows)"
    return default_delta(units), why


def describe_model(request: TrainRequest, facts: PublicFacts, rows: int) -> ModelDescription:
    """Return the description of the model to train, with `auto` resolved from public facts.

    Args:
        request: The request, which names the model and the features.
        facts: Public facts about the data.
        rows: Public number of rows, by which `auto` decides.

    Raises:
        InvalidInput: The model or the features are unknown, or do not fit the kind of data.
    """
    is_pixels = request.features is FeaturesName.PIXELS or (
        request.features is FeaturesName.AUTO and request.model == Family.CONVOLUTIONS.value
    )
    if facts.kind is DataKind.TABLE and request.features is not FeaturesName.AUTO:
        raise InvalidInput("features", f"is {request.features.value}, which is for pictures", "leave it out")
    if request.model == Family.CONVOLUTIONS.value and request.features is FeaturesName.SCATTERING:
        raise InvalidInput("features", "is scattering, and convolutions see pixels", "leave one of them out")
    names = [family.value for family in Family]
    if request.model not in names and ":" not in request.model:
        problem = f"is {request.model!r}, which is no model"
        raise InvalidInput("model", problem, f"use one of: {', '.join(names)}; or module.py:factory")
    fits = {Family.RESIDUAL: DataKind.TABLE, Family.CONVOLUTIONS: DataKind.PICTURES}
    wrong = [family for family, kind in fits.items() if request.model == family.value and facts.kind is not kind]
    if wrong:
        raise InvalidInput("model", f"is {request.model}, which is for {_PLURAL[fits[wrong[0]]]}", "use auto or linear")
    schema = None if facts.schema is None else facts.schema.to_toml()
    described = ModelDescription(request.model, facts.classes, schema, facts.shape, facts.peak, not is_pixels)
    shape = facts.schema or facts.shape or ()
    return described if described.own else replace(described, family=decided(shape, rows, request.model).value)


@dataclass(frozen=True)
class RunPlan:
    """All releases of a run. This plan is charged, stored, fitted, audited and attacked."""

    unit: Unit
    delta: float
    delta_reason: str
    share: MethodBudget
    """Budget of each method."""
    methods: tuple[MethodPlan, ...]
    """One plan for each private method, the main one first; none for a method that is tuned."""
    rows_per_user: int = 1
    learning: Learning | None = None
    """How the schema is learned, where there is none."""
    counting: DiscreteLaplaceMechanism | None = None
    """How rows are counted, where their number is not public."""
    scoring: PrivateScoring | None = None
    """How each private method is scored on held-out rows."""
    tuning: TuningPlan | None = None
    completed: tuple[MethodPlan, ...] = ()
    """Plans that were completed after a release, each within the (ε, δ) block that was charged for it."""
    stored_lines: tuple[tuple[str, Event], ...] = ()
    """All lines of a plan that was read without its data, those of the stage that learned the schema included."""

    @property
    def lines(self) -> tuple[tuple[str, Event], ...]:
        """All releases, each in words and with its event."""
        if self.stored_lines:
            return self.stored_lines
        lines: list[tuple[str, Event]] = []
        if self.learning is not None:
            lines.append(("the schema, learned from the rows", self.learning.event))
        if self.counting is not None:
            lines.append(("how many rows there are", self.counting.event))
        if self.tuning is not None:
            title = METHODS[self.tuning.candidates[0].method].title
            told = f"the best of about {self.tuning.trials.mean:g} models, by {title}, and its score"
            lines.append((told, self.tuning.event))
        for plan in self.methods:
            lines += plan.lines
            if self.scoring is not None:
                method = METHODS[plan.method]
                told = method.score_line or f"its score on held-out rows ({method.title})"
                lines.append((told, self.scoring.event))
        return tuple(lines)

    @property
    def first(self) -> int:
        """Number of releases that precede the completion of the other plans."""
        return int(self.learning is not None or self.counting is not None)

    @property
    def event(self) -> Event:
        """Privacy event of all releases."""
        events = tuple(event for _, event in self.lines)
        return events[0] if len(events) == 1 else Composed(events)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of all releases together."""
        return price(self.event, self.delta, unit=self.unit)

    def plan_of(self, method: str) -> MethodPlan:
        """Return the plan of a method: the completed one, if there is one.

        Args:
            method: Name of one of the run's private methods.
        """
        return next(plan for plan in (*self.completed, *self.methods) if plan.method == method)

    def complete(self, request: TrainRequest, facts: PublicFacts, model: Model) -> RunPlan:
        """Return the completed plan, once everything that the methods' plans depend on is known.

        Args:
            request: The request of the run.
            facts: Public facts about the data, released values included.
            model: The untrained model.

        Raises:
            InvalidInput: A completed plan costs more than was charged for it, which is a bug of the method.
        """
        share = replace(self.share, epsilon=self.share.model_epsilon, score=None, score_epsilon=0.0)
        completed = []
        for charged in self.methods:
            if charged.is_complete:
                continue
            plan = METHODS[charged.method].plan(request, facts, share, model)
            if plan.event != charged.event:
                require_within(plan.event, charged.event, self.unit)
            completed.append(plan)
        return replace(self, completed=tuple(completed))

    def to_json(self) -> str:
        """Return the plan as JSON, for the run directory. It holds only public and released values."""
        scoring = self.scoring
        data: dict[str, Any] = {
            "privet-plan": _FORMAT,
            "unit": json.loads(self.unit.to_json()),
            "delta": self.delta,
            "delta_reason": self.delta_reason,
            "share": [self.share.epsilon, self.share.delta, self.share.score_epsilon],
            "lines": [[line, json.loads(event.to_json())] for line, event in self.lines],
            "methods": [plan.to_data() for plan in self.methods],
            "completed": [plan.to_data() for plan in self.completed],
            "learning": None if self.learning is None else [self.learning.epsilon, self.learning.delta],
            "counting": None if self.counting is None else self.counting.scale,
            "scoring": None if scoring is None else [scoring.epsilon, scoring.classes],
            "rows_per_user": self.rows_per_user,
            "tuning": None if self.tuning is None else self.tuning.to_data(),
        }
        return json.dumps(data, indent=1, ensure_ascii=False)

    @staticmethod
    def from_json(text: str, request: TrainRequest | None = None, inputs: TrainingInputs | None = None) -> RunPlan:
        """Return a stored plan.

        Args:
            text: What `to_json` wrote.
            request: Request of the run; needed to resume a run that learns its schema.
            inputs: Data of the run; needed to resume a run that learns its schema. Without it, the plan has no stage
                that learns the schema, and `stored_lines` lists the cost of that stage.

        Raises:
            InvalidInput: The text is not a plan, or its stages do not have the privacy cost that it states.
        """
        try:
            data: Mapping[str, Any] = json.loads(text)
            if data["privet-plan"] != _FORMAT:
                raise InvalidInput("run", "has a plan of another version of Privet", "use that version")
            plan = _restored(data, request, inputs)
            lines = tuple((line, Event.from_json(json.dumps(event))) for line, event in data["lines"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput("run", "has a stored plan that cannot be read", "get the folder again") from None
        own = plan.lines
        if own != lines[len(lines) - len(own) :] or (inputs is not None and own != lines):
            problem = "has a stored plan whose stages do not cost what it says"
            raise InvalidInput("run", problem, "get the folder again; or train anew, which costs anew")
        return plan if inputs is not None else replace(plan, stored_lines=lines)


def _restored(data: Mapping[str, Any], request: TrainRequest | None, inputs: TrainingInputs | None) -> RunPlan:
    unit: Unit = Unit.from_json(json.dumps(data["unit"]))
    rows: int = data["rows_per_user"]
    scoring = None
    if data["scoring"] is not None:
        score_epsilon, classes = data["scoring"]
        scoring = PrivateScoring(score_epsilon, unit, rows, classes)
    counting = None if data["counting"] is None else DiscreteLaplaceMechanism(data["counting"], Count(unit, rows))
    learning = None
    if data["learning"] is not None and inputs is not None and request is not None:
        learning = learning_plan(inputs, request, *data["learning"])
    epsilon, delta, score_epsilon = data["share"]
    share = MethodBudget(epsilon, delta, unit, None if scoring is None else scoring.event, score_epsilon)
    tuning = None if data["tuning"] is None else TuningPlan.from_data(data["tuning"])
    methods, completed = (tuple(map(MethodPlan.from_data, data[name])) for name in ("methods", "completed"))
    return RunPlan(
        unit,
        data["delta"],
        data["delta_reason"],
        share,
        methods,
        rows,
        learning,
        counting,
        scoring,
        tuning,
        completed,
    )


def make_plan(request: TrainRequest, inputs: TrainingInputs, model: Model | None) -> RunPlan:
    """Return the plan of a run, from public facts and the request.

    Args:
        request: The request of the run.
        inputs: The data; its rows are not read.
        model: The untrained model; None where it depends on a value that is released first.

    Raises:
        InvalidInput: The request does not fit the data, or its methods cannot be planned.
    """
    facts, method = inputs.facts, METHODS[request.method]
    if facts.whose is Whose.USER or request.user is not None:
        _require_user_level(request)
    if not method.has_central_trust:
        return _local_plan(request, facts)
    delta, delta_reason = choose_delta(request.delta, facts.rows)  # users may be as many as rows
    unit = facts.unit if request.user is None else Unit(whose=Whose.USER)
    rows_per_user = request.rows_per_user or facts.rows_per_user
    epsilon, delta_left = request.epsilon, delta
    learning = counting = scoring = None
    if inputs.needs_schema:
        learning = learning_plan(inputs, request, request.epsilon * request.schema_share, delta * request.schema_share)
        epsilon, delta_left = epsilon - learning.epsilon, delta_left - learning.delta
    elif facts.rows is None and method.fits_rows:
        counting = DiscreteLaplaceMechanism.for_epsilon(request.epsilon * _COUNT_SHARE, Count(unit, rows_per_user))
        epsilon -= request.epsilon * _COUNT_SHARE
    score_epsilon = request.epsilon * request.score_share
    if request.training_share(facts) < 1:
        classes = 0 if _is_regression(request, facts) else max(len(facts.classes), 2)
        scoring = PrivateScoring(score_epsilon, unit, rows_per_user, classes)
    names = request.private_methods
    # An undivided δ is used as requested; a part of it is rounded down to three digits.
    is_whole = delta_left == delta and len(names) == 1
    each_delta = delta_left if is_whole else three_digits_down(delta_left / len(names))
    score = None if scoring is None else scoring.event
    share = MethodBudget(epsilon, each_delta, unit, score, score_epsilon if scoring is not None else 0.0)
    tuning = None
    if request.tune is not None and method.variants is not None:
        if facts.units is None or model is None:
            problem = "is given, and the number of rows is not public"
            raise InvalidInput("tune", problem, "give --rows, or a schema with rows")
        tuning = method.variants(request, facts, share, model, request.tune)
        names = names[1:]
    plans = tuple(METHODS[name].plan(request, facts, share, model) for name in names)
    return RunPlan(unit, delta, delta_reason, share, plans, rows_per_user, learning, counting, scoring, tuning)


def _local_plan(request: TrainRequest, facts: PublicFacts) -> RunPlan:
    """Return the plan of a local method: every record is randomized separately, and nothing else reads the rows."""
    if request.compare:
        problem = f"names methods that see rows as they are, beside {request.method}, whose trust is local"
        raise InvalidInput("compare", problem, "train them by themselves, and use: privet report compare")
    share = MethodBudget(request.epsilon, 0.0, facts.unit)
    plan = METHODS[request.method].plan(request, facts, share, None)
    return RunPlan(plan.unit, 0.0, "randomised response needs none", replace(share, unit=plan.unit), (plan,))


def require_within(event: Event, charged: Event, unit: Unit) -> None:
    """Refuse a plan that costs more than the (ε, δ) block that was charged for it.

    Args:
        event: Event of the plan.
        charged: Event that was charged.
        unit: Privacy unit of the run.

    Raises:
        InvalidInput: The plan costs more than the block, or the event that was charged is not an (ε, δ) block.
    """
    if not isinstance(charged, Approximate):
        raise InvalidInput(
            "plan", "is not what was charged for it", "this is a mistake of the method: please report it"
        )
    cost = price(event, charged.delta, unit=unit).epsilon.upper
    if cost > charged.epsilon:
        problem = (
            f"costs ε ≤ {cost:.6g} at δ = {charged.delta:g}, above the ε = {charged.epsilon:g} that were charged for it"
        )
        raise InvalidInput("plan", problem, "this is a mistake of Privet's own: please report it")


def _is_regression(request: TrainRequest, facts: PublicFacts) -> bool:
    """Return whether the target is a number, as far as that is public; an unknown kind is taken as a category."""
    if facts.schema is not None:
        return facts.is_regression
    return dict(request.kinds).get(request.target or "") == "number"


def _require_user_level(request: TrainRequest) -> None:
    able = [name for name, method in METHODS.items() if method.protects_users]
    for name in request.private_methods:
        if not METHODS[name].protects_users:
            problem = f"is {name}, which protects single rows, and the schema names a user"
            raise InvalidInput("method", problem, f"use {' or '.join(able)}, which protects users")
