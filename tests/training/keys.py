"""A stream that counts how often noise was drawn from it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privet.core.random import SeededRng
from privet.core.random.keystream import KEY_BYTES


class CountedKeys(SeededRng):
    """Counts the keys for noise that are drawn: one is enough for half a million weights. A draw of rows is no key."""

    drawn = 0

    def fill_bits(self, out: npt.NDArray[np.uint8]) -> None:
        self.drawn += len(out) == KEY_BYTES
        super().fill_bits(out)
