"""What is added of an example is no longer than the clip: not only what was measured of it.

Parts in factors are measured one way and summed another, by the library and in float32. The rows below are made so that
the library's sum drifts by as much as it can: many equal steps, each rounded the same way, and one back.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import pytest
import torch
from torch import Tensor

from privet.training.clipping import Automatic, Flat
from privet.training.engine.contributions import Contribution, Dense, Lookup, Mixed, Outer, combine
from privet.training.engine.groups import Groups
from privet.training.engine.squares import Squares
from privet.training.rules import convolution
from privet.training.rules.convolution import ConvolutionFactors
from privet.training.rules.kernels import Geometry, Method, looped, windows_by_channel
from privet.training.rules.tuning import Way
from tests.training.models import normal

SCALES = [2.0**power for power in range(-2, 16)]


def drifting(k: int, width: int) -> Tensor:
    """k rows, 2^e of them equal and a last one that takes them all back; sums in float32 are rounded up on the way."""
    steps = k - 1
    step = float(torch.tensor(1 + 2.0 ** (steps.bit_length() - 2 - 24) * 0.999))
    rows = torch.full((1, k, width), step)
    rows[0, -1] = -steps * step
    return rows


def longest(part_of: Callable[[float], Contribution], shape: tuple[int, ...]) -> float:
    """The longest of what is added for one example, over all scales, at a clip of 1."""
    found = []
    for scale in SCALES:
        part, out = part_of(scale), torch.zeros(shape)
        factors = Flat().factors([part.squares()], 1.0, [0]).by_parameter[0]
        assert factors is not None
        part.add_to(out, factors.float())
        found.append(float(out.double().norm()))
    return max(found)


def one_place(k: int) -> Tensor:
    return torch.zeros(1, k, dtype=torch.int64)


@pytest.mark.usefixtures("loops_or_not")
@pytest.mark.parametrize("k", [9, 65, 1025])
@pytest.mark.parametrize("width", [1, 16])
def test_rows_of_an_embedding(k: int, width: int) -> None:
    """Catches norms of sums in float64, where sums in float32 are added: 8 times the clip for 1,025 rows."""
    rows = drifting(k, width)
    assert longest(lambda scale: Lookup(one_place(k), rows * scale, 3), (3, width)) <= 1.0
    half = k // 2
    everybody = Groups.of(torch.zeros(k, dtype=torch.int64), k, 1)

    def used_twice(scale: float) -> Contribution:
        return combine([Lookup(one_place(each.shape[1]), each * scale, 3) for each in (rows[:, :half], rows[:, half:])])

    def of_one_user(scale: float) -> Contribution:
        return Lookup(one_place(k).T, rows[0, :, None] * scale, 3).regroup(everybody)

    assert longest(used_twice, (3, width)) <= 1.0
    assert longest(of_one_user, (3, width)) <= 1.0


@pytest.mark.usefixtures("loops_or_not")
@pytest.mark.parametrize("k", [9, 65, 1025])
def test_a_tied_embedding(k: int) -> None:
    """The same for a table that is looked up and multiplied with; both sums, and one that takes the other back.

    What drifts of one adds to the length of the other.
    """
    rows = drifting(k, 2)
    beside = Outer(torch.tensor([[[1.0, 0.0, 0.0]]]), torch.full((1, 1, 2), 0.6))
    assert longest(lambda scale: combine([beside, Lookup(one_place(k), rows * scale, 3)]), (3, 2)) <= 1.0
    drift = k * 2.0**-24 * float(rows.double().norm(dim=2).sum())
    assert float(combine([beside, Lookup(one_place(k), rows, 3)]).squares().slack) >= 2 * drift * 0.6 * 2**0.5

    def against(scale: float) -> Contribution:
        one = torch.zeros(1, k - 1, 3)
        one[:, :, 0] = 1.0
        return combine([Outer(one, rows[:, :-1] * scale), Lookup(one_place(1), rows[:, -1:] * scale, 3)])

    mixed = against(1.0)
    assert isinstance(mixed, Mixed)
    assert longest(against, (3, 2)) <= 1.0
    lengths = [float(each.double().norm(dim=2).sum()) for each in (mixed.outer.right, mixed.lookup.right)]
    cross = 2 * (2 + 16) * 2.0**-24 * lengths[0] * lengths[1]
    parts = float(mixed.outer.squares().slack) + float(mixed.lookup.squares().slack)
    assert float(mixed.squares().slack) >= parts + cross


@pytest.mark.usefixtures("loops_or_not")
@pytest.mark.parametrize("k", [9, 65, 1025])
def test_positions_of_a_linear_layer(k: int) -> None:
    rows = drifting(k, 2)
    assert longest(lambda scale: Outer(torch.ones(1, k, 3), rows * scale), (3, 2)) <= 1.0


@pytest.mark.usefixtures("loops_or_not")
@pytest.mark.parametrize("method", [looped, windows_by_channel])
@pytest.mark.parametrize(("window", "places"), [(1, 1536), (9, 3072)])
@pytest.mark.parametrize("turned", [False, True])
def test_places_of_a_convolution(
    method: Method, window: int, places: int, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches norms of gradients that are summed in short chains, where the library adds place by place: 1.4 times the
    clip for 3,072 places."""
    monkeypatch.setattr(convolution, "way", lambda *_: Way(method, keep=False))
    forth = places * 2 // 3
    geometry = Geometry((16, 16, window), (1,), (0,), (1,), 1)
    for power in (0, 1, 2):
        step = float(torch.tensor(1 + 2.0 ** (forth.bit_length() - 1 - power - 24) * 0.999))
        line = torch.cat([torch.full((forth,), step), torch.full((places - forth,), -2.0 * step)])
        inputs, gradient = torch.zeros(24, 16, places + window - 1), torch.zeros(24, 16, places)
        inputs[0, 0], gradient[0, 0] = 1.0, line.flip(0) if turned else line

        def part_of(scale: float, inputs: Tensor = inputs, gradient: Tensor = gradient) -> Contribution:
            return ConvolutionFactors(inputs, gradient * scale, geometry)

        assert longest(part_of, geometry.kernel) <= 1.0
        lengths = float(inputs.double().norm()) * float(gradient.double().norm())
        assert float(part_of(1.0).squares().slack[0]) >= (sqrt(window) * places * 2.0**-24 * lengths) ** 2


@pytest.mark.parametrize("many", [100, 1000, 5000])
def test_many_parameters(many: int) -> None:
    """Catches squares of many small parameters that vanish beside a large one's."""
    parts = [Dense(torch.tensor([[1.0001]])), *(Dense(torch.tensor([[2.0**-12 * 0.999]])) for _ in range(many - 1))]
    factors = Flat().factors([part.squares() for part in parts], 1.0, [0] * many).by_parameter
    square = 0.0
    for part, factor in zip(parts, factors, strict=True):
        out = torch.zeros(1)
        assert factor is not None
        part.add_to(out, factor.float())
        square += float(out.double().square())
    assert square <= 1.0


@pytest.mark.parametrize("clipping", [Flat(), Automatic(stability=1e-12)], ids=["flat", "automatic"])
def test_a_margin_for_the_factor(clipping: Flat | Automatic) -> None:
    """Catches a factor without room for its own rounding and that of the product: every other row would be too long."""
    rows = normal(4000, 3).float() * 10
    exact = rows.double().square().sum(1)
    factors = clipping.factors([Squares(exact, torch.zeros_like(exact))], 1.0, [0]).by_parameter[0]
    assert factors is not None
    lengths = (rows * factors.float()[:, None]).double().norm(dim=1)
    assert bool((lengths <= 1.0).all())
    assert float(lengths.max()) > 1 - 1e-5
