"""Audit a run: evidence beside its guarantee, from its canaries or by trying its plan again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from privet.audit import audit_draws, confidence_per_test
from privet.core import Canaries, Evidence, Guarantee, Internal, InvalidInput, Public, Shareable, checked
from privet.core.random import default_rng
from privet.mechanisms import TrialSettings, mechanism_trial
from privet.report import (
    INTERNAL_CARD,
    SIGNATURE,
    RunCard,
    TrainingCard,
    load,
    powerless_canaries,
    price_run,
    read_card,
    shareable,
    write_run,
)
from privet.runs.attacks.epsilon_ladder import LadderResult, climb_ladder
from privet.runs.attacks.refit import refit_audit
from privet.runs.attacks.rows import require_finished
from privet.runs.canaries import evidence_of
from privet.runs.methods.dp_sgd import DP_SGD
from privet.runs.plan_file import PLAN

__all__ = ["AuditResult", "audit_mechanism", "audit_run"]

_CANARIES = 1000
_LEAST_CANARIES = 100


@dataclass(frozen=True, eq=False)
class AuditResult:
    """Lower bounds on ε beside what is claimed. Canaries are synthetic, so all of it may be shared."""

    title: str
    guarantee: Guarantee
    """What is claimed."""
    evidence: tuple[Shareable[Evidence], ...]
    card: RunCard
    """The claim, for a page."""
    canaries: tuple[Shareable[Canaries], ...] = ()
    remarks: tuple[str, ...] = ()
    """How the evidence was counted."""
    powerless: tuple[str, ...] = ()
    """Why some evidence could prove nothing."""
    is_of_the_run: bool = True
    """False where the run's plan was tried again, which audits the code and not the run."""
    is_on_the_report: bool = False
    """Whether the evidence was added to the run's pages."""
    breaks_signature: bool = False
    """Whether the run was signed before its card changed."""

    @property
    def refuted(self) -> bool:
        """Whether evidence that assumes nothing lies above the guarantee."""
        return any(each.value.refutes(self.guarantee) for each in self.evidence)


def audit_mechanism(name: str, settings: TrialSettings, *, confidence: float = 0.95) -> AuditResult:
    """Draw from one of the package's mechanisms on two neighboring inputs, and tell the outputs apart.

    Args:
        name: One of `privet.mechanisms.auditable()`.
        settings: Its noise or its ε, and how often to draw.
        confidence: Of the lower bound on ε.

    Raises:
        InvalidInput: The mechanism is unknown, or a setting does not belong to it.
    """
    trial = mechanism_trial(name, settings)
    rng = default_rng()
    outputs = trial.draw(True, rng), trial.draw(False, rng)
    evidence = audit_draws(*outputs, delta=trial.delta, confidence=confidence, unit=trial.unit)
    card = price_run(
        trial.event,
        trial.delta,
        unit=trial.unit,
        described=(("mechanism", name), *trial.settings, ("draws", f"{trial.trials:,} on each input")),
        conditions=("The package's own mechanism was drawn from, with the operating system's randomness.",),
        notes=("A third of the outputs teaches a score, a third chooses a threshold, and a third is counted.",),
    )
    title = "of " + ", ".join([name, *(f"{setting} = {value}" for setting, value in trial.settings)])
    found = Public(replace(evidence, attack=f"outputs of {name}"))
    return AuditResult(title, card.guarantee.value, (found,), card)


def audit_run(
    folder: Path,
    *,
    ladder: bool = False,
    canaries: int | None = None,
    confidence: float | None = None,
    on_page: Callable[[int, int], None] = lambda done, total: None,
) -> AuditResult:
    """Return lower bounds on ε for a run, each with its confidence.

    A run that was trained with canaries is audited by them. Otherwise, or with `ladder`, its stored plan is tried again
    on synthetic rows: that audits the code that made the run.

    Args:
        folder: The run.
        ladder: Try the plan of DP-SGD again, against five adversaries who see more and more.
        canaries: How many there are where the plan is tried again.
        confidence: Of each lower bound; by default all tests of a report share an error of 5 %.
        on_page: Told how much of the report is drawn, where it is written anew.

    Raises:
        InvalidInput: The run is unfinished, has no stored plan, or its plan cannot be tried again.
    """
    if confidence is not None:
        checked.confidence("confidence", confidence)
    if canaries is not None:
        checked.count("canaries", canaries, least=_LEAST_CANARIES)
    require_finished(folder)
    read_card(folder)  # says what is wrong with a folder that is no run
    card = load(folder, internal=(folder / INTERNAL_CARD).exists())
    if ladder or not card.canaries:
        return _tried_again(folder, card, confidence, canaries or _CANARIES, ladder, on_page)
    if canaries is not None:
        problem = f"is {canaries}, and the run has canaries of its own, whose number is what it is"
        raise InvalidInput("canaries", problem, "leave it out, or try the plan again with --ladder")
    return _counted(folder, card, confidence)


def _counted(folder: Path, card: TrainingCard, confidence: float | None) -> AuditResult:
    """Evidence from the canaries that were in the run."""
    guarantee = card.privacy.guarantee.value

    def counted(canaries: Canaries) -> Evidence:
        sure = confidence_per_test() if confidence is None else confidence
        return evidence_of(canaries, delta=guarantee.delta, unit=guarantee.unit, confidence=sure)

    shared = shareable(card)
    held = tuple(each for each in shared.canaries if not isinstance(each, Internal))
    evidence: list[Shareable[Evidence]] = [
        Public(counted(each.value)) if isinstance(each, Public) else each.map(counted) for each in held
    ]
    known = {each.value.attack for each in evidence}
    recorded = [e for e in shared.evidence if e.value.attack not in known and not isinstance(e, Internal)]
    remarks = tuple(_as_recorded(each.value) for each in recorded if confidence not in (None, each.value.confidence))
    evidence += recorded
    why = powerless_canaries([each.value for each in held], [each.value for each in evidence])
    title = f"of {folder}, by the canaries that were in it"
    return AuditResult(title, guarantee, tuple(evidence), card.privacy, held, remarks, tuple(why))


def _as_recorded(evidence: Evidence) -> str:
    """Scores of canaries are kept, and what was seen of each step is not."""
    return (
        f"{evidence.attack}: as the run recorded it, with {100 * evidence.confidence:g} % confidence. --confidence "
        "moves only what can be counted again from the coins and scores that are kept."
    )


def _tried_again(
    folder: Path,
    card: TrainingCard,
    confidence: float | None,
    canaries: int,
    ladder: bool,
    on_page: Callable[[int, int], None],
) -> AuditResult:
    """The plan once more; what comes of it is put on the run's pages, as what it is, unless another confidence was
    asked for: all tests of a page share one."""
    sure = confidence_per_test() if confidence is None else confidence
    is_sgd = card.method.value == DP_SGD.title or ladder or not (folder / PLAN).exists()
    result: LadderResult = (
        climb_ladder(folder, card, canaries=canaries, confidence=sure)
        if is_sgd
        else refit_audit(folder, card, confidence=sure)
    )
    is_written = (folder / INTERNAL_CARD).exists() and confidence is None
    if is_written:
        names = {each.attack for each in result.evidence}
        others = tuple(each for each in card.evidence if each.value.attack not in names)
        beside = tuple(Public(each) for each in result.beside_the_run)
        write_run(folder, replace(card, evidence=(*others, *beside)), progress=on_page)
    return AuditResult(
        f"of the plan of {folder}, {result.where}",
        result.guarantee,
        tuple(Public(each) for each in result.evidence),
        price_run(result.event, result.guarantee.delta, unit=result.guarantee.unit, notes=result.sees),
        is_of_the_run=False,
        is_on_the_report=is_written,
        breaks_signature=is_written and (folder / SIGNATURE).exists(),
    )
