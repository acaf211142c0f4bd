"""From the words of a command to an event: how rows are chosen, and how often."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from privet.cli.options import SamplingWord
from privet.core import checked
from privet.core.errors import InvalidInput
from privet.core.event import (
    Event,
    Gaussian,
    IndependentBatches,
    Poisson,
    Repeated,
    Sampled,
    Sampling,
    ShuffledEpoch,
    WithoutReplacement,
    WithReplacement,
)

__all__ = ["MOST", "Batches", "Repetitions", "described_batches", "run_of", "times"]

MOST = 10**8
"""The most repetitions that are priced: beyond, a loss distribution would not fit into an ordinary machine's memory."""
_FIXED = (SamplingWord.WITHOUT_REPLACEMENT, SamplingWord.WITH_REPLACEMENT)
_PASSES = (SamplingWord.SHUFFLED, SamplingWord.INDEPENDENT_BATCHES)


@dataclass(frozen=True)
class Batches:
    """How the rows of one step (or of one epoch, where a whole pass is priced as one) are chosen."""

    word: SamplingWord
    by: Sampling | None
    per_step: Fraction
    """The share of all rows that one step uses, on average."""
    shown: str

    @property
    def is_pass(self) -> bool:
        """Whether one repetition is a whole pass over the data."""
        return self.word in _PASSES

    def one(self, noise_multiplier: float) -> Event:
        """One repetition with this much noise."""
        leaf = Gaussian(noise_multiplier)
        return Sampled(leaf, by=self.by) if self.by is not None else leaf


@dataclass(frozen=True)
class Repetitions:
    """How often one repetition is done, and how that was worked out."""

    count: int
    note: str = ""


def described_batches(
    word: SamplingWord, sample_rate: float | None, batch_size: int | None, population: int | None, row: str = "row"
) -> Batches:
    """Read `--sampling` and the options that say how large a batch is; refuses what contradicts or is missing.

    `row` is what a batch is made of, in words.
    """
    if word is SamplingWord.NONE:
        if sample_rate is not None or batch_size is not None:
            problem = "has no place with --sampling none"
            raise InvalidInput("sample_rate" if sample_rate is not None else "batch_size", problem, "leave it out")
        return Batches(word, None, Fraction(1), f"all {row}s")
    if sample_rate is not None and batch_size is not None:
        raise InvalidInput("sample_rate", "and --batch-size say the same thing twice", "leave one of them out")
    if batch_size is not None:
        return _of_size(word, batch_size, population, row)
    if sample_rate is None:
        raise InvalidInput("sample_rate", "is missing", "give it, or --batch-size and --population")
    if word in _FIXED:
        problem = f"does not fit --sampling {word.value}, whose batches have a fixed size"
        raise InvalidInput("sample_rate", problem, "give --batch-size and --population")
    rate = _exact(checked.probability("sample_rate", sample_rate))
    by = Poisson(sample_rate) if word is SamplingWord.POISSON else _pass(word, math.ceil(1 / rate))
    return Batches(word, by, rate, f"{sample_rate:g} of all {row}s")


def _of_size(word: SamplingWord, batch_size: int, population: int | None, row: str) -> Batches:
    if population is None:
        raise InvalidInput("batch_size", f"says nothing without the number of {row}s", "give --population too")
    checked.count("batch_size", batch_size)
    checked.count("population", population)
    if batch_size > population:
        raise InvalidInput(
            "batch_size", f"is {batch_size:,}, above the population of {population:,}", "make it smaller"
        )
    rate, shown = Fraction(batch_size, population), f"{batch_size:,} of {population:,} {row}s"
    if word is SamplingWord.POISSON:
        return Batches(word, Poisson(batch_size / population), rate, shown + ", on average")
    if word is SamplingWord.WITHOUT_REPLACEMENT:
        return Batches(word, WithoutReplacement(batch_size, population), rate, shown)
    if word is SamplingWord.WITH_REPLACEMENT:
        return Batches(word, WithReplacement(batch_size, population), rate, shown)
    return Batches(word, _pass(word, math.ceil(1 / rate)), rate, shown)


def _pass(word: SamplingWord, batches: int) -> Sampling:
    return ShuffledEpoch(batches) if word is SamplingWord.SHUFFLED else IndependentBatches(batches)


def times(batches: Batches, epochs: float | None, steps: int | None) -> Repetitions:
    """Read `--epochs` or `--steps`; what is begun counts as whole, so that the price is never too low."""
    from privet.report.words import counted

    if (epochs is None) == (steps is None):
        problem = "is missing" if epochs is None else "and --epochs say the same thing twice"
        raise InvalidInput("steps", problem, "give --epochs or --steps, and not both")
    if steps is not None:
        count = _at_most("steps", checked.count("steps", steps))
        if not batches.is_pass:
            return Repetitions(count)
        whole = math.ceil(count * batches.per_step)
        begun, are = counted(whole, "epoch"), "is" if whole == 1 else "are"
        begin = "begins" if count == 1 else "begin"
        return Repetitions(whole, f"{counted(count, 'step')} {begin} {begun}, which {are} priced whole.")
    passes = _exact(checked.positive("epochs", epochs if epochs is not None else 0.0))
    exact = passes if batches.is_pass else passes / batches.per_step
    count = _at_most("epochs", math.ceil(exact))
    are = "is" if passes == 1 else "are"
    if batches.is_pass:
        whole_ones = f"{count:,} whole {'one' if count == 1 else 'ones'}"
        note = f"{counted(float(passes), 'epoch')} {are} priced as {whole_ones}."
        return Repetitions(count, "" if count == exact else note)
    each, all_steps = counted(float(1 / batches.per_step), "step"), counted(float(exact), "step")
    how = f"{counted(float(passes), 'epoch')} of {each} {are} {all_steps}"
    return Repetitions(count, f"{how}, priced as {count:,}." if count != exact else f"{how}.")


def _at_most(argument: str, count: int) -> int:
    if count > MOST:
        raise InvalidInput(argument, f"ask for more than {MOST:,} noisy updates, the most that is priced", "use fewer")
    return count


def run_of(batches: Batches, noise_multiplier: float, count: int) -> Event:
    """The event of the whole run."""
    return Repeated(batches.one(noise_multiplier), count)


def _exact(value: float) -> Fraction:
    """The decimal that was typed, so that 60 epochs at a rate of 0.01 are 6,000 steps and not one more."""
    return Fraction(repr(value))
