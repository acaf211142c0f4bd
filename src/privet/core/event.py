"""What was done to the data: a small tree without data in it, which accountants price.

Noise is stated relative to the bound of one contribution: `Gaussian(1.1)` has a standard deviation of 1.1 clips. An
accountant derives from the unit how far neighboring data sets move the sum (one clip when a contribution comes or
goes, two when it is replaced), so that nothing here can disagree with a clip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any

from privet.core import checked
from privet.core.codec import Record
from privet.core.errors import InvalidInput
from privet.core.trials import Trials
from privet.core.unit import Neighbours

__all__ = [
    "EVENTS",
    "SAMPLINGS",
    "Approximate",
    "Composed",
    "Concentrated",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "Gaussian",
    "IndependentBatches",
    "Joint",
    "Laplace",
    "Leaf",
    "NoisyMax",
    "NonPrivate",
    "Poisson",
    "Pure",
    "RandomizedResponse",
    "Repeated",
    "Sampled",
    "Sampling",
    "Selected",
    "Shuffled",
    "ShuffledEpoch",
    "WithReplacement",
    "WithoutReplacement",
]


class Event(Record):
    """The root of the tree. Every concrete event is a frozen dataclass, hashable, with JSON both ways."""

    @classmethod
    def kinds(cls) -> Mapping[str, type[Record]]:
        """Return the classes that an event may hold: all events, sampling schemes and laws of a number of runs."""
        return EVENTS | SAMPLINGS | {"Trials": Trials}


class Leaf(Event):
    """One mechanism, run once on everything."""


class Sampling(Record):
    """How the rows of one step were chosen."""

    @classmethod
    def kinds(cls) -> Mapping[str, type[Record]]:
        """Return the sampling schemes, which hold nothing but numbers."""
        return SAMPLINGS


def _number(name: str, record: object, check: Any) -> None:
    object.__setattr__(record, name, check(name, getattr(record, name)))


@dataclass(frozen=True)
class Gaussian(Leaf):
    """Normal noise on a value whose L2 norm one contribution moves by at most one clip.

    >>> Event.from_json(Gaussian(1.1).to_json())
    Gaussian(noise_multiplier=1.1)
    """

    noise_multiplier: float
    """Standard deviation over the clip; 0 is no noise, and then ε is infinite."""

    def __post_init__(self) -> None:
        _number("noise_multiplier", self, checked.nonnegative)


@dataclass(frozen=True)
class Laplace(Leaf):
    """Laplace noise on a value whose L1 norm one contribution moves by at most one bound."""

    noise_multiplier: float
    """Scale b over the L1 bound; pure ε is its inverse."""
    dimension: int = 1
    """How many coordinates the noise was added to."""

    def __post_init__(self) -> None:
        _number("noise_multiplier", self, checked.nonnegative)
        checked.count("dimension", self.dimension)


@dataclass(frozen=True)
class DiscreteGaussian(Leaf):
    """Discrete Gaussian noise on integers (Canonne, Kamath & Steinke 2020), in steps of the output grid."""

    sigma: float
    bound: float
    """L2 norm of one contribution, in grid steps; a whole number when the dimension is 1."""
    dimension: int = 1

    def __post_init__(self) -> None:
        _number("sigma", self, checked.nonnegative)
        _number("bound", self, checked.positive)
        if checked.count("dimension", self.dimension) == 1 and self.bound != int(self.bound):
            raise InvalidInput("bound", f"is {self.bound}, which is not a whole number of grid steps", "round it up")


@dataclass(frozen=True)
class DiscreteLaplace(Leaf):
    """Discrete Laplace (two-sided geometric) noise on integers, in steps of the output grid."""

    scale: float
    bound: int
    """L1 norm of one contribution, in grid steps."""
    dimension: int = 1

    def __post_init__(self) -> None:
        _number("scale", self, checked.nonnegative)
        checked.count("bound", self.bound)
        checked.count("dimension", self.dimension)


@dataclass(frozen=True)
class Exponential(Leaf):
    """The exponential mechanism, weights exp(ε·score / 2); a contribution that comes or goes moves scores by 1 at most.

    Its loss has range at most ε (bounded range; Durfee & Rogers 2019), which is worth ε²/8 in zCDP.
    """

    epsilon: float

    def __post_init__(self) -> None:
        _number("epsilon", self, checked.nonnegative)


@dataclass(frozen=True)
class NoisyMax(Leaf):
    """Report noisy max with Laplace or exponential noise: pure ε when a contribution comes or goes."""

    epsilon: float

    def __post_init__(self) -> None:
        _number("epsilon", self, checked.nonnegative)


@dataclass(frozen=True)
class RandomizedResponse(Leaf):
    """K-ary randomized response: one answer of `categories`, kept with odds e^ε to 1 against each other answer."""

    epsilon: float
    categories: int = 2

    def __post_init__(self) -> None:
        _number("epsilon", self, checked.nonnegative)
        checked.count("categories", self.categories, 2)


def _neighbours(record: Any) -> None:
    object.__setattr__(record, "neighbours", checked.member("neighbours", record.neighbours, Neighbours))
    if record.neighbours in (Neighbours.L1_BALL, Neighbours.L2_BALL):
        raise InvalidInput("neighbours", f"is {record.neighbours.value}", "a block is add/remove, zero-out or replace")


@dataclass(frozen=True)
class Pure(Leaf):
    """A mechanism proven ε-DP for the stated neighbors, about which nothing more is known."""

    epsilon: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        _number("epsilon", self, checked.nonnegative)
        _neighbours(self)


@dataclass(frozen=True)
class Approximate(Leaf):
    """A mechanism proven (ε, δ)-DP for the stated neighbors, about which nothing more is known."""

    epsilon: float
    delta: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        _number("epsilon", self, checked.nonnegative)
        _number("delta", self, checked.share)
        _neighbours(self)


@dataclass(frozen=True)
class Concentrated(Leaf):
    """A mechanism proven ρ-zCDP (Bun & Steinke 2016) for the stated neighbors, about which nothing more is known."""

    rho: float
    neighbours: Neighbours = Neighbours.ADD_REMOVE

    def __post_init__(self) -> None:
        _number("rho", self, checked.nonnegative)
        _neighbours(self)


@dataclass(frozen=True)
class Joint(Leaf):
    """Gaussian releases of the same rows: one Gaussian with σ_eff = (Σ σ_j⁻²)^(−1/2), sampled once if at all."""

    events: tuple[Gaussian, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))
        if not self.events or not all(isinstance(event, Gaussian) for event in self.events):
            raise InvalidInput("events", "must be one or more Gaussian events", "compose other kinds instead")


@dataclass(frozen=True)
class Poisson(Sampling):
    """Each row enters a batch by its own coin."""

    sample_rate: float

    def __post_init__(self) -> None:
        _number("sample_rate", self, checked.probability)


def _batch_of(batch: int, population: int, name: str) -> None:
    checked.count(name, batch)
    checked.count("population", population)


@dataclass(frozen=True)
class WithoutReplacement(Sampling):
    """A batch of fixed size, drawn without replacement from a population of public size."""

    batch_size: int
    population: int

    def __post_init__(self) -> None:
        _batch_of(self.batch_size, self.population, "batch_size")
        if self.batch_size > self.population:
            raise InvalidInput("batch_size", f"is {self.batch_size}, above the population of {self.population}")


@dataclass(frozen=True)
class WithReplacement(Sampling):
    """A batch of independent draws, with replacement, from a population of public size."""

    draws: int
    population: int

    def __post_init__(self) -> None:
        _batch_of(self.draws, self.population, "draws")


@dataclass(frozen=True)
class ShuffledEpoch(Sampling):
    """One pass in shuffled order, cut into batches: every row is used exactly once. No amplification is claimed."""

    batches: int

    def __post_init__(self) -> None:
        checked.count("batches", self.batches)


@dataclass(frozen=True)
class IndependentBatches(Sampling):
    """One pass in which each row picks its batch by itself (balls in bins). No amplification is claimed."""

    batches: int

    def __post_init__(self) -> None:
        checked.count("batches", self.batches)


@dataclass(frozen=True)
class Sampled(Event):
    """A leaf run on rows chosen by a sampling scheme.

    >>> Sampled(Gaussian(1.0), by=Poisson(0.01)).by.sample_rate
    0.01
    """

    event: Leaf
    by: Sampling

    def __post_init__(self) -> None:
        if not isinstance(self.event, Leaf):
            advice = "two releases of one batch are one Joint event; repeat or compose outside"
            raise InvalidInput("event", f"is a {type(self.event).__name__}, and only a leaf can be sampled", advice)
        if not isinstance(self.by, Sampling):
            raise InvalidInput("by", f"is a {type(self.by).__name__}, which is not a sampling scheme")


def _event(name: str, value: object) -> None:
    if not isinstance(value, Event):
        raise InvalidInput(name, f"is a {type(value).__name__}, which is not an event")


@dataclass(frozen=True)
class Repeated(Event):
    """The same event, `count` times, each with fresh randomness."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        _event("event", self.event)
        checked.count("count", self.count, 0)


@dataclass(frozen=True)
class Composed(Event):
    """Several events on the same data, one after another."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))
        for event in self.events:
            _event("events", event)


@dataclass(frozen=True)
class Selected(Leaf):
    """The best, by a score that each run releases, of a random number of independent runs of an event.

    The event is all of one run, the release of its score included. How many runs there were, and all of them but the
    best, stay hidden. There is no such event for a fixed number of runs: compose them instead.

    >>> Selected(Gaussian(4.0), Trials.with_mean(10.0)).trials.shape
    0.0
    """

    event: Event
    trials: Trials
    """The law of the number of runs."""

    def __post_init__(self) -> None:
        _event("event", self.event)
        if not isinstance(self.trials, Trials):
            advice = "give Trials.with_mean(10.0); best of a fixed number has no such price"
            raise InvalidInput("trials", f"is a {type(self.trials).__name__}, which is not a law", advice)


@dataclass(frozen=True)
class Shuffled(Leaf):
    """Reports of many people, each made by the same local randomizer, of which only the multiset is seen.

    `event` is what one report does to its sender's answers, and everybody sends one. `reports` is a *public lower
    bound* on how many of them are honest, the protected one included: made by this randomizer, independently, and kept
    apart from their senders. Reports that an attacker made or knows are none of them.

    >>> Shuffled(RandomizedResponse(1.0), 1000).reports
    1000
    """

    event: Event
    reports: int

    def __post_init__(self) -> None:
        _event("event", self.event)
        checked.count("reports", self.reports)


@dataclass(frozen=True)
class NonPrivate(Event):
    """A mechanism without any guarantee; its ε is infinite, and the reason is recorded."""

    reason: str

    def __post_init__(self) -> None:
        checked.text("reason", self.reason)


def _concrete(root: type[Record]) -> dict[str, type[Any]]:
    found: dict[str, type[Any]] = {}
    waiting = list(root.__subclasses__())
    while waiting:
        kind = waiting.pop()
        waiting.extend(kind.__subclasses__())
        if is_dataclass(kind):
            found[kind.__name__] = kind
    return dict(sorted(found.items()))


EVENTS: dict[str, type[Any]] = _concrete(Event)
"""Every concrete event by name: the list that contract tests walk."""
SAMPLINGS: dict[str, type[Any]] = _concrete(Sampling)
"""Every sampling scheme by name."""
