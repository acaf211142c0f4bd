"""Writing into a torch tensor through a NumPy view, without a copy where its memory allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from privet.core.errors import InvalidInput

if TYPE_CHECKING:
    import torch

__all__ = ["in_memory_order", "usable_std", "view_of", "was_written"]


def view_of(tensor: torch.Tensor) -> npt.NDArray[Any]:
    """Return the tensor's own memory as an array; refuses what noise cannot be written into."""
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise InvalidInput(
            "tensor", f"is a {type(tensor).__name__}", "give a torch.Tensor, or call normal() for an array"
        )
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        problem = f"is {tensor.layout} on {tensor.device}, and the cipher writes to dense memory of the CPU"
        raise InvalidInput("tensor", problem, "fill a dense CPU tensor and copy it there")
    if tensor.dtype not in (torch.float32, torch.float64):
        problem = f"is {tensor.dtype}, in which noise would lose its tails and its scale"
        raise InvalidInput("tensor", problem, "draw the noise in float32 or float64 and round the noisy sum")
    view: npt.NDArray[Any] = tensor.detach().numpy()
    if _may_overlap(view):
        problem = "has elements that share memory (as after expand()), so that they would share their noise"
        raise InvalidInput("tensor", problem, "call .contiguous() or .clone() first")
    return view


def was_written(tensor: torch.Tensor) -> None:
    """Tell autograd that the values changed, as torch's own in-place operations do."""
    import torch

    torch.autograd.graph.increment_version(tensor)


def in_memory_order(view: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return the same memory as one flat row if it has no holes (also transposed and channels-last), else None.

    The order of the elements does not matter if they are filled with independent draws.
    """
    order = sorted(range(view.ndim), key=lambda axis: -view.strides[axis])
    dense = view.transpose(order)
    return dense.reshape(-1) if dense.flags.c_contiguous else None


def usable_std(std: float, dtype: np.dtype[Any], largest: float) -> float:
    """`std`, if normals of this deviation neither overflow nor vanish in `dtype`."""
    value, limits = float(std), np.finfo(dtype)
    if not 0.0 <= value < float("inf"):
        raise InvalidInput("std", f"is {value}", "give a finite deviation that is not negative")
    if value * largest > float(limits.max):
        raise InvalidInput("std", f"is {value}, whose tails overflow {dtype}", "rescale the values or use float64")
    if 0.0 < value < float(limits.tiny / limits.eps):
        raise InvalidInput("std", f"is {value}, which underflows {dtype}", "rescale the values or use float64")
    return value


def _may_overlap(view: npt.NDArray[Any]) -> bool:
    """False only where every element surely has its own memory: each stride steps over all that is nested inside it."""
    if view.size <= 1:
        return False
    reach = view.itemsize
    for stride, length in sorted((abs(s), n) for s, n in zip(view.strides, view.shape, strict=True) if n > 1):
        if stride < reach:
            return True
        reach += stride * (length - 1)
    return False
