"""Arrays of bytes in IDX files, the form in which MNIST and its kin are published."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput
from privet.data.csv_file import opened

__all__ = ["read_idx"]

_BYTES = b"\x00\x00\x08"
_LARGEST = 1 << 31


def read_idx(path: Path, dimensions: int) -> npt.NDArray[np.uint8]:
    """Return the array in an IDX file, gzipped or not."""
    try:
        with opened(path) as file:
            start = file.read(4 + 4 * dimensions)
            if start[:4] != _BYTES + bytes([dimensions]) or len(start) < 4 + 4 * dimensions:
                raise _damaged(path, f"it does not begin as an IDX file of {dimensions} dimensions")
            shape = tuple(int(each) for each in np.frombuffer(start[4:], dtype=">u4"))
            if math.prod(shape) > _LARGEST:
                raise _damaged(path, "its header asks for more than 2 GiB")
            content = file.read(math.prod(shape))
            if len(content) != math.prod(shape) or file.read(1):
                raise _damaged(path, "it is not as long as its header says")
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise _damaged(path, "its compressed data are cut off or changed") from None
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def _damaged(path: Path, problem: str) -> InvalidInput:
    return InvalidInput("file", f"{path.name!r} is damaged: {problem}", "get it again")
