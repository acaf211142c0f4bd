"""What a method of training is: a plan that is priced before any row is read, and a fit that releases a model.

To add a method, write one file that makes a `Method`, and add one row to `privet.runs.methods.table`. The pipeline then
charges it, resumes it, scores it, writes its card and pages, offers it on the command line, and audits it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from privet.core import Event, Unit

if TYPE_CHECKING:
    from torch import Tensor, nn

    from privet.core import Internal, Release, Typed
    from privet.core.random import Rng
    from privet.report import Choice, Consensus, Finding, Public, Trial
    from privet.runs.canaries import CanaryStage
    from privet.runs.directory import RunDirectory
    from privet.runs.facts import PublicFacts
    from privet.runs.pipeline import RunResult
    from privet.runs.request import TrainRequest
    from privet.runs.row_sets import LabeledRows, RowSets
    from privet.runs.selection import TuningPlan
    from privet.training.loggers import Log
    from privet.training.models import Model, ModelDescription

__all__ = [
    "CardSections",
    "FitSession",
    "Method",
    "MethodBudget",
    "MethodOptions",
    "MethodPlan",
    "PartialRun",
    "StepProgress",
    "on_features",
]


@dataclass(frozen=True)
class MethodOptions:
    """Options of one method alone: a method's own type adds fields with defaults, in plain JSON values, and checks
    them. Their names differ from those of `TrainRequest`."""


@dataclass(frozen=True)
class MethodBudget:
    """The part of a run's budget that one method may spend, its private score included."""

    epsilon: float
    delta: float
    unit: Unit
    score: Event | None = None
    """The release of its score, if that is paid from this share."""
    score_epsilon: float = 0.0

    @property
    def model_epsilon(self) -> float:
        """What is left for the model under basic composition with the score."""
        return self.epsilon - self.score_epsilon


@dataclass(frozen=True)
class MethodPlan:
    """What a method will do: public, fixed before any private row is read, and stored with the run."""

    method: str
    event: Event
    """What `fit` costs."""
    unit: Unit
    """Whose data it protects."""
    line: str
    """What is paid for, for the list of costs."""
    choices: tuple[Choice, ...] = ()
    """The settings, each with its reason."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What `fit` needs, as plain JSON data."""
    is_complete: bool = True
    """False where the settings depend on something that is released first. The event is then an (ε, δ) block that the
    complete plan must not exceed."""
    further: tuple[tuple[str, Event], ...] = ()
    """What `fit` releases beside the model, each in words and with its event."""

    @property
    def lines(self) -> tuple[tuple[str, Event], ...]:
        """What is paid for, in words, and its event."""
        return ((self.line, self.event), *self.further)

    def to_data(self) -> dict[str, Any]:
        """Return the plan as plain JSON data."""
        return {
            "method": self.method,
            "event": json.loads(self.event.to_json()),
            "unit": json.loads(self.unit.to_json()),
            "line": self.line,
            "choices": [asdict(choice) for choice in self.choices],
            "settings": dict(self.settings),
            "is_complete": self.is_complete,
            "further": [[line, json.loads(event.to_json())] for line, event in self.further],
        }

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> MethodPlan:
        """Return the plan that `to_data` wrote."""
        from privet.report import Choice

        return MethodPlan(
            data["method"],
            Event.from_json(json.dumps(data["event"])),
            Unit.from_json(json.dumps(data["unit"])),
            data["line"],
            tuple(Choice(**choice) for choice in data["choices"]),
            data["settings"],
            data["is_complete"],
            tuple((line, Event.from_json(json.dumps(event))) for line, event in data.get("further", ())),
        )


@dataclass(frozen=True)
class PartialRun:
    """How the cost of a method grows with its epochs, or with what else it takes many of."""

    epochs: float
    event_after: Callable[[int], Event]
    """The cost of the first epochs alone."""
    counted: str = "epochs"
    """What is counted."""


@dataclass(frozen=True)
class StepProgress:
    """One step of a method that takes many. All but the numbers of steps and epochs is private."""

    step: int
    total: int
    epoch: float
    loss: float
    clipped: float | None
    model: nn.Module
    epsilon: Callable[[], float]
    """Computes the ε that was spent so far, which takes a moment."""


@dataclass
class FitSession:
    """What a method may use while it fits."""

    facts: PublicFacts
    model: Model
    """The model before training; `front` makes the features, `head` is trained."""
    unit: Unit
    source: str
    """The name of the rows in releases."""
    rng: Rng | None = None
    """A seeded one, for tests. None is the operating system's randomness."""
    directory: RunDirectory | None = None
    """Where checkpoints and releases are stored; None where nothing is to be resumed."""
    resume: bool = False
    row_sets: RowSets | None = None
    """All rows of the run, those among them that are public."""
    on_message: Callable[[str], None] = lambda message: None
    """Told what is being done, in words that may be shown to anyone."""
    on_step: Callable[[StepProgress], None] | None = None
    logs: Sequence[Log] = ()
    """Where each epoch is written down."""
    public_scores: Mapping[str, Callable[[nn.Module], float]] = field(default_factory=dict)
    """Scores on public rows, for the logs."""
    canaries: CanaryStage | None = None
    """Synthetic rows to be added, for methods that take them."""

    def trainable(self) -> nn.Module:
        """Return a fresh copy of what is trained: all of a table's model, and the head on features of images."""
        from privet.training import DataKind

        return copy.deepcopy(self.model if self.facts.kind is DataKind.TABLE else self.model.head).train()

    def features(self, x: Tensor) -> Tensor:
        """Return the features of rows; those of images were computed when the rows were read."""
        import torch

        from privet.training import DataKind

        with torch.no_grad():
            features: Tensor = self.model.front(x) if self.facts.kind is DataKind.TABLE else x
        return features


def on_features(model: Model) -> Model:
    """Return a model whose rows are features already, with the same head."""
    from torch import nn

    from privet.training.models import Model

    front = nn.Identity()
    front.features = model.features  # type: ignore[assignment]
    return Model(front, model.head, model.family)


@dataclass(frozen=True)
class CardSections:
    """What a method adds to the card of a run."""

    conditions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    compared: tuple[Typed[Trial], ...] | None = None
    """In place of one trial for each method."""
    stored: tuple[Typed[Trial], ...] = ()
    """Trials of other runs."""
    teachers: Public[int] | None = None
    consensus: Internal[Consensus] | None = None
    findings: tuple[Typed[Finding], ...] = ()


def _unchanged(described: ModelDescription, plan: MethodPlan, head: nn.Module) -> ModelDescription:
    return described


@dataclass(frozen=True)
class Method:
    """One way to train a model: its name, how it plans, and how it fits."""

    name: str
    """On the command line and in requests."""
    title: str
    """On cards and pages."""
    plan: Callable[[TrainRequest, PublicFacts, MethodBudget, Model | None], MethodPlan]
    """Return the plan for a share of the budget. The model is None while facts that shape it are unknown."""
    fit: Callable[[MethodPlan, LabeledRows, FitSession], Release[nn.Module] | Internal[nn.Module]]
    """Train on the rows, and release a model that costs no more than the plan's event. All was charged before."""
    describe: Callable[[ModelDescription, MethodPlan, nn.Module], ModelDescription] = _unchanged
    """From the model that was asked for, and the head that was released, to the description that it is stored with."""
    is_private: bool = True
    """Whether `fit` returns a release. Others are for comparison, on the internal report alone."""
    protects_users: bool = False
    """Whether the privacy unit may be a user with several rows."""
    has_central_trust: bool = True
    """Whether the run may look at rows as they are. Otherwise nothing is learned, held out or scored on them."""
    fits_rows: bool = True
    """Whether the model itself is fitted on the private rows. A student is not: it needs no count of them, it is not
    scored on them, and it cannot be fitted again on others."""
    asks_public_rows: bool = False
    """Whether it needs public rows without labels, from which a missing schema is drafted."""
    takes_canaries: bool = False
    """Whether synthetic canaries can be among the rows."""
    hold_out: float = 0.2
    """The part of the rows that is held out by default for a private score."""
    score_line: str = ""
    """What that score is called in the list of costs."""
    options: type[MethodOptions] | None = None
    """The type of the options that are its own."""
    prepare: Callable[[MethodPlan, LabeledRows, FitSession, TrainRequest], None] | None = None
    """Do the private work that precedes the first draw, and store it in the directory: an error gives all back."""
    variants: Callable[[TrainRequest, PublicFacts, MethodBudget, Model, float], TuningPlan] | None = None
    """Return the plans among which tuning selects, for an average number of runs; None where it cannot be tuned."""
    check_model: Callable[[MethodPlan, nn.Module, LabeledRows], None] | None = None
    """Refuse a model of the user's own that the method cannot train, before anything is charged."""
    growth: Callable[[MethodPlan], PartialRun] | None = None
    """How the cost grows with epochs; None for a method that draws once."""
    card_sections: Callable[[RunResult], CardSections] = lambda result: CardSections()
    """What the card says beside what it says of every run. Nothing is drawn for it."""
    files: Callable[[RunResult], Mapping[str, str]] = lambda result: {}
    """Further files of the run that may be shared, by name: text that follows from what was released."""
