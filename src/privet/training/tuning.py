"""Private selection: of a random number of private runs, the one with the best released score.

What you must keep true here:

- a run is all that one candidate costs, from the first row that is read to the release of its score, and its event says
  so; runs share nothing but the data (no warm start from an earlier run, no stopping because an earlier one was good);
- the candidates are public, and so is the order of the scores;
- nothing of the other runs leaves: not their scores, not how many there were, nor how long they took. A screen that
  only the owner of the data sees may say what it likes; what is stored or shared may say that tuning is going on;
- the number of runs stands once it is drawn. A limit on time that ends the loop early, or a second try because there
  were too few runs, makes another law, which nobody has priced. `Trials.quantile` says beforehand how many to expect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar, cast

from privet.accounting import canonical, require_one
from privet.accounting import epsilon as price
from privet.core import Event, InvalidInput, Randomness, Record, Release, Selected, Trials, Unit, checked
from privet.core.random import PATIENCE, Rng, broken_source

__all__ = ["Best", "Standing", "Trials", "draw", "select", "selection"]

C = TypeVar("C")
T = TypeVar("T")
_HEAVY = -0.25
"""Shapes below this are drawn from the law without the factor (1 − γ)^k: proposals from the geometric would be poor."""


@dataclass(frozen=True)
class Best(Generic[C, T]):
    """What a selection releases: the best run's candidate, what it made, and its score."""

    candidate: C
    value: T
    score: float


@dataclass(frozen=True, repr=False)
class Standing(Record):
    """How far a selection has come: **internal**, for whoever goes on with it after a crash, and for nobody else.

    It is written before the first run, so that what was drawn is never drawn again. Once the selection is released,
    throw it away: going on from it a second time would be a second selection, to be paid for again.
    """

    selected: Selected
    candidates: int
    chosen: tuple[int, ...]
    """The candidate of each run, by its place in the list; there are as many as there will be runs."""
    done: int = 0
    best: int | None = None
    """Which run is the best so far."""
    score: float | None = None
    source: str | None = None
    randomness: Randomness = Randomness.SECURE

    def __post_init__(self) -> None:
        object.__setattr__(self, "randomness", checked.member("randomness", self.randomness, Randomness))
        object.__setattr__(self, "chosen", tuple(self.chosen))
        checked.count("candidates", self.candidates)
        checked.count("done", self.done, 0)
        for each in self.chosen:
            if checked.count("chosen", each, 0) >= self.candidates:
                raise InvalidInput("chosen", "names a candidate that is not in the list")
        if not self.chosen or self.done > len(self.chosen) or (self.best is None) != (self.done == 0):
            raise InvalidInput("done", "does not fit the runs that were drawn", "this is not a standing that was kept")

    @classmethod
    def kinds(cls) -> Mapping[str, type[Record]]:
        """A standing holds the event."""
        return {"Standing": cls} | dict(Event.kinds())

    def after(self, run: Release[Any], score: float | None = None) -> Standing:
        """With one more run; its score is given if it is the best so far."""
        seeded = Randomness.SEEDED in (self.randomness, run.randomness)
        return replace(
            self,
            done=self.done + 1,
            best=self.best if score is None else self.done,
            score=self.score if score is None else score,
            source=run.source[0],
            randomness=Randomness.SEEDED if seeded else Randomness.SECURE,
        )

    def __repr__(self) -> str:
        return "Standing(internal)"


def selection(trials: Trials, candidates: Sequence[C], event: Callable[[C], Event]) -> Selected:
    """The event of a whole selection: what to charge before `select` is called.

    `event` gives what one run of a candidate costs, its score included; it must be the same for all candidates.

    >>> from privet.core.event import Gaussian
    >>> selection(Trials.with_mean(4.0), [0.1, 1.0], lambda learning_rate: Gaussian(4.0)).event
    Gaussian(noise_multiplier=4.0)
    """
    if not candidates:
        raise InvalidInput("candidates", "is empty", "give a list of what may be tried")
    events = [event(candidate) for candidate in candidates]
    first = canonical(events[0])
    for place, other in enumerate(events):
        if canonical(other) != first:
            problem = f"differ in what a run costs: the first is {events[0]}, and number {place} is {other}"
            raise InvalidInput("candidates", problem, "calibrate each of them to the same noise, rate and steps")
    return Selected(events[0], trials)


def select(
    trials: Trials,
    candidates: Sequence[C],
    run: Callable[[C], Release[tuple[T, float]]],
    rng: Rng,
    *,
    event: Callable[[C], Event],
    unit: Unit | None = None,
    delta: float | None = None,
    keep: Callable[[Standing, T | None], None] = lambda standing, best: None,
    standing: Standing | None = None,
    best: T | None = None,
) -> Release[Best[C, T]]:
    """Try candidates drawn at random, each anew and a random number of times, and release the best.

    Args:
        trials: the law of the number of runs.
        candidates: a public list; each run takes one of them, all equally likely, whatever the others took.
        run: trains a candidate with fresh randomness, and releases (what it made, its score); a higher score is
            better, and NaN is the worst. It charges no ledger: all runs together are charged once, before.
        rng: draws the number of runs and the candidates.
        event: what one run of a candidate costs; every run's release is held against it.
        unit: whom every run protects; the default unit if left out.
        delta: for the release's guarantee, if it shall have one.
        keep: is given the standing, and what the best run so far has made, before the first run and after each; both
            are internal. Keep them as one: a standing beside the value of a later run would count that run twice.
        standing, best: what `keep` was given last, to go on after a crash. A run that was lost is made again.

    Guarantee: that of `selection(trials, candidates, event)`, for `unit` and its neighbours (Papernot & Steinke 2022,
    Thm 2): runs are independent and alike, a run being the draw of a candidate and what comes of it; their number is
    drawn exactly and does not depend on the data; only the best leaves. Equal scores: the earlier run counts, which is
    the law of a fair choice among them, as runs are exchangeable. Assumed: that a crash after which one goes on does
    not depend on the rows, and that nobody learns the number of runs, from a clock for example.
    """
    unit = unit or Unit()
    whole = selection(trials, candidates, event)
    require_one(canonical(whole).parts, unit)
    guarantee = None if delta is None else price(whole, delta, unit=unit)
    if standing is None:
        runs = draw(trials, rng)
        chosen = tuple(rng.below(len(candidates), runs).tolist())
        standing, best = Standing(whole, len(candidates), chosen, randomness=rng.kind), None
        keep(standing, best)
    elif (standing.selected, standing.candidates) != (whole, len(candidates)):
        raise InvalidInput("standing", "is of another selection", "give the same trials, candidates and events")
    elif standing.done and best is None:
        raise InvalidInput("best", "is missing", "give what `keep` was given together with the standing")
    for number in range(standing.done, len(standing.chosen)):
        release = run(candidates[standing.chosen[number]])
        value, score = _checked(release, whole, unit, standing.source)
        if standing.score is None or score > standing.score:
            standing, best = standing.after(release, score), value
        else:
            standing = standing.after(release)
        keep(standing, best)
    return Release.of(
        Best(candidates[standing.chosen[standing.best or 0]], cast("T", best), cast("float", standing.score)),
        whole,
        unit=unit,
        source=cast("str", standing.source),
        randomness=standing.randomness,
        guarantee=guarantee,
    )


def draw(trials: Trials, rng: Rng) -> int:
    """The number of runs, exactly by its law: only coins whose chance is a fraction decide.

    How long it takes tells something of what was drawn, as the runs themselves do.

    >>> from privet.core.random import SeededRng
    >>> [draw(Trials.with_mean(5.0), SeededRng(1, i)) for i in range(5)]
    [12, 1, 4, 6, 20]
    """
    stop, shape, coins = Fraction(trials.gamma), Fraction(trials.shape), _Coins(rng, trials)
    if shape > 1:
        return _summed(stop, shape, coins)
    return _tilted(stop, shape, coins) if shape < _HEAVY else _thinned(stop, shape, coins, 1)


class _Coins:
    """Coins with rational chances; a source that lets the loops below spin without end is found out."""

    def __init__(self, rng: Rng, trials: Trials) -> None:
        self._rng = rng
        # Far more than any draw takes: on average they are a few dozen times the mean, or fewer.
        self._left = 8 * PATIENCE * math.ceil(trials.mean * (1 + abs(trials.shape)) + 1 / (1 - trials.gamma))

    def up(self, chance: Fraction) -> bool:
        """True with this probability, exactly: bits of a uniform number are drawn until they decide."""
        drawn = length = 0
        while self._left > 0:
            self._left -= 1
            drawn, length = (drawn << 64) | int(self._rng.words(1)[0]), length + 64
            if (drawn + 1) * chance.denominator <= chance.numerator << length:
                return True
            if drawn * chance.denominator >= chance.numerator << length:
                return False
        raise broken_source()


def _thinned(stop: Fraction, shape: Fraction, coins: _Coins, first: int) -> int:
    """From k = first on, weights (1 − γ)^k·Π(l + η)/(l + 1) over l from `first` to k − 1, for shapes up to 1.

    A geometric number, each of whose steps l is kept with the chance (l + η)/(l + 1); or all over again.
    """
    number = first
    while not coins.up(stop):
        number = number + 1 if coins.up((number + shape) / (number + 1)) else first
    return number


def _tilted(stop: Fraction, shape: Fraction, coins: _Coins) -> int:
    """The same weights from 1 on, for shapes below 0.

    The first l at which a coin of chance −η/l comes up (Sibuya's law), each step kept with the chance 1 − γ; or all
    over again.
    """
    number = 1
    while not coins.up(-shape / number):
        number = 1 if coins.up(stop) else number + 1
    return number


def _summed(stop: Fraction, shape: Fraction, coins: _Coins) -> int:
    """For shapes above 1: negative binomial numbers from 0 on add up as their shapes do; 0 in all is drawn again."""
    total = 0
    while total == 0:
        for _ in range(math.floor(shape)):
            while not coins.up(stop):
                total += 1
        if shape % 1:
            total += _thinned(stop, shape % 1, coins, 0)
    return total


def _checked(release: Release[tuple[T, float]], whole: Selected, unit: Unit, source: str | None) -> tuple[T, float]:
    """What a run gave, if it is what was priced; messages do not say which run it was."""
    if not isinstance(release, Release):
        problem = f"gave a {type(release).__name__}, where a Release is wanted"
        raise InvalidInput("run", problem, "join the releases of the model and of its score")
    if canonical(release.event) != canonical(whole.event):
        problem = f"did {release.event}, and {whole.event} was announced"
        raise InvalidInput("run", problem, "let `event` say all that a run does, its score included")
    if release.unit != unit:
        raise InvalidInput("run", f"protects {release.unit}, and {unit} was announced", "give the same unit=")
    if len(release.source) != 1 or source not in (None, *release.source):
        raise InvalidInput("run", "reads more than one source of data", "give all of its releases the same source")
    value, score = release.value
    number = float(score)
    return value, -math.inf if math.isnan(number) else number
