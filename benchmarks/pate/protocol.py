"""One run, teachers to student: private rows are divided, public ones asked about, and others tested on."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from benchmarks.pate.settings import DELTA, FAILURE, Settings
from privet.accounting import epsilon
from privet.core.random import SeededRng
from privet.data import Images, Table, named
from privet.ensemble import Ridge, VoteRegression, most_informative, most_typical, shards, shuffled_order, train, votes
from privet.pate import Plan, SmoothCeiling, Votes, data_dependent
from privet.training.models import Pictures, TableFeatures

__all__ = ["Outcome", "Set", "asked_of", "ballots", "drawn", "loaded", "run"]

_DATA = Path(os.environ.get("PRIVET_DATA") or Path(__file__).parents[3] / "shared" / "data")
_SHARE = 0.9
"""Of the public rows: the pool; the others are the test."""


@dataclass(frozen=True, eq=False)
class Set:
    """Private rows, and public ones, with their features."""

    private: Table | Images
    private_rows: Tensor
    labels: npt.NDArray[np.int64]
    public_rows: Tensor
    truth: npt.NDArray[np.int64]
    """Of the public rows: no teacher and no student sees it."""
    classes: int


@dataclass(frozen=True)
class Outcome:
    """One run."""

    accuracy: float
    """The student's, on public rows that nobody asked about or learned from; in percent, as all shares are."""
    pool_accuracy: float
    teacher: float
    plurality: float
    answers: int
    answers_right: float
    data_dependent: float
    """Private in earnest; here the data are published."""
    sanitised: float
    data_independent: float
    """Of the labels alone, whatever the votes are: what a ledger charges."""
    sanitiser: float
    """What a ledger charges for the sanitised number, beside it."""
    seconds: float
    """From private rows' features to the student's last label, prices included."""


def loaded(data: str, bins: int | None, cache: Path, *, simulate: int | None) -> Set:
    """A named set; simulated, a sixth of the *training* rows stand for the test file, which is not looked at."""
    found = named(data, _DATA)
    kept = found.train
    if simulate is None:
        public: Table | Images = found.test
        private = kept
        first, second = _features(kept, bins, cache), _features(public, bins, cache)
    else:
        order = shuffled_order(len(kept), key=f"simulated {simulate}")
        held = len(kept) // 6
        every = _features(kept, bins, cache)
        private, public = kept.take(order[held:], len(kept) - held), kept.take(order[:held], held)
        first, second = every[torch.from_numpy(order[held:].copy())], every[torch.from_numpy(order[:held].copy())]
    classes = len(kept.classes) if isinstance(kept, Images) else len(kept.schema.classes)
    return Set(private, first, _labels(private), second, _labels(public), classes)


def ballots(
    data: Set, rows: Tensor, teachers: int, penalty: float, key: str, *, level: bool = False
) -> npt.NDArray[np.int32]:
    """What every teacher says of every row."""
    divided = shards(data.private, teachers, key=key)
    found = train(Ridge(penalty, level), data.private_rows, data.labels, divided, classes=data.classes)
    return votes(found, rows)


def drawn(data: Set, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Pool and test: public rows in two parts."""
    order = shuffled_order(len(data.public_rows), key=f"split {seed}")
    size = int(_SHARE * len(order))
    return order[:size], order[size:]


def asked_of(pool: Tensor, settings: Settings, seed: int) -> npt.NDArray[np.int64]:
    """Which rows of the pool are asked about: decided without votes."""
    if settings.chosen == "telling":
        return most_informative(pool, settings.questions)
    return most_typical(pool, settings.questions, key=f"asked {seed}")


def run(data: Set, settings: Settings, seed: int) -> Outcome:
    """Everything that is random follows from the seed: shards, split, questions and noise."""
    begun = time.perf_counter()
    in_pool, in_test = drawn(data, seed)
    pool, test = (data.public_rows[torch.from_numpy(each.copy())] for each in (in_pool, in_test))
    asked = asked_of(pool, settings, seed)
    cast = ballots(
        data, pool[torch.from_numpy(asked)], settings.teachers, settings.penalty, f"shards {seed}", level=settings.level
    )
    counted = Votes.cast(cast, labels=data.classes)
    plan = Plan(settings.aggregator, len(asked), settings.teachers, data.classes)
    rng = SeededRng(seed)
    if isinstance(settings.student, VoteRegression):
        noisy = np.array(plan.counts(counted, rng=rng).value)
        labels = noisy.argmax(1)
        student = settings.student.student(pool, asked, noisy, data.classes)
        # No other price holds for counts, and this one may leave as it is.
        found = sanitised = plan.guarantee(DELTA).epsilon.upper
        sanitiser = 0.0
    else:
        labels = np.array(plan.release(counted, rng=rng).value, dtype=np.int64)
        student = settings.student.student(pool, asked, labels, data.classes)
        way = SmoothCeiling(plan, DELTA, settings.order, settings.beta, settings.noise_multiplier, FAILURE)
        sanitised = way.release(counted, rng=rng).value.epsilon
        found, sanitiser = data_dependent(plan, counted, DELTA).epsilon, _price(way)
    right = student.labels(test) == data.truth[in_test]
    seconds = time.perf_counter() - begun
    truth = data.truth[in_pool][asked]
    return Outcome(
        accuracy=100 * float(right.mean()),
        pool_accuracy=100 * float((student.labels(pool) == data.truth[in_pool]).mean()),
        teacher=100 * float((cast == truth[:, None]).mean()),
        plurality=100 * float((counted.counts.argmax(1) == truth).mean()),
        answers=len(labels),
        answers_right=100 * float((labels == truth).mean()),
        data_dependent=found,
        sanitised=sanitised,
        data_independent=plan.guarantee(DELTA).epsilon.upper,
        sanitiser=sanitiser,
        seconds=seconds,
    )


def _price(way: SmoothCeiling) -> float:
    return epsilon(way.event, DELTA, unit=way.plan.unit).epsilon.upper


def _features(rows: Table | Images, bins: int | None, cache: Path) -> Tensor:
    given = torch.from_numpy(rows.x)
    if isinstance(rows, Images):
        return Pictures(*rows.x.shape[1:3]).cached(given, cache)
    found: Tensor = TableFeatures(rows.schema, bins=bins or 16)(given)
    return found


def _labels(rows: Table | Images) -> npt.NDArray[np.int64]:
    return np.asarray(rows.y, dtype=np.int64)
