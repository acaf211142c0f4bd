"""Exact noise on a grid: its law, the distance of neighbouring sums, and what a look at the last bits can tell.

Statistical tests are seeded; the rate stated is the chance that correct code fails under a random seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privet.core.errors import InvalidInput, PrivetError
from privet.core.event import Gaussian
from privet.core.random import Randomness, Rng, SeededRng
from privet.core.random.keystream import Bytes
from privet.training import rounded_normal
from privet.training.lattice import Lattice, error_bound
from privet.training.noise import fill, transform
from privet.training.rounded_normal import add_rounded_normal, settle

Integers = npt.NDArray[np.int64]


def drawn_integers(scale: float, count: int, rng: Rng) -> npt.NDArray[np.int64]:
    """So many draws by themselves: added to zeros."""
    out = torch.zeros(count, dtype=torch.float64)
    add_rounded_normal(out, scale, rng)
    return out.numpy().astype(np.int64)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other on a busy machine make tests slow, and are not what is tested here."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Words(Rng):
    """A stream that says what the test wants, word by word, and counts what was asked for."""

    def __init__(self, *words: int) -> None:
        self.left = list(words)

    @property
    def kind(self) -> Randomness:
        return Randomness.SEEDED

    @property
    def _instead(self) -> str:
        return ""

    def _fill(self, out: Bytes) -> None:
        words = out.view("<u8")
        words[:], self.left = self.left[: len(words)], self.left[len(words) :]


def exact(u: int, v: int, bits: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Both normals of the middle of a cell, to 60 digits more than it has bits."""
    with mpmath.workprec(bits + 200):
        radius = mpmath.sqrt(-2 * mpmath.log((mpmath.mpf(u) + 0.5) / mpmath.mpf(2) ** bits))
        angle = 2 * mpmath.pi * (mpmath.mpf(v) + 0.5) / mpmath.mpf(2) ** bits
        return radius * mpmath.cos(angle), radius * mpmath.sin(angle)


def nearest(value: mpmath.mpf, scale: float) -> int:
    with mpmath.workprec(400):
        return int(mpmath.nint(value * mpmath.mpf(scale)))


def of_law(scale: float, most: int) -> npt.NDArray[np.float64]:
    """Probabilities of at most -most, …, at least most: for whole numbers nearest to scale · Z."""
    edges = (np.arange(-most, most) + 0.5) / scale
    below = np.concatenate([[0.0], stats.norm.cdf(edges), [1.0]])
    above = np.concatenate([[1.0], stats.norm.sf(edges), [0.0]])
    return np.asarray(np.where(np.arange(-most, most + 1) > 0, above[:-1] - above[1:], below[1:] - below[:-1]))


def fit(drawn: Integers, scale: float) -> float:
    """The p-value of these whole numbers under the law."""
    most = max(1, math.floor(4 * scale))
    observed = np.bincount(np.clip(drawn, -most, most) + most, minlength=2 * most + 1)
    return float(stats.chisquare(observed, of_law(scale, most) * len(drawn)).pvalue)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 30.25])
def test_the_law_is_that_of_rounded_normals(scale: float) -> None:
    """Catches a wrong scale, floor in place of nearest, and ties or signs that are treated unequally. Rate 1e-6."""
    drawn = drawn_integers(scale, 600_000, SeededRng(1))
    assert fit(drawn, scale) > 1e-6
    assert fit(drawn_integers(1.03 * scale, 600_000, SeededRng(1)), scale) < 1e-6


def test_the_law_on_a_fine_grid() -> None:
    """Catches a wrong scale or thin tails where single numbers are rare. Rate 2e-6: two tests at 1e-6."""
    drawn = drawn_integers(2.0**22, 2_000_000, SeededRng(2)) / 2.0**22
    assert stats.kstest(drawn, "norm").pvalue > 1e-6
    edges = np.array([-np.inf, -4.75, -4.5, -4.0, -3.5, -3, 3, 3.5, 4.0, 4.5, 4.75, np.inf])
    expected = np.diff(stats.norm.cdf(edges)) * len(drawn)
    assert stats.chisquare(np.histogram(drawn, edges)[0], expected).pvalue > 1e-6


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4_097, (1 << 18) - 1, (1 << 18) + 1, 600_001])
def test_every_number_is_drawn(count: int) -> None:
    """Catches an odd number or a last pass that keeps whatever was in memory, and passes that repeat each other."""
    drawn = (
        drawn_integers(2.0**30, count, SeededRng(3)) if count < 10_000 else drawn_integers(2.0**20, count, SeededRng(3))
    )
    assert drawn.dtype == np.int64
    assert drawn.shape == (count,)
    assert count == 0 or 0 < np.abs(drawn).max() < 7 * 2.0**30
    assert len(np.unique(drawn)) >= 0.75 * count


def test_floating_point_is_as_near_as_claimed() -> None:
    """Catches a library whose log, sin or cos is less precise than the exact law rests on, with room to spare.

    Words from all of the range that is left to float64, its two ends included, against 60 digits.
    """
    rng = SeededRng(4)
    ends = [(1 << 44) + k for k in range(8)] + [-(1 << 40) - 1 - k for k in range(8)] + [2**63 - 1, -(2**63)]
    radius = np.array(ends + [int(w) for w in rng.words(1_500).view(np.int64)], dtype=np.int64)
    radius = radius[(radius >= 1 << 44) | (radius < -(1 << 40))]
    angle = rng.words(len(radius)).view(np.int64)
    out = torch.empty(2, len(radius), dtype=torch.float64)
    rows = torch.empty(3, len(radius), dtype=torch.float64)
    transform(torch.from_numpy(radius), torch.from_numpy(angle), 1.0, out[0], out[1], rows)
    for i, (u, v) in enumerate(zip(radius.tolist(), angle.tolist(), strict=True)):
        for value, own in zip(exact(u % 2**64, v % 2**64, 64), out[:, i].tolist(), strict=True):
            assert abs(float(value - own)) < 2.0**-46


def test_decimals_and_floating_point_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches an error in either way to an integer: all numbers are settled by decimals and must not change."""
    fast = drawn_integers(2.0**20, 2_000, SeededRng(5))
    monkeypatch.setattr(rounded_normal, "_DISTANCE", 1.0)
    assert np.array_equal(drawn_integers(2.0**20, 2_000, SeededRng(5)), fast)


def test_decimals_are_right_at_the_ends() -> None:
    """Catches a tail that is cut off, a radius of 0 that is lost, and a quadrant that is mixed up."""
    for u in (1, 2, 3, 2**20, 2**63, 2**64 - 2, 2**64 - 1):
        for v in (0, 1, 2**62 - 1, 2**62, 2**63 - 1, 2**63, 3 * 2**62, 2**64 - 1):
            found = settle(u, v - 2**64 if v >= 2**63 else v, 1000.25, SeededRng(6))
            if u > 2**10 and 2**64 - u > 2:  # elsewhere the unknown bits matter
                assert found == tuple(nearest(value, 1000.25) for value in exact(u, v, 64))
    source = Words(0, 0, 1, 0, 2**60, 0, 2**61, 0)
    assert settle(0, 0, 1000.0, source) == (nearest(exact((1 << 64) + 2**60, 0, 256)[0], 1000.0), 0)
    assert len(source.left) == 2
    assert exact((1 << 64) + 2**60, 0, 256)[0] > 16, "a tail that ends where 64 bits end"


def test_what_bits_cannot_settle_more_bits_do() -> None:
    """Catches a doubtful number that is rounded by its first bits alone, or by bits other than those it drew.

    The scale puts the middle of a cell at a half-integer, as near as float64 can: the next bits decide.
    """
    rng, sides = SeededRng(7), set()
    for _ in range(40):
        u, v, more, turn = (int(word) for word in rng.words(4))
        u, v = u % 2**38 + 2**38, v % 2**60  # a U of few bits, and an angle near 0
        x = exact(u, v, 64)[0]
        scale = float((mpmath.floor(2.0**29 * x) + mpmath.mpf(0.5)) / x)
        source = Words(more, turn, *range(20))
        found = settle(u, v, scale, source)
        assert len(source.left) < 22, "more bits should have been asked for"
        expected = nearest(exact(u * 2**64 + more, v * 2**64 + turn, 128)[0], scale)
        assert found[0] == expected
        sides.add(expected - int(mpmath.floor(2.0**29 * x)))
    assert sides == {0, 1}, "the next bits never made a difference"


def test_doubtful_numbers_are_left_to_decimals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a distance of 0, a test of one of the two coordinates only, and extreme words that float64 decides.

    A scale is chosen for which the cosine, or the sine, of a pair is a half-integer and 2^-42 deviations away from it.
    """
    monkeypatch.setattr(rounded_normal, "settle", lambda *_: (123, 456))
    words = [int(word) for word in SeededRng(14).words(2)]
    for place in (0, 1):
        x = abs(exact(words[0], words[1], 64)[place])
        for shift in (-(2.0**-42), 0.0, 2.0**-42):
            scale = float((mpmath.floor(2.0**25 * x) + mpmath.mpf(0.5)) / (x + shift))
            assert drawn_integers(scale, 2, Words(*words)).tolist() == [123, 456]
            assert drawn_integers(scale * (1 + 2.0**-27), 2, Words(*words)).tolist() != [123, 456]
    for extreme in (0, 1, 2**44 - 1, 2**64 - 2**40, 2**64 - 1):
        assert drawn_integers(1000.0, 2, Words(extreme, words[1])).tolist() == [123, 456]
        assert drawn_integers(1000.0, 1, Words(extreme, words[1])).tolist() == [123]
    for ordinary in (2**44, 2**64 - 2**40 - 1):
        assert drawn_integers(1.0, 2, Words(ordinary, words[1])).tolist() != [123, 456]


def test_a_broken_source_is_found() -> None:
    """Catches a loop that never ends."""
    with pytest.raises(PrivetError, match="source of randomness"):
        settle(0, 0, 1.0, Words(*[0] * 10_000))


def test_scales_that_are_refused() -> None:
    """Catches a scale of which most draws would be doubtful, and one that is no scale."""
    for scale in (0.0, -1.0, math.nan, math.inf, 2.0**31):
        with pytest.raises(InvalidInput, match="scale"):
            drawn_integers(scale, 1, SeededRng(1))


def test_grids() -> None:
    """Catches a step in which float64 cannot count exactly."""
    for step in (0.0, -1.0, 0.1, 3.0, math.inf, 2.0**-1000, 2.0**901):
        with pytest.raises(InvalidInput, match="step"):
            Lattice(step)
    for deviation in (1e-9, 0.7, 1.0, 1.1, 3e9):
        step = Lattice.for_deviation(deviation).step
        assert 2.0**22 <= deviation / step < 2.0**23


@pytest.mark.parametrize("step", [2.0**-20, 1.0, 2.0**-900, 2.0**12])
def test_every_output_is_on_the_grid(step: float) -> None:
    """Catches a sum, a noise or a product that was rounded on its way, also for sums that should not exist."""
    wild = [
        0.0,
        -0.0,
        1.0,
        1 / 3,
        -7.1,
        1e-320,
        1e17,
        1e300,
        -1e300,
        math.inf,
        -math.inf,
        math.nan,
        step / 2,
        -step / 2,
    ]
    total = torch.tensor([*wild, *(step * (0.5 + k) for k in range(1000))], dtype=torch.float64)
    before = total.clone()
    out = Lattice(step).add(total, 1000 * step, SeededRng(8))
    assert out.dtype == torch.float64
    assert all(Fraction(value) % Fraction(step) == 0 for value in out.tolist())
    assert torch.equal(total.nan_to_num(7.0), before.nan_to_num(7.0)), "the caller's sum was changed"
    noise = torch.from_numpy(drawn_integers(1000.0, len(total), SeededRng(8)))
    steps = out / step - noise
    for at, value in enumerate(wild):
        if abs(value) < 2.0**51 * step:
            assert abs(Fraction(steps[at].item()) - Fraction(value) / Fraction(step)) <= Fraction(1, 2)
    assert steps[9] == -steps[10] == 2.0**52, "sums beyond the range are cut"
    assert steps[11] == 0, "NaN counts as nothing"


def test_arguments_of_add() -> None:
    """Catches a sum in float32, and noise for which the grid is far too fine or which is none."""
    with pytest.raises(InvalidInput, match="total"):
        Lattice(1.0).add(torch.zeros(3), 1.0, SeededRng(1))
    for sigma in (0.0, -1.0, math.inf, 2.0**31):
        with pytest.raises(InvalidInput, match="sigma"):
            Lattice(1.0).add(torch.zeros(3, dtype=torch.float64), sigma, SeededRng(1))
    assert Lattice(1.0).add(torch.zeros(2, 3, dtype=torch.float64), 1.0, SeededRng(1)).shape == (2, 3)


class Silent(Words):
    """Noise of exactly 0, so that only the rounding of the sum is left: cos(π/2) and sin(π) times a small radius."""

    def _fill(self, out: Bytes) -> None:
        out.view("<u8")[:] = 2**63


def on_grid(lattice: Lattice, total: torch.Tensor) -> torch.Tensor:
    """The sum as `add` rounds it, without noise."""
    return lattice.add(total, lattice.step * 1e-3, Silent())


def test_neighbours_are_no_further_apart_than_stated() -> None:
    """Catches a sensitivity without √d for the rounding, or with half of it: sums just beside half-steps.

    Each coordinate of one sum is rounded down by almost half a step and of the other up: almost a whole step each.
    """
    lattice, dimension, clip = Lattice(2.0**-10), 10_000, 1.0
    near = 2.0**-30
    first = torch.full((dimension,), 0.5 * lattice.step - near, dtype=torch.float64)
    apart = clip / math.sqrt(dimension) - clip * 1e-9
    second = first + apart
    # Put the second just above a half-step too, as a part of the clip may go that way.
    second = (torch.floor(second / lattice.step) - 0.5) * lattice.step + near
    moved = (second - first).norm().item()
    found = (on_grid(lattice, second) - on_grid(lattice, first)).norm().item()
    assert moved <= clip
    assert found > moved + 0.99 * lattice.step * math.sqrt(dimension)
    assert found <= lattice.sensitivity(moved, dimension)
    assert found > moved + lattice.step * math.sqrt(dimension) / 2, "half of the rounding would not cover this"


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(-1, 1)), min_size=1, max_size=40), st.integers(-12, 3))
def test_neighbours_at_random(pairs: list[tuple[float, float]], exponent: int) -> None:
    """Catches a rounding that moves a coordinate by more than half a step, for any sums."""
    lattice = Lattice(2.0**exponent)
    first = torch.tensor([a for a, _ in pairs], dtype=torch.float64)
    second = first + torch.tensor([b for _, b in pairs], dtype=torch.float64)
    moved = (second - first).norm().item() + 1e-9
    found = (on_grid(lattice, second) - on_grid(lattice, first)).norm().item()
    assert found <= lattice.sensitivity(moved, len(pairs))


@given(st.floats(1e-6, 1e6), st.integers(1, 10**9), st.floats(0, 1e3), st.floats(1e-3, 1e3))
def test_the_event_never_promises_too_much(clip: float, dimension: int, error: float, multiplier: float) -> None:
    """Catches bounds that are rounded the wrong way: everything is compared with exact fractions."""
    lattice = Lattice.for_deviation(multiplier * clip)
    sensitivity = Fraction(lattice.sensitivity(clip, dimension, error))
    root = (sensitivity - Fraction(clip) - 2 * Fraction(error)) / Fraction(lattice.step)
    assert root > 0
    assert root * root >= dimension
    sigma = lattice.deviation(multiplier, clip, dimension, error)
    assert Fraction(sigma) >= Fraction(multiplier) * sensitivity
    event = lattice.event(sigma, clip, dimension, error)
    assert Fraction(event.noise_multiplier) * sensitivity <= Fraction(sigma)
    assert event.noise_multiplier == pytest.approx(multiplier, rel=1e-12)


def test_the_price_of_the_grid_is_small() -> None:
    """Catches a default grid that costs more than a thousandth: 10 million parameters, noise of 1.1 clips."""
    event = Lattice.for_deviation(1.1).event(1.1, 1.0, 10_000_000)
    assert isinstance(event, Gaussian)
    assert 1.099 < event.noise_multiplier < 1.1


def test_the_noise_is_that_of_the_event() -> None:
    """Catches noise of another deviation than the event's, half of it above all. Rate 1e-6."""
    lattice, total = Lattice(0.25), torch.linspace(-3, 3, 400_000, dtype=torch.float64)
    for sigma, fits in ((1.5, True), (0.75, False)):
        steps = (lattice.add(total, sigma, SeededRng(9)) - on_grid(lattice, total)) / lattice.step
        drawn = steps.numpy().astype(np.int64)
        assert (fit(drawn, 1.5 / 0.25) > 1e-6) == fits


def test_two_calls_differ() -> None:
    """Catches noise that is replayed: the difference of two releases would be free of it."""
    rng, total = SeededRng(10), torch.zeros(1000, dtype=torch.float64)
    lattice = Lattice.for_deviation(1.0)
    first, second = lattice.add(total, 1.0, rng), lattice.add(total, 1.0, rng)
    assert (first == second).sum() == 0
    assert abs(np.corrcoef(first.numpy(), second.numpy())[0, 1]) < 6 / math.sqrt(1000)


def last_bits(values: torch.Tensor) -> npt.NDArray[np.int64]:
    """How many zeros end each number's binary form: what a look at the precision of an answer shows."""
    mantissas = np.frexp(values.numpy())[0] * 2.0**53
    whole = np.abs(mantissas).astype(np.int64)
    exponents = np.frexp(values.numpy())[1] - 53
    return np.asarray(exponents + np.log2(whole & -whole).astype(np.int64))


def told_apart(with_grid: bool, seed: int) -> float:
    """p-value for "0 + noise and 1 + noise end in the same bits", where the leading bits are no help."""
    ends = []
    for place, value in enumerate((0.0, 1.0)):
        total = torch.full((200_000,), value, dtype=torch.float64)
        if with_grid:
            out = Lattice(2.0**-16).add(total, 100.0, SeededRng(seed, place))
        else:
            fill(out := torch.empty_like(total), 100.0, SeededRng(seed, place))
            out = out + total
        ends.append(np.bincount(np.clip(last_bits(out) + 60, 0, 59), minlength=60))
    table = np.array(ends)
    few = table.sum(0) < 40
    table = np.column_stack([table[:, ~few], table[:, few].sum(1)])
    table = table[:, table.sum(0) > 0]
    return float(stats.chi2_contingency(table).pvalue)


def test_the_last_bits_tell_nothing() -> None:
    """Catches an output whose precision depends on the sum (Mironov 2012). Rate 1e-6.

    The same look does tell floating-point noise apart, although 1 is a hundredth of the deviation.
    """
    assert told_apart(True, 11) > 1e-6
    assert told_apart(False, 11) < 1e-6


def test_neighbours_have_the_same_outputs() -> None:
    """Catches an output that is possible for one data set and not for its neighbour. Rate 1e-9."""
    lattice, found = Lattice(0.5), []
    for value in (0.1, 1.1):
        total = torch.full((400_000,), value, dtype=torch.float64)
        out = lattice.add(total, 1.0, SeededRng(12))
        found.append({x for x in out.tolist() if -2.0 <= x <= 3.0})
    assert found[0] == found[1] == {k / 2 for k in range(-4, 7)}


def in_turn(products: npt.NDArray[np.float32]) -> np.float32:
    """A sum in float32, one term after the other."""
    total = np.float32(0)
    for product in products:
        total = np.float32(total + product)
    return total


def test_the_error_bound_holds_for_sums_that_cancel() -> None:
    """Catches an error bound that ignores how rows of one example cancel: large terms swallow the clip and are gone.

    M + 1 - M in float32 is 0 for M = 2^25; the gradient is 1 long, and its terms 2^26 + 1.
    """
    large = np.float32(2.0**25)
    examples = 16
    lost = sum(1.0 - float(in_turn(np.array([large, 1.0, -large], dtype=np.float32))) for _ in range(examples))
    assert lost == examples
    public = {"examples": examples, "dimension": 1, "rows": 3, "micro_batch": 1, "precision": torch.float32}
    honest = error_bound(1.0, cancellation=2.0**26 + 1, **public)  # type: ignore[arg-type]
    assert lost <= honest < 20 * lost
    assert error_bound(1.0, **public) < 1e-4 * lost  # type: ignore[arg-type]


@pytest.mark.parametrize(("examples", "micro"), [(4096, 4096), (4096, 64), (100, 1)])
def test_the_error_bound_holds_for_products_of_matrices(examples: int, micro: int) -> None:
    """Catches a bound that is too small for the kernels in use, and one that grows with the micro-batch by mistake.

    All gradients are 1 long and point the same way, where partial sums are largest; the exact sum is in fractions.
    """
    rng = SeededRng(13)
    left = torch.from_numpy(1.0 + rng.uniform((examples, 1)) * 1e-3).float()
    right = torch.from_numpy(0.4 + 0.1 * rng.uniform((examples, 5))).float()
    clip = float((left.double().norm(dim=1) * right.double().norm(dim=1)).max())
    total = torch.zeros(1, 5, dtype=torch.float64)
    for first in range(0, examples, micro):
        total += (left[first : first + micro].T @ right[first : first + micro]).double()
    rights = right.double().tolist()
    exactly = [
        sum(Fraction(a) * Fraction(row[k]) for a, row in zip(left[:, 0].double().tolist(), rights, strict=True))
        for k in range(5)
    ]
    error = math.sqrt(sum((float(e - Fraction(t))) ** 2 for e, t in zip(exactly, total[0].tolist(), strict=True)))
    bound = error_bound(clip, examples=examples, dimension=5, micro_batch=micro, precision=torch.float32)
    assert 0 < error <= bound
    assert bound <= 1.01 * examples * clip * (micro + 2) * 2.0**-24


def test_when_float32_will_do() -> None:
    """Catches a change of the figures that the documentation gives, in parts of the clip."""

    def percent(precision: torch.dtype, examples: int, micro: int, rows: int = 1, cancellation: float = 1.0) -> float:
        bound = error_bound(
            1.0,
            examples=examples,
            dimension=10**7,
            rows=rows,
            micro_batch=micro,
            precision=precision,
            cancellation=cancellation,
        )
        return 200 * bound

    assert percent(torch.float32, 256, 256) < 1.0 < percent(torch.float32, 1024, 256)
    assert percent(torch.float32, 1024, 64) < 1.0 < percent(torch.float32, 60_000, 64)
    assert percent(torch.float64, 60_000, 60_000) < 0.001
    assert percent(torch.float64, 60_000, 256, rows=64, cancellation=1024) < 0.05


def test_arguments_of_the_error_bound() -> None:
    """Catches public numbers for which no bound holds."""
    with pytest.raises(InvalidInput, match="micro_batch"):
        error_bound(1.0, examples=10**8, dimension=1, precision=torch.float32)
    with pytest.raises(InvalidInput, match="precision"):
        error_bound(1.0, examples=1, dimension=1, precision=torch.bfloat16)
    with pytest.raises(InvalidInput, match="cancellation"):
        error_bound(1.0, examples=1, dimension=1, cancellation=0.5)
    with pytest.raises(InvalidInput, match="clip"):
        error_bound(1e37, examples=100, dimension=1, precision=torch.float32)
