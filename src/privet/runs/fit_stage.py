"""Fit every method of a plan, and score what it released."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from torch import nn

from privet.core import Event, Internal, InvalidInput, Release, Score
from privet.core.random import Rng, default_rng
from privet.report import SELECTED
from privet.runs import canaries
from privet.runs.callbacks import RunCallbacks
from privet.runs.canaries import CanaryEvidence, CanaryStage
from privet.runs.directory import RunDirectory
from privet.runs.facts import PublicFacts
from privet.runs.learn_stage import SOURCE
from privet.runs.methods.protocol import FitSession, Method, MethodPlan, StepProgress
from privet.runs.methods.registry import METHODS
from privet.runs.payment import Payment
from privet.runs.plan import RunPlan, require_within
from privet.runs.request import TrainRequest
from privet.runs.row_sets import HELD, OWN_ROWS, TEST, RowSets
from privet.runs.scoring import score_exactly
from privet.runs.selection import SelectionCheckpoint, TuningPlan, select_best
from privet.training import DataKind, Weights
from privet.training.loggers import Log
from privet.training.models import Additive, Model, ModelDescription

__all__ = ["FitStage", "TrainedModel", "TrainingHistory", "as_block"]

_POINTS = 24
"""At how many steps a run is looked at, about."""


@dataclass
class TrainingHistory:
    """What was seen of a run on its way; all but `epochs` is internal."""

    epochs: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    clipped: list[float] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    """On public rows, of the model as it was then."""


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """One method's model and what is known of how good it is."""

    method: str
    release: Release[Model] | None
    """None for a model without privacy."""
    public: tuple[Release[Score], ...] = ()
    """On public rows."""
    paid: Release[Score] | None = None
    """On private rows that were held out."""
    internal: tuple[Score, ...] = ()
    audited: CanaryEvidence | None = None
    """What canaries prove, where there were any."""


@dataclass
class FitStage:
    """The stage of a run that trains its models. Whatever it draws is stored before anything else happens."""

    request: TrainRequest
    facts: PublicFacts
    plan: RunPlan
    model: Model
    """Untrained."""
    described: ModelDescription
    rows: RowSets
    directory: RunDirectory
    payment: Payment
    callbacks: RunCallbacks
    rng: Rng | None
    resume: bool
    logs: tuple[Log, ...] = ()
    history: TrainingHistory = field(default_factory=TrainingHistory)

    def execute(self) -> tuple[tuple[TrainedModel, ...], MethodPlan]:
        """Train and score every method. Return the models, and the plan of the main one."""
        trained: list[TrainedModel] = []
        main_plan: MethodPlan | None = None
        for name in (self.request.method, *self.request.compare):
            method = METHODS[name]
            by = f"by {method.title}" if method.is_private else "without privacy"
            self.callbacks.on_message(f"Training {by} …")
            if self.plan.tuning is not None and name == self.request.method:
                model, plan = self._tuned(method, self.plan.tuning)
            elif not method.is_private:
                model, plan = self._unprotected(method), None
            else:
                plan = self.plan.plan_of(name)
                model = self._scored(method, self._fitted(method, plan))
            trained.append(model)
            main_plan = main_plan or plan
        if main_plan is None:
            raise InvalidInput("method", "is none")
        return tuple(trained), main_plan

    def _fitted(self, method: Method, plan: MethodPlan) -> Release[Model]:
        """The method's model: stored by a run that was interrupted, or trained now.

        Guarantee: that of the plan's event, which was charged.
        """
        stored = self.directory.stored_model(method.name)
        if stored is not None:
            return stored
        if method.check_model is not None and self.described.own:
            method.check_model(plan, self.model.head if self._is_images else self.model, self.rows.train)
        is_main = method.name == self.request.method
        stage = None
        if is_main and self.request.audit:
            request = self.request
            stage = CanaryStage(request.canaries, self.directory, request.seed, self.plan.delta, self.plan.unit)
        session = self.session(stage)
        if method.prepare is not None:
            method.prepare(plan, self.rows.train, session, self.request)
        self.payment.draw()
        release = self._private(method, plan, session)
        charged = next(each for each in self.plan.methods if each.method == method.name)
        is_block = not charged.is_complete and release.event != charged.event
        made = as_block(release, charged.event) if is_block else release
        if stage is not None and stage.results is not None:
            canaries.store_evidence(self.directory, made, stage.results)
        whole = made.map(lambda head: _whole(head, self.model))
        self.directory.store_model(method.name, whole, method.describe(self.described, plan, whole.value.head))
        return whole

    def session(self, stage: CanaryStage | None = None) -> FitSession:
        """Return a session with checkpoints, logs and a history."""
        scores = self._public_scores()

        def on_step(progress: StepProgress) -> None:
            self.callbacks.on_step(progress)
            if progress.step in _history_steps(progress.total):
                self.history.epochs.append(progress.epoch)
                self.history.losses.append(progress.loss)
                self.history.clipped.append(float("nan") if progress.clipped is None else progress.clipped)
                self.history.scores += [score(progress.model) for score in scores.values()]

        return replace(
            self._bare_session(),
            directory=self.directory,
            on_message=self.callbacks.on_message,
            resume=self.resume,
            on_step=on_step,
            logs=self.logs,
            public_scores=scores,
            canaries=stage,
        )

    def _bare_session(self) -> FitSession:
        return FitSession(self.facts, self.model, self.plan.unit, SOURCE, self.rng, row_sets=self.rows)

    def _public_scores(self) -> Mapping[str, Callable[[nn.Module], float]]:
        test, classes = self.rows.test, len(self.facts.classes)
        if test is None:
            return {}
        return {"score": lambda model: score_exactly(model, test, classes, TEST)[0].value or 0.0}

    def _private(self, method: Method, plan: MethodPlan, session: FitSession) -> Release[nn.Module]:
        release = method.fit(plan, self.rows.train, session)
        if isinstance(release, Internal):
            raise InvalidInput("method", f"{method.name} released nothing", "this is a mistake of the method")
        return release

    def _tuned(self, method: Method, tuning: TuningPlan) -> tuple[TrainedModel, MethodPlan]:
        """The best of several; its score is part of what was released, and looks better than it is: it was chosen."""
        test, classes = self.rows.test, len(self.facts.classes)

        def score(release: Release[nn.Module]) -> Release[Score]:
            usable = copy.deepcopy(self._usable(release.value))
            if self.plan.scoring is not None and self.rows.held is not None:
                rng = self.rng or default_rng()
                return self.plan.scoring.release(usable, self.rows.held, rng=rng, source=SOURCE, on=HELD)
            if test is None:
                raise InvalidInput("tune", "has nothing to choose by", "give --test, or a --score-share above 0")
            first = score_exactly(usable, test, classes, TEST)[0]
            return release.map(lambda _: first)

        stored = SelectionCheckpoint(
            self.directory,
            self.described,
            lambda head: _whole(head, self.model),
            lambda whole: whole.head if self._is_images else whole,
        )
        if not stored.complete:
            if method.check_model is not None and self.described.own:
                head = self.model.head if self._is_images else self.model
                method.check_model(tuning.candidates[0], head, self.rows.train)
            self.payment.draw()
        release = select_best(
            tuning,
            lambda candidate: self._private(method, candidate, self._bare_session()),
            score,
            unit=self.plan.unit,
            rng=self.rng,
            kept=stored,
        )
        best = release.value
        before = Weights.of(best.value[0], copies=True)
        usable = copy.deepcopy(self._usable(best.value[0]))
        public: tuple[Release[Score], ...] = ()
        if test is not None:
            scores = map(_as_selected, score_exactly(usable, test, classes, TEST))
            public = tuple(release.map(lambda _, one=one: one) for one in scores)  # type: ignore[misc]
        paid = None if test is not None else release.map(lambda found: _as_selected(found.value[1]))
        internal = score_exactly(usable, self.rows.train, classes, OWN_ROWS, seen=True)
        _require_untouched(before, best.value[0])
        whole = release.map(lambda found: _whole(found.value[0], self.model))
        return TrainedModel(method.name, whole, public, paid, internal), best.candidate

    def _unprotected(self, method: Method) -> TrainedModel:
        """A model without privacy: its scores are internal, and it does not leave."""
        plan = method.plan(self.request, self.facts, self.plan.share, self.model)
        fitted = method.fit(plan, self.rows.train, self._bare_session())
        usable = self._usable(fitted.value)
        classes = len(self.facts.classes)
        every = [score_exactly(usable, rows, classes, on, seen=on == OWN_ROWS) for rows, on in self.rows.named]
        return TrainedModel(method.name, None, internal=tuple(score for scores in every for score in scores))

    def _scored(self, method: Method, release: Release[Model]) -> TrainedModel:
        """A method's model with its scores; those on private rows that nobody paid for are internal.

        A copy of the model is scored: whatever code of the user's own keeps of rows must not leave with the model.
        """
        classes = len(self.facts.classes)
        before = Weights.of(release.value, copies=True)
        usable = copy.deepcopy(release.value.head if self._is_images else release.value)
        public: tuple[Release[Score], ...] = ()
        if self.rows.test is not None:
            scores = score_exactly(usable, self.rows.test, classes, TEST)
            public = tuple(release.map(lambda _, score=score: score) for score in scores)  # type: ignore[misc]
        paid = self._paid_score(method, release, usable)
        # Where trust is local, nobody looks at rows as they are, not even their owner's page.
        has_seen = method.has_central_trust and method.fits_rows
        internal = score_exactly(usable, self.rows.train, classes, OWN_ROWS, seen=True) if has_seen else ()
        _require_untouched(before, release.value)
        is_audited = self.request.audit and method.name == self.request.method
        evidence = canaries.stored_evidence(self.directory) if is_audited else None
        return TrainedModel(method.name, release, public, paid, internal, evidence)

    def _paid_score(self, method: Method, release: Release[Model], usable: nn.Module) -> Release[Score] | None:
        """The score on held-out rows, stored before it is shown.

        Guarantee: that of the plan's scoring, joined with the model's own.
        """
        if self.plan.scoring is None or self.rows.held is None:
            return None
        name = f"{method.name}-score"
        paid = self.directory.stored_release(name)
        if paid is None:
            self.payment.draw()
            rng = self.rng or default_rng()
            score = self.plan.scoring.release(usable, self.rows.held, rng=rng, source=SOURCE, on=HELD)
            paid = Release.join(release, score).map(lambda both: both[1].to_json())
            self.directory.store_release(name, paid)
        return paid.map(Score.from_json)

    @property
    def _is_images(self) -> bool:
        return self.facts.kind is DataKind.PICTURES

    def _usable(self, model: nn.Module) -> nn.Module:
        """A model that takes rows as the row sets have them: features of images, and tables as they were read."""
        return model if self._is_images else _whole(model, self.model)


def as_block(release: Release[nn.Module], block: Event) -> Release[nn.Module]:
    """Return the same release, stated as the (ε, δ) block that was fixed before its plan was complete.

    Args:
        release: Release of the model under its completed plan.
        block: The (ε, δ) block that was charged.

    Raises:
        InvalidInput: The release costs more than the block.

    Guarantee: the block's. Whatever was learned first, what was done costs no more than the block, so that the
    composition with what was learned is that of the block (adaptive composition, Dwork & Roth 2014, Thm 3.16).
    """
    require_within(release.event, block, release.unit)
    (draw,) = release.draws
    return Release.of(release.value, block, unit=release.unit, source=draw.source, randomness=release.randomness)


def _history_steps(total: int) -> set[int]:
    """The steps after which a run is looked at: about two dozen, the first and the last among them."""
    return {max(1, round(total * place / _POINTS)) for place in range(1, _POINTS + 1)} | {1, total}


def _as_selected(score: Score) -> Score:
    """The score by which the best of several models was chosen: its interval does not cover that choice."""
    return replace(score, covers=score.covers + SELECTED)


def _whole(found: nn.Module, model: Model) -> Model:
    """A model that takes rows as they were read."""
    if isinstance(found, Model):
        return found
    front = nn.Identity() if isinstance(found, Additive) else model.front
    return Model(front, found, model.family)


def _require_untouched(before: Weights, model: nn.Module) -> None:
    """What leaves is what was released: nothing of the rows that were scored since."""
    if names := before.changed(model):
        problem = f"has changed {names[0]!r} after its release, while a copy of it was scored"
        raise InvalidInput("model", problem, "keep nothing of rows in it; what was released is in the run's folder")
