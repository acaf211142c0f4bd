"""No unit's contribution is longer than the clip, whatever the way of clipping, the gradient's form and its size.

What is compared is the true length, in float64, of what a factor leaves of a gradient, with the clip itself: no room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt

import pytest
import torch
from torch import Tensor, nn

from privet.core.event import Gaussian, Joint
from privet.training import Adaptive, Automatic, Flat, PerLayer
from privet.training.clipping import Clipping
from privet.training.engine.contributions import Contribution, Dense, Lookup, Mixed, Outer
from privet.training.engine.squares import Squares
from tests.training.conftest import Attach, squared
from tests.training.models import filled, generator, normal, tokens

CLIPPINGS: dict[str, Clipping] = {
    "flat": Flat(),
    "per layer": PerLayer(),
    "automatic": Automatic(),
    "barely stable": Automatic(stability=1e-9),
    "adaptive": Adaptive(),
}
each_clipping = pytest.mark.parametrize("clipping", CLIPPINGS.values(), ids=list(CLIPPINGS))


def lengths(clipping: Clipping, parts: list[Contribution], clip: float, layers: list[int] | None = None) -> Tensor:
    """The true length of every example's contribution; gradients and factors as they are, the rest in float64."""
    found = clipping.factors([part.squares() for part in parts], clip, layers or list(range(len(parts))))
    total = torch.zeros(len(parts[0].dense()), dtype=torch.float64)
    for part, factor in zip(parts, found.by_parameter, strict=True):
        assert factor is not None
        assert bool(factor.isfinite().all())
        assert bool((factor >= 0).all())
        total += (factor.double() * exactly(part).norm(dim=1)).square()
    return total.sqrt()


def exactly(part: Contribution) -> Tensor:
    """The gradients that a part stands for, worked out in float64."""
    if isinstance(part, Outer):
        return Outer(part.left.double(), part.right.double()).dense()
    if isinstance(part, Lookup):
        return Lookup(part.index, part.right.double(), part.rows).dense()
    if isinstance(part, Mixed):
        return exactly(part.outer) + exactly(part.lookup)
    return part.dense().double()


@each_clipping
@pytest.mark.parametrize("clip", [1e-6, 0.1, 1.0, 3e4])
def test_gradients_of_every_size(clipping: Clipping, clip: float) -> None:
    """From far below the clip to far above it, and right at it. Catches rounding that leaves a little too much."""
    sizes = torch.cat([torch.logspace(-12, 12, 97), torch.linspace(0.999, 1.001, 400), torch.zeros(1)]) * clip
    directions = torch.nn.functional.normalize(normal(len(sizes), 40), dim=1).float()
    rows = directions * sizes[:, None]
    assert bool((lengths(clipping, [Dense(rows[:, :30]), Dense(rows[:, 30:])], clip) <= clip).all())


EXTREMES = (0.0, 1e-45, 1e-40, 1e-30, 1e-20, 1e-10, 1e10, 1e18, 1e20, 1e30, 3e38)


@each_clipping
@pytest.mark.parametrize("size", EXTREMES)
def test_extreme_gradients(clipping: Clipping, size: float, attach: Attach) -> None:
    """Squares of these overflow or vanish in float32. Catches a norm of 0 or NaN that lets a gradient through, and a
    sum that is no number.
    """
    model = nn.Linear(3, 2, bias=False)
    scale = torch.tensor([size, 1.0, size])
    run = attach(model, (torch.ones(3, 3), scale), clipping=clipping)
    for x, weight in run.batches():
        run.step(model(x).sum(1) * weight)
    grad = model.weight.grad
    assert grad is not None
    assert bool(grad.isfinite().all())
    assert float(grad.double().norm()) <= 3.0


@pytest.mark.parametrize(("rows", "slope"), [(1e19, 1e-23), (1e-23, 1e19), (1e-15, 1e-15), (1e19, 1e19)])
@pytest.mark.parametrize("clip", [1e-5, 1e-12, 1.0])
def test_factors_of_opposite_size(rows: float, slope: float, clip: float) -> None:
    """The square of one factor vanishes while the product does not. Catches norms that are multiplied after rounding
    to zero.
    """
    for width in (1, 2):
        part = Outer(torch.full((1, width, 3), slope), torch.full((1, width, 4), rows))
        squares = part.squares()
        if bool(squares.value.isfinite().all()):
            assert float(lengths(Flat(), [part], clip)) <= clip


# --- Products that cancel: the ghost norm subtracts large numbers ----------------------------------------------------


def cancelling() -> Iterator[tuple[str, Contribution]]:
    for k in (2, 7, 64, 300):
        signs = torch.tensor([1.0, -1.0]).repeat(k)[:k].view(1, k, 1)
        for seed, (p, q) in enumerate([(1, 1), (3, 50), (40, 40)]):
            for wobble in (0.0, 1e-7, 1e-5, 1e-3, 0.1):
                left = (normal(8, 1, p, seed=seed) + wobble * normal(8, k, p, seed=seed + 9)).float()
                right = (normal(8, 1, q, seed=seed + 1) + wobble * normal(8, k, q, seed=seed + 8)).float()
                yield f"outer k={k} {p}x{q} {wobble}", Outer(left * signs, right)
                index = tokens(8, k, vocabulary=2, seed=seed)
                yield f"lookup k={k} {q} {wobble}", Lookup(index, right * signs, 5)
                # The second use of a tied table takes back what the first one gave.
                one_hot = torch.nn.functional.one_hot(index, 5).float()
                yield f"mixed k={k} {q} {wobble}", Mixed(Outer(one_hot, right), Lookup(index, -right * (1 + wobble), 5))
    half = normal(8, 50, 6, seed=3).float()
    yield "the second half undoes the first", Outer(torch.cat([half, -half], 1), torch.cat([half, half], 1))
    growing = torch.logspace(-6, 6, 40).view(1, 40, 1) * normal(8, 40, 5).float()
    yield "sizes from 1e-6 to 1e6", Outer(torch.cat([growing, -growing], 1).float(), normal(8, 80, 5).float())


CANCELLING = dict(cancelling())


@pytest.mark.parametrize("clip", [1e-6, 1e-3, 1.0])
def test_cancelling_products(clip: float) -> None:
    """Gradients that nearly cancel, whose ghost norm is a small difference of large numbers. Catches a norm that comes
    out too small, or negative.
    """
    for name, part in CANCELLING.items():
        assert bool((lengths(Flat(), [part], clip) <= clip).all()), name


def test_slack_is_small() -> None:
    """The room for rounding costs little where nothing cancels. Catches a bound that is safe and useless."""
    part = Outer(normal(8, 20, 10).float(), normal(8, 20, 12, seed=2).float())
    squares = part.squares()
    assert bool((squares.slack <= 1e-4 * squares.value).all())


# --- What each way of clipping does ----------------------------------------------------------------------------------


def squares_of(*norms: list[float]) -> list[Squares | None]:
    return [Squares(torch.tensor(each).square(), torch.zeros(len(each))) for each in norms]


def factors_of(
    clipping: Clipping, *norms: list[float], clip: float = 1.0, layers: list[int] | None = None
) -> list[list[float]]:
    found = clipping.factors(squares_of(*norms), clip, layers or list(range(len(norms)))).by_parameter
    return [[] if each is None else each.tolist() for each in found]


def test_flat() -> None:
    """One factor over all parameters: min(1, clip / norm)."""
    first, second = factors_of(Flat(), [0.3, 3.0, 0.0], [0.4, 4.0, 0.0])
    assert first == second == pytest.approx([1.0, 0.2, 1.0], rel=1e-5)


def test_per_layer() -> None:
    """Parameters 0 and 1 are one layer. Catches shares that add up to more than the clip."""
    found = factors_of(PerLayer(), [3.0, 0.1], [4.0, 0.1], [7.0, 0.1], layers=[0, 0, 1])
    share = sqrt(1 / 2)
    assert found[0] == found[1] == pytest.approx([share / 5, 1.0], rel=1e-5)
    assert found[2] == pytest.approx([share / 7, 1.0], rel=1e-5)


def test_automatic() -> None:
    """clip / (norm + stability), also for short gradients."""
    assert factors_of(Automatic(stability=0.5), [1.5, 0.0], clip=2.0) == [pytest.approx([1.0, 4.0], rel=1e-5)]


@each_clipping
def test_a_parameter_without_gradient(clipping: Clipping) -> None:
    """An unused parameter has no factor, and the others have theirs."""
    squares = [None, *squares_of([2.0, 0.5])]
    found = clipping.factors(squares, 1.0, [0, 1]).by_parameter
    assert found[0] is None
    assert found[1] is not None


def test_the_count_is_charged() -> None:
    """The sum and the count are released of one batch: one event. One unit moves the count by ½, so that noise of
    deviation s is s / ½ of its sensitivity. Catches a count that is free, or priced as if it moved by 1.
    """
    assert Adaptive(count_noise=7.0).leaf(1.3) == Joint((Gaussian(1.3), Gaussian(14.0)))
    for clipping in (Flat(), PerLayer(), Automatic()):
        assert clipping.leaf(1.3) == Gaussian(1.3)


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("start", [0.01, 20.0])
def test_the_quantile_is_reached(quantile: float, start: float, attach: Attach) -> None:
    """Norms are uniform on (0, 2), so that the clip must settle near twice the quantile. Catches a sign, a count that
    is divided wrongly, and a clip that is not used. The room is about 8 deviations of a mean of 40 clips.
    """
    rows = torch.linspace(0.01, 2.0, 200)[torch.randperm(200, generator=generator(4))]
    model = nn.Linear(1, 1, bias=False)
    clipping = Adaptive(quantile=quantile, count_noise=2.0, rate=0.5)
    run = attach(model, rows[:, None], clipping=clipping, clip=start, batch_size=100, sample_rate=0.5, steps=120)
    clips = [run.clip for x in run.batches() if run.step(model(x).sum(1))]
    assert sum(clips[-40:]) / 40 == pytest.approx(2 * quantile, abs=0.12)


def test_the_clip_stays_usable(attach: Attach) -> None:
    """Where every gradient is zero the clip sinks for ever. Catches a run that stops because noise vanishes: what it
    has paid for could not be released.
    """
    model = nn.Linear(2, 1)
    clipping = Adaptive(quantile=0.1, count_noise=0.1, rate=5.0)
    run = attach(model, torch.ones(4, 2), clipping=clipping, noise_multiplier=1.0, steps=60)
    for x in run.batches():
        run.step(squared(model, x) * 0)
    assert run.steps == 60


FORMS: dict[str, tuple[Callable[[], nn.Module], Tensor]] = {
    "linear": (lambda: nn.Linear(4, 3), normal(6, 4)),
    "linear over positions": (lambda: nn.Linear(30, 20), normal(6, 3, 30)),
    "convolution": (lambda: nn.Conv2d(2, 3, 3), normal(6, 2, 5, 5)),
    "convolution in factors": (lambda: nn.Conv2d(16, 24, 3), normal(6, 16, 4, 4)),
    "embedding": (lambda: nn.Embedding(9, 4), tokens(6, 5)),
    "layer norm": (lambda: nn.LayerNorm(4), normal(6, 4)),
    "recurrent": (lambda: nn.LSTM(4, 5, batch_first=True), normal(6, 3, 4)),
    "without a rule": (lambda: nn.EmbeddingBag(9, 4), tokens(6, 5)),
}


@each_clipping
@pytest.mark.parametrize("form", FORMS)
def test_one_huge_example(form: str, clipping: Clipping, attach: Attach) -> None:
    """With it or without it, the sum differs by at most the clip. Catches a clip that some path ignores."""
    build, rows = FORMS[form]
    data = (rows.float() if rows.is_floating_point() else rows, torch.arange(len(rows)))
    found = []
    for weight in (1e7, 0.0):
        model = filled(build()).float()
        run = attach(model, data, clipping=clipping, clip=0.5)
        for x, number in run.batches():
            output = model(x)
            losses = (output if isinstance(output, Tensor) else output[0]).flatten(1).square().sum(1)
            run.step(torch.where(number == 2, losses * weight, losses * 1e-3))
        found.append(torch.cat([p.grad.double().flatten() for p in model.parameters() if p.grad is not None]))
    moved = float((found[0] - found[1]).norm())
    # What the others add is rounded, in float32, with and without the huge one.
    assert 0.4 < moved <= 0.5 + 1e-6
