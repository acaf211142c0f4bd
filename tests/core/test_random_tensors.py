"""Noise written straight into tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from privet.core.errors import InvalidInput
from privet.core.random import SeededRng, default_rng
from privet.core.random.tensors import in_memory_order, view_of

LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.permute(3, 1, 0, 2),
    "channels last": lambda t: t.to(memory_format=torch.channels_last),
    "every second": lambda t: t[:, :, 1::2, ::3],
    "one column": lambda t: t[:, 3:4, :, 5],
    "one number": lambda t: t[0, 0, 0, 0],
    "nothing": lambda t: t[:0],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_exactly_the_tensor_is_overwritten(layout: str, dtype: torch.dtype) -> None:
    """Catches a copy that is filled in place of the tensor, elements left out, and neighbours that are hit."""
    whole = torch.full((6, 8, 10, 12), math.nan, dtype=dtype)
    part = LAYOUTS[layout](whole)
    place = part.data_ptr()
    SeededRng(1).fill_normal(part, 3.0)
    assert part.data_ptr() == place
    assert torch.isfinite(part).all()
    assert len(np.unique(part.numpy())) == part.numel()
    if layout != "channels last":  # that one is a tensor of its own
        assert int(torch.isfinite(whole).sum()) == part.numel()


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "channels last", "one number"])
def test_dense_tensors_are_filled_without_a_copy(layout: str) -> None:
    """Catches a detour through a second buffer for tensors that merely list their axes in another order."""
    tensor = LAYOUTS[layout](torch.zeros(6, 8, 10, 12))
    flat = in_memory_order(view_of(tensor))
    assert flat is not None
    assert flat.size == tensor.numel()
    flat[...] = 1
    assert (tensor == 1).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", ["contiguous", "channels last", "every second"])
def test_the_deviation_is_the_one_asked_for(layout: str, dtype: torch.dtype) -> None:
    """Catches a forgotten or squared `std`. False-alarm rate 1e-6."""
    tensor = LAYOUTS[layout](torch.zeros(20, 20, 30, 30, dtype=dtype))
    SeededRng(2).fill_normal(tensor, 0.02)
    assert stats.kstest(tensor.reshape(-1).double().numpy() / 0.02, "norm").pvalue > 1e-6


def test_normals_and_fills_are_the_same_draws() -> None:
    """Catches two ways to the same law that drift apart."""
    tensor = torch.empty(1001)
    SeededRng(3).fill_normal(tensor, 1.0)
    assert np.array_equal(tensor.numpy(), SeededRng(3).normal(1001, dtype=np.float32))


def test_gradients_and_parameters_can_be_filled() -> None:
    """Catches a refusal of leaves, and a write that autograd does not notice and would differentiate wrongly."""
    parameter = torch.nn.Parameter(torch.ones(5))
    SeededRng(4).fill_normal(parameter, 1.0)
    assert (parameter != 1).all()
    weight = torch.ones(5, requires_grad=True)
    factor = torch.ones(5)
    loss = (weight * factor).sum()
    SeededRng(5).fill_normal(factor, 1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.backward(loss)


def test_two_fills_differ() -> None:
    """Catches noise that is repeated from one parameter, or one step, to the next."""
    first, second = torch.empty(100), torch.empty(100)
    default_rng().fill_normal(first, 1.0)
    default_rng().fill_normal(second, 1.0)
    assert not (first == second).any()


def test_no_deviation_gives_zeros() -> None:
    """Catches a NaN from 0 times the tail."""
    tensor = torch.ones(1000)
    SeededRng(1).fill_normal(tensor, 0.0)
    assert (tensor == 0).all()


@pytest.mark.parametrize(
    ("argument", "tensor", "std"),
    [
        ("tensor", torch.zeros(1, 3).expand(4, 3), 1.0),
        ("tensor", torch.zeros(9).as_strided((4, 4), (1, 1)), 1.0),
        ("tensor", torch.zeros(4, dtype=torch.float16), 1.0),
        ("tensor", torch.zeros(4, dtype=torch.bfloat16), 1.0),
        ("tensor", torch.zeros(4, dtype=torch.int64), 1.0),
        ("tensor", torch.zeros(4).to_sparse(), 1.0),
        ("tensor", torch.zeros(4, device="meta"), 1.0),
        ("tensor", np.zeros(4), 1.0),
        ("std", torch.zeros(4), math.nan),
        ("std", torch.zeros(4), math.inf),
        ("std", torch.zeros(4), -1.0),
        ("std", torch.zeros(4), 1e38),
        ("std", torch.zeros(4), 1e-40),
        ("std", torch.zeros(4, dtype=torch.float64), 1e308),
    ],
)
def test_what_cannot_be_noised_is_refused(argument: str, tensor: Any, std: float) -> None:
    """Catches shared memory (one draw for many coordinates), noise that rounds away, and noise that is not finite."""
    with pytest.raises(InvalidInput) as caught:
        SeededRng(1).fill_normal(tensor, std)
    assert caught.value.argument == argument
