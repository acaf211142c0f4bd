"""What `replay` sees of a result: everything that can be reached from it, and whatever was raised or logged."""

from __future__ import annotations

import functools
import io
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.sparse
import torch
from torch import nn

from privet.audit import replay
from privet.core.random import Rng, SeededRng
from privet.mechanisms import Laplace
from tests.audit.test_replay import COUNT, told


class Attributed(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size


class Buffered(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("size", torch.tensor(size), persistent=False)


class Graded(nn.Linear):
    """Its gradient is left over."""

    def __init__(self, size: int) -> None:
        super().__init__(1, 1)
        self.weight.grad = torch.full((1, 1), float(size))


@dataclass
class Hidden:
    shown: int

    def __post_init__(self) -> None:
        self.hidden, self.shown = self.shown, 0


class Slotted:
    __slots__ = ("size",)

    def __init__(self, size: float) -> None:
        self.size = size

    def told(self) -> float:
        return self.size


class Named(dict[str, int]):
    pass


class Listed(list[int]):
    pass


class Arrayed(np.ndarray[Any, Any]):
    pass


class Blind(float):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = float.__hash__


def noted(thing: Any, size: int) -> Any:
    thing.note = size  # an array has a `size` already
    return thing


def documented(size: int) -> Callable[[], None]:
    def nothing() -> None:
        pass

    nothing.__doc__ = str(size)
    return nothing


def circle(size: float) -> list[Any]:
    found: list[Any] = [size]
    found.append(found)
    return found


INSIDE: dict[str, tuple[Callable[[int], Any], str]] = {
    "closure": (lambda size: lambda: size, "'s closure['size'] differs"),
    "default": (lambda size: lambda kept=size: kept, ".__defaults__[0] differs"),
    "named default": (lambda size: lambda *, kept=size: kept, ".__kwdefaults__['kept'] differs"),
    "docstring": (documented, ".__doc__ differs"),
    "names of its own": (
        lambda size: FunctionType((lambda: COUNT).__code__, {"COUNT": size}),
        "'s closure['COUNT'] differs",
    ),
    "partial's function": (lambda size: functools.partial(lambda: size), ".func's closure['size'] differs"),
    "partial's argument": (lambda size: functools.partial(int, size), ".args[0] differs"),
    "partial's keyword": (lambda size: functools.partial(int, base=size), ".keywords['base'] differs"),
    "module's attribute": (Attributed, ".size differs"),
    "module's buffer": (Buffered, "'s weights['size'] differs in 1 of 1 numbers"),
    "module's hyper-parameter": (lambda size: nn.Sequential(nn.Dropout(size / 10)), "._modules['0'].p differs"),
    "gradient": (Graded, "'s weights['weight']'s gradient differs in 1 of 1 numbers"),
    "no field": (Hidden, ".hidden differs"),
    "dict's attribute": (lambda size: noted(Named(a=1), size), ".note differs"),
    "list's attribute": (lambda size: noted(Listed([1]), size), ".note differs"),
    "array's attribute": (lambda size: noted(np.zeros(1).view(Arrayed), size), ".note differs"),
    "slot": (Slotted, ".size differs"),
    "bound method": (lambda size: Slotted(size).told, ".__self__.size differs"),
    "bound method of C": (lambda size: [size].count, ".__self__[0] differs"),
    "circle": (circle, "[0] differs"),
    "equal to all": (Blind, " differs"),
    "class of its own": (lambda size: type("Made", (), {"size": size})(), " is of two classes Made"),
    "sign of zero": (lambda size: 0.0 if size > 8 else -0.0, " differs"),
    "frame": (lambda size: pl.DataFrame({"a": [size]}), " differs"),
    "series": (lambda size: pl.Series("a", [size]), " differs"),
    "series' name": (lambda size: pl.Series(str(size), [1]), " has other columns"),
    "array of things": (lambda size: np.array([None, size], dtype=object), "[1] differs"),
    "generator": (lambda size: (each for each in [size]), " is a generator, which cannot be compared"),
    "stream": (lambda size: io.StringIO(str(size)), " is a StringIO, which cannot be compared"),
    "graph": (lambda size: torch.ones(1, requires_grad=True) * size, " carries how it was computed"),
}
"""Made of the number of rows, and where it is found then."""


@pytest.mark.parametrize("name", sorted(INSIDE))
def test_what_is_inside_a_result_is_found(name: str) -> None:
    """Fails when the number of rows leaves inside of something that comes out, and nothing is said; or where something
    that cannot be looked into passes."""
    make, said = INSIDE[name]
    found = replay(lambda rows, rng: (told(rows, rng), make(len(rows))), [True] * 9, [True] * 8)
    assert [each for each in found.differences if f"the result[1]{said}" in each]
    assert found.calls == 1


RIGHT: dict[str, Callable[[float], Any]] = {
    "closure": lambda value: lambda: value,
    "partial": lambda value: functools.partial(max, value),
    "module": lambda value: noted(nn.LSTM(2, 3), int(value)),  # holds weak references to its weights
    "hook": lambda value: hooked(nn.Linear(2, 3)),
    "optimiser": lambda value: stepped(nn.Linear(2, 3)),  # its state is kept by tensors
    "slot": Slotted,
    "bound method": lambda value: Slotted(value).told,
    "frame": lambda value: pl.DataFrame({"a": [value, None, float("nan")]}),
    "series": lambda value: pl.Series("a", [value, None, float("nan")]),
    "sparse matrix": lambda value: scipy.sparse.csr_matrix([[value, 0.0]]),
    "sparse tensor": lambda value: torch.eye(2).mul(value).to_sparse(),
    "half precision": lambda value: torch.tensor([value, float("nan")], dtype=torch.bfloat16),
    "circle": circle,
    "set": lambda value: {(value, "a"), (value, "b")},
    "path": lambda value: Path(str(value)),
    "nothing": lambda value: (None, float("nan"), np.float32("nan"), ..., int, len),
}
"""Made of what a mechanism answered."""


def hooked(module: nn.Module) -> nn.Module:
    module.register_forward_hook(lambda *_: None)
    return module


def stepped(module: nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(module.parameters())
    module(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return optimizer


@pytest.mark.parametrize("name", sorted(RIGHT))
def test_what_follows_from_an_answer_is_the_same(name: str) -> None:
    """Fails when two things that are made alike are called different, since their kind compares by identity, counts its
    hooks up, or has no one answer to ==; or when a circle has no end."""
    make = RIGHT[name]
    replay(lambda rows, rng: make(told(rows, rng).value), [True] * 9, [True] * 8).check()


class Own(Exception):
    pass


@pytest.mark.parametrize("kind", [Own, AssertionError, AttributeError, KeyError, OSError, StopIteration])
def test_what_is_raised_is_compared(kind: type[Exception]) -> None:
    """Fails when an error of any kind that only one of the two raises escapes, or when what was raised is not said."""

    def pipeline(rows: list[bool], rng: Rng) -> Any:
        found = told(rows, rng)
        if len(rows) == 8:
            raise kind("few rows")
        return found

    lines = replay(pipeline, [True] * 9, [True] * 8).differences
    assert lines == (f"it raised {kind.__name__} on the neighbour, and nothing on the data",)
    lines = replay(pipeline, [True] * 8, [True] * 9).differences
    assert lines == (f"it raised {kind.__name__} on the data, and nothing on the neighbour",)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_who_stops_it_is_heard(kind: type[BaseException]) -> None:
    """Fails when a replay swallows an interrupt or an exit."""

    def pipeline(rows: list[bool], rng: Rng) -> None:
        raise kind

    with pytest.raises(kind):
        replay(pipeline, [True], [])


def test_nothing_tried_does_not_hold() -> None:
    """Fails when a pipeline that crashes on both data sets passes (before or after its mechanism, by a wrong number of
    arguments, or by refusing what is public), or one that asks no mechanism at all."""

    def after(rows: list[bool], rng: Rng) -> Any:
        return told(rows, rng) / 0

    def refused(rows: list[bool], rng: Rng) -> Any:
        return Laplace(-1.0, COUNT).release(COUNT(rows), rng=rng)

    def sized(rows: list[bool], rng: Rng) -> Any:
        told(rows, rng)
        raise ValueError(str(len(rows)))

    def asked(pipeline: Any) -> tuple[str, ...]:
        return replay(pipeline, [True] * 9, [True] * 8).differences

    crashed = "it raised {} on both, so that nothing was tried: run the pipeline by itself to see why"
    assert asked(lambda rows: told(rows, SeededRng(1))) == (crashed.format("TypeError"), "no mechanism was called")
    assert asked(after) == (crashed.format("TypeError"),)
    assert asked(refused) == (crashed.format("InvalidInput"), "no mechanism was called")
    assert asked(sized) == (crashed.format("ValueError"), "what was raised differs")
    assert asked(lambda rows, rng: 3) == ("no mechanism was called",)


def test_log_lines_are_compared() -> None:
    """Fails when what is logged is not seen because a handler holds another stream, or the logger does not pass it on;
    or when a replay leaves logging other than it was."""
    before = logging.getLogRecordFactory()
    kept = logging.getLogger("tests.audit.replay")
    handler = logging.StreamHandler(io.StringIO())
    kept.addHandler(handler)
    kept.propagate = False

    def pipeline(rows: list[bool], rng: Rng, shown: int | None = None) -> Any:
        kept.warning("there are %d rows", len(rows) if shown is None else shown)
        return told(rows, rng)

    try:
        lines = replay(pipeline, [True] * 9, [True] * 8).differences
        assert lines == ("the list of log lines[0][2] differs",)
        replay(lambda rows, rng: pipeline(rows, rng, 7), [True] * 9, [True] * 8).check()
    finally:
        kept.removeHandler(handler)
        kept.propagate = True
    assert logging.getLogRecordFactory() is before
