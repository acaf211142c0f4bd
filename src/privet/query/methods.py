"""How each question is answered: the events that are known beforehand, and the draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from privet import mechanisms
from privet.core import Event, Exponential, Release, Whose
from privet.core.random import Rng
from privet.mechanisms import (
    MOST_STEPS,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    Keys,
    LaplaceMechanism,
    NoiseGrid,
    Partitions,
    Reach,
    ThresholdedCounts,
    ceiling,
)
from privet.query.question_spec import Label, QuestionSpec
from privet.query.questions import TopKMeasure
from privet.query.tally import Totals
from privet.query.threshold_intervals import thresholded_interval

__all__ = ["BudgetShare", "NoiseKind", "QuestionMethod", "ReleasedValues", "on_grid"]

_FOR_GROUPS = 1 / 3
"""What is spent on finding private groups; the rest is for their values."""


class NoiseKind(Enum):
    """The noise on sums and counts."""

    LAPLACE = "Laplace"
    GAUSSIAN = "Gaussian"


@dataclass(frozen=True)
class BudgetShare:
    """So much ε for Laplace noise, or so much ρ (zCDP) for Gaussian noise; and a δ for private groups."""

    noise: NoiseKind
    amount: float
    delta: float = 0.0

    @property
    def pure(self) -> float:
        """The ε of something of which nothing more is known; ε-DP is ε²/2-zCDP (Bun & Steinke 2016, Prop. 1.4)."""
        return self.amount if self.noise is NoiseKind.LAPLACE else math.sqrt(2 * self.amount)

    @property
    def choice(self) -> float:
        """The ε of a choice by score, whose loss has a bounded range: ε²/8-zCDP (Durfee & Rogers 2019)."""
        return self.amount if self.noise is NoiseKind.LAPLACE else math.sqrt(8 * self.amount)

    def part(self, fraction: float) -> BudgetShare:
        """A part of it: both ε and ρ add up. The δ stays whole."""
        return replace(self, amount=self.amount * fraction)

    def additive(self, reach: Reach) -> LaplaceMechanism | GaussianMechanism:
        """Noise for sums of this reach."""
        if self.noise is NoiseKind.GAUSSIAN:
            return GaussianMechanism.for_rho(self.amount, reach)
        grid = NoiseGrid.for_noise(reach, "l1")
        return LaplaceMechanism(reach.span * ceiling(grid.contribution("l1")) * grid.step / self.amount, reach)


@dataclass(frozen=True)
class ReleasedValues:
    """What was released for one question: groups, and for each of them noisy sums or one chosen value."""

    groups: tuple[Label, ...]
    values: npt.NDArray[np.float64]
    """[groups, sums], or [groups, 1] for what was chosen."""


def on_grid(steps: npt.NDArray[Any], step: float, grid: NoiseGrid) -> npt.NDArray[np.float64]:
    """Whole multiples of `step` on the nearest multiples of the grid's step, in whole numbers.

    Both steps are powers of two. A sum of more than 2^53 steps is no float64, and rounding it to one first could move
    neighboring sums apart by more than the grid's theorem allows.

    >>> grid = NoiseGrid.for_noise(mechanisms.Reach(l1=1.0), "l1")
    >>> on_grid(np.array([2**60 + 3], dtype=object), 2.0**-40, grid).tolist()
    [1048576.0]
    """
    shift = math.frexp(grid.step)[1] - math.frexp(step)[1]
    if shift <= 0:
        whole = [int(number) << -shift for number in steps.reshape(-1)]
    else:
        half = 1 << (shift - 1)
        whole = [(int(number) + half) >> shift for number in steps.reshape(-1)]
    return np.array([min(max(number, -MOST_STEPS), MOST_STEPS) for number in whole], dtype=np.float64) * grid.step


@dataclass(frozen=True)
class QuestionMethod:
    """A question with its part of the budget."""

    spec: QuestionSpec
    share: BudgetShare

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """All that will be done, whatever the rows are."""
        return (*((self._finding.event,) if self._finding is not None else ()), *self._valuing)

    @property
    def _valuing(self) -> tuple[Event, ...]:
        if self._shown:
            return ()
        if self.spec.ranked:
            return (Exponential(self._quantile.epsilon),)
        return (self._top.event,) if self._chosen else (self.additive.event,)

    @property
    def _shown(self) -> bool:
        """Whether finding the groups also counts them: where one unit is one row, and rows are counted."""
        counted = self.spec.whole and not self.spec.ranked
        return self.spec.private and counted and self.spec.unit.whose is Whose.EXAMPLE

    @property
    def threshold(self) -> int | None:
        """The least noisy count that is shown, where groups are found by their counts."""
        return self._finding.threshold if isinstance(self._finding, ThresholdedCounts) else None

    def ends(self, noisy: float, confidence: float) -> tuple[float, float]:
        """The ends of an interval for one count, where a shown group has passed a threshold and where none has to."""
        finding = self._finding
        if isinstance(finding, ThresholdedCounts) and isinstance(finding.noise, DiscreteLaplaceMechanism):
            return thresholded_interval(round(noisy), finding.noise.scale, finding.threshold, confidence)
        width = self.width(confidence)
        # A count that noise took below 0 stands at 0, and may be as large as the noise is: never "from 0 to 0".
        return max(noisy - width, 0.0), max(noisy, 0.0) + width

    @property
    def _chosen(self) -> bool:
        return isinstance(self.spec.question.measure, TopKMeasure) and not self.spec.private

    @cached_property
    def _finding(self) -> Partitions | ThresholdedCounts | None:
        """What finds private groups."""
        if not self.spec.private:
            return None
        if self._shown:
            return ThresholdedCounts.laplace(self.share.pure, self.share.delta, Keys(self.spec.unit, 1))
        return self._partitions

    @property
    def _partitions(self) -> Partitions:
        share = self.share.part(_FOR_GROUPS)
        return Partitions.for_epsilon(share.pure, share.delta, Keys(self.spec.unit, self.spec.rows))

    @property
    def _rest(self) -> BudgetShare:
        return self.share.part(1 - _FOR_GROUPS) if self.spec.private else self.share

    @cached_property
    def additive(self) -> LaplaceMechanism | GaussianMechanism | ThresholdedCounts:
        """The noise on every sum."""
        if self._shown and isinstance(self._finding, ThresholdedCounts):
            return self._finding
        return self._public

    @cached_property
    def _public(self) -> LaplaceMechanism | GaussianMechanism:
        """The noise for the groups of the schema."""
        return self._noise(len(self.spec.groups or ()))

    def _noise(self, groups: int) -> LaplaceMechanism | GaussianMechanism:
        return self._rest.additive(self.spec.reach(groups))

    @property
    def _quantile(self) -> mechanisms.Quantile:
        return mechanisms.Quantile(self._rest.choice, self.spec.histogram, self.quantile)

    @property
    def quantile(self) -> float:
        """Which quantile is chosen, where one is."""
        return self.spec.share(self._rest.choice)

    @property
    def _top(self) -> mechanisms.TopK:
        measure = self.spec.question.measure
        k = measure.k if isinstance(measure, TopKMeasure) else 1
        groups = self.spec.groups or ()
        return mechanisms.TopK(self.share.part(1 / k).choice, self.spec.reach(len(groups)), k)

    def width(self, confidence: float) -> float:
        """How far one noisy sum is off, at most, or how many rows lie between a quantile and what was chosen."""
        if self.spec.ranked:
            return self._quantile.interval(confidence)
        return self._top.interval(confidence) if self._chosen else self.additive.interval(confidence)

    def joint_width(self, confidence: float) -> float:
        """The same for all sums of one group together (union bound)."""
        return self.width(1 - (1 - confidence) / self.spec.sums)

    @property
    def deviation(self) -> float:
        """About how large the error is, for a comparison of one kind of noise with another."""
        return 1 / self._rest.choice if self.spec.ranked or self._chosen else self.additive.expected_error

    def release(self, totals: Totals, *, rng: Rng, source: str) -> Release[ReleasedValues]:
        """The draws for one question, after the charge.

        Guarantee: the composition of `events`, for the unit of the schema, add/remove. Sums and counts: exact discrete
        noise on a grid (`privet.mechanisms`), in L1 or L2 for all groups together. Quantiles: one choice for each
        group, and a unit's rows, wherever they are, lose ε in proportion to their number, so that all choices together
        are one exponential mechanism of ε. Private groups: shown by partition selection; what is asked of them later
        depends on what was shown (adaptive composition). Without rows, the answers are noise.
        """
        if not self.spec.private:
            return self._valued(self.spec.groups or (), totals.public, rng, source)
        if totals.owners is None:
            raise RuntimeError("private groups are counted where they are asked for")
        owners = totals.owners.bounded()
        if isinstance(self._finding, ThresholdedCounts):
            return self._finding.release(owners, rng=rng, source=source).map(_counted)
        groups: Release[tuple[Label, ...]] = self._partitions.release(owners, rng=rng, source=source)
        none = np.zeros(self.spec.sums, dtype=totals.public.dtype)
        sums = np.array([totals.private.get(label, none) for label in groups.value], dtype=totals.public.dtype)
        values = self._valued(groups.value, sums.reshape(len(groups.value), self.spec.sums), rng, source)
        return Release.join(groups, values).map(lambda both: both[1])

    def _valued(
        self, groups: Sequence[Label], sums: npt.NDArray[Any], rng: Rng, source: str
    ) -> Release[ReleasedValues]:
        spec = self.spec
        if spec.ranked:
            chosen = [self._quantile.release(spec.histogram.reach.of(counts), rng=rng).value for counts in sums]
            quantiles = np.array(chosen, dtype=np.float64).reshape(len(groups), 1)
            (event,) = self._valuing
            drawn = ReleasedValues(tuple(groups), quantiles)
            return Release.of(drawn, event, unit=spec.unit, source=source, randomness=rng.kind)
        if self._chosen:
            top = self._top
            indices = top.release(top.reach.of(sums.reshape(-1)), rng=rng, source=source)
            return indices.map(
                lambda best: ReleasedValues(
                    tuple(groups[index] for index in best),
                    np.arange(1, len(best) + 1, dtype=np.float64).reshape(len(best), 1),
                )
            )
        noise = self._noise(len(groups)) if spec.private else self._public
        flat = np.zeros(noise.reach.dimension, dtype=object)
        flat[: sums.size] = sums.reshape(-1)
        noisy = noise.release(noise.reach.of(on_grid(flat, spec.step, noise.grid)), rng=rng, source=source)
        shape = (len(groups), spec.sums)
        return noisy.map(lambda value: ReleasedValues(tuple(groups), np.atleast_1d(value)[: sums.size].reshape(shape)))


def _counted(counts: dict[Label, int]) -> ReleasedValues:
    return ReleasedValues(tuple(counts), np.array(list(counts.values()), dtype=np.float64).reshape(len(counts), 1))
