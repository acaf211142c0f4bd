"""Poisson sampling: every row has its own coin in every step. The default, and the best understood."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final

import numpy as np

from privet.core import Event, Leaf, Neighbours, Repeated, Sampled, checked
from privet.core import Poisson as PoissonSampling
from privet.core.random import Rng, discrete_laplace
from privet.training.sampling.protocol import IndependentSteps, Indices, SampledBatch, State, planned, whole

__all__ = ["PoissonSampler"]

_WORD: Final = 1 << 64
# A byte for each row is drawn in pieces that stay in the cache.
_PIECE: Final = 1 << 18
# Where skipping pays, as measured: from this many rows on, and if less than this share of them is drawn.
_MANY: Final = 1 << 20
_SPARSE: Final = Fraction(1, 1024)
_LONGEST_GAP: Final = 1 << 40


@dataclass(frozen=True)
class PoissonSampler(IndependentSteps):
    """Each of `rows` rows enters each batch with probability `sample_rate`, by itself.

    The rate is a public number, such as a batch size over a public population, and is never computed from `rows`: one
    row more or less changes neither the rate nor the event, so the guarantee covers add/remove neighbours.

    The chance of a row is never above `sample_rate`, and below it by less than 2^-64: only integers decide. It equals
    the rate exactly unless the rate is below 2^-20 or the data set is large (see `_skipping`).

    >>> from privet.core.random import SeededRng
    >>> PoissonSampler(sample_rate=0.5, steps=3, rows=12).draw(0, SeededRng(1)).units
    9
    """

    sample_rate: float
    steps: int
    rows: int
    neighbours: ClassVar[frozenset[Neighbours]] = frozenset(
        {Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT, Neighbours.REPLACE}
    )

    def __post_init__(self) -> None:
        rate = float(self.sample_rate) if isinstance(self.sample_rate, np.floating) else self.sample_rate
        object.__setattr__(self, "sample_rate", checked.probability("sample_rate", rate))
        object.__setattr__(self, "steps", whole("steps", self.steps))
        object.__setattr__(self, "rows", whole("rows", self.rows, 0))

    def draw(self, step: int, rng: Rng) -> SampledBatch:
        """Draw each row with probability `sample_rate`; an empty batch is a normal outcome.

        Args:
            step: Number of the step, counted from 0 over the whole run.
            rng: Source of randomness.

        Returns:
            The rows in ascending order.

        Raises:
            InvalidInput: The step is not part of the plan.
        """
        planned(step, self.steps)
        if self.sample_rate == 1:
            return SampledBatch.of_rows(np.arange(self.rows, dtype=np.int64))
        sparse = self.rows > _MANY and self.sample_rate < _SPARSE
        return SampledBatch.of_rows(self._skipping(rng) if sparse else self._coins(rng))

    def event(self, per_step: Leaf, steps: int) -> Event:
        """Return the event of some Poisson-sampled steps.

        Args:
            per_step: Event of one step on its batch, before subsampling.
            steps: Number of steps.
        """
        return Repeated(Sampled(per_step, PoissonSampling(self.sample_rate)), whole("steps", steps, 0))

    def state(self) -> State:
        """Return the plan alone, because no step depends on an earlier one."""
        return {"kind": "poisson", "sample_rate": self.sample_rate, "steps": self.steps}

    def _coins(self, rng: Rng) -> Indices:
        """A row is in if a uniform number of 72 bits is below ⌊rate·2^72⌋.

        One byte decides most rows; only where it equals the threshold's first byte are the other 64 bits drawn.
        """
        first, rest = self._threshold
        found = []
        for start in range(0, self.rows, _PIECE):
            count = min(_PIECE, self.rows - start)
            heads = rng.words(-(-count // 8)).view(np.uint8)[:count]
            likely = np.flatnonzero(heads <= first)
            open_still = np.flatnonzero(heads[likely] == first)
            kept = np.ones(len(likely), dtype=np.bool_)
            kept[open_still] = rng.words(len(open_still)) < np.uint64(rest)
            found.append(start + likely[kept])
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)

    def _skipping(self, rng: Rng) -> Indices:
        """The same law, at a cost that grows with the rows drawn and not with all rows.

        A discrete Laplace x of scale t, folded (x, or -x-1 below zero), is k ≥ 0 with weight exp(-k/t): exactly the
        gap between rows whose coins come up with 1 - exp(-1/t), a bit above the rate. A second coin for each of these
        rows brings the chance down to the rate, rounded down by less than 2^-64.
        """
        scale, second = self._skip
        found, start = [], 0
        while start < self.rows:
            wanted = math.ceil((self.rows - start) / scale)
            signed = discrete_laplace(scale, wanted + 4 * math.isqrt(wanted) + 4, rng)
            at = start - 1 + np.cumsum(np.where(signed < 0, ~signed, signed) + 1)
            found.append(at[at < self.rows])
            start = int(at[-1]) + 1
        first = np.concatenate(found)
        return first[rng.words(len(first)) < np.uint64(second)]

    @cached_property
    def _threshold(self) -> tuple[int, int]:
        """⌊rate·2^72⌋: its first byte, and the other 64 bits."""
        return divmod(math.floor(Fraction(self.sample_rate) * (_WORD << 8)), _WORD)

    @cached_property
    def _skip(self) -> tuple[int, int]:
        """The scale t, and ⌊2^64·rate/(1 - exp(-1/t))⌋."""
        rate = Fraction(self.sample_rate)
        # -ln(1 - q) ≤ q/(1 - q), so that t ≤ 1/q - 1 gives 1 - exp(-1/t) ≥ q.
        scale = min(math.floor(1 / rate) - 1, _LONGEST_GAP)
        # The alternating series for 1 - exp(-x), cut after a positive term, errs above, by less than x^10/10!.
        above = sum((Fraction((-1) ** (k + 1), scale**k * math.factorial(k)) for k in range(1, 10)), Fraction(0))
        return scale, min(math.floor(_WORD * rate / above), _WORD - 1)
