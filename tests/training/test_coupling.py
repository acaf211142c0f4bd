"""Coupled examples are refused, whenever it shows; others are exact in whatever batch they come.

The engine learns from one batch where the examples lie and uses it for later ones. So each test here sends several
batches, of other sizes, lengths, orders or branches, through one engine.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from privet.core.errors import InvalidInput
from privet.training import Run, RunError
from tests.training.composed import CASES, Conv1D
from tests.training.conftest import Attach
from tests.training.coupled import AT_ONCE, IN_THE_LOSS, LATER, Coupled, Later
from tests.training.models import Case, described, filled, normal, tokens, waves
from tests.training.reference import Tapped, assert_exact

# torch's own remarks on layers that it runs in a slower way.
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same'", "ignore:LSTM with projections")


def steps(run: Run, coupled: Coupled, model: nn.Module, before: Callable[[], None] = lambda: None) -> None:
    for batch in run.batches():
        run.step(coupled.loss(model, *(batch if isinstance(batch, tuple | list) else (batch,))))
        before()


@pytest.mark.parametrize("coupled", AT_ONCE, ids=lambda coupled: coupled.name)
def test_refused_at_once(coupled: Coupled, attach: Attach) -> None:
    """Pitfall 23. Catches a model that is trained although one example's gradient depends on another."""
    model = coupled.model()
    with pytest.raises(InvalidInput):
        steps(attach(model, coupled.data()), coupled, model)


@pytest.mark.filterwarnings("ignore:the loop gives other losses")
@pytest.mark.parametrize("later", LATER, ids=lambda later: later.name)
def test_refused_when_it_shows(later: Later, attach: Attach) -> None:
    """Catches an engine that believes a gradient of zeros: heads and gates often begin with zeros, and then grow."""
    model = later.coupled.model()
    hidden = dict(model.named_parameters())[later.zero]
    hidden.data.zero_()

    def grow() -> None:
        hidden.data.add_(0.1)

    with pytest.raises(InvalidInput):
        steps(attach(model, later.coupled.data(), steps=8), later.coupled, model, grow)


@pytest.mark.parametrize("coupled", IN_THE_LOSS, ids=lambda coupled: coupled.name)
def test_the_self_test_sees_the_loss(coupled: Coupled, attach: Attach) -> None:
    """A step is given losses, not what made them, so that it cannot see a count over the batch in their denominator.
    The self-test, which is given the loss itself, can. Catches a self-test that compares the engine with itself.
    """
    model = coupled.model()
    run = attach(model, coupled.data())
    with pytest.raises(RunError, match="gradient norm"):
        run.selftest(lambda batch: coupled.loss(model, *(batch if isinstance(batch, tuple | list) else (batch,))))


SMALL = [case for case in CASES if "T=10" not in case.name and "1d" not in case.name and "3d" not in case.name]


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_other_batch_sizes(case: Case) -> None:
    """Poisson batches have any size. Catches a layout that only fits the first, and batches of one, where a parameter
    with a leading axis of one looks like a row of data.
    """
    tapped = Tapped(case.model())
    for size in (5, 1, 3, 2, 4):
        assert_exact(tapped, case.loss, tuple(each[:size] for each in case.batch))


@pytest.mark.parametrize("case", SMALL[::3], ids=str)
def test_a_batch_of_one_comes_first(case: Case) -> None:
    """Nothing can be learned from one example, so that nothing may be concluded from it."""
    tapped = Tapped(case.model())
    for size in (1, 1, 4):
        assert_exact(tapped, case.loss, tuple(each[:size] for each in case.batch))


def test_a_second_structure() -> None:
    """Data decides which layers run. Catches what was found for one branch being used for the other."""

    def branch(m: Any, x: Tensor) -> Tensor:
        out: Tensor = m.a(x).tanh() if bool(x.sum() > 0) else m.b(x.transpose(1, 2)).tanh().transpose(1, 2)
        return out

    build = described(branch, a=partial(nn.Linear, 4, 3), b=partial(nn.Conv1d, 4, 3, 1))
    tapped = Tapped(filled(build()).double())
    for sign in (1, -1, 1, 1, -1):
        assert_exact(tapped, waves, (sign * normal(5, 3, 4).abs(),))


# --- The same operations, and other rows in another place ------------------------------------------------------------


def refused_or_exact(tapped: Tapped, loss: Callable[..., Tensor], *rows: Tensor) -> None:
    """A refusal must be one in plain words, and not an accident in the middle of the computation."""
    with suppress(InvalidInput):
        assert_exact(tapped, loss, rows)


def owners(kept: Tensor) -> Tensor:
    return torch.arange(len(kept))[:, None].expand_as(kept)[kept]


POOLS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "added by number": lambda each, kept: each.new_zeros(len(kept)).index_add(0, owners(kept), each),
    "split": lambda each, kept: torch.stack([part.sum() for part in torch.split(each, kept.sum(1).tolist())]),
    "sliced": lambda each, kept: torch.stack(
        [each[end - size : end].sum() for size, end in zip(kept.sum(1), kept.sum(1).cumsum(0), strict=True)]
    ),
    "masked": lambda each, kept: (each * (owners(kept) == torch.arange(len(kept))[:, None])).sum(1),
    "multiplied": lambda each, kept: (owners(kept) == torch.arange(len(kept))[:, None]).to(each.dtype) @ each[:, None],
}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("below", [True, False])
def test_packed_positions(pool: str, below: bool) -> None:
    """Only some positions of each row go through a layer, or come in at all. Equal lengths first, then others with the
    same total. Catches positions that are counted to the wrong example: each example then has another's norm, and is
    not clipped by its own.
    """

    def packed(model: Any, x: Tensor, kept: Tensor) -> Tensor:
        chosen = model.b(model.a(x).tanh()[kept] if below else x[kept]).sin().sum(1)
        return POOLS[pool](chosen, kept).flatten()

    build = described(lambda m, x: x, a=partial(nn.Linear, 4, 4), b=partial(nn.Linear, 4, 2))
    tapped = Tapped(filled(build()).double())
    x = normal(4, 4, 4) * torch.tensor([1.0, 5.0, 0.2, 2.0]).view(-1, 1, 1)
    for lengths in ((2, 2, 2, 2), (2, 2, 2, 2), (2, 3, 1, 2), (1, 2, 2, 2), (4, 4, 4, 4), (4, 2, 1, 1)):
        kept = torch.arange(4)[None] < torch.tensor(lengths)[:, None]
        refused_or_exact(tapped, packed, x, kept)


def test_rows_in_another_order() -> None:
    """Sorted rows first, then others, through a layer that sorts. Catches norms made of two examples' parts."""

    def sorting(model: Any, x: Tensor) -> Tensor:
        order = x[:, 0].argsort()
        back = order.argsort()
        total: Tensor = model.a(x).tanh().sum(1) + 3 * model.b(x[order])[back].sin().sum(1)
        return total

    build = described(lambda m, x: x, a=partial(nn.Linear, 3, 4), b=partial(nn.Linear, 3, 2))
    tapped = Tapped(filled(build()).double())
    x = normal(5, 3) * torch.tensor([[1.0], [10.0], [0.1], [3.0], [1.0]])
    for rows in (x[x[:, 0].argsort()], x, x.flip(0)):
        refused_or_exact(tapped, sorting, rows)


def test_examples_along_another_axis() -> None:
    """Batch first, then time first, in the same operations: only their arguments differ."""
    model = filled(nn.Linear(3, 4)).double()
    rows = normal(4, 8, 3)
    for first in (True, False, True):
        tapped = Tapped(model)
        for batch_first in (first, not first):

            def loss(model: nn.Module, x: Tensor, batch_first: bool = batch_first) -> Tensor:
                out: Tensor = model(x if batch_first else x.transpose(0, 1).contiguous()).sin().sum(2)
                return out.sum(1 if batch_first else 0)

            refused_or_exact(tapped, loss, rows)


def test_positions_shared_then_own() -> None:
    """Position ids as [1, L], then as [B, L], and the other way round; what was shared may not stay so for ever."""
    build = described(
        lambda m, i: i, e=partial(nn.Embedding, 9, 4), w=partial(nn.Embedding, 16, 4), l=partial(nn.Linear, 4, 9)
    )
    model, ids = filled(build()).double(), tokens(5, 3, vocabulary=9)
    own = torch.arange(3)[None] + torch.arange(5)[:, None]

    def together(m: Any, i: Tensor, _: Tensor) -> Tensor:
        return waves(nn.Identity(), m.l((m.e(i) + m.w(torch.arange(3)[None])).tanh()))

    def apart(m: Any, i: Tensor, places: Tensor) -> Tensor:
        return waves(nn.Identity(), m.l((m.e(i) + m.w(places)).tanh()))

    for order in ((together, apart, together), (apart, together, apart)):
        tapped = Tapped(model)
        for loss in order:
            assert_exact(tapped, loss, (ids, own))


def test_equal_lengths_on_the_first_batch_only() -> None:
    """Time first, T = B at first. Catches an axis that is fixed although two would have fitted."""
    build = described(
        lambda m, x: m.b((m.a(x.transpose(0, 1)) + m.a.bias * 0.5).tanh()).transpose(0, 1),
        a=partial(nn.Linear, 3, 4),
        b=partial(Conv1D, 2, 4),
    )
    tapped = Tapped(filled(build()).double())
    for examples, times in ((4, 4), (4, 6), (8, 4), (4, 8), (3, 3), (2, 6)):
        assert_exact(tapped, waves, (normal(examples, times, 3),))


def test_no_gradient_on_the_first_batch() -> None:
    """A head of zeros hides everything below it, at first. Catches a layout that was read off zeros."""

    def heads(m: Any, x: Tensor) -> Tensor:
        out: Tensor = m.z(torch.einsum("bthd,hdp->bthp", x.view(*x.shape[:2], 2, 2), m.w))
        return out

    build = described(heads, z=partial(nn.Linear, 3, 3), w=lambda: nn.Parameter(torch.zeros(2, 2, 3)))
    for examples in (2, 3, 5):
        model = filled(build()).double()
        weight = dict(model.named_parameters())["z.weight"]
        kept = weight.detach().clone()
        weight.data.zero_()
        tapped = Tapped(model)
        assert_exact(tapped, waves, (normal(examples, 2, 4),))
        weight.data.copy_(kept)
        assert_exact(tapped, waves, (normal(examples, 2, 4),))


def test_a_frozen_half_of_a_product() -> None:
    """A parameter that is not trained may stand beside one that is, with or without gradients of its own."""
    for build in (
        described(lambda m, x: m.l(x * (m.l.bias[:1] * m.l.bias)).tanh(), l=partial(nn.Linear, 4, 4)),
        lambda: parametrizations.weight_norm(nn.Linear(4, 3)),
    ):
        model = filled(build()).double()
        names = [name for name, _ in model.named_parameters()]
        for frozen in names:
            for name, each in model.named_parameters():
                each.requires_grad_(name != frozen)
            refused_or_exact(Tapped(model), waves, normal(5, 4))
