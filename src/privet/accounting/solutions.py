"""Solve for the one setting that is not given, so that the whole costs at most (ε, δ).

Unlike the searches of `privet.accounting.calibrate`, each solution is a short number, rounded to the safe side (noise
up, rate and steps down) and priced as it is printed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from enum import Enum

from privet.accounting import calibrate
from privet.accounting.price import epsilon as price_event
from privet.accounting.profile import Profile
from privet.accounting.run_description import (
    BatchDescription,
    Repetitions,
    RunSettings,
    SamplingScheme,
    count_repetitions,
    describe_batches,
    sampled_item,
)
from privet.core import (
    Event,
    Gaussian,
    Guarantee,
    InvalidInput,
    Laplace,
    Neighbours,
    NotProven,
    Poisson,
    RandomizedResponse,
    Repeated,
    Sampled,
    Unit,
    checked,
    digits_up,
    listed,
)

__all__ = [
    "PrivacyTarget",
    "RunParameter",
    "Solution",
    "neighbours_advice",
    "solve_gaussian",
    "solve_laplace",
    "solve_randomized_response",
    "solve_run",
    "truth_probability",
]

_CANDIDATES = (Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT, Neighbours.REPLACE)
_DIGITS = 5
_MOST_STEPS = 10**7
_LEAST_NOISE, _LARGEST_EPSILON = 1e-4, 1e4
"""Where the searches of `privet.accounting.calibrate` end."""
_SEARCH_END = "The search ends there; {} may fit."
_DIGITS_BEYOND, _MOST_PLACES = 3, 45
"""Of the distance from pure chance, and of the whole: the arithmetic has 60."""
_MOST_NINES = 25
"""A longer row of nines nobody would count."""
_SAFETY_FACTOR = Decimal(1) + Decimal("1e-50")
"""More than the error of the few operations with 60 digits."""


@contextmanager
def neighbours_advice(event: Event) -> Iterator[None]:
    """Add to a `NotProven` that is raised inside the neighbours for which the event can be priced, if there are any.

    Args:
        event: The event that is priced inside.

    Raises:
        NotProven: As raised inside, with the advice.
    """
    try:
        yield
    except NotProven as refusal:
        others = [neighbours.value for neighbours in _CANDIDATES if _is_proven(event, neighbours)]
        if not others or "accountant" in str(refusal):
            raise
        raise NotProven(f"{refusal}; it can be priced with `neighbours` {listed(others, 'or')}") from None


def _is_proven(event: Event, neighbours: Neighbours) -> bool:
    try:
        Profile(event, Unit(neighbours=neighbours))
    except NotProven:
        return False
    return True


class RunParameter(Enum):
    """What `solve_run` can solve for."""

    NOISE = "noise"
    RATE = "rate"
    STEPS = "steps"


@dataclass(frozen=True)
class PrivacyTarget:
    """The (ε, δ) that must not be exceeded, and for whom."""

    epsilon: float
    delta: float
    unit: Unit

    def price(self, event: Event) -> Guarantee:
        """Return the guarantee of an event at the target's δ.

        Args:
            event: What is done.
        """
        return price_event(event, self.delta, unit=self.unit)

    def fits(self, event: Event) -> bool:
        """Return whether the event costs at most the target.

        Args:
            event: What is done.
        """
        return self.price(event).epsilon.upper <= self.epsilon

    def least(self, build: Callable[[float], Event]) -> float:
        """Return the least value, to 0.1 %, for which `build(value)` costs at most the target.

        Args:
            build: From the value to the event that is priced.

        Raises:
            InvalidInput: No value in the range that is searched reaches (ε, δ).
            NotProven: No theorem covers the event for the unit.
        """
        return calibrate.least(build, epsilon=self.epsilon, delta=self.delta, unit=self.unit)

    def most(self, build: Callable[[float], Event], high: float) -> float:
        """Return the largest value, to 0.1 %, for which `build(value)` costs at most the target.

        Args:
            build: From the value to the event that is priced.
            high: The largest value that is tried.

        Raises:
            InvalidInput: No value in the range that is searched reaches (ε, δ).
            NotProven: No theorem covers the event for the unit.
        """
        return calibrate.most(build, epsilon=self.epsilon, delta=self.delta, unit=self.unit, high=high)


@dataclass(frozen=True)
class Solution:
    """A setting that keeps the target, with the guarantee of exactly that number."""

    parameter: str
    """The name of the setting: noise_multiplier, scale, epsilon, sample_rate, steps or epochs."""
    label: str
    """The same in words."""
    value: float | int
    event: Event
    guarantee: Guarantee
    notes: tuple[str, ...] = ()


def solve_run(target: PrivacyTarget, settings: RunSettings, find: RunParameter | None = None) -> Solution:
    """Solve for the least noise, the highest sampling rate or the most steps of a run of DP-SGD.

    Args:
        target: What must not be exceeded.
        settings: The run, without the setting that is solved for.
        find: What to solve for; the one setting that is not given, by default.

    Returns:
        The solution and its guarantee, at most the target's.

    Raises:
        InvalidInput: Nothing is left to solve for, or too much; or no value reaches the target.
        NotProven: No theorem covers the run.

    >>> solve_run(PrivacyTarget(3.0, 1e-5, Unit()), RunSettings(sample_rate=0.01, steps=1000)).value
    0.81368
    """
    parameter = find or _not_given(settings)
    if parameter is RunParameter.RATE:
        _refuse(settings, "sample_rate", "batch_size")
        if settings.scheme is not SamplingScheme.POISSON:
            problem = f"is {settings.scheme.value}, and a rate is found for poisson alone"
            raise InvalidInput("sampling", problem, "find noise")
        if settings.steps is None:
            raise InvalidInput("steps", "is missing; with `epochs` it would depend on the rate", "give `steps`")
        steps = checked.count("steps", settings.steps)
        return _highest_rate(target, _required_noise(settings), steps, settings.population)
    batches = describe_batches(settings, target.unit)
    if parameter is RunParameter.NOISE:
        _refuse(settings, "noise_multiplier")
        return _least_noise(target, batches, count_repetitions(settings, batches))
    _refuse(settings, "epochs", "steps")
    with neighbours_advice(batches.event(1.0)):
        return _most_steps(target, batches, _required_noise(settings))


def _not_given(settings: RunSettings) -> RunParameter:
    if settings.noise_multiplier is None:
        return RunParameter.NOISE
    if settings.scheme is SamplingScheme.POISSON and settings.sample_rate is None and settings.batch_size is None:
        return RunParameter.RATE
    if settings.epochs is None and settings.steps is None:
        return RunParameter.STEPS
    problem = "is given, and so are the batches and the steps: nothing is left to find"
    raise InvalidInput("noise_multiplier", problem, "leave one of them out, or use: privet account")


def _required_noise(settings: RunSettings) -> float:
    if settings.noise_multiplier is None:
        raise InvalidInput("noise_multiplier", "is missing", "give it, or find it with `find` noise")
    return checked.positive("noise_multiplier", settings.noise_multiplier)


def _refuse(settings: RunSettings, *names: str) -> None:
    for name in names:
        if getattr(settings, name) is not None:
            raise InvalidInput(name, "is given, and it is what shall be found", "leave it out")


def _least_noise(target: PrivacyTarget, batches: BatchDescription, repetitions: Repetitions) -> Solution:
    def build(noise: float) -> Event:
        return Repeated(batches.event(noise), repetitions.count)

    notes = (repetitions.note,) if repetitions.note else ()
    with neighbours_advice(build(1.0)):
        return _least(target, build, "noise_multiplier", "noise multiplier", "fewer steps", notes)


def solve_gaussian(target: PrivacyTarget, answers: int = 1) -> Solution:
    """Solve for the least noise multiplier for some answers with Gaussian noise.

    Args:
        target: What all answers together must not exceed; needs δ > 0.
        answers: The number of answers.

    Raises:
        InvalidInput: The target cannot be reached.
    """
    count = checked.count("answers", answers)
    label = "noise multiplier of each answer (standard deviation over the L2 bound)"
    return _least(target, lambda noise: Repeated(Gaussian(noise), count), "noise_multiplier", label, "fewer `answers`")


def solve_laplace(target: PrivacyTarget, answers: int = 1) -> Solution:
    """Solve for the least scale of Laplace noise for some answers.

    Args:
        target: What all answers together must not exceed.
        answers: The number of answers.

    Raises:
        InvalidInput: The target cannot be reached.
    """
    count = checked.count("answers", answers)
    label = "scale of each answer's noise (over the L1 bound)"
    return _least(target, lambda scale: Repeated(Laplace(scale), count), "scale", label, "fewer `answers`")


def solve_randomized_response(target: PrivacyTarget, answers: int = 1, categories: int = 2) -> Solution:
    """Solve for the largest ε of each of some randomized responses.

    Args:
        target: What all answers of one person together must not exceed.
        answers: The number of answers of one person.
        categories: The number of possible answers.

    Raises:
        InvalidInput: The target cannot be reached.
        NotProven: No theorem covers the target's neighbours.

    >>> from privet.core.unit import Neighbours
    >>> replaced = Unit(neighbours=Neighbours.REPLACE)
    >>> solve_randomized_response(PrivacyTarget(1.0, 0.0, replaced), categories=4).value
    1.0
    """
    count, several = checked.count("answers", answers), checked.count("categories", categories, 2)

    def build(epsilon: float) -> Event:
        return Repeated(RandomizedResponse(epsilon, several), count)

    with neighbours_advice(RandomizedResponse(1.0, several)):
        with _within_reach(target, "fewer `answers`"):
            largest = target.most(build, _LARGEST_EPSILON)
        value = _safe(largest, lambda epsilon: target.fits(build(epsilon)), up=False)
    share = truth_probability(value, several)
    note = f"Keep the true answer with a probability of {share}, else give any other one at random."
    end = (_SEARCH_END.format("a larger ε"),) if value >= _LARGEST_EPSILON else ()
    return _priced(target, "epsilon", "ε of each answer", value, build(value), (note, *end))


def _highest_rate(target: PrivacyTarget, noise_multiplier: float, steps: int, population: int | None) -> Solution:
    def build(rate: float) -> Event:
        return Repeated(Sampled(Gaussian(noise_multiplier), by=Poisson(rate)), steps)

    with _within_reach(target, "fewer `steps`"):
        highest = target.most(build, 1.0)
    value = _safe(highest, lambda rate: target.fits(build(rate)), up=False) if highest < 1 else 1.0
    notes: tuple[str, ...] = ()
    if population is not None:
        size = math.floor(value * population)
        notes = (f"That is {size:,} of {population:,} {sampled_item(target.unit)}s in a batch, on average.",)
    return _priced(target, "sample_rate", "sampling rate", value, build(value), notes)


def _most_steps(target: PrivacyTarget, batches: BatchDescription, noise_multiplier: float) -> Solution:
    """Steps, or epochs for schemes that are priced by the epoch."""
    one = batches.event(noise_multiplier)
    count = calibrate.most_steps(one, epsilon=target.epsilon, delta=target.delta, unit=target.unit, limit=_MOST_STEPS)
    name = "epochs" if batches.is_epoch else "steps"
    if count == 0:
        problem = f"= {target.epsilon:g} at δ = {digits_up(target.delta)} is exceeded by a single one of the {name}"
        raise InvalidInput("epsilon", problem, "use more noise or smaller batches, or allow more")
    notes = []
    if count == _MOST_STEPS:
        notes.append(_SEARCH_END.format("more"))
    if not batches.is_epoch and batches.sampling is not None:
        epochs = float(Context(4, ROUND_FLOOR).create_decimal(repr(float(count * batches.rate))))
        notes.append(f"That is {epochs:g} epochs.")
    return _priced(target, name, name, count, Repeated(one, count), tuple(notes))


def _least(
    target: PrivacyTarget,
    build: Callable[[float], Event],
    name: str,
    label: str,
    fewer: str,
    notes: tuple[str, ...] = (),
) -> Solution:
    with _within_reach(target, fewer):
        least = target.least(build)
        value = _safe(least, lambda noise: target.fits(build(noise)), up=True)
    end = (_SEARCH_END.format("less noise"),) if value <= _LEAST_NOISE else ()
    return _priced(target, name, label, value, build(value), (*notes, *end))


@contextmanager
def _within_reach(target: PrivacyTarget, fewer: str) -> Iterator[None]:
    """Say what to change where no value in the range of the search reaches the target."""
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


def truth_probability(epsilon: float, categories: int) -> str:
    """Return the probability of the true answer in randomized response, rounded down: never 1, and never unsafe.

    Nor does it fall below 1/categories, where a smaller probability would tell more again: as many digits are given as
    it takes to tell the two apart.

    Args:
        epsilon: The ε of one response.
        categories: The number of possible answers.

    >>> truth_probability(1.0, 4), truth_probability(40.0, 2), truth_probability(1000.0, 2), truth_probability(1e-7, 3)
    ('0.475366', '0.9999999999999999957', '1 − 5.076e-435', '0.33333335555')
    """
    exact = Context(60, ROUND_HALF_EVEN, Emin=-(10**6), Emax=10**6)
    others = exact.multiply(Decimal(categories - 1), exact.exp(Decimal(-epsilon)))
    # What is left for the other answers; a little more of it is on the safe side.
    rest = exact.multiply(exact.divide(others, exact.add(Decimal(1), others)), _SAFETY_FACTOR)
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


def _priced(
    target: PrivacyTarget, name: str, label: str, value: float | int, event: Event, notes: tuple[str, ...] = ()
) -> Solution:
    return Solution(name, label, value, event, target.price(event), notes)


def _safe(value: float, fits: Callable[[float], bool], *, up: bool) -> float:
    """Return a short number near the value, on its safe side, that was seen to fit."""
    # The search stops within 0.1 % of the edge: a rounder number on the other side of it may fit as well.
    for digits in (2, 3, 4):
        near = float(Context(digits, ROUND_HALF_EVEN).create_decimal(repr(value)))
        better = near <= value if up else near >= value
        if better and near > 0 and abs(near - value) <= 1e-3 * value and fits(near):
            return near
    safe = Context(_DIGITS, ROUND_CEILING if up else ROUND_FLOOR).create_decimal(repr(value))
    while not fits(float(safe)):
        safe = safe.next_plus(Context(_DIGITS)) if up else safe.next_minus(Context(_DIGITS))
    return float(safe)
