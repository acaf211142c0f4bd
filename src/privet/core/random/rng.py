"""`Rng`: what mechanisms draw from. Generators differ only in where their bits come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from privet.core.errors import InvalidInput
from privet.core.random import box_muller
from privet.core.random.faults import PATIENCE, broken_source
from privet.core.random.sizes import Bytes, F, Size, count_of, shape_of
from privet.core.random.tensors import in_memory_order, usable_std, view_of, was_written
from privet.core.randomness import Randomness

if TYPE_CHECKING:
    import torch

__all__ = ["Rng"]


class Rng(ABC):
    """A stream of random bits, and the few distributions that everything else is built from.

    No two calls ever share a bit. `kind` is recorded in the release, so that noise from a seed is never mistaken for
    protection.
    """

    @property
    @abstractmethod
    def kind(self) -> Randomness:
        """Whether the bits can be predicted by someone who knows a seed."""

    @abstractmethod
    def _fill(self, out: Bytes) -> None:
        """Overwrite `out` with bits that nobody was given before."""

    def bits(self, n: int) -> bytes:
        """Return the next `n` bytes of the stream."""
        raw = np.empty(count_of("n", n), dtype=np.uint8)
        self._fill(raw)
        return raw.tobytes()

    def fill_bits(self, out: npt.NDArray[np.uint8]) -> None:
        """Overwrite a row of bytes, in place, with the next bytes of the stream."""
        if out.dtype != np.uint8 or out.ndim != 1 or not out.flags.c_contiguous or not out.flags.writeable:
            problem = f"is an array of {out.dtype} and shape {out.shape}, or not one writable piece of memory"
            raise InvalidInput("out", problem, "give a contiguous row of numpy.uint8")
        self._fill(out)

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """Return the next `n` words of 64 uniform bits."""
        raw = np.empty(8 * count_of("n", n), dtype=np.uint8)
        self._fill(raw)
        return raw.view("<u8").astype(np.uint64, copy=False)

    def uniform(self, size: Size) -> npt.NDArray[np.float64]:
        """Return multiples of 2^-53 in [0, 1), each equally likely."""
        shape, count = shape_of(size)
        numerators = (self.words(count) >> np.uint64(11)).astype(np.float64)
        return (numerators * 2.0**-53).reshape(shape)

    @overload
    def normal(self, size: Size) -> npt.NDArray[np.float64]: ...
    @overload
    def normal(self, size: Size, *, dtype: type[F]) -> npt.NDArray[F]: ...
    def normal(self, size: Size, *, dtype: type[Any] = np.float64) -> npt.NDArray[Any]:
        """Return standard normals with tails beyond 9σ.

        Floating-point normals do not hide the last bits of what they are added to (Mironov 2012): release statistics
        with `discrete_gaussian` or `discrete_laplace`.
        """
        if dtype not in (np.float32, np.float64):
            raise InvalidInput("dtype", f"is {dtype!r}", "use numpy.float32 or numpy.float64")
        shape, count = shape_of(size)
        out: npt.NDArray[Any] = np.empty(count, dtype=dtype)
        box_muller.fill(out, 1.0, self._fill)
        return out.reshape(shape)

    def fill_normal(self, tensor: torch.Tensor, std: float) -> None:
        """Overwrite a float32 or float64 CPU tensor, in place, with independent normals of deviation `std`."""
        view = view_of(tensor)
        deviation = usable_std(std, view.dtype, box_muller.LARGEST)
        flat = in_memory_order(view)
        if flat is not None:
            box_muller.fill(flat, deviation, self._fill)
        else:
            noise = np.empty(view.size, dtype=view.dtype)
            box_muller.fill(noise, deviation, self._fill)
            view[...] = noise.reshape(view.shape)
        was_written(tensor)

    @overload
    def below(self, bound: int, size: None = None) -> int: ...
    @overload
    def below(self, bound: int, size: Size) -> npt.NDArray[np.int64]: ...
    @overload
    def below(self, bound: npt.NDArray[np.integer[Any]], size: Size | None = None) -> npt.NDArray[np.int64]: ...
    def below(self, bound: int | npt.NDArray[np.integer[Any]], size: Size | None = None) -> int | npt.NDArray[np.int64]:
        """Return integers in [0, bound), each equally likely, exactly. An array of bounds gives one draw for each."""
        bounds = _bounds(bound)
        shape, count = (bounds.shape, bounds.size) if size is None else shape_of(size)
        # The lowest (2^64 mod bound) words are drawn again, so that what is left is a whole number of rounds.
        spare = np.asarray(np.negative(bounds) % bounds)
        try:
            limits, spare = (np.broadcast_to(each, shape).reshape(-1) for each in (bounds, spare))
        except ValueError:
            problem = f"of shape {shape} does not fit bounds of shape {bounds.shape}"
            raise InvalidInput("size", problem, "leave it out to get one draw for each bound") from None
        drawn = self.words(count)
        again, rounds = np.flatnonzero(drawn < spare), 0
        while again.size:
            rounds += 1
            if rounds > PATIENCE:
                raise broken_source()
            drawn[again] = self.words(again.size)
            again = again[drawn[again] < spare[again]]
        result = (drawn % limits).astype(np.int64).reshape(shape)
        return int(result[()]) if size is None and np.ndim(bound) == 0 else result

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Pickling and copying are refused: two holders of one stream would add the same noise twice."""
        raise self._refused

    def __getstate__(self) -> NoReturn:
        """Refused as well: whoever has the state has the noise."""
        raise self._refused

    @property
    def _refused(self) -> TypeError:
        name = type(self).__name__
        return TypeError(
            f"a {name} cannot be pickled or copied: both copies would draw the same noise, and the difference of two "
            f"releases would cancel it; {self._instead}"
        )

    @property
    @abstractmethod
    def _instead(self) -> str:
        """What to do instead of copying."""


def _bounds(bound: int | npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.uint64]:
    if isinstance(bound, int):
        least = most = bound
    else:
        bound = np.asarray(bound)
        if bound.dtype.kind not in "iu":
            raise InvalidInput("bound", f"has the type {bound.dtype}", "give integers")
        least, most = (int(bound.min()), int(bound.max())) if bound.size else (1, 1)
    if least < 1:
        raise InvalidInput("bound", f"is {least} somewhere, and no integer lies in [0, {least})", "give 1 or more")
    if most > 1 << 63:
        raise InvalidInput("bound", f"is {most}, and the draws are 64-bit signed integers", "give at most 2**63")
    return np.asarray(bound, dtype=np.uint64)
