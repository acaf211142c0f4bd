"""The protocol of a training method: a plan with its privacy cost, made before any row is read, and a private fit.

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
    """Base of the options that only one method has. A method's subclass adds fields with plain JSON values and
    defaults, and validates them. Their names must differ from those of `TrainRequest`."""


@dataclass(frozen=True)
class MethodBudget:
    """The part of a run's budget that one method may spend, its private score included."""

    epsilon: float
    delta: float
    unit: Unit
    score: Event | None = None
    """Event that releases its score, if that is charged to this share."""
    score_epsilon: float = 0.0

    @property
    def model_epsilon(self) -> float:
        """ε left for the model, under basic composition with the score."""
        return self.epsilon - self.score_epsilon


@dataclass(frozen=True)
class MethodPlan:
    """What a method will do: public, fixed before any private row is read, and stored with the run."""

    method: str
    event: Event
    """Privacy event of `fit`."""
    unit: Unit
    """Whose data it protects."""
    line: str
    """What is released, in words, for the list of privacy costs."""
    choices: tuple[Choice, ...] = ()
    """The settings, each with its reason."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that `fit` needs, as plain JSON data."""
    is_complete: bool = True
    """False where the settings depend on something that is released first. The event is then an (ε, δ) block that the
    complete plan must not exceed."""
    further: tuple[tuple[str, Event], ...] = ()
    """Further releases of `fit` besides the model, each in words and with its event."""

    @property
    def lines(self) -> tuple[tuple[str, Event], ...]:
        """All releases of `fit`, each in words and with its event."""
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
        """Return the plan that `to_data` wrote.

        Args:
            data: The plain data that `to_data` returned.
        """
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
    """Privacy cost of a method as a function of its epochs, or of another unit of progress."""

    epochs: float
    event_after: Callable[[int], Event]
    """Returns the event of the first epochs alone."""
    counted: str = "epochs"
    """Name of the unit of progress."""


@dataclass(frozen=True)
class StepProgress:
    """One step of an iterative method. Everything but the numbers of steps and epochs is private."""

    step: int
    total: int
    epoch: float
    loss: float
    clipped: float | None
    model: nn.Module
    epsilon: Callable[[], float]
    """Computes the ε spent so far, which takes a moment."""


@dataclass
class FitSession:
    """Everything that a method may use while it fits."""

    facts: PublicFacts
    model: Model
    """The model before training; `front` makes the features, `head` is trained."""
    unit: Unit
    source: str
    """The name of the rows in releases."""
    rng: Rng | None = None
    """Seeded generator for tests. None uses the operating system's randomness."""
    directory: RunDirectory | None = None
    """Run directory that stores checkpoints and releases; None where nothing can be resumed."""
    resume: bool = False
    row_sets: RowSets | None = None
    """All rows of the run, public rows included."""
    on_message: Callable[[str], None] = lambda message: None
    """Called with progress messages, which may be shown to anyone."""
    on_step: Callable[[StepProgress], None] | None = None
    logs: Sequence[Log] = ()
    """Logs that record each epoch."""
    public_scores: Mapping[str, Callable[[nn.Module], float]] = field(default_factory=dict)
    """Scores on public rows, for the logs."""
    canaries: CanaryStage | None = None
    """Synthetic canaries to add, for methods that support them."""

    def trainable(self) -> nn.Module:
        """Return a fresh copy of the module to train: a table's whole model, or the head on features of images."""
        from privet.training import DataKind

        return copy.deepcopy(self.model if self.facts.kind is DataKind.TABLE else self.model.head).train()

    def features(self, x: Tensor) -> Tensor:
        """Return the features of rows.

        Args:
            x: Rows of a table, or features of images, which were computed when the images were read.
        """
        import torch

        from privet.training import DataKind

        with torch.no_grad():
            features: Tensor = self.model.front(x) if self.facts.kind is DataKind.TABLE else x
        return features


def on_features(model: Model) -> Model:
    """Return a model that takes features as its input, with the same head.

    Args:
        model: The model whose head is used.
    """
    from torch import nn

    from privet.training.models import Model

    front = nn.Identity()
    front.features = model.features  # type: ignore[assignment]
    return Model(front, model.head, model.family)


@dataclass(frozen=True)
class CardSections:
    """Sections that a method adds to the card of a run."""

    conditions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    compared: tuple[Typed[Trial], ...] | None = None
    """Trials to compare, in place of one trial for each method."""
    stored: tuple[Typed[Trial], ...] = ()
    """Trials of other runs."""
    teachers: Public[int] | None = None
    consensus: Internal[Consensus] | None = None
    findings: tuple[Typed[Finding], ...] = ()


def _unchanged(described: ModelDescription, plan: MethodPlan, head: nn.Module) -> ModelDescription:
    """Return the description as it is: the default of `Method.describe`.

    Args:
        described: Description of the requested model.
        plan: Plan of the method.
        head: The released head.
    """
    return described


@dataclass(frozen=True)
class Method:
    """One way to train a model: its name, how it plans, and how it fits."""

    name: str
    """Name on the command line and in requests."""
    title: str
    """Name on cards and pages."""
    plan: Callable[[TrainRequest, PublicFacts, MethodBudget, Model | None], MethodPlan]
    """Return the plan for a share of the budget. The model is None while facts that shape it are unknown."""
    fit: Callable[[MethodPlan, LabeledRows, FitSession], Release[nn.Module] | Internal[nn.Module]]
    """Train on the rows, and release a model under the plan's event, which was charged before."""
    describe: Callable[[ModelDescription, MethodPlan, nn.Module], ModelDescription] = _unchanged
    """Return the stored description of a model, from the requested description, the plan and the released head."""
    is_private: bool = True
    """Whether `fit` returns a release. Other methods are for comparison on the internal report only."""
    protects_users: bool = False
    """Whether the privacy unit may be a user with several rows."""
    has_central_trust: bool = True
    """Whether the run may read raw rows (central trust). Otherwise nothing is learned, held out or scored on them."""
    fits_rows: bool = True
    """Whether the model itself is fitted on the private rows. A PATE student is not: it needs no count of them, is not
    scored on them, and cannot be fitted again on others."""
    asks_public_rows: bool = False
    """Whether it needs unlabeled public rows, from which a missing schema is drafted."""
    takes_canaries: bool = False
    """Whether synthetic canaries can be inserted."""
    hold_out: float = 0.2
    """Fraction of the rows that is held out by default for a private score."""
    score_line: str = ""
    """Name of that score in the list of privacy costs."""
    options: type[MethodOptions] | None = None
    """Type of the options that only this method has."""
    prepare: Callable[[MethodPlan, LabeledRows, FitSession, TrainRequest], None] | None = None
    """Do the private work before the first draw of noise, and store it. After an error the charge is refunded."""
    variants: Callable[[TrainRequest, PublicFacts, MethodBudget, Model, float], TuningPlan] | None = None
    """Return the plans among which tuning selects, for an average number of runs; None where it cannot be tuned."""
    check_model: Callable[[MethodPlan, nn.Module, LabeledRows], None] | None = None
    """Refuse a user-defined model that the method cannot train, before anything is charged."""
    growth: Callable[[MethodPlan], PartialRun] | None = None
    """Return the cost as a function of epochs; None for a method that draws noise once."""
    card_sections: Callable[[RunResult], CardSections] = lambda result: CardSections()
    """Return the method's sections of the card. They are post-processing: no noise is drawn for them."""
    files: Callable[[RunResult], Mapping[str, str]] = lambda result: {}
    """Return further files that may be shared, by name: text computed from released values."""
