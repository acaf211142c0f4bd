"""Steps are written down before they begin, so that whoever goes on after a crash knows what may have been drawn.

A journal is a short text file beside a run's checkpoints. Every line says up to which step the run may have gone, and
carries a hash of itself and all lines before it. A line is on the disk before any step that it names begins.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
from contextlib import ExitStack
from dataclasses import dataclass
from io import FileIO
from math import ceil
from pathlib import Path
from typing import Any, Final, Self
from weakref import WeakSet, finalize

from privet.core import PrivetError, locked
from privet.training.sampling import State

__all__ = ["CheckpointError", "Journal", "for_me_alone", "sync_directory"]

_VERSION: Final = 1
_NAME: Final = "privet journal"
_SHARE: Final = 0.01
"""How much of a step's time writing may take; more steps are written down at once where a disk is slow."""
_LOSS: Final = 100
"""A crash loses the steps that were written down and not made: at most one in this many of the plan's."""


class CheckpointError(PrivetError):
    """A checkpoint or its journal cannot be read, trusted or continued; both are left as they were."""


@dataclass(frozen=True)
class _Line:
    """What a line says: which life of the run wrote it, and how many steps may have begun by then."""

    life: int
    steps: int
    sampler: State | None = None
    """The sampler's state, where it changed."""
    released: bool = False

    def text(self) -> str:
        body: dict[str, Any] = {"life": self.life, "steps": self.steps}
        if self.sampler is not None:
            body["sampler"] = self.sampler
        return json.dumps(body | ({"released": True} if self.released else {}), sort_keys=True, allow_nan=False)


class Journal:
    """The journal of one run, which only its one active `Run` writes.

    You must make sure that the file is not copied and continued twice, nor restored from a backup: nothing on the same
    disk could detect that. `begin` must return before anything of a step is drawn from the data.
    """

    def __init__(self, path: Path, file: FileIO, run: str, total: int) -> None:
        self.path, self.run, self.total = path, run, total
        self.life, self.steps, self.released, self.head = 0, 0, False, ""
        self.sampler: State | None = None
        self._file: FileIO | None = file
        self._length, self._cost = 0, 0.0
        self._last: tuple[int, float] | None = None  # the step for which a line was written last, and when
        _LIVE.add(self)
        finalize(self, file.close)

    @classmethod
    def create(cls, path: Path, *, run: str, total: int, steps: int, sampler: State, replace: bool) -> Self:
        """Create the journal of a new run.

        Args:
            path: Path of the journal.
            run: Name of the run.
            total: Number of steps of the plan.
            steps: Number of steps that have started.
            sampler: State of the sampler.
            replace: Whether to replace the journal of a run that has started and was not released.

        Raises:
            CheckpointError: The directory does not exist, a journal is there that may not be replaced, or it is in use.
        """
        path = path.absolute()
        if not path.parent.is_dir():
            raise CheckpointError(f"there is no directory {path.parent}; make it first")
        old = _opened(path) if path.exists() else None
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
        try:
            if old is not None:
                _may_go(path, old, replace)
            with ExitStack() as failed:
                failed.callback(part.unlink, missing_ok=True)
                journal = cls(path, FileIO(part, "x+", opener=for_me_alone), run, total)
                failed.callback(journal.close)
                locked(journal._here())
                journal._begin_life(steps, sampler, at=part)
                part.replace(path)
                failed.pop_all()
        finally:
            if old is not None:
                old.close()
        sync_directory(path)
        return journal

    @classmethod
    def open(cls, path: Path, *, run: str, total: int, head: str) -> Self:
        """Open, lock and check the journal of an interrupted run; `go_on` then resumes it.

        Args:
            path: Path of the journal.
            run: Name of the run.
            total: Number of steps of the plan.
            head: Last hash that the checkpoint saw: a journal without it is another one, or an older copy.

        Raises:
            CheckpointError: The journal is missing, was edited, is outdated or in use, or the run was released.
        """
        path = path.absolute()
        if not path.exists():
            raise CheckpointError(
                f"the journal {path} is missing, and it alone knows how many steps were begun; "
                "put it beside the checkpoint, or say where it is with journal="
            )
        journal = cls(path, _opened(path), run, total)
        with ExitStack() as refused:
            refused.callback(journal.close)
            journal._read(head)
            refused.pop_all()
        return journal

    def go_on(self, steps: int) -> None:
        """Record on the disk that the run is resumed, so that no two resumptions have the same number.

        Args:
            steps: Number of steps of the checkpoint.
        """
        self._begin_life(max(self.steps, steps), None, at=self.path)

    def begin(self, number: int, sampler: State) -> None:
        """Return once the disk has recorded that a step may have started.

        Args:
            number: Number of the step, counted from 0.
            sampler: State of the sampler.
        """
        file = self._here()
        if number < self.steps and sampler == self.sampler:
            return
        ahead = max(self.steps, min(number + self._ahead(number), self.total))
        self._write(file, _Line(self.life, ahead, self._news(sampler)))
        self._last = number, time.monotonic()

    def settle(self, steps: int, sampler: State) -> None:
        """Record that exactly this many steps have started: steps that were recorded ahead and not used are free again.

        Args:
            steps: Number of steps that have started.
            sampler: State of the sampler.
        """
        if steps == self.steps and sampler == self.sampler:
            self._guard(self._here(), self.path)
            return
        self._write(self._here(), _Line(self.life, steps, self._news(sampler)))

    def end(self, steps: int) -> None:
        """Record that the run was released, and close the journal.

        Args:
            steps: Number of steps that have started.
        """
        self._write(self._here(), _Line(self.life, steps, released=True))
        self.close()

    def close(self) -> None:
        """Close the file; the run may then be resumed from a checkpoint."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _here(self) -> FileIO:
        if self._file is None:
            raise CheckpointError(
                "the run is closed, or lives in the process that this one was forked from; resume it from a checkpoint"
            )
        return self._file

    def _news(self, sampler: State) -> State | None:
        return sampler if sampler != self.sampler else None

    def _ahead(self, number: int) -> int:
        """How many steps to write down at once: so many that writing is a small part of making them."""
        if self._last is None or number <= self._last[0]:
            return 1
        pace = (time.monotonic() - self._last[1]) / (number - self._last[0])
        wanted = ceil(self._cost / (_SHARE * pace)) if pace > 0 else self.total
        return max(1, min(wanted, self.total // _LOSS))

    def _begin_life(self, steps: int, sampler: State | None, at: Path) -> None:
        file = self._here()
        if not self.head:
            self._append(file, json.dumps({_NAME: _VERSION, "run": self.run, "total": self.total}), at)
        life = self.life + 1
        self._append(file, _Line(life, steps, sampler).text(), at)
        self.life, self.steps = life, steps
        self.sampler = self.sampler if sampler is None else sampler

    def _write(self, file: FileIO, line: _Line) -> None:
        begun = time.monotonic()
        self._append(file, line.text(), self.path)
        self.steps, self.released = line.steps, line.released
        self.sampler = self.sampler if line.sampler is None else line.sampler
        self._cost = time.monotonic() - begun

    def _append(self, file: FileIO, text: str, at: Path) -> None:
        """Write at the end of what is known to be whole. What fails here may be tried again."""
        head = _hash(self.head, text)
        line = f"{text} {head}\n".encode()
        self._guard(file, at)
        try:
            file.truncate(self._length)
            file.seek(self._length)
            written = file.write(line)
            os.fsync(file.fileno())
        except OSError as error:
            raise CheckpointError(
                f"the journal {at} cannot be written ({error.strerror}), so no step was begun; make room, and try again"
            ) from error
        if written != len(line):
            raise CheckpointError(f"the journal {at} was cut short by a full disk, so no step was begun; make room")
        self.head, self._length = head, self._length + len(line)

    def _guard(self, file: FileIO, at: Path) -> None:
        """Raise if the file is no longer the one that whoever resumes would read, or if another life has written.

        The latter can be only where files cannot be locked.
        """
        try:
            same = os.path.samestat(os.fstat(file.fileno()), at.stat())
        except FileNotFoundError:
            same = False
        if not same:
            raise CheckpointError(f"the journal {at} was moved, deleted or replaced, so the run cannot go on")
        file.seek(self._length)
        for text, _, _ in _lines(file.read(), self.head):
            if text is not None and json.loads(text).get("life") != self.life:
                raise CheckpointError("this run was resumed elsewhere, which ends it here; go on there")

    def _read(self, wanted: str) -> None:
        """Follow the chain to its end. A last line without its end was never waited for, and stands for no step."""
        heads = set[str]()
        for number, (text, head, length) in enumerate(_lines(self._here().readall(), "")):
            body = json.loads(text) if text is not None else None
            if body is None or (number == 0 and body.get(_NAME) != _VERSION):
                problem = (
                    "is not one that this version can read" if number == 0 else f"was changed in line {number + 1}"
                )
                raise CheckpointError(f"the journal {self.path} {problem}; it alone knows how many steps were begun")
            if number == 0:
                if body["run"] != self.run or body["total"] != self.total:
                    raise CheckpointError(f"the journal {self.path} belongs to another run; give this run's own")
            else:
                self.life, self.steps = body["life"], body["steps"]
                self.sampler, self.released = body.get("sampler", self.sampler), "released" in body
            self.head, self._length = head, self._length + length
            heads.add(head)
        if wanted not in heads:
            raise CheckpointError(f"the journal {self.path} is older than the checkpoint; give the newest copy of it")
        if self.released:
            raise CheckpointError("this run was released, so that it cannot go on; attach a new run, which costs anew")


def for_me_alone(path: str, flags: int) -> int:
    """Open a file that only its owner can read: it says which rows a step used, or holds a token.

    Args:
        path: Path of the file.
        flags: Flags of `os.open`.
    """
    return os.open(path, flags, 0o600)


def sync_directory(path: Path) -> None:
    """Make a new name in a directory durable, where the system supports it.

    Args:
        path: Path of the file in the directory.
    """
    if not hasattr(os, "O_DIRECTORY"):
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _hash(before: str, text: str) -> str:
    return hashlib.sha256(f"{before} {text}".encode()).hexdigest()[:32]


def _lines(data: bytes, head: str) -> list[tuple[str | None, str, int]]:
    """For each whole line its text (None if the hash is wrong, and then it is the last), the head, and its length."""
    found: list[tuple[str | None, str, int]] = []
    for line in data.split(b"\n")[:-1]:
        text, _, claimed = line.decode(errors="replace").rpartition(" ")
        head = _hash(head, text)
        found.append((text if head == claimed else None, head, len(line) + 1))
        if head != claimed:
            break
    return found


def _opened(path: Path) -> FileIO:
    """The file, for this process alone."""
    try:
        file = FileIO(path, "r+")
    except OSError as error:
        raise CheckpointError(f"the journal {path} cannot be opened for writing: {error.strerror}") from error
    if not locked(file):
        file.close()
        raise CheckpointError(
            f"a run that is alive holds the journal {path}, and two runs must not go on from one checkpoint; "
            "close the other one first, with run.close() or by ending its process"
        )
    return file


def _may_go(path: Path, old: FileIO, replace: bool) -> None:
    """Raise unless the file at this place may be written over."""
    lines = [json.loads(text) for text, _, _ in _lines(old.readall(), "") if text is not None]
    if not lines or _NAME not in lines[0]:
        raise CheckpointError(f"{path} is a file of something else, and is left as it is; choose another place")
    if not replace and "released" not in lines[-1] and lines[-1].get("steps"):
        raise CheckpointError(
            f"{path} is the journal of a run that is not finished; resume that run, or delete its files"
        )


_LIVE: Final[WeakSet[Journal]] = WeakSet()


def _in_a_forked_child() -> None:
    """The run lives in the parent: two processes must not make one step twice, nor keep its file locked."""
    for journal in list(_LIVE):
        journal.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_forked_child)
