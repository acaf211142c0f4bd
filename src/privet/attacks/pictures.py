"""Images as files, for reports: reconstructions next to the originals. They show private rows."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core import InvalidInput, checked

__all__ = ["data_uri", "montage", "png"]

_GRAY, _COLORED = 0, 2


def png(picture: Any, *, scale: int = 1) -> bytes:
    """Return an image as a PNG file. Values are clipped to [0, 1], and NaN is black.

    Args:
        picture: [height, width], or [3, height, width] for colors, with values from 0 to 1.
        scale: The side of the square that each pixel becomes.

    Raises:
        InvalidInput: If the shape is not that of an image, or `scale` is below 1.

    >>> png(np.zeros((2, 3)))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    values = np.asarray(picture, dtype=np.float64)
    values = values[0] if values.ndim == 3 and len(values) == 1 else values
    if not (values.ndim == 2 or (values.ndim == 3 and len(values) == 3)) or not values.size:
        raise InvalidInput("picture", f"has the shape {values.shape}", "give [height, width] or [3, height, width]")
    levels = np.round(255 * np.clip(np.nan_to_num(values, nan=0.0), 0, 1)).astype(np.uint8)
    levels = levels.repeat(checked.count("scale", scale), axis=-1).repeat(scale, axis=-2)
    colors = levels[..., None] if levels.ndim == 2 else np.moveaxis(levels, 0, -1)
    height, width, channels = colors.shape
    # PNG (ISO/IEC 15948): a byte 0, for "no filter", before each line; 8 bits a channel.
    lines = np.concatenate([np.zeros((height, 1), np.uint8), colors.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, _GRAY if channels == 1 else _COLORED, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, content) for kind, content in parts)


def montage(rows: Sequence[Sequence[Any]], *, gap: int = 2) -> npt.NDArray[np.float64]:
    """Return images of one shape, arranged in rows, as one image; shorter rows are filled up with white.

    Args:
        rows: The images of each row.
        gap: The number of white pixels between images.

    Raises:
        InvalidInput: If the images are of several shapes, there are none, or `gap` is negative.

    >>> montage([[np.zeros((4, 4)), np.ones((4, 4))], [np.zeros((4, 4))]]).shape
    (10, 10)
    """
    arrays = [[np.asarray(each, dtype=np.float64) for each in row] for row in rows]
    shapes = {each.shape for row in arrays for each in row}
    if len(shapes) != 1:
        raise InvalidInput("rows", f"have pictures of {len(shapes)} shapes", "give pictures of one shape")
    (*channels, height, width) = shapes.pop()
    high, wide = checked.count("gap", gap, least=0) + height, gap + width
    across = max(len(row) for row in arrays)
    whole = np.ones((*channels, len(arrays) * high - gap, across * wide - gap))
    for down, row in enumerate(arrays):
        for place, each in enumerate(row):
            whole[..., down * high : down * high + height, place * wide : place * wide + width] = each
    return whole


def data_uri(content: bytes) -> str:
    """Return a PNG file as a data URI, for self-contained HTML pages.

    Args:
        content: The PNG file.

    >>> data_uri(png(np.zeros((1, 1))))[:30]
    'data:image/png;base64,iVBORw0K'
    """
    return "data:image/png;base64," + base64.b64encode(content).decode("ascii")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
