"""The searches behind `privet calibrate`: each answer is rounded to the safe side and priced as it is printed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import TYPE_CHECKING, Any

from privet.cli.conditions import drawn_as
from privet.cli.described import Batches, Repetitions, run_of
from privet.cli.options import SamplingWord
from privet.core.codec import VERSION, encode
from privet.core.errors import InvalidInput
from privet.core.event import Event, Gaussian, Laplace, Poisson, RandomizedResponse, Repeated, Sampled
from privet.core.guarantee import digits_up

if TYPE_CHECKING:
    from privet.core.guarantee import Guarantee
    from privet.core.unit import Unit

__all__ = [
    "Found",
    "Target",
    "gaussian_noise",
    "kept",
    "laplace_noise",
    "most_often",
    "noise_of_run",
    "rate_of_run",
    "response",
]

_DIGITS = 5
_MOST_STEPS = 10**7
_LEAST_NOISE, _MOST_EACH = 1e-4, 1e4
"""Where the library's own searches end."""
_END = "The search ends there; {} may fit."
_DIGITS_BEYOND, _MOST_PLACES = 3, 45
"""Of the distance from pure chance, and of the whole: the arithmetic has 60."""
_MOST_NINES = 25
"""A longer row of nines nobody would count."""
_A_LITTLE_MORE = Decimal(1) + Decimal("1e-50")
"""More than the error of the few operations with 60 digits."""


@dataclass(frozen=True)
class Target:
    """What must not be exceeded, and for whom."""

    epsilon: float
    delta: float
    unit: Unit
    population: int | None = None

    def price(self, event: Event) -> Guarantee:
        """The price of an event at the target's δ."""
        from privet.accounting import epsilon

        return epsilon(event, self.delta, unit=self.unit)

    def fits(self, event: Event) -> bool:
        """Whether the event costs no more than the target."""
        return self.price(event).epsilon.upper <= self.epsilon


@dataclass(frozen=True)
class Found:
    """The number that was asked for, with the guarantee of exactly that number."""

    name: str
    words: str
    value: float | int
    event: Event
    guarantee: Guarantee
    notes: tuple[str, ...] = ()

    def warnings(self, target: Target) -> tuple[str, ...]:
        """What is weak about the answer."""
        from privet.report.account import beware

        return beware(self.guarantee, target.population)

    def document(self, target: Target) -> dict[str, Any]:
        """The answer for programs."""
        return {
            "privet": VERSION,
            "command": "calibrate",
            "found": self.name,
            "value": self.value,
            "target": {"epsilon": target.epsilon, "delta": target.delta},
            "guarantee": encode(self.guarantee),
            "event": encode(self.event),
            "notes": list(self.notes),
            "warnings": list(self.warnings(target)),
        }


def noise_of_run(target: Target, batches: Batches, repetitions: Repetitions) -> Found:
    """The least noise multiplier of a run."""
    notes = (repetitions.note,) if repetitions.note else ()

    def build(noise: float) -> Event:
        return run_of(batches, noise, repetitions.count)

    with _within_reach(target, "fewer steps"):
        return _least(target, build, "noise_multiplier", "noise multiplier", notes)


def gaussian_noise(target: Target, answers: int) -> Found:
    """The least noise multiplier for some answers with Gaussian noise."""
    with _within_reach(target, "fewer --answers"):
        return _least(
            target,
            lambda noise: Repeated(Gaussian(noise), answers),
            "noise_multiplier",
            "noise multiplier of each answer (standard deviation over the L2 bound)",
        )


def laplace_noise(target: Target, answers: int) -> Found:
    """The least Laplace scale for some answers."""
    with _within_reach(target, "fewer --answers"):
        return _least(
            target,
            lambda scale: Repeated(Laplace(scale), answers),
            "scale",
            "scale of each answer's noise (over the L1 bound)",
        )


def response(target: Target, answers: int, categories: int) -> Found:
    """The largest ε of each randomised response."""
    from privet.accounting import randomized_response_epsilon

    def build(each: float) -> Event:
        return Repeated(RandomizedResponse(each, categories), answers)

    with _within_reach(target, "fewer --answers"):
        found = randomized_response_epsilon(
            epsilon=target.epsilon, delta=target.delta, categories=categories, count=answers, unit=target.unit
        )
    value = _safe(found, lambda each: target.fits(build(each)), up=False)
    note = f"Keep the true answer with a probability of {kept(value, categories)}, else give any other one at random."
    end = (_END.format("a larger ε"),) if value >= _MOST_EACH else ()
    return _found(target, "epsilon", "ε of each answer", value, build(value), (note, *end))


def rate_of_run(target: Target, noise_multiplier: float, steps: int, population: int | None) -> Found:
    """The highest rate of Poisson sampling."""
    from privet.accounting import sample_rate

    def build(rate: float) -> Event:
        return Repeated(Sampled(Gaussian(noise_multiplier), by=Poisson(rate)), steps)

    with _within_reach(target, "fewer --steps"):
        found = sample_rate(
            epsilon=target.epsilon, delta=target.delta, noise_multiplier=noise_multiplier, steps=steps, unit=target.unit
        )
    value = _safe(found, lambda rate: target.fits(build(rate)), up=False) if found < 1 else 1.0
    each = drawn_as(target.unit)
    chosen = math.floor(value * population) if population is not None else None
    note = () if chosen is None else (f"That is {chosen:,} of {population:,} {each}s in a batch, on average.",)
    return _found(target, "sample_rate", "sampling rate", value, build(value), note)


def most_often(target: Target, batches: Batches, noise_multiplier: float) -> Found:
    """The most steps, or the most epochs where a pass is priced as one."""
    from privet.accounting import most_steps

    one = batches.one(noise_multiplier)
    count = most_steps(one, epsilon=target.epsilon, delta=target.delta, unit=target.unit, limit=_MOST_STEPS)
    name = "epochs" if batches.is_pass else "steps"
    if count == 0:
        problem = f"= {target.epsilon:g} at δ = {digits_up(target.delta)} is exceeded by a single one of the {name}"
        raise InvalidInput("epsilon", problem, "use more noise or smaller batches, or allow more")
    notes = []
    if count == _MOST_STEPS:
        notes.append(_END.format("more"))
    if batches.word in (SamplingWord.POISSON, SamplingWord.WITHOUT_REPLACEMENT, SamplingWord.WITH_REPLACEMENT):
        notes.append(f"That is {_cut(float(count * batches.per_step), 4):g} epochs.")
    return _found(target, name, name, count, Repeated(one, count), tuple(notes))


def _least(
    target: Target, build: Callable[[float], Event], name: str, words: str, notes: tuple[str, ...] = ()
) -> Found:
    from privet.accounting import least

    found = least(build, epsilon=target.epsilon, delta=target.delta, unit=target.unit)
    value = _safe(found, lambda noise: target.fits(build(noise)), up=True)
    end = (_END.format("less noise"),) if value <= _LEAST_NOISE else ()
    return _found(target, name, words, value, build(value), (*notes, *end))


@contextmanager
def _within_reach(target: Target, fewer: str) -> Iterator[None]:
    """Say what to change where no noise that is tried is enough."""
    try:
        yield
    except InvalidInput as error:
        if error.argument != "epsilon":
            raise
        problem = (
            f"= {target.epsilon:g} at δ = {digits_up(target.delta)} cannot be reached with any noise that is tried here"
        )
        larger = "a larger ε" if target.delta == 0 else "a larger ε or δ"
        raise InvalidInput("epsilon", problem, f"allow {larger}, or {fewer}") from None


def kept(epsilon: float, categories: int) -> str:
    """The chance of the true answer in a randomised response with this ε, rounded down: never 1, and never unsafe.

    Nor does it fall below 1/categories, where a smaller chance would tell more again: as many digits are given as it
    takes to tell the two apart.

    >>> kept(1.0, 4), kept(40.0, 2), kept(1000.0, 2), kept(1e-7, 3)
    ('0.475366', '0.9999999999999999957', '1 − 5.076e-435', '0.33333335555')
    """
    exact = Context(60, ROUND_HALF_EVEN, Emin=-(10**6), Emax=10**6)
    others = exact.multiply(Decimal(categories - 1), exact.exp(Decimal(-epsilon)))
    # What is left for the other answers; a little more of it is on the safe side.
    rest = exact.multiply(exact.divide(others, exact.add(Decimal(1), others)), _A_LITTLE_MORE)
    if rest < Decimal(f"1e-{_MOST_NINES}"):
        return f"1 − {Context(4, ROUND_CEILING, Emin=-(10**6), Emax=10**6).create_decimal(rest):.3e}"
    share = exact.subtract(Decimal(1), rest)
    beyond = exact.subtract(share, exact.divide(Decimal(1), Decimal(categories)))  # what tells anything at all
    places = max(6, 1 - rest.adjusted(), _DIGITS_BEYOND - beyond.adjusted())
    if beyond <= 0 or places > _MOST_PLACES:
        return f"1/{categories}"  # no row of digits that anyone would type is long enough
    down = exact.quantize(share, Decimal(1).scaleb(-places))
    down = down if down <= share else exact.subtract(down, Decimal(1).scaleb(-places))
    return format(exact.normalize(down), "f")


def _found(
    target: Target, name: str, words: str, value: float | int, event: Event, notes: tuple[str, ...] = ()
) -> Found:
    return Found(name, words, value, event, target.price(event), notes)


def _safe(value: float, fits: Callable[[float], bool], *, up: bool) -> float:
    """A short number near the found one, on its safe side, that was seen to fit."""
    # The search stops within 0.1 % of the edge; a rounder number that is better than the found one and fits is wanted.
    for digits in (2, 3, 4):
        near = float(Context(digits, ROUND_HALF_EVEN).create_decimal(repr(value)))
        better = near <= value if up else near >= value
        if better and near > 0 and abs(near - value) <= 1e-3 * value and fits(near):
            return near
    way = ROUND_CEILING if up else ROUND_FLOOR
    safe = Context(_DIGITS, way).create_decimal(repr(value))
    while not fits(float(safe)):
        safe = safe.next_plus(Context(_DIGITS)) if up else safe.next_minus(Context(_DIGITS))
    return float(safe)


def _cut(value: float, digits: int) -> float:
    return float(Context(digits, ROUND_FLOOR).create_decimal(repr(value)))
