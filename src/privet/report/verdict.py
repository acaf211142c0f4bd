"""Compare evidence with a guarantee: what a lower bound on ε proves, and the words and colors for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from importlib.util import find_spec

from privet.core import Canaries, Evidence, Guarantee, digits_up
from privet.report.words import down, up

__all__ = ["Verdict", "epsilon_range", "evidence_warnings", "powerless_canaries", "verdict_of", "worst_verdict"]


class Verdict(Enum):
    """What a lower bound on ε says about a guarantee."""

    AGREES = "agrees with it"
    APART = "for another unit or a smaller δ: not comparable"
    ALARMS = "above it, if its assumptions hold: look closer"
    """The bound rests on assumptions, so that it proves nothing by itself."""
    REFUTES = "refutes the guarantee"
    """Nothing is assumed about the run: with the stated confidence, the guarantee does not hold."""

    @property
    def style(self) -> str:
        """The style on a terminal."""
        return {Verdict.REFUTES: "bold red", Verdict.ALARMS: "bold yellow"}.get(self, "bold green")

    @property
    def header(self) -> str:
        """The opening tag of a page's header, which gives the stated ε its color."""
        name = {Verdict.REFUTES: "refuted", Verdict.ALARMS: "doubted"}.get(self)
        return "<header>" if name is None else f'<header class="{name}">'

    @property
    def color(self) -> str:
        """The color of a bar."""
        return {Verdict.REFUTES: "var(--mark)", Verdict.ALARMS: "var(--amber)"}.get(self, "var(--two)")


def verdict_of(evidence: Evidence, guarantee: Guarantee) -> Verdict:
    """Return what one bound says about a guarantee; a bound with assumptions refutes nothing by itself.

    >>> from privet.core.guarantee import Interval
    >>> from privet.core.unit import Unit
    >>> claimed = Guarantee(Interval(0, 1), 0.0, Unit(), "pld")
    >>> verdict_of(Evidence(2.0, 0.0, 0.95, "canaries", 10), claimed).name
    'REFUTES'
    >>> verdict_of(Evidence(2.0, 0.0, 0.95, "canaries", 10, assumptions=("normal noise",)), claimed).name
    'ALARMS'
    """
    if evidence.refutes(guarantee):
        return Verdict.REFUTES
    if evidence.unit != guarantee.unit or evidence.delta < guarantee.delta:
        return Verdict.APART
    return Verdict.AGREES if evidence.epsilon <= guarantee.epsilon.upper else Verdict.ALARMS


def worst_verdict(evidence: Iterable[Evidence], guarantee: Guarantee) -> Verdict:
    """Return the most serious verdict of all bounds: a refutation, else an alarm, else agreement."""
    verdicts = {verdict_of(each, guarantee) for each in evidence}
    return next((verdict for verdict in (Verdict.REFUTES, Verdict.ALARMS) if verdict in verdicts), Verdict.AGREES)


def epsilon_range(evidence: Evidence, guarantee: Guarantee) -> str:
    """Return where ε lies by both bounds, in words; no interval if the lower one is above the upper one.

    >>> from privet.core.guarantee import Interval
    >>> from privet.core.unit import Unit
    >>> claimed = Guarantee(Interval(0, 1), 0.0, Unit(), "pld")
    >>> epsilon_range(Evidence(0.5, 0.0, 0.95, "canaries", 10), claimed)
    '0.500 to 1.000'
    >>> epsilon_range(Evidence(2.0, 0.0, 0.95, "canaries", 10, assumptions=("normal noise",)), claimed)
    'at least 2.000 if its assumptions hold, against 1.000 claimed'
    """
    low, high = down(evidence.epsilon), up(guarantee.epsilon.upper)
    verdict = verdict_of(evidence, guarantee)
    if verdict is Verdict.AGREES:
        return f"{low} to {high}"
    but = {Verdict.ALARMS: " if its assumptions hold", Verdict.APART: " for another unit or δ"}
    return f"at least {low}{but.get(verdict, '')}, against {high} claimed"


def evidence_warnings(evidence: Iterable[Evidence], guarantee: Guarantee) -> tuple[str, ...]:
    """Return a warning for each bound that is above the guarantee and rests on assumptions."""
    return tuple(
        f"{each.attack}: ε is {epsilon_range(each, guarantee)}. Either its assumptions do not hold, or noise is "
        "missing: look closer. It proves nothing by itself."
        for each in evidence
        if verdict_of(each, guarantee) is Verdict.ALARMS
    )


def powerless_canaries(canaries: Sequence[Canaries], evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """Return a sentence for each set of canaries that could prove nothing, even if every guess were right."""
    without_bound = {each.attack: each for each in evidence if each.epsilon == 0}
    pairs = [(held, without_bound.get(f"{held.kind}, one run")) for held in canaries]
    # The bound needs torch, as whatever made canaries did; a page that is drawn without it leaves this out.
    if not any(bound for _, bound in pairs) or find_spec("torch") is None:
        return ()
    from privet.audit import one_run_p_value

    return tuple(
        f"{bound.attack}: even if every guess were right, nothing could be proven with {held.guesses:,} "
        f"guess{'' if held.guesses == 1 else 'es'} at δ = {digits_up(bound.delta)} and {100 * bound.confidence:g} % "
        "confidence; use more canaries."
        for held, bound in pairs
        if bound is not None
        and one_run_p_value(len(held.scores), held.guesses, held.guesses, 0.0, bound.delta) >= 1 - bound.confidence
    )
