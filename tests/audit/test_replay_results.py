"""What `replay` sees of a result: everything that can be reached from it, and whatever was raised or logged."""

from __future__ import annotations

import functools
import io
import logging
import re
import threading
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
from privet.mechanisms import BoundedSum, LaplaceMechanism
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


def zero(size: int) -> float:
    return 0.0 if size > 8 else -0.0


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
    "sign of zero": (zero, " differs"),
    "sign of zero in an array": (lambda size: np.array([zero(size), 1.0]), " differs in 1 of 2 numbers"),
    "sign of zero in a complex array": (lambda size: np.array([complex(1, zero(size))]), " differs in 1 of 1 numbers"),
    "sign of zero in a record": (lambda size: np.array([(1, zero(size))], "i4,f8"), " differs in 1 of 1 numbers"),
    "sign of zero in a number": (lambda size: np.float32(zero(size)), " differs"),
    "sign of zero in a tensor": (lambda size: torch.tensor([zero(size)]), " differs in 1 of 1 numbers"),
    "sign of zero in a frame": (lambda size: pl.DataFrame({"a": [zero(size), None]}), " differs"),
    "part that is NaN": (lambda size: np.array([complex(np.nan, size)]), " differs in 1 of 1 numbers"),
    "order of an array": (lambda size: np.zeros((2, 2), order="C" if size > 8 else "F"), " lies otherwise in memory"),
    "order of a tensor": (lambda size: torch.zeros(2, 2).T if size > 8 else torch.zeros(2, 2), " lies otherwise"),
    "zeros of a sparse tensor": (
        lambda size: torch.sparse_coo_tensor(torch.tensor([[size - 8]]), torch.zeros(1), (2,), check_invariants=True),
        " differs in 1 of 1 numbers",
    ),
    "view of an array": (lambda size: np.array([1.0, size])[:1], " is a view of more than itself"),
    "view of a view": (lambda size: np.array([1.0, 2.0, size])[:2][:1], " is a view of more than itself"),
    "view of things": (lambda size: np.array([None, size], dtype=object)[:1], " is a view of more than itself"),
    "view of text": (lambda size: np.frombuffer(b"ab%d" % size, np.uint8)[:1], " is a view of more than itself"),
    "view that repeats": (
        lambda size: np.broadcast_to(np.array([1.0, size])[:1], (5,)),
        " is a view of more than itself",
    ),
    "view of a tensor": (lambda size: torch.tensor([1.0, size])[:1], " is a view of more than itself"),
    "view of a tensor as an array": (lambda size: torch.tensor([1.0, size])[:1].numpy(), " is a view of more than"),
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
    "array": lambda value: np.array([value, np.nan, np.copysign(np.nan, -1), -0.0, np.inf]),
    "longer numbers": lambda value: np.array([value, np.nan], dtype=np.longdouble),
    "no numbers": lambda value: (np.empty(0), torch.empty(0, 3), np.array("", dtype="U0"), np.zeros(2, dtype="M8[s]")),
    "views": lambda value: (np.full((3, 2), value).T[:1], torch.full((3, 2), value).t()[:1], np.arange(6)[::2]),
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


def overwritten(pipeline: Callable[[list[bool]], Any]) -> tuple[str, ...]:
    found = replay(lambda rows, rng: (told(rows, rng), pipeline(rows)), [True] * 9, [True] * 8)
    assert found.calls == 1
    return found.differences


SHARED: dict[str, tuple[Any, Callable[[Any, float], object]]] = {
    "list": ([0.0], lambda thing, size: thing.__setitem__(0, size)),
    "nested": ({"a": ([0.0],)}, lambda thing, size: thing["a"][0].__setitem__(0, size)),
    "set": ({0.0}, lambda thing, size: (thing.clear(), thing.add(size))),
    "array": (np.zeros(2), lambda thing, size: thing.fill(size)),
    "view": (np.zeros(9)[:1], lambda thing, size: thing.base.__setitem__(8, size)),
    "array of things": (np.array([None]), lambda thing, size: thing.__setitem__(0, size)),
    "tensor": (torch.zeros(2), lambda thing, size: thing.fill_(size)),
    "view of a tensor": (torch.zeros(9)[:1], lambda thing, size: thing.as_strided((9,), (1,))[8:].fill_(size)),
    "sparse tensor": (torch.eye(2).to_sparse(), lambda thing, size: thing.values().fill_(size)),
    "module": (nn.Linear(1, 1), lambda thing, size: thing.weight.data.fill_(size)),
    "attribute": (Slotted(0.0), lambda thing, size: setattr(thing, "size", size)),
    "stream": (io.StringIO(), lambda thing, size: (thing.seek(0), thing.write(str(size)))),
    "frame": (pl.Series("a", [0.0]), lambda thing, size: thing.__setitem__(0, size)),
    "function's attribute": (documented(0), lambda thing, size: setattr(thing, "note", size)),
}
"""Made once, outside of the pipeline, and how each run overwrites it."""
FORMS: tuple[Callable[[Any], Any], ...] = (
    lambda thing: thing,
    lambda thing: lambda: thing,
    lambda thing: functools.partial(max, thing),
)
"""How it is returned."""


@pytest.mark.parametrize("name", sorted(SHARED))
def test_what_lives_outside_is_compared_as_the_first_run_left_it(name: str) -> None:
    """Fails when a thing that both runs return passes since it is one and the same object: each run wrote the number of
    rows into it, and the second overwrote the first. What both write alike, or leave alone, is no difference."""
    thing, write = SHARED[name]

    def pipeline(rows: list[bool], form: Callable[[Any], Any], size: float | None = None) -> Any:
        write(thing, float(len(rows)) if size is None else size)
        return form(thing)

    for form in FORMS:
        lines = overwritten(functools.partial(pipeline, form=form))
        assert any("lives outside of the pipeline, and was overwritten by the second run" in each for each in lines)
        assert overwritten(functools.partial(pipeline, form=form, size=4.0)) == ()


def test_what_lives_outside_and_cannot_be_copied_does_not_hold() -> None:
    """Fails when something passes because it is one and the same in both runs, and nobody can tell what was in it."""
    lock = threading.Lock()
    assert overwritten(lambda rows: [lock]) == ("the result[1][0] is a lock, which cannot be compared",)
    assert overwritten(lambda rows: [len, str.upper, np.exp, re.compile("a"), logging.getLogger("x"), io]) == ()


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
    assert lines == (f"it raised {kind.__name__} on the neighbor, and nothing on the data",)
    lines = replay(pipeline, [True] * 8, [True] * 9).differences
    assert lines == (f"it raised {kind.__name__} on the data, and nothing on the neighbor",)


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
        return LaplaceMechanism(-1.0, COUNT).release(COUNT(rows), rng=rng)

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


def test_a_query_that_is_no_number_in_a_later_call_is_found() -> None:
    """Fails when a movement that cannot be measured is outweighed by an earlier one that is within its bound."""
    total = BoundedSum(0.0, 1.0)
    noise = LaplaceMechanism.for_epsilon(1.0, total)

    def pipeline(rows: list[float], rng: Rng) -> Any:
        late = noise.reach.of(float("nan") if len(rows) == 5 else 0.0)
        return noise.release(total(rows), rng=rng), noise.release(late, rng=rng)

    found = replay(pipeline, [0.5] * 4, [0.5] * 5)
    assert not found.holds
    assert "nan" in str(found)
