"""Run a training request end to end: read, plan, charge, learn, fit, score; `outputs` then writes card and pages."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from privet.core import Guarantee, InvalidInput, Release
from privet.core.random import Rng, SeededRng
from privet.data import Number, Schema
from privet.runs.callbacks import PlannedRun, RunCallbacks
from privet.runs.directory import RunDirectory
from privet.runs.fit_stage import FitStage, TrainedModel, TrainingHistory
from privet.runs.inputs import TrainingInputs, with_schema
from privet.runs.learn_stage import count_rows, learn_schema
from privet.runs.logs import open_logs
from privet.runs.methods.protocol import FitSession, MethodPlan
from privet.runs.methods.registry import METHODS
from privet.runs.payment import identity_of, reserve_payment
from privet.runs.plan import RunPlan, describe_model, make_plan
from privet.runs.request import TrainRequest
from privet.runs.row_sets import split_rows
from privet.training.loggers import Log
from privet.training.models import Model, ModelDescription

__all__ = ["RunResult", "TrainingRun"]


@dataclass(frozen=True, eq=False)
class RunResult:
    """Everything that a card is made of."""

    request: TrainRequest
    command: str
    inputs: TrainingInputs
    plan: RunPlan
    guarantee: Guarantee
    main_plan: MethodPlan
    """Of the method that was asked for; of a tuned run, the candidate that was selected."""
    described: ModelDescription
    model: Model
    trained: tuple[TrainedModel, ...]
    """The method that was asked for first, and then those to compare."""
    history: TrainingHistory
    session: FitSession
    """What the method could use; nothing is drawn from it any more."""
    schema: Release[str] | None
    """The schema as TOML, where it was learned."""
    rows: Release[int] | None
    """The number of rows, where it was counted."""
    budget: tuple[str, tuple[str, ...], str] | None
    """The ledger's budget, the ids of the entries, and the chain's head."""


@dataclass
class TrainingRun:
    """One training run in its directory."""

    request: TrainRequest
    directory: RunDirectory
    command: str
    resume: bool = False
    callbacks: RunCallbacks = field(default_factory=RunCallbacks)
    _built: tuple[ModelDescription, Model] | None = None
    """The untrained model: the features of images take a while to prepare."""

    def execute(self) -> RunResult:
        """Run all stages up to the scores. After an interruption, calling it with `resume` continues.

        Guarantee: that of the plan, which is charged as a whole before anything is drawn; see `RunPlan.lines`.
        """
        with ExitStack() as stack:
            request = self.request
            logs = open_logs(request.log, self.directory.folder, resume=self.resume, internal=request.log_internal)
            for log in logs:
                stack.callback(log.close)
            return self._execute(tuple(logs))

    def _execute(self, logs: tuple[Log, ...]) -> RunResult:
        request, tell = self.request, self.callbacks.on_message
        rng: Rng | None = None if request.seed is None else SeededRng(request.seed)
        tell(f"Reading {request.title} …")
        inputs = TrainingInputs.of(request)
        interrupted = self.directory.read_interrupted() if self.resume else None
        model = self._model(inputs)
        plan = make_plan(request, inputs, model) if interrupted is None else self._stored_plan(inputs)
        guarantee = plan.guarantee
        identity = identity_of(request, inputs, plan, None if interrupted is None else interrupted.identity.key)
        if interrupted is None:
            self.callbacks.on_plan(PlannedRun(request, inputs.facts, plan, guarantee))
        with reserve_payment(request, self.directory, self.command, plan, identity, interrupted) as payment:
            schema = learn_schema(request, inputs, plan, self.directory, payment, rng, tell)
            rows = None
            if schema is not None:
                inputs = with_schema(inputs, request, Schema.from_toml(schema.value))
                _require_classes(inputs)
            elif plan.counting is not None:
                rows = count_rows(inputs, plan, self.directory, payment, rng)
                inputs = replace(inputs, facts=replace(inputs.facts, rows=max(rows.value, 1)))
            model = self._model(inputs)
            if model is None:
                raise InvalidInput("rows", "are not known")
            if schema is not None or rows is not None:
                plan = self._complete(plan, inputs, model, guarantee)
            tell("Preparing rows …")
            row_sets = split_rows(request, inputs, model, self._cache)
            described = describe_model(request, inputs.facts, self._units(inputs) or 1)
            stage = FitStage(
                request,
                inputs.facts,
                plan,
                model,
                described,
                row_sets,
                self.directory,
                payment,
                self.callbacks,
                rng,
                self.resume,
                logs,
            )
            trained, main_plan = stage.execute()
            payment.commit()
        main = trained[0].release
        if main is None:
            raise InvalidInput("method", "is none")
        return RunResult(
            request,
            self.command,
            inputs,
            plan,
            guarantee,
            main_plan,
            METHODS[request.method].describe(described, main_plan, main.value.head),
            main.value,
            trained,
            stage.history,
            stage.session(),
            schema,
            rows,
            None if request.budget is None else (request.budget, payment.entries, payment.head or ""),
        )

    def _stored_plan(self, inputs: TrainingInputs) -> RunPlan:
        """The plan that was charged: what today's defaults would make of the request does not matter."""
        return RunPlan.from_json(self.directory.stored_plan(), self.request, inputs)

    def _complete(self, plan: RunPlan, inputs: TrainingInputs, model: Model, guarantee: Guarantee) -> RunPlan:
        """Complete the plan by what was released, unless a run that is resumed has done so."""
        if not plan.completed:
            plan = plan.complete(self.request, inputs.facts, model)
            self.directory.store_plan(plan.to_json())
        if plan.scoring is not None or any(each.choices for each in plan.completed):
            self.callbacks.on_completed_plan(PlannedRun(self.request, inputs.facts, plan, guarantee))
        return plan

    def _model(self, inputs: TrainingInputs) -> Model | None:
        """The untrained model, where enough is known."""
        facts = inputs.facts
        units = self._units(inputs)
        if units is None or (facts.schema is None and facts.shape is None):
            return None
        described = describe_model(self.request, facts, units)
        if self._built is None or self._built[0] != described:
            self._built = described, described.build(units)
        return self._built[1]

    def _units(self, inputs: TrainingInputs) -> int | None:
        """The number of units by which the model is chosen, if it needs to be known."""
        method = METHODS[self.request.method]
        return inputs.facts.units if method.has_central_trust and method.fits_rows else 1

    @property
    def _cache(self) -> Path:
        cache = self.request.cache
        return Path(cache) if cache is not None else self.directory.hidden / "features"


def _require_classes(inputs: TrainingInputs) -> None:
    """What was released may be too little to continue with; to say so costs nothing more."""
    schema = inputs.facts.schema
    if schema is not None and not isinstance(schema.label, Number) and len(inputs.facts.classes) < 2:
        problem = f"is {schema.target!r}, of which fewer than two values were found in enough rows"
        raise InvalidInput("target", problem, "what was learned is paid for; list the values in a schema")
