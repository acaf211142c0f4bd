"""Oracles whose report is one whole number: how such reports are checked and counted."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from privet.core.errors import InvalidInput
from privet.local.oracle import PureOracle
from privet.local.randomizer import whole_numbers
from privet.mechanisms.coins import Integers

__all__ = ["NumberOracle"]


@dataclass(frozen=True)
class NumberOracle(PureOracle):
    """An oracle that reports one of the numbers 0, 1, …, outputs - 1; a tally counts each of them."""

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many reports there are."""

    @property
    def slots(self) -> int:
        return self.outputs

    @property
    def report_bits(self) -> int:
        return (self.outputs - 1).bit_length()

    def checked_reports(self, reports: npt.ArrayLike) -> npt.NDArray[Any]:
        found = whole_numbers("reports", reports)
        if found.size and not 0 <= int(found.min()) <= int(found.max()) < self.outputs:
            raise InvalidInput("reports", f"are not all in 0 … {self.outputs - 1}", "drop what no respondent can send")
        return found

    def _count(self, reports: npt.NDArray[Any]) -> Integers:
        return np.bincount(reports, minlength=self.outputs)
