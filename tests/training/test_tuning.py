"""Private selection: the number of runs has its law, only the best leaves, and what was drawn is never drawn again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from privet import accounting
from privet.core.codec import Record
from privet.core.errors import InvalidInput, NotProven, PrivetError
from privet.core.event import Composed, Event, Gaussian, Pure, Selected
from privet.core.random import SecureRng, SeededRng
from privet.core.random.keystream import Bytes
from privet.core.random.rng import Rng
from privet.core.randomness import Randomness
from privet.core.release import Release
from privet.core.unit import Neighbours, Unit
from privet.mechanisms import Count, LaplaceMechanism
from privet.training import DPSGD, fit
from privet.training.tuning import Best, Standing, Trials, draw, select, selection

RATES = [0.1, 0.3, 1.0, 3.0]
EVENT = Composed((Gaussian(4.0), Gaussian(9.0)))
TRIALS = Trials(0.2, 1.0)
DRAWS = 4000


def event(_: float) -> Event:
    return EVENT


@dataclass
class Runs:
    """Stands in for training: a run's model is its number, and its score comes from a list."""

    scores: Callable[[int], float]
    tried: list[float] = field(default_factory=list)
    randomness: Randomness = Randomness.SECURE
    fails_at: int | None = None

    def __call__(self, rate: float) -> Release[tuple[str, float]]:
        number = len(self.tried)
        if number == self.fails_at:
            self.fails_at = None
            raise KeyboardInterrupt
        self.tried.append(rate)
        model = Release.of(f"model {number}", Gaussian(4.0), unit=Unit(), source="clinic", randomness=Randomness.SECURE)
        score = Release.of(self.scores(number), Gaussian(9.0), unit=Unit(), source="clinic", randomness=self.randomness)
        return Release.join(model, score)


def seed_with(runs: int, trials: Trials = TRIALS) -> SeededRng:
    """A generator that draws this number of runs."""
    return next(SeededRng(i) for i in range(10_000) if draw(trials, SeededRng(i)) == runs)


@pytest.mark.parametrize(
    "trials",
    [
        *(Trials(gamma, 1.0) for gamma in (0.1, 0.7)),
        *(Trials(gamma) for gamma in (0.03, 0.5, 0.999)),
        *(Trials(gamma, shape) for gamma, shape in ((0.1, 0.4), (0.05, -0.1), (0.01, -0.5), (1e-3, -0.9))),
        *(Trials(gamma, shape) for gamma, shape in ((0.3, 2.0), (0.6, 3.7), (0.97, 1.5))),
    ],
    ids=str,
)
def test_the_number_of_runs_has_its_law(trials: Trials) -> None:
    """Catches a sampler of another law (untruncated, shifted by one, thinned twice).

    χ² over the first values and the tail; a correct sampler fails with probability 1e-6 under a seed taken at random.
    """
    rng = SeededRng(11)
    drawn = np.array([draw(trials, rng) for _ in range(DRAWS)])
    assert drawn.min() >= 1
    common = [k for k in range(1, 60) if trials.chance(k) * DRAWS >= 8]
    common = common[: next((i for i, k in enumerate(common) if k != i + 1), len(common))]
    expected = np.array([trials.chance(k) for k in common]) * DRAWS
    observed = np.array([np.count_nonzero(drawn == k) for k in common])
    rest = DRAWS - expected.sum(), DRAWS - observed.sum()
    if rest[0] >= 8:
        expected, observed = np.append(expected, rest[0]), np.append(observed, rest[1])
    else:
        expected *= observed.sum() / expected.sum()
    assert stats.chisquare(observed, expected).pvalue > 1e-6 if len(expected) > 1 else rest[1] < 60


def test_many_runs_are_drawn_quickly() -> None:
    """Catches a sampler that takes the square of the mean, or raises for a law that is only long; 5 draws of each."""
    for trials in (Trials.with_mean(2000.0), Trials.with_mean(500.0, -0.5), Trials.with_mean(3000.0, 2.0)):
        rng = SeededRng(3)
        assert all(draw(trials, rng) >= 1 for _ in range(5))


class Stuck(Rng):
    """A source that repeats one byte for ever."""

    def __init__(self, byte: int) -> None:
        self.byte = byte

    @property
    def kind(self) -> Randomness:
        return Randomness.SEEDED

    @property
    def _instead(self) -> str:
        return "use another"

    def _fill(self, out: Bytes) -> None:
        out[:] = self.byte


@pytest.mark.parametrize("shape", [0.0, 2.0])
def test_a_broken_source_is_found_out(shape: float) -> None:
    """Catches a loop that spins for ever where no coin ever comes up."""
    with pytest.raises(PrivetError, match="source of randomness"):
        draw(Trials(0.9, shape), Stuck(0xFF))


def test_the_best_is_released_and_nothing_else() -> None:
    """Catches the last or the worst instead of the best, and a release that tells of the other runs."""
    runs = Runs([0.2, 0.9, 0.5].__getitem__)
    release = select(TRIALS, RATES, runs, seed_with(3), event=event, delta=1e-5)
    assert release.value == Best(runs.tried[1], "model 1", 0.9)
    assert release.event == Selected(EVENT, TRIALS) == selection(TRIALS, RATES, event)
    assert len(release.draws) == 1
    assert release.source == ("clinic",)
    assert release.guarantee == accounting.epsilon(Selected(EVENT, TRIALS), 1e-5)
    assert release.tainted  # the generator was seeded
    for word in ("model 0", "model 2", "0.2", "0.5"):
        assert word not in repr(release.value)


def test_taint() -> None:
    """Catches a seed in one losing run, or in the number of runs, that the release does not tell of."""
    secure = select(TRIALS, RATES, Runs(float), SecureRng(), event=event)
    assert secure.randomness is Randomness.SECURE
    assert secure.guarantee is None
    seeded = Runs(lambda number: -float(number), randomness=Randomness.SEEDED)
    assert select(TRIALS, RATES, seeded, SecureRng(), event=event).tainted


def test_equal_scores_and_no_score() -> None:
    """Catches a NaN that wins, raises or ends the loop, and a later run that wins with an equal score."""
    nan, low = math.nan, -math.inf
    for scores, best in (([nan, 0.1, 0.1], 1), ([nan, nan, nan], 0), ([low, nan, -5.0], 2), ([1.0, nan, 0.0], 0)):
        found = select(TRIALS, RATES, Runs(scores.__getitem__), seed_with(3), event=event).value
        assert found.value == f"model {best}"


def test_candidates_are_drawn_uniformly_and_anew() -> None:
    """Catches a walk through the list, or candidates that do not come again: runs must be independent and alike.

    χ² of pairs of neighbouring runs; a correct choice fails with probability 1e-6 under a seed taken at random.
    """
    counts = np.zeros((4, 4))
    rng = SeededRng(5)
    for _ in range(300):
        runs = Runs(float)
        select(Trials(0.1, 1.0), RATES, runs, rng, event=event)
        for first, second in zip(runs.tried[::2], runs.tried[1::2], strict=False):
            counts[RATES.index(first), RATES.index(second)] += 1
    assert stats.chisquare(counts.reshape(-1)).pvalue > 1e-6


@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_a_crash_draws_nothing_again(fails_at: int) -> None:
    """Catches a number of runs or a candidate that is drawn again, a best that is forgotten, a run that is repeated."""
    kept: list[tuple[str, str | None]] = []

    def keep(standing: Standing, best: str | None) -> None:
        kept.append((standing.to_json(), best))

    scores = [0.9, 0.2, 0.5].__getitem__
    whole = Runs(scores)
    expected = select(TRIALS, RATES, whole, seed_with(3), event=event).value
    broken = Runs(scores, fails_at=fails_at)
    with pytest.raises(KeyboardInterrupt):
        select(TRIALS, RATES, broken, seed_with(3), event=event, keep=keep)
    assert len(kept) == fails_at + 1
    standing = Standing.from_json(kept[-1][0])
    assert repr(standing) == "Standing(internal)"
    assert len(standing.chosen) == 3
    found = select(TRIALS, RATES, broken, SecureRng(), event=event, keep=keep, standing=standing, best=kept[-1][1])
    assert found.value == expected
    assert broken.tried == whole.tried
    assert found.tainted  # the seed of the first life is remembered
    assert len(kept) == 4


def test_a_standing_of_something_else_is_refused() -> None:
    """Catches a selection that goes on with another law, list or event, without its best, or from a forged standing."""
    good = Standing(Selected(EVENT, TRIALS), 4, (0, 3, 1), 1, 0, 0.5, "clinic")
    assert Standing.from_json(good.to_json()) == good
    runs = Runs(float)
    for trials, rates, words in ((Trials(0.3, 1.0), RATES, "another"), (TRIALS, RATES[:3], "another")):
        with pytest.raises(InvalidInput, match=words):
            select(trials, rates, runs, SecureRng(), event=event, standing=good, best="model 0")
    with pytest.raises(InvalidInput, match="best"):
        select(TRIALS, RATES, runs, SecureRng(), event=event, standing=good)
    for bad in ({"chosen": ()}, {"chosen": (0, 4, 1)}, {"done": 4}, {"done": 0}, {"best": None}, {"candidates": 0}):
        fields = {"selected": good.selected, "candidates": 4, "chosen": (0, 3, 1), "done": 1, "best": 0, "score": 0.5}
        with pytest.raises(InvalidInput):
            Standing(**fields | bad)  # type: ignore[arg-type]
    assert runs.tried == []
    assert isinstance(good, Record)


def test_candidates_must_cost_the_same() -> None:
    """Catches a price of one candidate for all: here one of them has less noise."""
    with pytest.raises(InvalidInput, match="candidates differ"):
        selection(TRIALS, RATES, lambda rate: Gaussian(4.0 if rate < 3 else 3.9))
    with pytest.raises(InvalidInput, match="candidates is empty"):
        selection(TRIALS, [], event)
    swapped = Composed((Gaussian(9.0), Gaussian(4.0)))
    assert selection(TRIALS, RATES, lambda rate: EVENT if rate < 1 else swapped).trials == TRIALS


def test_a_run_must_be_what_was_announced() -> None:
    """Catches a run that did more than was priced, for another unit or on other data; the message has no numbers."""

    def other(event: Event = EVENT, unit: Unit | None = None, source: str = "clinic") -> Release[tuple[str, float]]:
        return Release.of(("model", 1.0), event, unit=unit or Unit(), source=source, randomness=Randomness.SECURE)

    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: other(Gaussian(4.0)), "announced"),
        (lambda: other(unit=Unit(records=2)), "protects"),
        (lambda: ("model", 1.0), "where a Release"),
        (lambda: Release.join(other(Gaussian(4.0)), other(Gaussian(9.0), source="ward")), "source"),
    ]
    for make, words in cases:
        with pytest.raises(InvalidInput, match=words):
            select(TRIALS, RATES, lambda _, make=make: make(), SecureRng(), event=event)  # type: ignore[misc]
    names = iter(("clinic", "ward", "ward"))
    with pytest.raises(InvalidInput, match="source"):
        select(TRIALS, RATES, lambda _: other(source=next(names)), seed_with(3), event=event)


def test_nothing_is_drawn_without_a_price() -> None:
    """Catches runs that are made before it is known that their selection has a price for the unit."""
    runs = Runs(float)
    with pytest.raises(NotProven):
        select(
            TRIALS,
            RATES,
            runs,
            SecureRng(),
            event=lambda _: Pure(1.0, Neighbours.REPLACE),
            unit=Unit(neighbours=Neighbours.ADD_REMOVE),
        )
    with pytest.raises(InvalidInput, match="delta"):
        select(TRIALS, RATES, runs, SecureRng(), event=event, delta=2.0)
    assert runs.tried == []


def test_no_fixed_number_of_runs() -> None:
    """The best of ten runs, always ten, has no such price: there is no way to ask for it."""
    with pytest.raises(InvalidInput, match="trials"):
        select(10, RATES, Runs(float), SecureRng(), event=event)  # type: ignore[arg-type]


def test_tuning_a_model() -> None:
    """Catches announced events that real training and a real score do not keep to."""
    rng = SeededRng(2)
    inputs = torch.from_numpy(rng.normal((120, 3), dtype=np.float32))
    targets = (inputs[:, 0] > 0).long()
    plan = DPSGD(clip=1.0, noise_multiplier=3.0, batch_size=40, steps=3, population=120)
    hits = Count()
    score = LaplaceMechanism.for_epsilon(0.5, hits)

    def run(rate: float) -> Release[tuple[nn.Module, float]]:
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        loss = nn.CrossEntropyLoss(reduction="none")
        trained = fit(model, (inputs, targets), plan, loss=loss, optimizer=optimizer, rng=rng, delta=1e-3)
        right = trained.value(inputs).argmax(dim=1).eq(targets).tolist()
        return Release.join(trained, score.release(hits(right), rng=rng, source=trained.source[0]))

    once = Composed((plan.event(), score.event))
    found = select(Trials(0.4, 1.0), [0.01, 1.0], run, rng, event=lambda _: once, delta=1e-3)
    assert isinstance(found.value.value, nn.Linear)
    assert found.guarantee is not None
    assert accounting.upper(once, 1e-3) < found.guarantee.epsilon.upper < 3 * accounting.upper(once, 1e-3)
