"""Record and replay: does anything but a mechanism see the record in which two data sets differ?

A pipeline runs on one data set, and the queries and answers of its mechanisms are recorded. It runs again on a neighbor
with the same randomness, and every mechanism gives its recorded answer. Then the output must be the same: any
difference bypassed the mechanisms. And each query may move by its declared sensitivity, and no more.
"""

from __future__ import annotations

import inspect
import io
import logging
import math
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from itertools import zip_longest
from types import TracebackType
from typing import Any, Final

import torch

from privet.audit.comparison import differences
from privet.audit.interception import Interception, MechanismCall, interceptions, query_distance
from privet.audit.snapshot import overwritten_places, take_snapshot
from privet.core import PrivetError, Randomness
from privet.core.random import Bytes, Rng, SeededRng

__all__ = ["QueryMovement", "Replay", "ReplayError", "replay"]

_ONE_AT_A_TIME: Final = threading.Lock()


class ReplayError(PrivetError):
    """A replay on a neighbor differs: the pipeline does not do what its guarantee is for."""


@dataclass(frozen=True)
class QueryMovement:
    """The farthest that a mechanism's query moved between two neighbors, over its calls, and its declared limit."""

    mechanism: str
    norm: str
    measured: float
    declared: float
    slack: float = 1e-9
    """The relative tolerance on the declared limit, for rounding."""

    @property
    def within(self) -> bool:
        """Whether the query moved no further than its declared limit."""
        return self.measured <= self.declared * (1 + self.slack) + 1e-12

    def __str__(self) -> str:
        return f"{self.mechanism}: moved by {self.measured:.6g} in {self.norm}, and may move by {self.declared:.6g}"


@dataclass(frozen=True)
class Replay:
    """Result of a replay. **Internal**: how far a query moved reveals something about the rows."""

    calls: int
    """The number of calls of mechanisms on the first data set."""
    draws: int
    """The number of draws of randomness outside of mechanisms."""
    moved: tuple[QueryMovement, ...]
    differences: tuple[str, ...]
    """All other differences, and what could not be tested, in plain words and without the values."""

    @property
    def holds(self) -> bool:
        """Whether nothing differs, and nothing moved too far."""
        return not self.differences and all(each.within for each in self.moved)

    def check(self) -> None:
        """Raise `ReplayError` unless it holds."""
        if not self.holds:
            raise ReplayError(str(self))

    def __str__(self) -> str:
        too_far = [str(each) for each in self.moved if not each.within]
        if not too_far and not self.differences:
            return f"the same on both: {self.calls} answers of mechanisms, {self.draws} draws beside them"
        return "\n".join(["it does not hold:", *(f"- {each}" for each in (*too_far, *self.differences))])


def replay(pipeline: Callable[[Any, Rng], Any], data: Any, neighbor: Any, *, seed: int = 0) -> Replay:
    """Run `pipeline(data, rng)`, then `pipeline(neighbor, rng)` with the same randomness and frozen answers.

    What is compared: the output, with everything that can be reached from it, bit by bit and with the array that it is
    a view of (`docs/audit.md` lists what is compared and what is not; a replay finds mistakes, and not a pipeline that
    is made to hide something); what was raised, printed, logged or warned of; which mechanisms were called in which
    order for which event; and the randomness drawn outside of them. What is measured: how far each query moved. A
    result that cannot be compared does not hold, and neither does a pipeline that raises on both data sets or calls no
    mechanism: nothing was tested then. Not seen: files, clocks, other threads, the `extra` of log records, and the
    distribution of the noise itself, for which there is `audit_draws`. One pair of data sets proves nothing about
    others; a difference that is found is certain.

    Args:
        pipeline: Any function that draws from the given `rng` and returns what is released: a release, a model, or a
            tuple of them. It starts anew in each call. An object that lives outside of it and is returned counts as the
            first run left it, and a second run that overwrites it with something else is found.
        data: One data set.
        neighbor: A neighbor of it, by the unit that the pipeline protects. A row that is added or removed must be the
            last, so that the others keep their places, and their coins.
        seed: The seed of the randomness that both runs share. Torch's global generator is in the same state for both.

    >>> from privet.mechanisms import Count, LaplaceMechanism
    >>> count = Count()
    >>> noise = LaplaceMechanism.for_epsilon(1.0, count)
    >>> print(replay(lambda rows, rng: noise.release(count(rows), rng=rng), [True] * 5, [True] * 4))
    the same on both: 1 answers of mechanisms, 0 draws beside them
    >>> print(replay(lambda rows, rng: (len(rows), noise.release(count(rows), rng=rng)), [True] * 5, [True] * 4))
    it does not hold:
    - the result[0] differs
    """
    tape = _Tape()
    with _ONE_AT_A_TIME, ExitStack() as stack:
        for tap in interceptions():
            stack.enter_context(_tapped(tap, tape))
        with torch.random.fork_rng(devices=[]):
            first = tape.run(pipeline, data, seed)
        snapshot = take_snapshot(first.result)
        tape.again = True
        with torch.random.fork_rng(devices=[]):
            second = tape.run(pipeline, neighbor, seed)
        overwritten = list(overwritten_places(snapshot, take_snapshot(first.result)))
    found = [*_untried(first, second), *tape.differences]
    if not tape.calls and not tape.place:
        found.append("no mechanism was called")
    if tape.place < len(tape.calls):
        found.append(f"{len(tape.calls)} mechanisms were asked on the data, and {tape.place} on the neighbor")
    found += _draws(first.draws, second.draws)
    found += [
        f"the random stream {label!r} was taken {count} times, so that its noise is used again"
        for label, count in first.streams.items()
        if count > 1
    ]
    if not first.raised and not second.raised:
        found += [*differences(first.result, second.result), *overwritten]
    found += differences(first.said, second.said, "what was printed")
    found += differences(first.logged, second.logged, "the list of log lines")
    found += differences(first.warned, second.warned, "the list of warnings")
    return Replay(len(tape.calls), len(first.draws), tuple(tape.moved.values()), tuple(dict.fromkeys(found)))


@dataclass
class _RunTrace:
    """Everything observable of one run, beside its mechanisms' queries."""

    draws: list[int] = field(default_factory=list)
    streams: dict[str, int] = field(default_factory=dict)
    result: Any = None
    raised: tuple[str, str] | None = None
    """The type of an error, and its formatted message."""
    said: str = ""
    logged: list[tuple[str, int, str]] = field(default_factory=list)
    warned: tuple[str, ...] = ()


class _Watched(SeededRng):
    """A seeded stream that records how much was drawn from it."""

    def __init__(self, seen: _RunTrace, seed: int, *labels: int | str) -> None:
        super().__init__(seed, *labels)
        self._seen = seen

    def child(self, label: int | str) -> _Watched:
        """Return the stream of this name, recorded as well; a name used twice gives the same bits twice.

        Args:
            label: The name of the stream.
        """
        name = "/".join(str(each) for each in (*self._labels, label))
        self._seen.streams[name] = self._seen.streams.get(name, 0) + 1
        return _Watched(self._seen, self._seed, *self._labels, label)

    def apart(self, call: int) -> SeededRng:
        """Return a stream for one call of a mechanism, which nothing else draws from.

        Args:
            call: The number of the call.
        """
        return SeededRng(self._seed, *self._labels, "call", call)

    def _fill(self, out: Bytes) -> None:
        self._seen.draws.append(len(out))
        super()._fill(out)


class _Caught:
    """Context that keeps an exception of any kind, because errors are observable. Interrupts and exits pass."""

    error: Exception | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        self.error = error if isinstance(error, Exception) else None
        return self.error is not None


@contextmanager
def _listening(lines: list[tuple[str, int, str]], thread: int) -> Iterator[None]:
    """Record every log line of this thread when its record is created, whether or not a handler receives it."""
    usual = logging.getLogRecordFactory()

    def kept(*args: Any, **named: Any) -> logging.LogRecord:
        record = usual(*args, **named)
        if threading.get_ident() == thread:
            text = str(record.msg)
            with _Caught():  # a message that cannot be formatted is recorded as it is
                text = record.getMessage()
            error = record.exc_info[1] if record.exc_info else None
            text += "".join(traceback.format_exception_only(error)) if error else ""
            lines.append((record.name, record.levelno, text))
        return record

    logging.setLogRecordFactory(kept)
    try:
        yield
    finally:
        logging.setLogRecordFactory(usual)


@dataclass(eq=False)
class _Tape:
    """Recorded queries and answers of mechanisms."""

    calls: list[tuple[MechanismCall, Any]] = field(default_factory=list)
    moved: dict[tuple[str, str], QueryMovement] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    again: bool = False
    place: int = 0
    inside: bool = False
    thread: int = field(default_factory=threading.get_ident)

    def run(self, pipeline: Callable[[Any, Rng], Any], data: Any, seed: int) -> _RunTrace:
        seen, self.place = _RunTrace(), 0
        said, caught = io.StringIO(), _Caught()
        with (
            warnings.catch_warnings(record=True) as warned,
            redirect_stdout(said),
            redirect_stderr(said),
            _listening(seen.logged, self.thread),
        ):
            warnings.simplefilter("always")
            with caught:
                seen.result = pipeline(data, _Watched(seen, seed))
        if caught.error is not None:
            told = "".join(traceback.format_exception_only(caught.error))
            seen.raised = type(caught.error).__name__, told
        seen.said, seen.warned = said.getvalue(), tuple(str(each.message) for each in warned)
        return seen

    def call(self, tap: Interception, original: Callable[..., Any], mechanism: Any, arguments: dict[str, Any]) -> Any:
        number, self.place = self.place, self.place + 1
        rng = arguments.get("rng")
        if isinstance(rng, _Watched):
            arguments = arguments | {"rng": rng.apart(number)}
        elif rng is not None and rng.kind is Randomness.SEEDED:
            name = type(mechanism).__name__
            self.differences.append(f"{name} drew from a seeded generator of its own: who knows the seed takes it off")
        if not self.again:
            output = original(mechanism, **arguments)
            asked, answer = tap.asked(mechanism, arguments, output), tap.keep(mechanism, output)
            self.calls.append((asked, answer))
            return tap.give(mechanism, answer)  # as in the second run: a copy may have another memory layout
        if number >= len(self.calls):
            self.differences.append(f"{type(mechanism).__name__} was asked on the neighbor, and not on the data")
            return original(mechanism, **arguments)
        output = original(mechanism, **arguments) if tap.again else None
        before, kept = self.calls[number]
        now = tap.asked(mechanism, arguments, output)
        if (before.name, before.public) != (now.name, now.public) or len(before.queries) != len(now.queries):
            problem = f"answer {number + 1} is of {before.name} on the data and of {now.name} on the neighbor"
            self.differences.append(f"{problem}, or is for another event, unit or size")
            return output if tap.again else original(mechanism, **arguments)
        self._measure(before, now)
        return tap.give(mechanism, kept)

    def _measure(self, before: MechanismCall, now: MechanismCall) -> None:
        for one, other in zip(before.queries, now.queries, strict=True):
            if dict(one.bounds) != dict(other.bounds):
                self.differences.append(f"{now.name} was made for another distance on the neighbor")
            for norm, declared in one.bounds.items():
                found = QueryMovement(now.name, norm, query_distance(norm, one.value, other.value), declared, one.slack)
                key = (now.name, norm)
                worst = self.moved.get(key, found)
                self.moved[key] = max(worst, found, key=_beyond)


def _beyond(moved: QueryMovement) -> float:
    """Return by how much a query moved further than declared; NaN counts as infinitely far."""
    return math.inf if math.isnan(moved.measured) else moved.measured - moved.declared


@contextmanager
def _tapped(tap: Interception, tape: _Tape) -> Iterator[None]:
    """Route calls of the method in this thread through the tape; calls within calls are not recorded."""
    original = getattr(tap.owner, tap.method)
    own = tap.method in vars(tap.owner)
    signature = inspect.signature(original)

    def called(mechanism: Any, *args: Any, **named: Any) -> Any:
        if tape.inside or threading.get_ident() != tape.thread:
            return original(mechanism, *args, **named)
        given = signature.bind(mechanism, *args, **named)
        arguments = {name: value for name, value in given.arguments.items() if name != "self"}
        tape.inside = True
        try:
            return tape.call(tap, original, mechanism, arguments)
        finally:
            tape.inside = False

    setattr(tap.owner, tap.method, called)
    try:
        yield
    finally:
        if own:
            setattr(tap.owner, tap.method, original)
        else:
            delattr(tap.owner, tap.method)


def _untried(first: _RunTrace, second: _RunTrace) -> Iterator[str]:
    """Yield differences in what was raised, by its type: the message of an error may be private."""
    if first.raised and second.raised:
        kinds = " and ".join(dict.fromkeys((first.raised[0], second.raised[0])))
        yield f"it raised {kinds} on both, so that nothing was tried: run the pipeline by itself to see why"
        if first.raised != second.raised:
            yield "what was raised differs"
    elif first.raised:
        yield f"it raised {first.raised[0]} on the data, and nothing on the neighbor"
    elif second.raised:
        yield f"it raised {second.raised[0]} on the neighbor, and nothing on the data"


def _draws(first: list[int], second: list[int]) -> Iterator[str]:
    if first != second:
        place = next(at for at, (one, other) in enumerate(zip_longest(first, second)) if one != other)
        yield f"randomness is drawn otherwise from draw {place + 1} on, outside of mechanisms"
