"""How evidence stands to a guarantee: red is proof, amber is a reason to look closer, and the words for both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from importlib.util import find_spec

from privet.core.guarantee import Evidence, Guarantee, digits_up
from privet.core.scores import Canaries
from privet.report.words import down, up

__all__ = ["Standing", "alarms", "between", "powerless", "standing", "verdict", "worst"]


class Standing(Enum):
    """What a bound makes of a guarantee, by what it takes to believe it."""

    AGREES = "agrees with it"
    APART = "for another unit or a smaller δ: not comparable"
    ALARMS = "above it, if what it assumes holds: look closer"
    """It rests on assumptions, so that it proves nothing by itself."""
    REFUTES = "refutes the guarantee"
    """Nothing is assumed of the run: with the stated confidence, the guarantee does not hold."""

    @property
    def style(self) -> str:
        """For a terminal."""
        return {Standing.REFUTES: "bold red", Standing.ALARMS: "bold yellow"}.get(self, "bold green")

    @property
    def header(self) -> str:
        """The tag that a page's header begins with, so that its promise has the colour."""
        name = {Standing.REFUTES: "refuted", Standing.ALARMS: "doubted"}.get(self)
        return "<header>" if name is None else f'<header class="{name}">'

    @property
    def colour(self) -> str:
        """Of a bar."""
        return {Standing.REFUTES: "var(--mark)", Standing.ALARMS: "var(--amber)"}.get(self, "var(--two)")


def standing(evidence: Evidence, guarantee: Guarantee) -> Standing:
    """Where one bound stands; what rests on assumptions refutes nothing by itself.

    >>> from privet.core.guarantee import Interval
    >>> from privet.core.unit import Unit
    >>> claimed = Guarantee(Interval(0, 1), 0.0, Unit(), "pld")
    >>> standing(Evidence(2.0, 0.0, 0.95, "canaries", 10), claimed).name
    'REFUTES'
    >>> standing(Evidence(2.0, 0.0, 0.95, "canaries", 10, assumptions=("normal noise",)), claimed).name
    'ALARMS'
    """
    if evidence.refutes(guarantee):
        return Standing.REFUTES
    if evidence.unit != guarantee.unit or evidence.delta < guarantee.delta:
        return Standing.APART
    return Standing.AGREES if evidence.epsilon <= guarantee.epsilon.upper else Standing.ALARMS


def worst(evidence: Iterable[Evidence], guarantee: Guarantee) -> Standing:
    """Of all bounds together: one that refutes outweighs any that alarms, and those outweigh the rest."""
    found = {standing(each, guarantee) for each in evidence}
    return next((each for each in (Standing.REFUTES, Standing.ALARMS) if each in found), Standing.AGREES)


def verdict(evidence: Evidence, guarantee: Guarantee) -> str:
    """What evidence says of a guarantee, in a few words."""
    return standing(evidence, guarantee).value


def between(evidence: Evidence, guarantee: Guarantee) -> str:
    """Where ε lies, by both; no interval where the lower end is above the upper one.

    >>> from privet.core.guarantee import Interval
    >>> from privet.core.unit import Unit
    >>> claimed = Guarantee(Interval(0, 1), 0.0, Unit(), "pld")
    >>> between(Evidence(0.5, 0.0, 0.95, "canaries", 10), claimed)
    '0.500 to 1.000'
    >>> between(Evidence(2.0, 0.0, 0.95, "canaries", 10, assumptions=("normal noise",)), claimed)
    'at least 2.000 if what it assumes holds, against 1.000 claimed'
    """
    low, high = down(evidence.epsilon), up(guarantee.epsilon.upper)
    stands = standing(evidence, guarantee)
    if stands is Standing.AGREES:
        return f"{low} to {high}"
    but = {Standing.ALARMS: " if what it assumes holds", Standing.APART: " for another unit or δ"}
    return f"at least {low}{but.get(stands, '')}, against {high} claimed"


def alarms(evidence: Iterable[Evidence], guarantee: Guarantee) -> tuple[str, ...]:
    """A sentence or two for each bound that is above the guarantee and rests on assumptions."""
    return tuple(
        f"{each.attack}: ε is {between(each, guarantee)}. Either what it assumes does not hold, or noise is missing: "
        "look closer. It proves nothing by itself."
        for each in evidence
        if standing(each, guarantee) is Standing.ALARMS
    )


def powerless(canaries: Sequence[Canaries], evidence: Sequence[Evidence]) -> tuple[str, ...]:
    """A sentence for each count of guesses that could prove nothing, were every one of them right."""
    silent = {each.attack: each for each in evidence if each.epsilon == 0}
    counted = [(held, silent.get(f"{held.kind}, one run")) for held in canaries]
    # The bound needs torch, as whatever made canaries did; a page that is drawn without it is silent about this.
    if not any(found for _, found in counted) or find_spec("torch") is None:
        return ()
    from privet.audit.one_run import one_run_p_value

    return tuple(
        f"{found.attack}: even if every guess were right, nothing could be proven with {held.guesses:,} "
        f"guess{'' if held.guesses == 1 else 'es'} at δ = {digits_up(found.delta)} and {100 * found.confidence:g} % "
        "confidence; use more canaries."
        for held, found in counted
        if found is not None
        and one_run_p_value(len(held.scores), held.guesses, held.guesses, 0.0, found.delta) >= 1 - found.confidence
    )
