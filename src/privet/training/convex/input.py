"""Input perturbation: every record is randomized separately, and a model is fitted to the reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from privet.accounting import epsilon as price
from privet.core import InvalidInput, Neighbours, Pure, Release, Trust, Unit, checked
from privet.core.random import Rng
from privet.data import Category, Schema
from privet.mechanisms import RandomizedResponseMechanism
from privet.training.convex.losses import Array

__all__ = ["AdditiveModel", "InputPerturbation", "Randomized"]

_UNIT: Final = Unit(neighbours=Neighbours.REPLACE, trust=Trust.LOCAL)
_ENDS: Final = 2
"""A number to predict is told as one of the two ends of its range."""


@dataclass(frozen=True)
class InputPerturbation:
    """Plan for a model that is fitted to records, each of which is randomized before it is collected.

    Of its columns a record shows one, which a coin chooses that no data moves, and together with it the target: the
    pair is one of K answers, and is told by K-ary randomized response. To tell all d pairs, each for ε/d, would leave
    each frequency with about d times the variance at small ε (Wang et al. 2019 sample columns for the same reason).

    Guarantee: ε, with δ = 0, for one record that is *replaced* by any other, and trust is local: each report by itself
    satisfies it, whoever collects them. Given the column, the log-ratio of any report's chances under two records is at
    most ε (`RandomizedResponseMechanism`); the column is independent of the record, so that the same holds for column
    and report together. Whole records are protected, the target among them. To randomize the target alone would protect
    nothing but the target: that is another unit, which no budget of ours has, and so it is not offered. A person with
    several records is protected for one of them.

    Numbers are told as the bin that they are in, of equal widths between their public bounds; one that is missing has a
    bin of its own. A number that is to be predicted is rounded at random to one end of its range; its mean stays.

    >>> from privet.data.columns import Category, Number
    >>> age = Number("age", 0, 100, source="domain limit")
    >>> ward, sick = (Category(name, ("no", "yes"), source="codebook") for name in ("ward", "sick"))
    >>> schema = Schema((age, ward, sick), "sick")
    >>> plan = InputPerturbation(schema, epsilon=2.0)
    >>> plan.event.epsilon, str(plan.unit), [each.categories for each in plan.responses]
    (2.0, 'one example, replace, local', [10, 6])
    """

    schema: Schema
    """Columns, bounds and values, and which column is the target: all of it public."""
    epsilon: float
    bins: int = 4
    """For each number; the fewer there are, the less is lost to noise."""

    def __post_init__(self) -> None:
        if not isinstance(self.schema, Schema):
            raise InvalidInput("schema", f"is a {type(self.schema).__name__}", "give a privet.data.Schema")
        self.schema.require_sources()
        checked.count("bins", self.bins)
        if self.outputs < 2:
            raise InvalidInput("schema", "has a target of fewer than two classes", "list all classes in its values")
        _ = self.responses

    @property
    def unit(self) -> Unit:
        """Privacy unit: one record that is replaced, under local trust."""
        return _UNIT

    @property
    def event(self) -> Pure:
        """Privacy event of each record, known before any data is read."""
        return Pure(self.epsilon, self.unit.neighbours)

    @property
    def outputs(self) -> int:
        """Number of values in which the target is reported: its classes, or the two ends of its range."""
        label = self.schema.label
        if label is None:
            raise InvalidInput("schema", "has no target", "say which column is to be predicted")
        return len(label.values) if isinstance(label, Category) else _ENDS

    @cached_property
    def responses(self) -> tuple[RandomizedResponseMechanism, ...]:
        """For each column, the mechanism that reports its value together with the target."""
        return tuple(RandomizedResponseMechanism(self.epsilon, size * self.outputs) for size in self.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values in which each column is reported."""
        columns = self.schema.features
        return tuple(each.other + 1 if isinstance(each, Category) else self.bins + 1 for each in columns)

    def codes(self, x: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the rows as codes of the values that are reported.

        Args:
            x: Rows as in `Table.x`: numbers scaled to [-1, 1], and codes of categories.

        Returns:
            One code for each cell; a missing or unknown value gets the last code of its column.

        Raises:
            InvalidInput: `x` does not have one column for each feature of the schema.
        """
        cells = np.asarray(x, dtype=np.float64)
        if cells.ndim != 2 or cells.shape[1] != len(self.sizes):
            raise InvalidInput("x", "does not have one column for each of the schema", "give Table.x")
        last = np.array(self.sizes) - 1
        told = np.isfinite(cells)
        numbers = np.array([not isinstance(each, Category) for each in self.schema.features])
        binned = np.minimum(np.floor((np.clip(cells, -1, 1) + 1) / 2 * self.bins), self.bins - 1)
        found = np.where(told, np.where(numbers, binned, cells), last)
        return np.where((found >= 0) & (found <= last), found, last).astype(np.int64)

    def randomize(self, x: npt.NDArray[Any], y: npt.NDArray[Any], *, source: str, rng: Rng) -> Release[Randomized]:
        """Return one randomized report for each row, as the owner of the row would make it.

        Args:
            x: Rows as in `Table.x`: numbers scaled to [-1, 1], and codes of categories.
            y: Target of each row, as in `Table.y`.
            source: Name of the data in the release.
            rng: Source of randomness.

        Returns:
            The table of reports.

        Raises:
            InvalidInput: `x` and `y` differ in their number of rows, or `x` does not fit the schema.

        Guarantee: that of `event`, for `unit`. Row i moves report i and no other, and how many reports there are is
        public. A row that holds no number, or no class, is told as some other; nothing raises.
        """
        codes, truth = self.codes(x), self._targets(y, rng)
        if len(codes) != len(truth):
            raise InvalidInput("y", "has another number of rows than x")
        column = rng.below(len(self.sizes), len(codes))
        report = np.empty(len(codes), dtype=np.int64)
        for place, response in enumerate(self.responses):
            rows = np.flatnonzero(column == place)
            report[rows] = response.randomize(codes[rows, place] * self.outputs + truth[rows], rng=rng)
        table = Randomized(self, column, report)
        guarantee = price(self.event, 0.0, unit=self.unit)
        return Release.of(table, self.event, unit=self.unit, source=source, randomness=rng.kind, guarantee=guarantee)

    def fit(self, x: npt.NDArray[Any], y: npt.NDArray[Any], *, source: str, rng: Rng) -> Release[AdditiveModel]:
        """Fit the model to randomized reports of the rows.

        Args:
            x: Rows as in `Table.x`: numbers scaled to [-1, 1], and codes of categories.
            y: Target of each row, as in `Table.y`.
            source: Name of the data in the release.
            rng: Source of randomness.

        Returns:
            The additive (naive Bayes) model.

        Raises:
            InvalidInput: `x` and `y` differ in their number of rows, or `x` does not fit the schema.

        Guarantee: that of `randomize`, from whose reports it is computed.
        """
        return self.randomize(x, y, source=source, rng=rng).map(Randomized.model)

    def _targets(self, y: npt.NDArray[Any], rng: Rng) -> npt.NDArray[np.int64]:
        """Return classes; or one end for each number in [-1, 1], the upper one with probability (1 + y)/2."""
        found = np.nan_to_num(np.asarray(y, dtype=np.float64), nan=0.0, posinf=1e6, neginf=-1e6)
        if isinstance(self.schema.label, Category):
            return np.clip(found, 0, self.outputs - 1).astype(np.int64)
        return (rng.uniform(found.shape) < (1.0 + found) / 2.0).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Randomized:
    """Table of reports: for each record the sampled column, and the randomized pair of its value and the target."""

    plan: InputPerturbation
    column: npt.NDArray[np.int64] = field(repr=False)
    report: npt.NDArray[np.int64] = field(repr=False)
    """Value times the number of targets, plus target."""

    def __len__(self) -> int:
        return len(self.report)

    def shares(self) -> tuple[Array, ...]:
        """For each column, how often each value comes with each target: the likeliest shares, given the noise.

        They maximize the log-likelihood of the reports as they went through randomized response, which is what a loss
        corrected forward for the noise minimizes (Patrini et al. 2017), for values and targets at once.
        """
        found = []
        for place, response in enumerate(self.plan.responses):
            counts = np.bincount(self.report[self.column == place], minlength=response.categories)
            found.append(response.likeliest(counts).reshape(-1, self.plan.outputs))
        return tuple(found)

    def model(self) -> AdditiveModel:
        """Return the naive Bayes model: the target's frequencies, and those of each column's values given the target.

        Frequencies are shrunk toward each other by the size of the noise, so that noise is not taken for evidence.
        """
        shares = self.shares()
        reports = np.bincount(self.column, minlength=len(shares))
        weighed = sum(float(count) * share.sum(0) for count, share in zip(reports, shares, strict=True))
        prior = (np.asarray(weighed) + 1.0) / (reports.sum() + self.plan.outputs)
        weights = []
        for share, response, count in zip(shares, self.plan.responses, reports, strict=True):
            lie, apart = float(response.lie), float(response.keep - response.lie)
            noise = np.sqrt(lie * (1.0 - lie) / max(float(count), 1.0)) / apart
            smooth = share + (noise + 1.0 / max(float(count), 1.0)) * prior
            weights.append(np.log(smooth / smooth.sum(0)))
        return AdditiveModel(self.plan, np.log(prior), tuple(weights))


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """Additive model: the score of a row is a sum over its columns, with one term for the value in each."""

    plan: InputPerturbation
    bias: Array = field(repr=False)
    weights: tuple[Array, ...] = field(repr=False)
    """For each column (values, targets)."""

    def scores(self, x: npt.NDArray[Any]) -> Array:
        """Return the scores of rows.

        Args:
            x: Rows as in `Table.x`: numbers scaled to [-1, 1], and codes of categories.

        Returns:
            One score for each row and class; or one number for each row, on the target's scale of [-1, 1].
        """
        codes = self.plan.codes(x)
        found = np.tile(self.bias, (len(codes), 1))
        for place, weight in enumerate(self.weights):
            found += weight[codes[:, place]]
        if isinstance(self.plan.schema.label, Category):
            return found
        return np.tanh((found[:, 1:] - found[:, :1]) / 2.0)
