"""How the processes of one run wait for each other, and how an error on one of them becomes an error on all.

Before they exchange anything, processes meet: each says where it is and whether it failed, and if one failed or is
elsewhere, all raise. So nobody waits for what will not come. A process that ends without a word is noticed as its
connections close (gloo) or after the group's timeout (`init_process_group(timeout=…)`).

Tested with gloo. The paths for nccl, which exchanges what lies on GPUs alone, are there and have not been run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from types import TracebackType
from typing import Final, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from privet.core import BudgetExceeded, LedgerError, NotProven, PrivetError

__all__ = ["ProcessError", "Rendezvous", "SharedErrors", "SyncPoint"]

E = TypeVar("E", bound=PrivetError)

_ROOM: Final = 6
"""How many numbers a process may tell, besides where it is and whether it failed."""
_LONGEST: Final = 4000
_SHARED: Final[tuple[type[PrivetError], ...]] = (BudgetExceeded, LedgerError, NotProven)
"""Errors that are the same error on every process, wherever they happened."""


class ProcessError(PrivetError):
    """The processes of a run are no longer together, so that none of them goes on."""


class SyncPoint(IntEnum):
    """Where processes meet."""

    FAILURE = 0
    SETUP = 1
    ACTION = 2
    BATCH = 3
    SUM = 4


_WORDS: Final = {
    SyncPoint.SETUP: "attaches a run",
    SyncPoint.ACTION: "waits for process 0",
    SyncPoint.BATCH: "takes a batch",
    SyncPoint.SUM: "ends a step",
}


class Rendezvous:
    """The processes of `torch.distributed`'s default group, as one of them sees them; `backends` as torch names them.

    >>> Rendezvous().meet(SyncPoint.SUM, [7])
    [[7]]
    """

    def __init__(self, rank: int = 0, size: int = 1, backends: str = "cpu:gloo") -> None:
        self.rank, self.size = rank, size
        self._devices = [pair.partition(":")[0] for pair in backends.split(",")]
        self._over = ""

    def together(self) -> SharedErrors:
        """A block in which an error on this process becomes an error on all of them, where they meet next."""
        return SharedErrors(self)

    def meet(self, place: SyncPoint, told: Sequence[int] = (), failure: Exception | None = None) -> list[list[int]]:
        """Wait for all processes. If any of them failed, or is elsewhere, raise; else give what each of them told.

        Whatever is exchanged must follow a meeting at once, and nothing that could fail may stand between: then a
        process that fails always comes to the meeting for which the others wait.
        """
        if self.size == 1:
            return [list(told)]
        self.go_on()
        words = b"" if failure is None else _told(failure)
        own = torch.zeros(2 + _ROOM, dtype=torch.int64)
        own[: 2 + len(told)] = torch.tensor([len(words), place, *told])
        with self._reaching():
            own = self._carried(own)
            gathered = [torch.empty_like(own) for _ in range(self.size)]
            dist.all_gather(gathered, own)
            table: list[list[int]] = torch.stack(gathered).tolist()
        failed = next((rank for rank, row in enumerate(table) if row[0]), None)
        if failed is not None:
            text = torch.zeros(table[failed][0], dtype=torch.uint8)
            if failed == self.rank:
                text.copy_(torch.frombuffer(bytearray(words), dtype=torch.uint8))
            self.spread([text], failed)
            raise self.end(_heard(failed, text.numpy().tobytes()))
        if len({row[1] for row in table}) > 1:
            where = ", ".join(f"process {rank} {_WORDS[SyncPoint(row[1])]}" for rank, row in enumerate(table))
            raise self.end(
                ProcessError(f"the processes are not at the same place ({where}); run the same loop on each of them")
            )
        return [row[2:] for row in table]

    def go_on(self) -> None:
        """Raise if all processes have raised before."""
        if self._over:
            raise ProcessError(f"this run has ended on all processes: {self._over}")

    def tell(self, error: Exception) -> None:
        """Let the others know that this process has failed, unless they know already."""
        if self.size > 1 and not self._over:
            with suppress(PrivetError):  # the error itself is what is to be seen here
                self.meet(SyncPoint.FAILURE, failure=error)

    def end(self, error: E) -> E:
        """Remember that all processes raise this error now, and that none of them goes on."""
        self._over = str(error)
        return error

    @torch.no_grad()
    def spread(self, tensors: Sequence[Tensor], source: int = 0) -> None:
        """Overwrite tensors, of any type, with those of one process."""
        with self._reaching():
            for tensor in tensors:
                if tensor.numel():
                    # As bytes, since not every backend knows every type.
                    dense = self._carried(tensor.detach()).contiguous()
                    dist.broadcast(dense.view(-1).view(torch.uint8), source)
                    if dense.data_ptr() != tensor.data_ptr():
                        tensor.copy_(dense)

    @torch.no_grad()
    def add_up(self, tensor: Tensor) -> None:
        """Overwrite a tensor with the sum of all processes' tensors, the same bits on each."""
        with self._reaching():
            carried = self._carried(tensor)
            dist.all_reduce(carried)
            if carried is not tensor:
                tensor.copy_(carried)

    def _carried(self, tensor: Tensor) -> Tensor:
        """The tensor itself if processes can exchange it from where it is, else a copy on a device where they can."""
        return tensor if tensor.device.type in self._devices else tensor.to(self._devices[0])

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # what torch raises when a connection closes, or a timeout passes
            lost = "another process of this run cannot be reached: it has ended, or has not come within the timeout"
            raise self.end(ProcessError(f"{lost}; why, its own output says")) from error


class SharedErrors:
    """A block of code whose errors the other processes learn of."""

    def __init__(self, meeting: Rendezvous) -> None:
        self._meeting = meeting

    def __enter__(self) -> None:
        self._meeting.go_on()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        # An interrupt ends this process at once, and is not something to wait for the others with.
        if isinstance(error, Exception):
            self._meeting.tell(error)


def _told(failure: Exception) -> bytes:
    """What the others may hear: of errors that are not Privet's the name alone, as their text may hold private rows."""
    text = str(failure)[:_LONGEST] if isinstance(failure, PrivetError) else ""
    shared = [place for place, kind in enumerate(_SHARED) if isinstance(failure, kind)]
    return json.dumps({"kind": type(failure).__name__, "shared": shared, "text": text}).encode()


def _heard(rank: int, told: bytes) -> PrivetError:
    said = json.loads(told)
    for place in said["shared"]:
        kind = _SHARED[int(place)]
        return kind(f"{said['text']} (on process {rank})")
    why = f": {said['text']}" if said["text"] else "; its own output has more"
    return ProcessError(f"process {rank} stopped with {said['kind']}{why}")
