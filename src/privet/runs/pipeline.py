"""A run from the data to the folder, in order: read, price, confirm, charge, learn, train, score, write."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from privet.accounting import epsilon as price
from privet.core.atomic_write import write_atomically
from privet.core.errors import InvalidInput
from privet.core.guarantee import Evidence, Guarantee
from privet.core.random import Rng, SeededRng, default_rng
from privet.core.release import Release
from privet.core.unit import Whose
from privet.data import Number, Schema, Table
from privet.mechanisms import Count
from privet.report import Canaries, Score
from privet.report.score_intervals import SELECTED
from privet.runs import canaries, dp_sgd
from privet.runs.canaries import CanaryEvidence
from privet.runs.directory import RunDirectory
from privet.runs.inputs import TrainingInputs, with_schema
from privet.runs.other_methods import fit_convex, fit_without_privacy
from privet.runs.payment import Payment, identity_of, reserve_payment
from privet.runs.plan import METHOD_TITLES, RADIUS, RunPlan, TuningPlan, convex_plan, describe_model
from privet.runs.request import MethodName, TrainRequest
from privet.runs.row_sets import HELD, OWN_ROWS, TEST, RowSets, split_rows
from privet.runs.scoring import score_exactly
from privet.runs.selection import SelectionCheckpoint, select_best
from privet.training.convex import AdditiveModel
from privet.training.models import Additive, Described, Model
from privet.training.recipe import Kind, Recipe
from privet.training.state import Attributes, Weights

if TYPE_CHECKING:
    from privet.training.run import Run

__all__ = ["RunResult", "TrainedModel", "TrainingRun"]

_PROBED = 3
"""Made-up rows on which a model of the user's own is tried."""
_SOURCE = "training data"
"""What DP-SGD calls its rows; all else that is released is of the same ones."""


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """One method's model and what is known of how good it is."""

    method: MethodName
    release: Release[Model] | None
    """None for a model without privacy."""
    public: tuple[Release[Score], ...] = ()
    """On public rows."""
    paid: Release[Score] | None = None
    """On private rows that were held out."""
    internal: tuple[Score, ...] = ()
    audited: CanaryEvidence | None = None
    """What canaries prove, where there were any."""


@dataclass(frozen=True, eq=False)
class RunResult:
    """Everything that a card is made of."""

    asked: TrainRequest
    command: str
    inputs: TrainingInputs
    bill: RunPlan
    guarantee: Guarantee
    recipe: Recipe | None
    described: Described
    model: Model
    trained: tuple[TrainedModel, ...]
    followed: dp_sgd.TrainingHistory
    schema: Release[str] | None
    rows: Release[int] | None
    budget: tuple[str, tuple[str, ...], str] | None
    """The ledger's budget, the ids of the entries, and the chain's head."""


@dataclass
class TrainingRun:
    """One run. What it tells on its way goes to `tell` (public) and `follow` (a progress bar, internal)."""

    asked: TrainRequest
    place: RunDirectory[TrainRequest]
    command: str
    resuming: bool
    confirm: Callable[[TrainRequest, TrainingInputs, RunPlan, Guarantee], None]
    planned: Callable[[TrainRequest, TrainingInputs, RunPlan, Recipe | None], None]
    """Told of a plan that was made after something was learned."""
    tell: Callable[[str], None]
    follow: Callable[[Recipe, Whose, Mapping[str, Callable[[nn.Module], float]]], Any]
    """From a plan, whose data it protects and scores on public rows to a context manager, whose value is called after
    each step with the run and the batch's loss."""
    _built: tuple[Described, Model] | None = None
    """The untrained model: features of pictures take a while to make."""

    def done(self) -> RunResult:
        """Do all of it; an interruption leaves a folder from which it goes on."""
        asked = self.asked
        rng: Rng | None = None if asked.seed is None else SeededRng(asked.seed)
        self.tell(f"Reading {asked.title} …")
        inputs = TrainingInputs.of(asked)
        model = self._model(inputs)
        bill = RunPlan.of(asked, inputs, model)
        guarantee = price(bill.event, bill.delta, unit=bill.unit)
        begun = self.place.found() if self.resuming else None
        now = identity_of(asked, inputs, bill, None if begun is None else begun.stated.key)
        if begun is None:
            self.confirm(asked, inputs, bill, guarantee)
        with reserve_payment(asked, self.place, self.command, bill, now, begun) as charges:
            schema, rows = self._schema(inputs, bill, charges, rng), None
            if schema is not None:
                inputs = with_schema(inputs, asked, Schema.from_toml(schema.value))
                _require_classes(inputs)
            elif bill.counting is not None:
                rows = self._count(inputs, bill, charges, rng)
                inputs = replace(inputs, rows=max(rows.value, 1))
            if bill.scoring is not None and (schema or rows) is not None and MethodName.DPSGD not in asked.private:
                self.planned(asked, inputs, bill, None)  # the score's width is said before it is drawn
            model = self._model(inputs)
            if model is None:
                raise InvalidInput("rows", "are not known")
            self.tell("Preparing rows …")
            parts = split_rows(asked, inputs, model, self._cache)
            trained, plan, followed = self._trained(inputs, bill, model, parts, charges, rng)
            charges.commit()
        main = trained[0].release
        if main is None:
            raise InvalidInput("method", "is none")
        said = self.described(inputs, bill, asked.method)
        budget = None if asked.ledger is None else (asked.ledger, charges.entries, charges.head or "")
        return RunResult(
            asked,
            self.command,
            inputs,
            bill,
            guarantee,
            plan,
            said,
            main.value,
            trained,
            followed,
            schema,
            rows,
            budget,
        )

    def _model(self, inputs: TrainingInputs) -> Model | None:
        """The untrained model, where enough is known."""
        units = 1 if self.asked.method is MethodName.INPUT else inputs.units
        if units is None or (inputs.schema is None and inputs.shape is None):
            return None
        said = describe_model(self.asked, inputs, units)
        if self._built is None or self._built[0] != said:
            self._built = said, said.build(units)
        return self._built[1]

    def _schema(self, inputs: TrainingInputs, bill: RunPlan, charges: Payment, rng: Rng | None) -> Release[str] | None:
        if bill.learning is None or inputs.source is None:
            return None
        found = self.place.kept("schema")
        if found is not None:
            return found
        self.tell("Checking the file …")
        for _ in inputs.source.batches(list(inputs.source.header[:1])):
            pass  # what is damaged shows before anything is drawn
        self.tell("Learning the schema …")
        charges.draw(first=True)
        learned = bill.learning.release(inputs.source, rng=rng or default_rng(), name=_SOURCE)
        text = learned.map(lambda schema: replace(schema, rows=self.asked.rows or schema.rows).to_toml())
        self.place.keep("schema", text)
        write_atomically(
            self.place.folder / "schema.toml", text.value, "out"
        )  # paid for, also if the run comes to nothing
        return text

    def _count(self, inputs: TrainingInputs, bill: RunPlan, charges: Payment, rng: Rng | None) -> Release[int]:
        found = self.place.kept("rows")
        if found is not None:
            return found
        if bill.counting is None or inputs.train is None:
            raise InvalidInput("rows", "are not counted")
        data = inputs.train
        users = data.users if isinstance(data, Table) else None
        asked = Count(bill.unit, inputs.rows_per_user)(np.ones(len(data), dtype=np.bool_), users)
        charges.draw(first=True)
        released = bill.counting.release(asked, rng=rng or default_rng(), source=_SOURCE).map(int)
        self.place.keep("rows", released)
        return released

    @property
    def _cache(self) -> Path:
        return Path(self.asked.cache) if self.asked.cache is not None else self.place.hidden / "features"

    def _trained(
        self,
        inputs: TrainingInputs,
        bill: RunPlan,
        model: Model,
        parts: RowSets,
        charges: Payment,
        rng: Rng | None,
    ) -> tuple[tuple[TrainedModel, ...], Recipe | None, dp_sgd.TrainingHistory]:
        followed, plan = dp_sgd.TrainingHistory(), None
        found: list[TrainedModel] = []
        for method in (self.asked.method, *self.asked.compare):
            self.tell(f"Training by {METHOD_TITLES[method]} …")
            if bill.tuning is not None and method is MethodName.DPSGD:
                trained, plan = self._by_tuning(inputs, bill, bill.tuning, model, parts, charges, rng)
                found.append(trained)
                continue
            if method is MethodName.DPSGD:
                plan = bill.planned(self.asked, inputs, model)
                if bill.block is not None:
                    dp_sgd.require_within(plan.plan.event(), bill.block, bill.unit)
                    self.planned(self.asked, inputs, bill, plan)
            release = None
            if method is not MethodName.NONE:
                release = self.place.kept_model(method.value)
            if release is None and method is not MethodName.NONE:
                if plan is not None and ":" in self.asked.model:
                    _require_trainable(plan, model.head if inputs.kind is Kind.PICTURES else model, parts)
                charges.draw()
                made = (
                    self._by_sgd(inputs, bill, plan, model, parts, rng, followed)
                    if method is MethodName.DPSGD and plan is not None
                    else self._at_once(method, inputs, bill, model, parts, rng)
                )
                release = made.map(lambda head: _whole(head, model))
                self.place.keep_model(method.value, release, self.described(inputs, bill, method))
            found.append(self._scored(method, inputs, bill, model, parts, release, charges, rng))
        return tuple(found), plan, followed

    def described(self, inputs: TrainingInputs, bill: RunPlan, method: MethodName) -> Described:
        """The model that a method makes."""
        said = describe_model(self.asked, inputs, inputs.units or 1)
        if bill.randomizing is not None:
            return replace(said, family="additive", bins=bill.randomizing.bins)
        return said if method is MethodName.DPSGD else replace(said, family="convex", radius=RADIUS)

    def _at_once(
        self, method: MethodName, inputs: TrainingInputs, bill: RunPlan, model: Model, parts: RowSets, rng: Rng | None
    ) -> Release[nn.Module]:
        """The methods that draw once.

        Guarantee: that of the method's event.
        """
        train = parts.train
        if bill.randomizing is not None:
            plan = bill.randomizing
            return plan.fit(train.x.numpy(), train.y.numpy(), source=_SOURCE, rng=rng or default_rng()).map(_module)
        front = model.front if inputs.kind is Kind.TABLE else None
        found = convex_plan(method, inputs, bill.shares)
        return fit_convex(found, front, train.x, train.y, len(inputs.classes), rng=rng, source=_SOURCE)

    def _by_tuning(
        self,
        inputs: TrainingInputs,
        bill: RunPlan,
        tuning: TuningPlan,
        model: Model,
        parts: RowSets,
        charges: Payment,
        rng: Rng | None,
    ) -> tuple[TrainedModel, Recipe]:
        """The best of several; its score is part of what was released, and looks better than it is: it was chosen."""
        test, classes, pictures = parts.test, len(inputs.classes), inputs.kind is Kind.PICTURES

        def score(release: Release[nn.Module]) -> Release[Score]:
            usable = copy.deepcopy(_usable(release.value, model, inputs))
            if bill.scoring is not None and parts.held is not None:
                source = rng or default_rng()
                return bill.scoring.release(usable, parts.held, rng=source, source=_SOURCE, on=HELD)
            if test is None:
                raise InvalidInput("tune", "has nothing to choose by", "give --test, or a --score-share above 0")
            first = score_exactly(usable, test, classes, TEST)[0]
            return release.map(lambda _: first)

        kept = SelectionCheckpoint(
            self.place,
            describe_model(self.asked, inputs, inputs.units or 1),
            lambda found: _whole(found, model),
            lambda whole: whole.head if pictures else whole,
        )
        if not kept.complete:
            own = model.head if pictures else model
            if ":" in self.asked.model:
                _require_trainable(tuning.recipes[0], own, parts)
            charges.draw()
        release = select_best(
            tuning,
            model.head if pictures else model,
            (parts.train.x, parts.train.y),
            score,
            users=parts.train.users,
            cap=inputs.rows_per_user,
            unit=bill.unit,
            rng=rng,
            kept=kept,
        )
        best = release.value
        before = Weights.of(best.value[0], copies=True)
        usable = copy.deepcopy(_usable(best.value[0], model, inputs))
        public: tuple[Release[Score], ...] = ()
        if test is not None:
            scores = map(_as_selected, score_exactly(usable, test, classes, TEST))
            public = tuple(release.map(lambda _, one=one: one) for one in scores)  # type: ignore[misc]
        paid = None if test is not None else release.map(lambda found: _as_selected(found.value[1]))
        internal = score_exactly(usable, parts.train, classes, OWN_ROWS, seen=True)
        _require_untouched(before, best.value[0])
        whole = release.map(lambda found: _whole(found.value[0], model))
        return TrainedModel(MethodName.DPSGD, whole, public, paid, internal), best.candidate

    def _by_sgd(
        self,
        inputs: TrainingInputs,
        bill: RunPlan,
        plan: Recipe,
        model: Model,
        parts: RowSets,
        rng: Rng | None,
        followed: dp_sgd.TrainingHistory,
    ) -> Release[nn.Module]:
        whole = copy.deepcopy(model if inputs.kind is Kind.TABLE else model.head)
        whole.train()
        plot = (
            canaries.plan_canaries(whole, self.asked.canaries, self.place, self.asked.seed)
            if self.asked.audit
            else None
        )
        proven: list[tuple[Canaries, tuple[Evidence, ...]]] = []

        def ended(run: Run) -> None:
            if plot is not None:
                proven.append(plot.found(run, bill.delta, bill.unit))

        chosen = dp_sgd.history_steps(plan.steps)
        test, classes = parts.test, len(inputs.classes)
        scores: dict[str, Callable[[nn.Module], float]] = {}
        if test is not None:
            scores["score"] = lambda model: score_exactly(model, test, classes, TEST)[0].value or 0.0
        with self.follow(plan, inputs.whose, scores) as shown:

            def after(run: Run, loss: float) -> None:
                shown(run, loss)
                if run.steps in chosen:
                    followed.steps.append(run.steps)
                    followed.losses.append(loss)
                    followed.clipped.append(float("nan") if run.clipped is None else run.clipped)
                    followed.scores += [score(run.model) for score in scores.values()]

            release = dp_sgd.train_dp_sgd(
                plan,
                whole,
                (parts.train.x, parts.train.y),
                users=parts.train.users,
                cap=inputs.rows_per_user,
                place=self.place,
                resume=self.resuming,
                rng=rng,
                after=after,
                plot=plot,
                ended=ended,
            )
        release.value.eval()
        made = release if bill.block is None else dp_sgd.as_block(release, bill.block)
        for found in proven:
            canaries.store_evidence(self.place, made, found)
        return made

    def _scored(
        self,
        method: MethodName,
        inputs: TrainingInputs,
        bill: RunPlan,
        model: Model,
        parts: RowSets,
        release: Release[Model] | None,
        charges: Payment,
        rng: Rng | None,
    ) -> TrainedModel:
        """A method's model with its scores; those on private rows that nobody paid for are internal.

        A copy of the model is scored: whatever code of the user's own keeps of rows must not leave with the model.
        """
        classes = len(inputs.classes)
        if release is None:
            front = model.front if inputs.kind is Kind.TABLE else None
            own = copy.deepcopy(model if inputs.kind is Kind.TABLE else model.head)
            plain = fit_without_privacy(own, front, parts.train.x, parts.train.y, classes)
            usable = _usable(plain, model, inputs)
            every = [score_exactly(usable, rows, classes, on, seen=on == OWN_ROWS) for rows, on in parts.named]
            return TrainedModel(method, None, internal=tuple(score for some in every for score in some))
        before = Weights.of(release.value, copies=True)
        usable = copy.deepcopy(release.value.head if inputs.kind is Kind.PICTURES else release.value)
        public: tuple[Release[Score], ...] = ()
        if parts.test is not None:
            scores = score_exactly(usable, parts.test, classes, TEST)
            public = tuple(release.map(lambda _, score=score: score) for score in scores)  # type: ignore[misc]
        paid = None
        if bill.scoring is not None and parts.held is not None:
            name = f"{method.value}-score"
            paid = self.place.kept(name)
            if paid is None:
                charges.draw()
                score = bill.scoring.release(usable, parts.held, rng=rng or default_rng(), source=_SOURCE, on=HELD)
                paid = Release.join(release, score).map(lambda both: both[1].to_json())
                self.place.keep(name, paid)
            paid = paid.map(Score.from_json)
        # Where trust is local, nobody looks at rows as they are, not even their owner's page.
        internal = (
            () if bill.randomizing is not None else score_exactly(usable, parts.train, classes, OWN_ROWS, seen=True)
        )
        _require_untouched(before, release.value)
        proven = canaries.stored_evidence(self.place) if self.asked.audit and method is MethodName.DPSGD else None
        return TrainedModel(method, release, public, paid, internal, proven)


def _as_selected(score: Score) -> Score:
    """The score by which the best of several models was chosen: its interval does not cover that choice."""
    return replace(score, covers=score.covers + SELECTED)


def _whole(found: nn.Module, model: Model) -> Model:
    """A model that takes rows as they were read."""
    if isinstance(found, Model):
        return found
    front = nn.Identity() if isinstance(found, Additive) else model.front
    return Model(front, found, model.family)


def _module(model: AdditiveModel) -> nn.Module:
    return Additive.of(model)


def _usable(found: nn.Module, model: Model, inputs: TrainingInputs) -> nn.Module:
    """A model that takes rows as `Parts` has them: features of pictures, and tables as they were read."""
    return found if inputs.kind is Kind.PICTURES else _whole(found, model)


def _require_trainable(plan: Recipe, model: nn.Module, parts: RowSets) -> None:
    """Refuse a model of the user's own that couples or keeps rows, by made-up rows, before anything is paid for."""
    like = parts.train.x.new_zeros(1, *parts.train.x.shape[1:]), parts.train.y.new_zeros(1)
    found = plan.plan.explain(model, like)
    if found.refusals:
        raise InvalidInput("model", f"cannot be trained privately: {found.refusals[0]}")
    probe, kept = copy.deepcopy(model).eval(), []
    before = Attributes.of(probe)
    with torch.no_grad():
        for value in (0.0, 1.0):  # also a code of every category
            before.put_back()
            probe(like[0].new_full((_PROBED, *like[0].shape[1:]), value))
            kept.append(Attributes.of(probe))
    if names := kept[0].differing(kept[1]):
        problem = f"keeps something of the rows that it scores, in {', '.join(names)}"
        raise InvalidInput("model", problem, "return it, or do not keep it")


def _require_untouched(before: Weights, model: nn.Module) -> None:
    """What leaves is what was released: nothing of the rows that were scored since."""
    if names := before.changed(model):
        problem = f"has changed {names[0]!r} after its release, while a copy of it was scored"
        raise InvalidInput("model", problem, "keep nothing of rows in it; what was released is in the run's folder")


def _require_classes(inputs: TrainingInputs) -> None:
    """What was released may be too little to go on with; to say so costs nothing more."""
    schema = inputs.schema
    if schema is not None and not isinstance(schema.label, Number) and len(inputs.classes) < 2:
        problem = f"is {schema.target!r}, of which fewer than two values were found in enough rows"
        raise InvalidInput("target", problem, "what was learned is paid for; list the values in a schema")
