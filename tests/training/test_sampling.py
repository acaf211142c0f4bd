"""Samplers do what their events say: which rows come, how often, how independently, and what a restart may not do.

Everything is seeded. The rate stated is the chance that a correct sampler fails under a seed picked at random; every
statistical test below has a rate of about `ALARM`, split over its comparisons.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privet import accounting
from privet.core.errors import InvalidInput, NotProven
from privet.core.event import Gaussian, Joint, Repeated, Sampled, ShuffledEpoch, WithoutReplacement
from privet.core.event import Poisson as PoissonSampling
from privet.core.random import SeededRng, default_rng, discrete_laplace
from privet.core.random.keystream import Bytes
from privet.core.random.rng import Rng
from privet.core.randomness import Randomness
from privet.core.unit import Neighbours, Unit, Whose
from privet.training.sampling import (
    FixedSizeSampler,
    PoissonSampler,
    SampledBatch,
    Sampler,
    ShuffledSampler,
    UserSampler,
)
from privet.training.sampling.fixed_size import _listed, _marked
from privet.training.sampling.shuffled import _permutation

ALARM = 1e-6
NOISE = Gaussian(1.0)


def fits(observed: npt.ArrayLike, expected: npt.ArrayLike) -> None:
    """Pearson's χ² of independent categories, both tails: too far off fails, and so does too close to be true."""
    observed, expected = np.asarray(observed, dtype=float), np.asarray(expected, dtype=float)
    assert expected.min() > 5
    statistic = float(((observed - expected) ** 2 / expected).sum())
    law = stats.chi2(len(expected) - 1)
    assert law.ppf(ALARM / 2) < statistic < law.ppf(1 - ALARM / 2)


def frequent(observed: npt.ArrayLike, trials: int, chance: float) -> None:
    """Every count agrees with Binomial(trials, chance), the rate of false alarms shared among them."""
    counts = np.asarray(observed).reshape(-1)
    share = ALARM / 2 / len(counts)
    low, high = stats.binom.ppf([share, 1 - share], trials, chance)
    assert low <= counts.min()
    assert counts.max() <= high


def inclusions(draw: Callable[[int], npt.NDArray[np.int64]], rows: int, steps: int) -> npt.NDArray[np.int64]:
    """Which row was in which step, as 0 and 1; no batch has a row twice."""
    table = np.zeros((steps, rows), dtype=np.int64)
    for step in range(steps):
        np.add.at(table[step], draw(step), 1)
    assert table.max() <= 1
    return table


def poisson_by(how: str, rate: float, rows: int, steps: int, seed: int) -> npt.NDArray[np.int64]:
    """Poisson batches by one of the two ways, whatever the number of rows would choose."""
    sampler, rng = PoissonSampler(rate, steps, rows), SeededRng(seed)
    draw = {"coins": sampler._coins, "skipping": sampler._skipping}[how]
    return inclusions(lambda _: draw(rng), rows, steps)


SAMPLERS: dict[str, Callable[[], Sampler]] = {
    "poisson": lambda: PoissonSampler(0.2, 30, 20),
    "fixed": lambda: FixedSizeSampler(4, 20, 30),
    "shuffled": lambda: ShuffledSampler(6, 20, 5),
    "users": lambda: UserSampler(PoissonSampler(0.2, 30, 20), np.arange(60) % 20, 2),
    "shuffled users": lambda: UserSampler(ShuffledSampler(6, 20, 5), np.arange(60) % 20, 2),
}
every = pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)


# --- Poisson -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.003, 0.02, 0.25, 1 / 3, 0.5, 0.9, 255 / 256, 0.999])
def test_poisson_rows_come_as_often_as_the_event_says(rate: float) -> None:
    """Catches a rate taken from the number of batches, and a byte compared with ≤ where < is meant."""
    rows, steps, rng = 300, 400, SeededRng(1)
    sampler = PoissonSampler(rate, steps, rows)
    event = sampler.event(NOISE, steps)
    assert event == Repeated(Sampled(NOISE, PoissonSampling(rate)), steps)
    table = inclusions(lambda step: sampler.draw(step, rng).indices, rows, steps)
    frequent(table.sum(), rows * steps, rate)
    frequent(table.sum(axis=0), steps, rate)
    frequent(table.sum(axis=1), rows, rate)  # the size of a batch varies as it must


@pytest.mark.parametrize("how", ["coins", "skipping"])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.45])
def test_every_set_of_rows_has_its_own_probability(how: str, rate: float) -> None:
    """Catches rows that depend on each other in any way, and gaps of a wrong law: all 2^4 batches are counted."""
    rows, steps = 4, 5000
    table = poisson_by(how, rate, rows, steps, seed=3)
    counts = Counter(map(tuple, table.tolist()))
    sets = list(product((0, 1), repeat=rows))
    expected = [steps * rate ** sum(each) * (1 - rate) ** (rows - sum(each)) for each in sets]
    large = [i for i, n in enumerate(expected) if n > 5]
    rest = sum(expected[i] for i in range(len(sets)) if i not in large)
    fits(
        [*(counts[sets[i]] for i in large), *([steps - sum(counts[sets[i]] for i in large)] if rest > 5 else [])],
        [*(expected[i] for i in large), *([rest] if rest > 5 else [])],
    )


@pytest.mark.parametrize("how", ["coins", "skipping"])
def test_pairs_of_rows_and_pairs_of_steps_are_independent(how: str) -> None:
    """Catches bits used for two rows, or carried from one step to the next."""
    rate, rows, steps = 0.2, 40, 4000
    table = poisson_by(how, rate, rows, steps, seed=4)
    pairs = (table.T @ table)[np.triu_indices(rows, 1)]
    frequent(pairs, steps, rate**2)
    frequent((table[0::2] * table[1::2]).sum(axis=0), steps // 2, rate**2)
    shifted = np.roll(table[1::2], 1, axis=1)  # a row in one step, its neighbour in the next
    frequent((table[0::2] * shifted).sum(axis=0), steps // 2, rate**2)


@pytest.mark.parametrize("how", ["coins", "skipping"])
def test_rows_drawn_in_pieces_have_the_same_law(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a piece that starts at a wrong row, or decides one twice: pieces of 3 rows, or of 2 gaps, at a time."""
    monkeypatch.setattr("privet.training.sampling.poisson._PIECE", 3)
    monkeypatch.setattr(
        "privet.training.sampling.poisson.discrete_laplace", lambda scale, size, rng: discrete_laplace(scale, 2, rng)
    )
    rate, rows, steps = 0.3, 10, 3000
    table = poisson_by(how, rate, rows, steps, seed=14)
    frequent(table.sum(axis=0), steps, rate)
    frequent((table.T @ table)[np.triu_indices(rows, 1)], steps, rate**2)


class Told(Rng):
    """Gives the words that it is told, to stand at the edge of a comparison."""

    def __init__(self, *calls: bytes) -> None:
        self._calls = list(calls)

    @property
    def kind(self) -> Randomness:
        return Randomness.SEEDED

    def _fill(self, out: Bytes) -> None:
        if len(out):
            told = self._calls.pop(0)
            out[:] = np.frombuffer(told, dtype=np.uint8)[: len(out)]

    @property
    def _instead(self) -> str:
        return "make another"


@given(st.floats(min_value=2.0**-80, max_value=1.0, exclude_max=True))
def test_the_threshold_of_a_coin_is_the_rate_rounded_down(rate: float) -> None:
    """Catches a chance above the rate that is paid for: 72 bits just below ⌊rate·2^72⌋ are in, just above are out."""
    threshold = math.floor(Fraction(rate) * 2**72)
    assert 0 <= Fraction(rate) - Fraction(threshold, 2**72) < Fraction(1, 2**64)
    if rate >= 2.0**-20:
        assert Fraction(threshold, 2**72) == Fraction(rate)
    first, rest = divmod(threshold, 2**64)
    sampler = PoissonSampler(rate, 1, 8)
    heads = bytes([first, 0, 255, first, max(first - 1, 0), min(first + 1, 255), first, first])
    tails = {"below": rest - 1, "at": rest}
    for name, tail in tails.items():
        if tail < 0:
            continue
        drawn = set(sampler._coins(Told(heads, tail.to_bytes(8, "little") * 8)).tolist())
        expected = {i for i, head in enumerate(heads) if head < first or (head == first and tail < rest)}
        assert drawn == expected, name


@given(st.floats(min_value=2.0**-60, max_value=2.0**-10))
def test_the_chance_when_skipping_is_the_rate_rounded_down(rate: float) -> None:
    """Catches a second coin that is a little too kind: gaps and coin together, in 80 digits."""
    scale, second = PoissonSampler(rate, 1, 10)._skip
    with mpmath.workdps(80):
        chance = -mpmath.expm1(mpmath.mpf(-1) / scale) * second / 2**64
        assert 0 <= mpmath.mpf(rate) - chance < mpmath.mpf(2) ** -64


def test_large_data_sets_are_sampled_at_their_rate() -> None:
    """Catches gaps that start a row late, lose the last rows or favour a part of a large data set."""
    rows, steps, rate, rng = 3_000_000, 40, 2e-4, SeededRng(5)
    sampler = PoissonSampler(rate, steps, rows)
    drawn = [sampler.draw(step, rng).indices for step in range(steps)]
    for each in drawn:
        assert (np.diff(each) > 0).all()
        assert 0 <= each[0] <= each[-1] < rows
    fits(np.histogram(np.concatenate(drawn), bins=10, range=(0, rows))[0], np.full(10, sum(map(len, drawn)) / 10))
    frequent([sum(map(len, drawn))], rows * steps, rate)


def test_edges_of_large_data_sets_are_reached() -> None:
    """Catches a first or last row that is never drawn when skipping."""
    table = poisson_by("skipping", 0.3, 7, 3000, seed=6)
    frequent(table.sum(axis=0), 3000, 0.3)


def test_a_rate_of_one_takes_every_row_and_a_tiny_one_takes_none() -> None:
    """Catches empty batches that crash, and an off-by-one at the certain end."""
    everyone = PoissonSampler(1.0, 2, 1000).draw(1, SeededRng(1))
    assert everyone.indices.tolist() == list(range(1000))
    nobody = PoissonSampler(1e-300, 1, 1000).draw(0, SeededRng(1))
    assert (nobody.indices.dtype, len(nobody.indices), nobody.units) == (np.dtype(np.int64), 0, 0)


def test_one_row_more_changes_neither_the_rate_nor_the_event() -> None:
    """Catches a rate or an event computed from the private number of rows (as where ⌊n·q⌋ moves), on D and D ∪ {x}."""
    for rows in (99, 100, 101, 999, 1000):
        less, more = PoissonSampler(0.01, 10, rows), PoissonSampler(0.01, 10, rows + 1)
        assert less.event(NOISE, 10) == more.event(NOISE, 10)
        assert less.state() == more.state()


# --- fixed size ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch_size", "rows"), [(1, 5), (2, 6), (3, 6), (4, 6), (5, 6)])
def test_every_subset_is_equally_likely(batch_size: int, rows: int) -> None:
    """Catches a biased subset, and a complement taken where it should not be: all subsets are counted."""
    steps, rng = 6000, SeededRng(7)
    sampler = FixedSizeSampler(batch_size, rows, steps)
    counts = Counter(tuple(sampler.draw(step, rng).indices.tolist()) for step in range(steps))
    sets = list(combinations(range(rows), batch_size))
    assert set(counts) <= set(sets)
    fits([counts[each] for each in sets], np.full(len(sets), steps / len(sets)))


def test_both_ways_of_drawing_a_subset_agree() -> None:
    """Catches an error in the way that is used only for large data sets."""
    ways: list[Callable[[SeededRng], npt.NDArray[np.int64]]] = [
        lambda rng: _listed(3, 7, rng),
        lambda rng: np.flatnonzero(_marked(3, 7, rng)),
    ]
    for draw in ways:
        rng, sets = SeededRng(8), list(combinations(range(7), 3))
        counts = Counter(tuple(draw(rng).tolist()) for _ in range(6000))
        fits([counts[each] for each in sets], np.full(len(sets), 6000 / len(sets)))


@given(st.integers(1, 3000), st.data())
def test_a_fixed_batch_has_exactly_its_size(rows: int, data: st.DataObject) -> None:
    """Catches repeated rows, short batches and rows that do not exist; and an event of another size."""
    batch_size = data.draw(st.integers(1, rows))
    sampler = FixedSizeSampler(batch_size, rows, 2)
    drawn = sampler.draw(1, SeededRng(rows))
    assert drawn.units == batch_size == len(set(drawn.indices.tolist()))
    assert 0 <= drawn.indices.min() <= drawn.indices.max() < rows
    assert sampler.event(NOISE, 2) == Repeated(Sampled(NOISE, WithoutReplacement(batch_size, rows)), 2)


def test_steps_of_fixed_batches_are_independent() -> None:
    """Catches a batch that avoids, or repeats, the rows of the one before."""
    rows, steps, rng = 30, 4000, SeededRng(9)
    sampler = FixedSizeSampler(6, rows, steps)
    table = inclusions(lambda step: sampler.draw(step, rng).indices, rows, steps)
    frequent(table.sum(axis=0), steps, 6 / 30)
    frequent((table[0::2] * table[1::2]).sum(axis=0), steps // 2, (6 / 30) ** 2)
    frequent((table.T @ table)[np.triu_indices(rows, 1)], steps, 6 * 5 / (30 * 29))


# --- shuffled epochs -----------------------------------------------------------------------------------------------


@given(st.integers(1, 60), st.integers(1, 70), st.integers(1, 4))
def test_every_epoch_uses_every_row_exactly_once(rows: int, batch_size: int, epochs: int) -> None:
    """Catches a dropped last batch, a repeated row, and an event with another number of batches or epochs."""
    sampler, rng = ShuffledSampler(batch_size, rows, epochs), SeededRng(rows)
    batches = math.ceil(rows / batch_size)
    assert sampler.steps_of() == batches * epochs
    for epoch in range(epochs):
        drawn = [sampler.draw(epoch * batches + place, rng).indices for place in range(batches)]
        assert sorted(np.concatenate(drawn).tolist()) == list(range(rows))
        assert all(len(each) == batch_size for each in drawn[:-1])
        assert 1 <= len(drawn[-1]) <= batch_size
    assert sampler.event(NOISE, sampler.steps_of()) == Repeated(Sampled(NOISE, ShuffledEpoch(batches)), epochs)


def test_an_epoch_that_was_begun_is_paid_in_full() -> None:
    """Catches a stopped run that pays for a part of an epoch: the rows already used were used."""
    sampler = ShuffledSampler(4, 10, 5)
    begun = [sampler.event(NOISE, steps) for steps in (0, 1, 3, 4, 15)]
    assert [event.count for event in begun if isinstance(event, Repeated)] == [0, 1, 1, 2, 5]


def test_every_order_is_equally_likely_and_epochs_are_independent() -> None:
    """Catches a biased shuffle (24 orders of 4 rows), and an order that follows from the one before."""
    epochs, rng = 6000, SeededRng(10)
    sampler = ShuffledSampler(1, 4, epochs)
    drawn = [int(sampler.draw(step, rng).indices[0]) for step in range(4 * epochs)]
    orders = [tuple(drawn[step : step + 4]) for step in range(0, 4 * epochs, 4)]
    counts = Counter(orders)
    fits([counts[each] for each in permutations(range(4))], np.full(24, epochs / 24))
    joint = Counter(zip(drawn[0::8], drawn[4::8], strict=True))
    fits([joint[a, b] for a, b in product(range(4), repeat=2)], np.full(16, epochs / 2 / 16))


def test_equal_keys_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches ties that are settled by the row number, which would favour some orders."""
    fills = []

    class Poor:
        def __init__(self, key: bytes) -> None:
            self.rounds = 0

        def fill(self, out: Bytes) -> None:
            self.rounds += 1
            fills.append(self.rounds)
            out[:] = 0 if self.rounds < 3 else np.arange(5, 0, -1, dtype="<u8").view(np.uint8)

    monkeypatch.setattr("privet.training.sampling.shuffled.Keystream", Poor)
    assert _permutation(5, b"").tolist() == [4, 3, 2, 1, 0]
    assert fills == [1, 2, 3]


def test_a_restarted_epoch_goes_on_where_it_stopped() -> None:
    """Catches a restart that shuffles anew: rows would be used twice in an epoch that is paid once."""
    first = ShuffledSampler(3, 20, 3)
    before = [first.draw(step, SeededRng(step)).indices for step in range(10)]
    saved = json.loads(json.dumps(first.state()))
    second = ShuffledSampler(3, 20, 3)
    second.load(saved)
    assert second.next_step(10) == 10
    after = [second.draw(step, SeededRng(100 + step)).indices for step in range(10, 21)]
    drawn = [*before, *after]
    for epoch in range(3):
        assert sorted(np.concatenate(drawn[7 * epoch : 7 * epoch + 7]).tolist()) == list(range(20))
    # what was drawn ahead of use and lost is drawn again as it was, even over the end of an epoch
    again = ShuffledSampler(3, 20, 3)
    again.load(saved)
    assert again.draw(5, SeededRng(7)).indices.tolist() == before[5].tolist()
    assert again.draw(9, SeededRng(7)).indices.tolist() == before[9].tolist()


def test_an_epoch_whose_order_was_lost_is_not_gone_on_with() -> None:
    """Catches a checkpoint of epoch 0 that goes on in the middle of epoch 1, where rows may have been used already."""
    first = ShuffledSampler(3, 20, 3)
    first.draw(0, SeededRng(1))
    second = ShuffledSampler(3, 20, 3)
    second.load(first.state())
    with pytest.raises(InvalidInput, match="go on at step 14"):
        second.draw(9, SeededRng(2))
    assert [second.next_step(step) for step in (0, 6, 7, 8, 13, 14, 15, 21, 99)] == [0, 6, 7, 14, 14, 14, 21, 21, 21]
    assert len(second.draw(14, SeededRng(2)).indices) == 3


def test_a_state_of_another_plan_or_after_drawing_is_refused() -> None:
    """Catches a run that goes on with another batch size under the event of the first, and orders that are mixed."""
    state = ShuffledSampler(3, 20, 3).state()
    for other in (
        ShuffledSampler(4, 20, 3),
        ShuffledSampler(3, 21, 3),
        ShuffledSampler(3, 20, 4),
        PoissonSampler(0.1, 2, 20),
    ):
        with pytest.raises(InvalidInput, match="another"):
            other.load(state)
    used = ShuffledSampler(3, 20, 3)
    used.draw(0, SeededRng(1))
    with pytest.raises(InvalidInput, match="new sampler"):
        used.load(state)
    bad: list[Any] = [{"7": "00" * 32}, {"0": "00"}, {"0": "zz" * 32}, {"x": "00" * 32}, ["00" * 32], None]
    for keys in bad:
        with pytest.raises(InvalidInput, match="keys"):
            ShuffledSampler(3, 20, 3).load({**state, "keys": keys})
    with pytest.raises(InvalidInput, match="state"):
        ShuffledSampler(3, 20, 3).load([])  # type: ignore[arg-type]


# --- all of them ---------------------------------------------------------------------------------------------------


@every
def test_what_is_offered_is_what_the_accountant_can_price(make: Callable[[], Sampler]) -> None:
    """Catches a sampler that offers neighbours which no theorem covers, or hides some that one does."""
    sampler = make()
    whose = Whose.USER if isinstance(sampler, UserSampler) else Whose.EXAMPLE
    for per_step in (NOISE, Joint((Gaussian(1.0), Gaussian(10.0)))):
        event = sampler.event(per_step, sampler.steps_of())
        for neighbours in (Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT, Neighbours.REPLACE):
            unit = Unit(whose=whose, neighbours=neighbours)
            if neighbours in sampler.neighbours:
                assert 0 < accounting.upper(event, 1e-5, unit=unit) < math.inf
            else:
                with pytest.raises(NotProven):
                    accounting.upper(event, 1e-5, unit=unit)
        for neighbours in (Neighbours.L1_BALL, Neighbours.L2_BALL):
            assert neighbours not in sampler.neighbours


@every
def test_a_run_in_two_parts_costs_what_it_costs_in_one(make: Callable[[], Sampler]) -> None:
    """Catches a restart that forgets steps or counts them twice: k + k steps equal 2k in state and event."""
    whole, first, second = make(), make(), make()
    half = whole.steps_of() // 2
    for step in range(whole.steps_of()):
        whole.draw(step, SeededRng(step))
    for step in range(half):
        first.draw(step, SeededRng(step))
    second.load(json.loads(json.dumps(first.state())))
    assert second.next_step(half) == half
    for step in range(half, whole.steps_of()):
        second.draw(step, SeededRng(step))
    assert second.state() == whole.state()
    assert second.event(NOISE, 2 * half) == whole.event(NOISE, 2 * half)


@every
def test_the_same_generator_gives_the_same_batches_whatever_the_process_seeded(make: Callable[[], Sampler]) -> None:
    """Catches global randomness: seeding NumPy or torch must not matter, and drawing must not move their states."""
    results = []
    for seed in (0, 1):
        np.random.seed(seed)
        torch.manual_seed(seed)
        before = (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # type: ignore[index]
        sampler, rng = make(), SeededRng(13)
        results.append([sampler.draw(step, rng).indices.tolist() for step in range(sampler.steps_of())])
        assert before == (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # type: ignore[index]
    assert results[0] == results[1]
    secure = [make().draw(0, default_rng()).indices.tolist() for _ in range(20)]
    assert len(set(map(tuple, secure))) > 1  # 20 equal batches of 20 rows: below 1e-20


@every
def test_steps_outside_the_plan_are_refused(make: Callable[[], Sampler]) -> None:
    """Catches a run that trains longer than its noise was chosen for."""
    sampler = make()
    assert isinstance(sampler.draw(np.int64(0), SeededRng(1)), SampledBatch)  # type: ignore[arg-type]
    for step in (-1, sampler.steps_of(), 10**9, 1.5, True):
        with pytest.raises(InvalidInput, match="step"):
            sampler.draw(step, SeededRng(1))  # type: ignore[arg-type]
    assert sampler.next_step(10**9) == sampler.steps_of()
    with pytest.raises(InvalidInput, match="steps"):
        sampler.event(NOISE, -1)
    with pytest.raises(InvalidInput, match="event"):
        sampler.event(sampler.event(NOISE, 1), 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: PoissonSampler(0.0, 1, 1), "sample_rate"),
        (lambda: PoissonSampler(1.1, 1, 1), "sample_rate"),
        (lambda: PoissonSampler(math.nan, 1, 1), "sample_rate"),
        (lambda: PoissonSampler(0.5, 0, 1), "steps"),
        (lambda: PoissonSampler(0.5, 1, -1), "rows"),
        (lambda: PoissonSampler(0.5, 1, 2.5), "rows"),  # type: ignore[arg-type]
        (lambda: FixedSizeSampler(0, 5, 1), "batch_size"),
        (lambda: FixedSizeSampler(6, 5, 1), "batch_size"),
        (lambda: FixedSizeSampler(1, 5, 0), "steps"),
        (lambda: ShuffledSampler(0, 5, 1), "batch_size"),
        (lambda: ShuffledSampler(2, 0, 1), "rows"),
        (lambda: ShuffledSampler(2, 5, True), "epochs"),
    ],
)
def test_knobs_that_make_no_sense_are_refused_by_name(make: Callable[[], object], argument: str) -> None:
    """Catches a sampler that starts with knobs whose event means nothing."""
    with pytest.raises(InvalidInput, match=f"^{argument} "):
        make()


def test_numbers_of_numpy_and_torch_are_numbers() -> None:
    """Catches knobs refused for their type, and events that JSON cannot hold because a NumPy number got in."""
    eight: Any = np.int64(8)
    for sampler in (
        PoissonSampler(np.float32(0.25), eight, torch.tensor(8)),  # type: ignore[arg-type]
        FixedSizeSampler(eight, eight, eight),
        ShuffledSampler(eight, eight, eight),
    ):
        assert json.loads(json.dumps(sampler.state())) == sampler.state()
        event = sampler.event(NOISE, eight)
        assert type(event).from_json(event.to_json()) == event
