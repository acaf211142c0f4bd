"""Forks, fresh processes and threads: nobody draws what somebody else drew."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from multiprocessing.connection import Connection
from multiprocessing.pool import ThreadPool

import pytest

from privet.core.errors import PrivetError
from privet.core.random import SecureRng, SeededRng, default_rng, lineage

SHARED = SecureRng()
SEEDED = SeededRng(11)
PARENT = os.getpid()

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
# From Python 3.12 on, forking beside other threads (torch has some) is warned of; that is what is tested here.
quiet = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def draw_in_child(guard: str, pipe: Connection) -> None:
    """Runs in the child: draws with both guards against forks, or with one of them put out of action."""
    if guard == "hook":
        os.getpid = lambda: PARENT
    elif guard == "pid":
        lineage._FORKS.depth = 0
    pipe.send_bytes(SHARED.bits(32) + default_rng().bits(32))


def draw_from_the_seed(pipe: Connection) -> None:
    """Runs in the child: the inherited stream must refuse, its children must work."""
    try:
        SEEDED.bits(8)
    except PrivetError as refusal:
        pipe.send((str(refusal), SEEDED.child(1).bits(8)))
    else:
        pipe.send(("it drew", b""))


def draw_here(_: int) -> bytes:
    """Runs in a fresh process."""
    return default_rng().bits(32)


@needs_fork
@quiet
@pytest.mark.parametrize("guard", ["both", "hook", "pid"])
def test_forked_children_draw_afresh(guard: str) -> None:
    """Catches children that inherit the parent's key, and either guard if it does not work without the other."""
    context = multiprocessing.get_context("fork")
    SHARED.bits(16), default_rng().bits(16)  # the parent has its keys before it forks
    drawn = []
    for _ in range(3):
        ours, theirs = context.Pipe()
        child = context.Process(target=draw_in_child, args=(guard, theirs))
        child.start()
        drawn.append(ours.recv_bytes())
        child.join(30)
        assert child.exitcode == 0
    drawn.append(SHARED.bits(32) + default_rng().bits(32))
    halves = {part for each in drawn for part in (each[:32], each[32:])}
    assert len(halves) == 8


@needs_fork
@quiet
def test_a_forked_child_may_not_draw_from_an_inherited_seeded_stream() -> None:
    """Catches workers that all add the same noise, which makes a test of the variance pass or fail wrongly."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=draw_from_the_seed, args=(theirs,))
    child.start()
    refusal, drawn = ours.recv()
    child.join(30)
    assert "repeat that process's noise" in refusal
    assert "child" in refusal
    assert drawn == SeededRng(11, 1).bits(8)
    assert len(SEEDED.bits(8)) == 8, "the parent goes on"


def test_spawned_processes_draw_afresh() -> None:
    """Catches a default generator that starts from anything but the operating system's entropy."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        drawn = pool.map(draw_here, range(6), chunksize=1)
    assert len({*drawn, default_rng().bits(32)}) == 7


def test_threads_have_keys_of_their_own() -> None:
    """Catches one cipher that is shared between threads, whose calls would interleave or repeat."""
    rng, barrier = SecureRng(), threading.Barrier(4)

    def draw(_: int) -> tuple[int, list[bytes]]:
        barrier.wait(30)
        drawn = [rng.bits(32) for _ in range(500)]
        return id(rng._state.stream), drawn

    with ThreadPool(4) as pool:
        results = pool.map(draw, range(4), chunksize=1)
        assert len({stream for stream, _ in results}) == 4
    assert len({value for _, drawn in results for value in drawn}) == 4 * 500


def test_threads_may_share_a_seeded_stream() -> None:
    """Catches calls that are torn apart, or bits given out twice, when threads draw from one seeded stream at once."""
    rng, barrier, size = SeededRng(12), threading.Barrier(4), 1 << 18

    def draw(_: int) -> list[bytes]:
        barrier.wait(30)
        return [rng.bits(size)[::4096] for _ in range(25)]

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPool(4) as pool:
            drawn = [value for part in pool.map(draw, range(4), chunksize=1) for value in part]
    finally:
        sys.setswitchinterval(usual)
    alone = SeededRng(12)
    assert sorted(drawn) == sorted(alone.bits(size)[::4096] for _ in range(100))
