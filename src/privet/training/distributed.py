"""One run on several processes: one of them draws, all of them work, and what they release is one process's release.

Under `torchrun`, once `torch.distributed` is initialised, every process attaches and runs the same loop. Process 0
draws each logical batch from the whole data set, charges for it and draws the noise. Each process takes whole units of
that batch, clips them and sums. The sums are added up, with the noise of process 0 among them, and every process makes
the same step from the same bits. So the event is that of one process, and it is charged once.

You must keep true that the processes trust each other and the network between them: batches, and sums without noise,
travel there as they are.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from privet.core import InvalidInput
from privet.training.rendezvous import ProcessError, Rendezvous, SharedErrors, SyncPoint
from privet.training.sampling import SampledBatch

if TYPE_CHECKING:
    from privet.core import Unit
    from privet.core.random import Rng
    from privet.training.data import Rows
    from privet.training.plan import DPSGD

__all__ = ["ProcessError", "Turn", "World", "described", "share"]

T = TypeVar("T")

_INTEGERS: Final = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_OWN: Final = re.compile(r" at 0x[0-9a-f]+|, device='[^']*'")
"""What a text says of one process alone."""


@dataclass(frozen=True, eq=False)
class Turn:
    """A step's number, and what of its batch a process works on."""

    number: int
    drawn: SampledBatch


class World:
    """The processes of a run, as one of them sees them. By itself it is one process, and nothing is exchanged.

    >>> World().size, World().leads
    (1, True)
    """

    def __init__(self, meeting: Rendezvous | None = None) -> None:
        self._meeting = Rendezvous() if meeting is None else meeting
        self.rank, self.size = self._meeting.rank, self._meeting.size

    @classmethod
    def here(cls) -> World:
        """The processes that `torch.distributed` knows of, or this one alone."""
        if dist.is_available() and dist.is_initialized():
            return cls(Rendezvous(dist.get_rank(), dist.get_world_size(), dist.get_backend_config()))
        if dist.is_available() and dist.is_torchelastic_launched():
            raise ProcessError(
                "torchrun started this process, and torch.distributed is not initialised: every process would train, "
                "and pay, by itself; call torch.distributed.init_process_group() before attaching"
            )
        return cls()

    @property
    def leads(self) -> bool:
        """Whether this is the process that draws, adds noise and pays."""
        return self.rank == 0

    def together(self) -> SharedErrors:
        """A block in which an error on this process becomes an error on all of them, where they meet next."""
        return self._meeting.together()

    def lead(self, action: Callable[[], T]) -> T | None:
        """Let process 0 do what no other may do; if it raises, all do. The others get None."""
        with self.together():
            done = action() if self.leads else None
        self._meeting.meet(SyncPoint.ACTION)
        return done

    def agree(self, given: Mapping[str, str], model: nn.Module) -> None:
        """Refuse processes that were given different things, and let all begin with the weights of process 0.

        Args:
            given: for each argument a text that is the same on all processes; see `described`.
            model: its parameters and buffers become those of process 0, as torch's own data-parallel training does.
        """
        if self.size == 1:
            return
        table = self._meeting.meet(SyncPoint.SETUP, [_digest(text.encode()) for text in given.values()])
        for argument, told in zip(given, zip(*table, strict=True), strict=False):
            if len(set(told)) > 1:
                advice = "run the same program on all of them, each with the whole data set and not a part of it"
                raise self._meeting.end(InvalidInput(argument, "is not the same on all processes", advice))
        self._meeting.spread([*model.parameters(), *model.buffers()])

    def noise_of(self, plan: DPSGD) -> DPSGD:
        """The plan with the noise of process 0: what was calibrated may differ in its last bit between processors."""
        noise = plan.noise_multiplier
        if self.size == 1 or noise is None:
            return plan
        return replace(plan, noise_multiplier=_number(self._meeting.meet(SyncPoint.ACTION, [_bits(noise)])[0][0]))

    def turn(self, take: Callable[[], Turn | None], replica: Sequence[Tensor], clip: float) -> Turn | None:
        """The next step, with this process's share of its batch; None if there is no further step.

        Args:
            take: counts a step and draws its batch from the whole data set; called on process 0 alone.
            replica: the trained parameters, which must have the same bits on all processes before a step.
            clip: must be the same, too.
        """
        if self.size == 1:
            return take()
        with self.together():
            own = take() if self.leads else None
            told = [_checksum(replica), _bits(clip), -1, 0, 0]
            if own is not None:
                told[2:] = own.number, len(own.drawn.indices), int(own.drawn.groups is not None)
        table = self._meeting.meet(SyncPoint.BATCH, told)
        if len({tuple(row[:2]) for row in table}) > 1:
            problem = "the weights are no longer the same on all processes"
            advice = "give all of them one optimizer and schedule, and change weights between steps on all or on none"
            raise self._meeting.end(ProcessError(f"{problem}; {advice}"))
        number, rows, grouped = table[0][2:5]
        if number < 0:
            return None
        drawn = torch.zeros((1 + grouped, rows), dtype=torch.int64)
        if own is not None:
            columns = [own.drawn.indices] if own.drawn.groups is None else [own.drawn.indices, own.drawn.groups]
            drawn.copy_(torch.from_numpy(np.stack(columns)))
        self._meeting.spread([drawn])
        indices, groups = drawn[0].numpy(), drawn[1].numpy() if grouped else None
        return Turn(number, share(SampledBatch(indices, groups, rows), self.rank, self.size))

    def total(self, flat: Tensor, count: float) -> float:
        """Add up over all processes: `flat` in place, and `count`; both have the same bits on all of them then."""
        if self.size == 1:
            return count
        table = self._meeting.meet(SyncPoint.SUM, [_bits(count)])
        self._meeting.add_up(flat)
        return sum(_number(row[0]) for row in table)


def share(drawn: SampledBatch, rank: int, size: int) -> SampledBatch:
    """The part of a batch that one of `size` processes works on: about as many rows as the others, of whole units.

    >>> batch = SampledBatch(np.array([3, 1, 4, 5, 9]), np.array([0, 0, 0, 1, 2]), 3)
    >>> [share(batch, rank, 2).indices.tolist() for rank in range(2)]
    [[3, 1, 4], [5, 9]]
    """
    rows, groups = len(drawn.indices), drawn.groups
    first, last = rows * rank // size, rows * (rank + 1) // size
    if groups is None:
        return SampledBatch.of_rows(drawn.indices[first:last])
    # A unit goes where the first of its rows would go.
    starts = np.concatenate([np.flatnonzero(np.diff(groups, prepend=-1)), [rows]])
    first, last = (int(starts[np.searchsorted(starts, cut)]) for cut in (first, last))
    own = groups[first:last]
    return SampledBatch(drawn.indices[first:last], own - own[:1], int(own[-1] - own[0]) + 1 if len(own) else 0)


def described(
    plan: DPSGD, rows: Rows, unit: Unit, model: nn.Module, optimizer: torch.optim.Optimizer, rng: Rng
) -> dict[str, str]:
    """For each argument of `DPSGD.attach` a text that must not differ between processes; no weights are in it."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    groups = [
        {key: value if key != "params" else [names.get(id(each)) for each in value] for key, value in group.items()}
        for group in optimizer.param_groups
    ]
    told = {
        "plan": f"{plan!r}",
        "dataset": f"{len(rows)} {_first_and_last(rows) if rows.in_memory else ''}",
        "users": f"{unit!r}",
        "model": f"{list(_structure(model))}",
        "optimizer": f"{type(optimizer).__qualname__} {groups!r}",
        "rng": f"{rng.kind}",
    }
    return {argument: _OWN.sub("", text) for argument, text in told.items()}


def _structure(model: nn.Module) -> Iterator[Any]:
    for name, module in model.named_modules():
        yield name, type(module).__qualname__
    for name, parameter in model.named_parameters():
        yield name, str(parameter.dtype), tuple(parameter.shape), parameter.requires_grad
    for name, buffer in model.named_buffers():
        yield name, str(buffer.dtype), tuple(buffer.shape)


def _first_and_last(rows: Rows) -> int:
    """Tells most data sets from their parts, and from themselves in another order."""
    chosen = sorted({0, len(rows) // 2, len(rows) - 1}) if len(rows) else []
    leaves = tree_leaves(rows.batch(chosen))
    tensors = [leaf.cpu().contiguous() for leaf in leaves if isinstance(leaf, Tensor)]
    return _digest(b"".join(each.view(-1).view(torch.uint8).numpy().tobytes() for each in tensors if each.numel()))


def _checksum(tensors: Sequence[Tensor]) -> int:
    """A number that changes with nearly every change of a bit; one pass, and no more than one wait for a GPU."""
    sums = [each.detach().view(_INTEGERS[each.element_size()]) for each in tensors]
    return _digest(repr(torch.stack([each.sum(dtype=each.dtype).long() for each in sums]).tolist()).encode())


def _digest(data: bytes) -> int:
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "little", signed=True)


def _bits(number: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


def _number(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])
