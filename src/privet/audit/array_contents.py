"""Comparison of arrays and tensors bit by bit, with their memory layout and the memory around them."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

__all__ = ["components", "count_differing", "digest", "layout", "whole"]

_Bits = tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]


def count_differing(one: Any, other: Any) -> int:
    """Return how many entries of two arrays or tensors differ: 0.0 is not −0.0, and NaN equals NaN.

    Args:
        one: An array or tensor.
        other: Another of the same shape and type.

    >>> count_differing(np.array([0.0, 1.0, np.nan]), np.array([-0.0, 1.0, -np.nan]))
    1
    """
    if isinstance(one, np.ndarray) and one.dtype.names is not None:  # ignore the padding between fields
        fields = [_same(one[name], other[name]).reshape(one.size, -1).all(1) for name in one.dtype.names]
        return one.size - int(np.logical_and.reduce(fields).sum()) if fields else 0
    return int((~_same(one, other)).sum())


def layout(thing: Any) -> tuple[int, ...]:
    """Return the strides of an array or tensor.

    Args:
        thing: The array or tensor.
    """
    return tuple(thing.strides if isinstance(thing, np.ndarray) else thing.stride())


def whole(thing: Any) -> Any:
    """Return what an array or tensor is a view of, which is released with it; None if it is not a view.

    `torch.save` writes all of it.

    Args:
        thing: The array or tensor.

    >>> whole(np.arange(6.0)[:2])
    array([0., 1., 2., 3., 4., 5.])
    """
    if isinstance(thing, np.ndarray):
        base = thing.base
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        return base
    storage = thing.detach().untyped_storage()
    if thing.is_contiguous() and storage.nbytes() == thing.numel() * thing.element_size():
        return None
    fits = storage.nbytes() % thing.element_size() == 0
    return torch.empty(0, dtype=thing.dtype if fits else torch.uint8, device=thing.device).set_(storage)


def digest(thing: Any) -> bytes:
    """Return a digest of an array or tensor and of what it is a view of.

    Args:
        thing: A tensor, or an array that holds no Python objects.

    Raises:
        TypeError: If its memory cannot be read.
    """
    found = blake2b(f"{thing.dtype} {tuple(thing.shape)} {layout(thing)}".encode())
    for each in (thing, whole(thing)):
        if isinstance(each, (np.ndarray, torch.Tensor)):
            found.update(_bytes(each).data)
        elif each is not None:
            found.update(each)
    return found.digest()


def components(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the components of a sparse tensor: the indices of its entries, including explicit zeros, and the values.

    Args:
        tensor: A sparse tensor.
    """
    if tensor.layout == torch.sparse_coo:
        # `indices()` refuses uncoalesced tensors, whose duplicate entries are visible to whoever receives them.
        return [tensor._indices(), tensor._values()]  # noqa: SLF001
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]


def _same(one: Any, other: Any) -> npt.NDArray[np.bool_]:
    (bits, nan), (its, also) = _bits(one), _bits(other)
    return np.asarray(((bits == its).all(2) | (nan & also)).all(1))


def _bits(thing: Any) -> _Bits:
    """Return the bytes of each entry, by its real and imaginary part, and which of these are NaN."""
    size = thing.itemsize if isinstance(thing, np.ndarray) else thing.element_size()
    count = int(np.prod(thing.shape))
    twofold = thing.dtype.is_complex if isinstance(thing, torch.Tensor) else thing.dtype.kind == "c"
    parts = 2 if twofold else 1
    bits = _bytes(thing).reshape(count, parts, size // parts)
    if isinstance(thing, torch.Tensor):
        real = torch.view_as_real(_plain(thing)) if twofold else thing.detach().cpu()
        nan = torch.isnan(real.float() if real.is_floating_point() else real).numpy()
    elif thing.dtype.kind in "fc":
        if thing.dtype.char in "gG" and np.finfo(thing.dtype).nmant == 63:
            bits = bits[:, :, :10]  # the rest of an extended-precision number is padding
        flat = np.ascontiguousarray(thing).reshape(-1)
        nan = np.isnan(np.stack([flat.real, flat.imag], axis=1) if twofold else flat)
    else:
        nan = np.zeros(count, dtype=np.bool_)
    return bits, nan.reshape(count, parts)


def _bytes(thing: Any) -> npt.NDArray[np.uint8]:
    if isinstance(thing, torch.Tensor):
        return np.asarray(_plain(thing).reshape(-1).view(torch.uint8).numpy())
    return np.frombuffer(np.asarray(thing).tobytes(), dtype=np.uint8)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
