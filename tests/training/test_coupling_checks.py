"""Checks of `coupling`, called directly: in a run, another net may catch what one of them lets through."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from privet.core.errors import InvalidInput
from privet.training.coupling import check_collate, check_forward
from privet.training.engine.calls import Call
from privet.training.rules.normalization import batch_norm
from privet.training.state import Attributes
from tests.training.models import filled, normal

ROWS = 6


class Keeping(nn.Module):
    """Linear layer that keeps something of its rows, in a way of the test's choice."""

    def __init__(self, keep: Callable[[Any, Tensor], None]) -> None:
        super().__init__()
        self.layer, self.keep, self.seen = filled(nn.Linear(3, 2)).double(), keep, [0.0]
        self.register_buffer("mean", torch.zeros(3, dtype=torch.float64))
        self.queue: deque[Tensor] = deque(maxlen=64)
        self.statistics = Statistics()

    def forward(self, x: Tensor) -> Tensor:
        self.keep(self, x)
        found: Tensor = self.layer(x)
        return found


def of_all_rows(model: Any, x: Tensor) -> None:
    model.seen = [float(x.sum())]


def of_the_last_row(model: Any, x: Tensor) -> None:
    model.mean = x[-1].clone()


def of_the_first_row(model: Any, x: Tensor) -> None:
    model.mean.copy_(x[0])


def of_a_queue(model: Any, x: Tensor) -> None:
    model.queue.extend(x.detach())


def of_an_object(model: Any, x: Tensor) -> None:
    model.statistics.mean = x.mean(0)


def of_a_slot(model: Any, x: Tensor) -> None:
    model.statistics.inner.held = x[-1].clone()


class Slotted:
    """An object without a dictionary."""

    __slots__ = ("held",)


class Statistics:
    """An object of the user's own, which holds another."""

    def __init__(self) -> None:
        self.inner = Slotted()


def checked(model: nn.Module, x: Tensor) -> None:
    call = Call(model, (x,), {}, (), (), (), frozenset())
    check_forward(model, [call], len(x), Attributes.of(model), {})


@pytest.mark.parametrize("keep", [of_all_rows, of_the_last_row, of_the_first_row, of_a_queue, of_an_object, of_a_slot])
def test_model_that_keeps_something_of_its_rows_is_refused(keep: Callable[[Any, Tensor], None]) -> None:
    """Catches a private row that leaves with the model as an attribute or a buffer, whichever half it is in."""
    with pytest.raises(InvalidInput, match="keeps something of the rows that it was given, in Keeping"):
        checked(model := Keeping(keep), normal(ROWS, 3))
    # And what it kept in passes that are no steps is gone.
    assert not model.queue
    assert not vars(model.statistics).keys() - {"inner"}
    assert not hasattr(model.statistics.inner, "held")


@pytest.mark.parametrize("flipped", [False, True])
def test_model_whose_rows_depend_on_earlier_or_later_ones_is_refused(flipped: bool) -> None:
    """Catches a check of one half alone: the rows before a row, or those after it, may be all that it depends on."""

    class Running(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.flip(0).cumsum(0).flip(0) if flipped else x.cumsum(0))

    with pytest.raises(InvalidInput, match="so that examples are coupled"):
        checked(filled(Running(3, 2)).double(), normal(ROWS, 3))


def test_model_that_keeps_nothing_of_its_rows_is_accepted() -> None:
    """Catches a check that refuses everything, and one that leaves the model changed."""

    def count(model: Any, x: Tensor) -> None:
        model.seen = [model.seen[0] + 1.0]

    model = Keeping(count)
    checked(model, normal(ROWS, 3))
    assert model.seen == [0.0]


X = normal(ROWS, 3)
HALF = ROWS // 2
MIXES: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda x: x - x.mean(0),
    "second half by the first": lambda x: torch.cat([x[:HALF], x[HALF:] - x[:HALF].mean(0)]),
    "first half by the second": lambda x: torch.cat([x[:HALF] - x[HALF:].mean(0), x[HALF:]]),
    "NaN by the others": lambda x: torch.where(x[-1, 0] == X[-1, 0], x, torch.nan),
}


@pytest.mark.parametrize("mix", MIXES)
def test_collate_fn_that_mixes_rows_is_refused(mix: str) -> None:
    """Catches a check of one half of the rows, and one that is not made."""
    with pytest.raises(InvalidInput, match="collate_fn gives other numbers for a row"):
        check_collate(lambda indices: {"x": MIXES[mix](X[indices]), "y": torch.tensor(indices)}, range(ROWS))


def test_collate_fn_of_single_rows_is_accepted() -> None:
    """Catches a check that refuses padding, missing values, or rows that are read anew each time."""
    x = X.clone()
    x[2, 1] = torch.nan
    lengths = [1, 3, 2, 5, 2, 4]

    def padded(indices: list[int]) -> Tensor:
        longest = max(lengths[index] for index in indices)
        return torch.stack([torch.arange(longest).double() * (index + 1) for index in indices])

    check_collate(lambda indices: x[indices], range(ROWS))
    check_collate(padded, range(ROWS))
    counter = iter(range(100))
    check_collate(lambda indices: x[indices] + next(counter), range(ROWS))


def test_rule_for_batch_norm_refuses_statistics_of_the_batch() -> None:
    """Catches a rule that measures examples one by one although each is normalized by all of them."""
    incoming: Any = SimpleNamespace(saved={"training": True}.__getitem__)
    with pytest.raises(InvalidInput, match="normalises with the statistics of the whole batch"):
        batch_norm(incoming)
