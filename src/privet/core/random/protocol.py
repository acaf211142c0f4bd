"""What every source of randomness offers. Mechanisms ask for an `Rng` and for nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from privet.core.randomness import Randomness

if TYPE_CHECKING:
    import torch

__all__ = ["Rng", "Size"]

F = TypeVar("F", np.float32, np.float64)
Size: TypeAlias = int | tuple[int, ...]


class Rng(Protocol):
    """A stream of random bits, and the few laws that everything else is built from.

    No two calls ever share a bit. `kind` travels into the release, so that noise from a seed is never mistaken for
    protection.
    """

    @property
    def kind(self) -> Randomness:
        """Whether the bits can be predicted by someone who knows a seed."""
        ...

    def bits(self, n: int) -> bytes:
        """The next `n` bytes of the stream."""
        ...

    def fill_bits(self, out: npt.NDArray[np.uint8]) -> None:
        """Overwrite a row of bytes, in place, with the next bytes of the stream."""
        ...

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """The next `n` words of 64 uniform bits."""
        ...

    def uniform(self, size: Size) -> npt.NDArray[np.float64]:
        """Multiples of 2^-53 in [0, 1), each equally likely."""
        ...

    @overload
    def normal(self, size: Size) -> npt.NDArray[np.float64]: ...
    @overload
    def normal(self, size: Size, *, dtype: type[F]) -> npt.NDArray[F]: ...
    def normal(self, size: Size, *, dtype: type[Any] = np.float64) -> npt.NDArray[Any]:
        """Standard normals with tails beyond 9σ."""
        ...

    def fill_normal(self, tensor: torch.Tensor, std: float) -> None:
        """Overwrite a float32 or float64 CPU tensor, in place, with independent normals of deviation `std`."""
        ...

    @overload
    def below(self, bound: int, size: None = None) -> int: ...
    @overload
    def below(self, bound: int, size: Size) -> npt.NDArray[np.int64]: ...
    @overload
    def below(self, bound: npt.NDArray[np.integer[Any]], size: Size | None = None) -> npt.NDArray[np.int64]: ...
    def below(self, bound: int | npt.NDArray[np.integer[Any]], size: Size | None = None) -> int | npt.NDArray[np.int64]:
        """Integers in [0, bound), each equally likely, exactly. An array of bounds gives one draw for each."""
        ...
