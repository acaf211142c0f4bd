"""ε in the lines of logs: never below what the steps so far cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from privet.accounting import epsilon as price
from privet.core.guarantee import Guarantee, Interval
from privet.training import DPSGD
from privet.training.loggers import logbook
from privet.training.loggers.logbook import Logbook

PLAN = DPSGD(noise_multiplier=1.1, delta=1e-5, batch_size=16, steps=100, population=1_000)


def test_logbook_writes_the_upper_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a log that shows the lower end of ε."""

    def wide(*arguments: Any, **more: Any) -> Guarantee:
        return replace(price(*arguments, **more), epsilon=Interval(0.1371, 7.8913))

    monkeypatch.setattr(logbook, "price", wide)
    book = Logbook(PLAN)
    assert {book.reached(step).epsilon for step in (1, 50, 100)} == {7.8913}


def test_logbook_is_never_below_the_steps_so_far() -> None:
    """Catches a count of steps that is rounded down, so that a line says what an earlier step cost."""
    book, sampler = Logbook(PLAN), PLAN.sampler(1_000)
    leaf = PLAN.clipping.leaf(PLAN.noise_multiplier or 0.0)
    for step in (1, 3, 4, 5, 30, 62, 97, 99, 100):
        own = price(sampler.event(leaf, step), 1e-5, unit=PLAN.unit()).epsilon
        assert book.reached(step).epsilon >= own.lower
        assert book.reached(step).epsilon >= own.upper * (1 - 1e-3)
