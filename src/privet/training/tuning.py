"""Private selection: release the best of a random number of private runs, by its released score.

The guarantee assumes:

- the event of a run covers everything that one candidate does, from the first row that is read to the release of its
  score; runs share nothing but the data (no warm start from an earlier run, no stopping because an earlier one was
  good);
- the candidates are public, and so is the order of the scores;
- nothing about the other runs is released: not their scores, not how many there were, nor how long they took. A screen
  that only the owner of the data sees may show anything; what is stored or shared may say that tuning is in progress;
- the number of runs is final once it is drawn. A time limit that ends the loop early, or a second draw because there
  were too few runs, follows another distribution, which the accountant does not cover. `Trials.quantile` says
  beforehand how many runs to expect.
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
"""Below this shape, proposals come from the law without the factor (1 − γ)^k: geometric ones are rarely accepted."""


@dataclass(frozen=True)
class Best(Generic[C, T]):
    """Result of a selection: the candidate of the best run, its output, and its score."""

    candidate: C
    value: T
    score: float


@dataclass(frozen=True, repr=False)
class Standing(Record):
    """Progress of a selection. It is **internal**: use it only to resume the selection after a crash.

    It is written before the first run, so that the number of runs and their candidates are never drawn again. Delete it
    once the selection is released: resuming from it a second time would be a second selection, with its own cost.
    """

    selected: Selected
    candidates: int
    chosen: tuple[int, ...]
    """Index of the candidate of each planned run."""
    done: int = 0
    best: int | None = None
    """Number of the best run so far."""
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
        """Return the types of records that a standing may hold, by name: itself and events."""
        return {"Standing": cls} | dict(Event.kinds())

    def after(self, run: Release[Any], score: float | None = None) -> Standing:
        """Return the standing after one more run.

        Args:
            run: Release of the run.
            score: Score of the run if it is the best so far, otherwise None.
        """
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
    """Return the event of a whole selection, to be charged before `select` is called.

    Args:
        trials: Distribution of the number of runs.
        candidates: Public list of candidates.
        event: Function from a candidate to the event of one of its runs, the release of the score included. The events
            must be the same for all candidates.

    Raises:
        InvalidInput: There are no candidates, or their events differ.

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
    """Run a random number of randomly drawn candidates, and release the best run.

    Args:
        trials: Distribution of the number of runs.
        candidates: Public list of candidates. Each run draws one of them uniformly and independently.
        run: Function that trains a candidate with fresh randomness, and releases (output, score). A higher score is
            better, and NaN is the worst. It charges no ledger: all runs together are charged once, before.
        rng: Generator that draws the number of runs and the candidates.
        event: Function from a candidate to the event of one of its runs; every run's release is checked against it.
        unit: Privacy unit of every run; the default unit if left out.
        delta: δ of the release's guarantee; without it the release states no guarantee.
        keep: Function that stores the standing and the output of the best run so far. It is called before the first
            run and after each run; both values are internal. Store them atomically: a standing next to the output of
            a later run would count that run twice.
        standing: The standing that `keep` was called with last, to resume after a crash. A lost run is repeated.
        best: The output that `keep` was called with last, together with `standing`.

    Returns:
        The best run's candidate, output and score, with the event of the whole selection.

    Raises:
        InvalidInput: There are no candidates, their events differ, a run does not release what its event says, or
            `standing` belongs to another selection.

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
    """Draw the number of runs exactly from its distribution, with coins of rational probability only.

    The running time depends on the number drawn, as that of the runs themselves does.

    Args:
        trials: Distribution of the number of runs.
        rng: Source of randomness.

    >>> from privet.core.random import SeededRng
    >>> [draw(Trials.with_mean(5.0), SeededRng(1, i)) for i in range(5)]
    [12, 1, 4, 6, 20]
    """
    stop, shape, coins = Fraction(trials.gamma), Fraction(trials.shape), _Coins(rng, trials)
    if shape > 1:
        return _summed(stop, shape, coins)
    return _tilted(stop, shape, coins) if shape < _HEAVY else _thinned(stop, shape, coins, 1)


class _Coins:
    """Coins of rational probability, with a limit on flips, so that a broken random source cannot loop forever."""

    def __init__(self, rng: Rng, trials: Trials) -> None:
        self._rng = rng
        # Far more than any draw takes: on average they are a few dozen times the mean, or fewer.
        self._left = 8 * PATIENCE * math.ceil(trials.mean * (1 + abs(trials.shape)) + 1 / (1 - trials.gamma))

    def up(self, chance: Fraction) -> bool:
        """Return True with exactly this probability: bits of a uniform number are drawn until they decide."""
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
    """Return output and score of a run that did what its event says; messages do not say which run it was."""
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
