"""Record and replay: every pipeline of the package on neighbours, and pipelines that are broken on purpose.

Replays are exact, so that none of these tests has false alarms.
"""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from privet.audit import Replay, ReplayError, replay
from privet.core.random import Rng, SeededRng
from privet.core.release import Release
from privet.core.unit import Unit
from privet.data import Category, ColumnKind, Number, Schema, Source, learning
from privet.local import MEANS, ORACLES
from privet.mechanisms import MECHANISMS, BoundedSum, Count, DiscreteLaplaceMechanism, LaplaceMechanism
from privet.pate import Confident, GNMax, LNMax, Plan, SmoothCeiling, Votes
from privet.query import plan as planned
from privet.training import DPSGD, Adaptive, PerLayer, fit
from privet.training.convex import InputPerturbation, ObjectivePerturbation, OutputPerturbation, Softmax
from privet.training.tuning import Trials, select
from tests.data.sources import sourced
from tests.mechanisms.examples import CASES, REPLACE, made, query_of
from tests.query.tables import BY_USER, NASTY, SCHEMA, frame

COUNT = Count()
NOISE = LaplaceMechanism.for_epsilon(1.0, COUNT)
ASKED = (
    "count where sick = 1",
    "count by ward",
    "sum(age) by ward",
    "mean(age)",
    "median(age) by ward",
    "top(ward, 1)",
)


def moved(found: Replay) -> dict[tuple[str, str], float]:
    return {(each.mechanism, each.norm): each.measured for each in found.moved}


# --- Pipelines of the package ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_mechanisms(name: str) -> None:
    """Fails when a mechanism is not frozen, or its clipper moves further than it says, for one row of each example."""
    rows = list(MECHANISMS[name].rows)
    unit = next(unit for each, unit in CASES if each == name)
    mechanism, clip, _ = made(name, unit)

    def pipeline(rows: list[Any], rng: Rng) -> Release[Any]:
        return mechanism.release(query_of(name, clip, rows), rng=rng)  # type: ignore[no-any-return]

    for row in range(len(rows)):
        fewer = [*rows[:row], *rows[row + 1 :]]
        if unit == REPLACE:
            fewer.append(rows[0])
        found = replay(pipeline, rows, fewer)
        found.check()
        assert found.calls == 1
        assert found.moved


@pytest.mark.parametrize("schema", [SCHEMA, BY_USER], ids=["example", "user"])
def test_queries(schema: Schema) -> None:
    """Fails when an answer of a table (count, sum, mean, quantile, groups, private groups) goes around a mechanism."""
    made = planned([*ASKED, "count by town"], schema, epsilon=1.0, delta=1e-6)
    gone = [row for row in NASTY if row["id"] == "a"][: None if schema.user else 1]
    fewer = [row for row in NASTY if row not in gone]
    found = replay(lambda rows, rng: made.answer(frame(rows), rng=rng), NASTY, fewer)
    found.check()
    assert found.calls > len(ASKED)
    assert any(each.measured > 0 for each in found.moved)


def trained(plan: DPSGD, data: tuple[torch.Tensor, torch.Tensor], rng: Rng, users: Any = None) -> Release[nn.Module]:
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))  # torch's own state is the same for both
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    return fit(model, data, plan, loss=per_example, optimizer=optimizer, rng=rng, users=users)


def per_example(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(output, target, reduction="none")


def rows_of(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(3)
    x = torch.randn(count, 4, generator=drawn)
    x[-1] *= 50
    return x, torch.randint(0, 3, (count,), generator=drawn)


@pytest.mark.parametrize(
    "knobs",
    [{}, {"noise": "lattice"}, {"clipping": PerLayer()}, {"clipping": Adaptive(count_noise=4.0)}, {"average": 0.5}],
    ids=["flat", "lattice", "per layer", "adaptive", "average"],
)
def test_training_with_a_row_more(knobs: dict[str, Any]) -> None:
    """Fails when a step's sum moves by more than the clip for a huge row, or the row moves anything but that sum."""
    plan = DPSGD(noise_multiplier=1.0, delta=1e-5, clip=0.5, batch_size=16, steps=2, population=40, **knobs)
    x, y = rows_of(41)
    if not knobs:
        replay(lambda data, rng: trained(plan, data, rng), (x, y), (x[:-1], y[:-1])).check()
    found = replay(lambda data, rng: trained(plan, data, rng), (x[:-1], y[:-1]), (x, y))
    found.check()
    assert found.calls == 4
    # The row is in every batch of the neighbour, and is far longer than the clip.
    assert 0.3 < moved(found)["step", "l2"] < 0.6  # an adaptive clip moves


@pytest.mark.parametrize("batches", ["poisson", "fixed-size", "shuffled"])
def test_training_with_a_blank_row(batches: str) -> None:
    """Fails when a row of NaN, which counts for nothing, is counted all the same; and for users with several rows."""
    length = {"epochs": 1} if batches == "shuffled" else {"steps": 3}
    plan = DPSGD(noise_multiplier=1.0, delta=1e-5, clip=0.5, batch_size=20, batches=batches, **length)  # type: ignore[arg-type]
    x, y = rows_of(40)
    blank = x.clone()
    blank[-1] = torch.nan
    replay(lambda data, rng: trained(plan, data, rng), (x, y), (blank, y)).check()
    if batches == "poisson":
        blank[-4:] = torch.nan
        of_users = DPSGD(noise_multiplier=1.0, delta=1e-5, clip=0.5, batch_size=5, steps=3)
        replay(lambda data, rng: trained(of_users, data, rng, np.arange(40) // 4), (x, y), (blank, y)).check()


def test_convex_training() -> None:
    """Fails when a minimum moves further than L/Λ, or anything but the weights depends on a row."""
    drawn = np.random.default_rng(1)
    x, y = drawn.normal(size=(60, 3)), drawn.integers(0, 2, 60)
    fewer = (x[:-1], y[:-1])
    output = OutputPerturbation(Softmax(2), epsilon=1.0, delta=1e-5, regularization=2.0)
    found = replay(lambda data, rng: output.fit(*data, source="rows", rng=rng), (x, y), fewer)
    found.check()
    assert moved(found)["OutputPerturbation", "l2"] > 0
    objective = ObjectivePerturbation(Softmax(2), epsilon=2.0, delta=1e-5, regularization=20.0)
    replay(lambda data, rng: objective.fit(*data, source="rows", rng=rng), (x, y), fewer).check()
    schema = sourced(Schema((Number("a", -1, 1), Category("b", ("0", "1")), Category("sick", ("no", "yes"))), "sick"))
    told = InputPerturbation(schema, 1.0)
    codes = np.stack([x[:, 0], y], 1)
    other = codes.copy()
    other[7] = np.nan
    found = replay(lambda rows, rng: told.fit(rows, y, source="rows", rng=rng), codes, other)
    found.check()
    assert moved(found) == {("InputPerturbation", "rows"): 1.0}


def test_votes() -> None:
    """Fails when one teacher moves more than two counts by 1, or moves anything but labels: tests, counts, limits."""
    drawn = np.random.default_rng(2)
    ballots = drawn.integers(0, 3, (12, 20))
    other = ballots.copy()
    other[:, 4] = (other[:, 4] + 1) % 3
    for aggregator in (GNMax(3.0), LNMax(3.0), Confident(8, 3.0, 3.0)):
        ask = Plan(aggregator, questions=12, teachers=20, labels=3, answers=8)
        limit = SmoothCeiling(ask, 1e-5)

        def pipeline(cast: Any, rng: Rng, ask: Plan = ask, limit: SmoothCeiling = limit) -> Any:
            votes = Votes.cast(cast, labels=3)
            return ask.release(votes, rng=rng), limit.release(votes, rng=rng)

        found = replay(pipeline, ballots, other)
        found.check()
        assert moved(found)["Plan", "l1"] == 2
    both = other.copy()
    both[:, 5] = (both[:, 5] + 1) % 3
    assert not replay(pipeline, ballots, both).holds


@pytest.mark.parametrize("name", sorted(ORACLES))
def test_local_answers(name: str) -> None:
    """Fails when an estimate sees answers and not reports, or one answer is asked of two people."""
    oracle = ORACLES[name](8, 1.0)

    def pipeline(values: Any, rng: Rng) -> Any:
        return oracle.estimate(oracle.aggregate(oracle.randomize(values, rng)))

    values = np.arange(50) % 8
    other = values.copy()
    other[3] = 0
    found = replay(pipeline, values, other)
    found.check()
    assert [each.measured for each in found.moved] == [1.0]
    other[9] = 0
    assert not replay(pipeline, values, other).holds


def test_local_means() -> None:
    """The same for numbers."""
    values = np.linspace(-1, 1, 30)
    other = values.copy()
    other[0] = 1.0
    for kind in MEANS.values():
        mean = kind(1.0)
        replay(lambda given, rng, mean=mean: mean.release(given, rng=rng), values, other).check()  # type: ignore[misc]


def test_schemas(tmp_path: Path) -> None:
    """Fails when anything of a learned schema comes from rows by another way than a mechanism."""
    table = [(f"p{n}", str(20 + n % 45), "abc"[n % 3], str(n % 2)) for n in range(300)]

    def stored(rows: list[tuple[str, ...]]) -> Source:
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([("who", "size", "kind", "y"), *rows])
        (tmp_path / "t.csv").write_text(out.getvalue(), encoding="utf-8")
        return Source.of(tmp_path / "t.csv")

    def pipeline(rows: Any, rng: Rng) -> Any:
        source = stored(rows)
        return learning(source, "y", epsilon=1.0, delta=1e-6, kinds={"who": ColumnKind.IDENTIFIER}).release(
            source, rng=rng
        )

    found = replay(pipeline, table, [*table, ("z", "1e300", "never seen", "NA")])
    found.check()
    assert found.calls == 7


def test_selection() -> None:
    """Fails when the number of runs, the candidates or the best depend on rows otherwise than by the runs' releases."""

    def pipeline(rows: list[bool], rng: Rng) -> Any:
        def run(number: float) -> Release[tuple[float, float]]:
            return NOISE.release(COUNT(rows), rng=rng).map(lambda value: (number, value))

        return select(Trials(0.2, 1.0), [0.1, 1.0, 2.0], run, rng, event=lambda _: NOISE.event)

    found = replay(pipeline, [True] * 9, [True] * 8)
    found.check()
    assert found.calls > 0
    assert found.draws > 0


# --- What is broken --------------------------------------------------------------------------------------------------


def told(rows: list[bool], rng: Rng) -> Any:
    return NOISE.release(COUNT(rows), rng=rng)


BROKEN = {
    "size told": (lambda rows, rng: (len(rows), told(rows, rng)), "the result[0] differs"),
    "a branch": (lambda rows, rng: told(rows, rng) if len(rows) > 8 else None, "1 mechanisms were asked"),
    "another noise": (
        lambda rows, rng: LaplaceMechanism(float(len(rows)), COUNT).release(COUNT(rows), rng=rng),
        "another event, unit or size",
    ),
    "one draw a row": (lambda rows, rng: (rng.uniform(len(rows)).shape[:0], told(rows, rng)), "drawn otherwise"),
    "an error": (lambda rows, rng: [told(rows, rng), rows[8]][:1], "raised IndexError on the neighbor"),
    "a warning": (lambda rows, rng: (warned(rows), told(rows, rng))[1], "warnings"),
    "a seed": (lambda rows, _: told(rows, SeededRng(1)), "a seeded generator of its own"),
    "a stream twice": (
        lambda rows, rng: [told(rows, rng.child("noise")) for _ in range(2)],
        "stream 'noise' was taken 2 times",
    ),
}


def warned(rows: list[bool]) -> int:
    if len(rows) > 8:
        warnings.warn("many rows", stacklevel=1)
    return 0


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_what_goes_around_a_mechanism_is_found(name: str) -> None:
    """Fails when the replay is blind to a size, a branch, an event, a number of draws, an error, a warning, or a seed
    that is used again."""
    pipeline, said = BROKEN[name]
    found = replay(pipeline, [True] * 9, [True] * 8)
    assert not found.holds
    assert any(said in each for each in found.differences)
    with pytest.raises(ReplayError, match="does not hold"):
        found.check()


def test_laplace_for_the_wrong_neighbours() -> None:
    """Fails when a sum on [-1, 1] made for rows that come and go passes for rows that are replaced: it moves by 2."""
    total = BoundedSum(-1.0, 1.0, Unit())
    noise = LaplaceMechanism.for_epsilon(1.0, total)
    found = replay(lambda rows, rng: noise.release(total(rows), rng=rng), [0.5, 1.0], [0.5, -1.0])
    assert not found.holds
    assert moved(found)["LaplaceMechanism", "l1"] == 2
    assert [each.declared for each in found.moved if each.norm == "l1"] == [1]


def test_division_by_the_realised_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a step that divides by the rows there are passes: then one row moves the others' share as well."""
    from privet.training.step import Step

    usual = Step.total

    def realised(self: Step, count: float) -> float:
        self.sum.flat.mul_((self.plan.batch_size or 1) / max(1, self.seen))
        return usual(self, count)

    plan = DPSGD(noise_multiplier=0.1, delta=1e-5, clip=0.5, batch_size=8, sample_rate=1.0, steps=1)
    x, y = rows_of(8)
    x, y = x[:1].repeat(8, 1), y[:1].repeat(8)  # all alike: their mean stays, and their sum moves by the clip
    x[-1], y[-1] = -x[0], (y[0] + 1) % 3
    pair = (x, y), (x[:-1], y[:-1])
    replay(lambda data, rng: trained(plan, data, rng), *pair).check()
    monkeypatch.setattr(Step, "total", realised)
    found = replay(lambda data, rng: trained(plan, data, rng), *pair)
    assert not found.holds
    assert moved(found)["step", "l2"] > 0.5 * 1.2


def test_a_clip_that_is_ignored_for_one_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when a layer whose gradients are not clipped passes."""
    from privet.training.clipping import Factors, Flat

    usual = Flat.factors

    def ignored(self: Flat, squares: Any, clip: float, layers: Any) -> Factors:
        found = usual(self, squares, clip, layers)
        last = found.by_parameter[-1]
        return Factors([*found.by_parameter[:-1], None if last is None else torch.ones_like(last)], found.unclipped)

    plan = DPSGD(noise_multiplier=0.1, delta=1e-5, clip=0.1, batch_size=8, sample_rate=1.0, steps=1)
    x, y = rows_of(8)
    monkeypatch.setattr(Flat, "factors", ignored)
    found = replay(lambda data, rng: trained(plan, data, rng), (x, y), (x[:-1], y[:-1]))
    assert not found.holds
    assert moved(found)["step", "l2"] > 0.2


def test_a_threshold_that_nobody_pays_for() -> None:
    """Fails when questions are left out by votes without noise: a teacher decides how many are asked at all."""
    ballots = np.random.default_rng(4).integers(0, 2, (6, 9))
    other = ballots.copy()
    other[:, 0] = 1 - other[:, 0]

    def unpaid(cast: Any, rng: Rng) -> Any:
        votes = Votes.cast(cast, labels=2)
        passed = votes.counts.max(1) >= 6
        ask = Plan(GNMax(3.0), questions=int(passed.sum()), teachers=9, labels=2)
        return ask.release(Votes(votes.counts[passed], teachers=9), rng=rng)

    assert not replay(unpaid, ballots, other).holds


def test_a_mechanism_that_is_not_known_shows_itself() -> None:
    """Fails when noise that no tap freezes passes silently: its answers must come out as differences."""

    def pipeline(rows: list[bool], rng: Rng) -> float:
        return len(rows) + float(rng.normal(1)[0])

    assert replay(pipeline, [True] * 3, [True] * 2).differences == ("no mechanism was called", "the result differs")


def test_everything_is_put_back() -> None:
    """Fails when a mechanism stays tapped, or torch's random numbers move, also after an error that nobody expects."""
    before = DiscreteLaplaceMechanism.release, torch.random.get_rng_state()

    class Stop(BaseException):
        pass

    def pipeline(rows: Any, rng: Rng) -> None:
        torch.randn(3)
        raise Stop

    with pytest.raises(Stop):
        replay(pipeline, [1], [2])
    assert DiscreteLaplaceMechanism.release is before[0]
    assert torch.equal(torch.random.get_rng_state(), before[1])
