"""Describe a run of noisy, clipped updates by its settings: its event, its facts and the conditions it assumes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from privet.core import (
    Event,
    Gaussian,
    IndependentBatches,
    InvalidInput,
    Poisson,
    Repeated,
    Sampled,
    Sampling,
    ShuffledEpoch,
    Unit,
    WithoutReplacement,
    WithReplacement,
    checked,
    counted,
)

__all__ = [
    "BatchDescription",
    "Repetitions",
    "RunDescription",
    "RunSettings",
    "SamplingScheme",
    "count_repetitions",
    "describe_batches",
    "describe_run",
    "sampled_item",
]

_MOST_REPETITIONS = 10**8
"""More repetitions are refused: their loss distribution would not fit into an ordinary machine's memory."""


class SamplingScheme(Enum):
    """How the rows of a step are chosen."""

    POISSON = "poisson"
    WITHOUT_REPLACEMENT = "without-replacement"
    WITH_REPLACEMENT = "with-replacement"
    SHUFFLED = "shuffled"
    INDEPENDENT_BATCHES = "independent-batches"
    NONE = "none"


_FIXED_SIZE = (SamplingScheme.WITHOUT_REPLACEMENT, SamplingScheme.WITH_REPLACEMENT)
_WHOLE_EPOCHS = (SamplingScheme.SHUFFLED, SamplingScheme.INDEPENDENT_BATCHES)


@dataclass(frozen=True)
class BatchDescription:
    """How the rows of one step are chosen (of one epoch, for schemes that are priced by the epoch)."""

    scheme: SamplingScheme
    sampling: Sampling | None
    rate: Fraction
    """The average fraction of all rows that one step uses."""
    text: str

    @property
    def is_epoch(self) -> bool:
        """Whether one repetition is a whole epoch."""
        return self.scheme in _WHOLE_EPOCHS

    def event(self, noise_multiplier: float) -> Event:
        """Return the event of one repetition with this noise multiplier."""
        leaf = Gaussian(noise_multiplier)
        return Sampled(leaf, by=self.sampling) if self.sampling is not None else leaf


@dataclass(frozen=True)
class Repetitions:
    """How often a step (or epoch) is repeated, and a sentence on how that number was computed."""

    count: int
    note: str = ""


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run of DP-SGD, as a person states them; None is what is not stated."""

    noise_multiplier: float | None = None
    """Standard deviation of the noise over the clipping norm."""
    scheme: SamplingScheme = SamplingScheme.POISSON
    """How batches are drawn."""
    sample_rate: float | None = None
    """The probability of each row to be in a batch; or give `batch_size` and `population`."""
    batch_size: int | None = None
    """Rows in a batch (the average, for Poisson sampling)."""
    population: int | None = None
    """The number of rows, if it is public."""
    epochs: float | None = None
    """Passes over the data; a partial step counts as a whole one."""
    steps: int | None = None
    """Noisy updates, in place of `epochs`."""


@dataclass(frozen=True)
class RunDescription:
    """A run of DP-SGD as its settings describe it; `describe_run` makes one. No data is in it."""

    noise_multiplier: float
    batches: BatchDescription
    repetitions: Repetitions
    unit: Unit

    @property
    def event(self) -> Event:
        """The event of the whole run."""
        return Repeated(self.batches.event(self.noise_multiplier), self.repetitions.count)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The settings as (name, value) pairs."""
        return (
            ("noise multiplier", f"{self.noise_multiplier:g}"),
            ("batches", f"{self.batches.scheme.value}: {self.batches.text}"),
            ("epochs" if self.batches.is_epoch else "steps", f"{self.repetitions.count:,}"),
        )


def describe_run(settings: RunSettings, unit: Unit | None = None) -> RunDescription:
    """Describe a run of DP-SGD by its event.

    Args:
        settings: The noise multiplier, the batches, and the epochs or steps.
        unit: Whose data is protected; one example, added or removed, by default.

    Returns:
        The description, which `privet.report.price_description` prices.

    Raises:
        InvalidInput: Settings are missing, out of range or contradict each other.

    >>> describe_run(RunSettings(1.1, sample_rate=0.01, epochs=2)).event
    Repeated(event=Sampled(event=Gaussian(noise_multiplier=1.1), by=Poisson(sample_rate=0.01)), count=200)
    """
    if settings.noise_multiplier is None:
        raise InvalidInput("noise_multiplier", "is missing", "give it")
    noise, unit = checked.nonnegative("noise_multiplier", settings.noise_multiplier), unit or Unit()
    batches = describe_batches(settings, unit)
    repetitions = count_repetitions(settings, batches)
    if settings.population is not None:
        checked.count("population", settings.population)
    return RunDescription(noise, batches, repetitions, unit)


def sampled_item(unit: Unit) -> str:
    """Return what a batch consists of, and what rates and sizes count: rows, or all data of one user or client.

    >>> from privet.core.unit import Whose
    >>> sampled_item(Unit()), sampled_item(Unit(Whose.USER)), sampled_item(Unit(Whose.USER, records=3))
    ('row', 'user', 'record')
    """
    if unit.records > 1:
        return "record"  # group privacy prices each record by itself, and then all that one person owns
    return "row" if unit.whose.value == "example" else unit.whose.value


def describe_batches(settings: RunSettings, unit: Unit) -> BatchDescription:
    """Describe how batches are drawn.

    Args:
        settings: The scheme, and the sampling rate or the sizes.
        unit: Whose data is protected: what a batch consists of.

    Raises:
        InvalidInput: Sizes are missing, out of range, or do not fit the scheme.

    >>> describe_batches(RunSettings(batch_size=256, population=60000), Unit()).text
    '256 of 60,000 rows, on average'
    """
    scheme, sample_rate, batch_size = settings.scheme, settings.sample_rate, settings.batch_size
    item = sampled_item(unit)
    if scheme is SamplingScheme.NONE:
        if sample_rate is not None or batch_size is not None:
            problem = "has no place with `sampling` none"
            raise InvalidInput("sample_rate" if sample_rate is not None else "batch_size", problem, "leave it out")
        return BatchDescription(scheme, None, Fraction(1), f"all {item}s")
    if sample_rate is not None and batch_size is not None:
        raise InvalidInput("sample_rate", "and `batch_size` say the same thing twice", "leave one of them out")
    if batch_size is not None:
        return _sized_batches(scheme, batch_size, settings.population, item)
    if sample_rate is None:
        raise InvalidInput("sample_rate", "is missing", "give it, or `batch_size` and `population`")
    if scheme in _FIXED_SIZE:
        problem = f"does not fit `sampling` {scheme.value}, whose batches have a fixed size"
        raise InvalidInput("sample_rate", problem, "give `batch_size` and `population`")
    rate = _exact(checked.probability("sample_rate", sample_rate))
    sampling = Poisson(sample_rate) if scheme is SamplingScheme.POISSON else _epoch(scheme, rate)
    return BatchDescription(scheme, sampling, rate, f"{sample_rate:g} of all {item}s")


def _sized_batches(scheme: SamplingScheme, batch_size: int, population: int | None, item: str) -> BatchDescription:
    if population is None:
        raise InvalidInput("batch_size", f"says nothing without the number of {item}s", "give `population` too")
    checked.count("batch_size", batch_size)
    checked.count("population", population)
    if batch_size > population:
        raise InvalidInput(
            "batch_size", f"is {batch_size:,}, above the population of {population:,}", "make it smaller"
        )
    rate, text = Fraction(batch_size, population), f"{batch_size:,} of {population:,} {item}s"
    if scheme is SamplingScheme.POISSON:
        return BatchDescription(scheme, Poisson(batch_size / population), rate, text + ", on average")
    if scheme is SamplingScheme.WITHOUT_REPLACEMENT:
        return BatchDescription(scheme, WithoutReplacement(batch_size, population), rate, text)
    if scheme is SamplingScheme.WITH_REPLACEMENT:
        return BatchDescription(scheme, WithReplacement(batch_size, population), rate, text)
    return BatchDescription(scheme, _epoch(scheme, rate), rate, text)


def _epoch(scheme: SamplingScheme, rate: Fraction) -> Sampling:
    batches = math.ceil(1 / rate)
    return ShuffledEpoch(batches) if scheme is SamplingScheme.SHUFFLED else IndependentBatches(batches)


def count_repetitions(settings: RunSettings, batches: BatchDescription) -> Repetitions:
    """Count the repetitions in a number of epochs or steps, rounded up so that the privacy cost is never too low.

    Args:
        settings: The epochs or the steps.
        batches: How batches are drawn.

    Raises:
        InvalidInput: Both or neither are given, or there are more than can be priced.

    >>> settings = RunSettings(sample_rate=0.3, epochs=1)
    >>> count_repetitions(settings, describe_batches(settings, Unit()))
    Repetitions(count=4, note='1 epoch of 3.333333333 steps is 3.333333333 steps, priced as 4.')
    """
    epochs, steps = settings.epochs, settings.steps
    if (epochs is None) == (steps is None):
        problem = "is missing" if epochs is None else "and `epochs` say the same thing twice"
        raise InvalidInput("steps", problem, "give `epochs` or `steps`, and not both")
    if steps is not None:
        count = _limited("steps", checked.count("steps", steps))
        if not batches.is_epoch:
            return Repetitions(count)
        whole = math.ceil(count * batches.rate)
        are, begin = "is" if whole == 1 else "are", "begins" if count == 1 else "begin"
        note = f"{counted(count, 'step')} {begin} {counted(whole, 'epoch')}, which {are} priced whole."
        return Repetitions(whole, note)
    passes = _exact(checked.positive("epochs", epochs if epochs is not None else 0.0))
    exact = passes if batches.is_epoch else passes / batches.rate
    count = _limited("epochs", math.ceil(exact))
    are = "is" if passes == 1 else "are"
    if batches.is_epoch:
        whole_ones = f"{count:,} whole {'one' if count == 1 else 'ones'}"
        note = f"{counted(float(passes), 'epoch')} {are} priced as {whole_ones}."
        return Repetitions(count, "" if count == exact else note)
    per_epoch, all_steps = counted(float(1 / batches.rate), "step"), counted(float(exact), "step")
    computed = f"{counted(float(passes), 'epoch')} of {per_epoch} {are} {all_steps}"
    return Repetitions(count, f"{computed}, priced as {count:,}." if count != exact else f"{computed}.")


def _limited(argument: str, count: int) -> int:
    if count > _MOST_REPETITIONS:
        problem = f"ask for more than {_MOST_REPETITIONS:,} noisy updates, the most that is priced"
        raise InvalidInput(argument, problem, "use fewer")
    return count


def _exact(value: float) -> Fraction:
    """The decimal that was written, so that 60 epochs at a rate of 0.01 are 6,000 steps and not one more."""
    return Fraction(repr(value))
