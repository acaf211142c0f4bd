"""A program that is killed while it trains: `python -m tests.training.resuming DIRECTORY…`.

A directory's name says what happens in it, one after the other, since importing takes longer than each of them.
`points`: a run is begun, and goes through many lives, each in a process of its own that is killed (SIGKILL) at a chosen
point and resumed by the next. `moments`: lives are killed at moments that nobody chooses. Each step writes its number
into a file of its own, just before its noise is drawn. After each life one line of JSON says how it ended. `fork`: a
forked child tries to go on with its parent's run.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from privet.core.random import SeededRng
from privet.ledger import Ledger
from privet.ledger.charge import Charge
from privet.training import DPSGD, checkpoint
from privet.training.journal import CheckpointError, Journal
from privet.training.run import Run
from privet.training.step import Step

PLAN = DPSGD(noise_multiplier=2.0, delta=1e-5, batch_size=20, steps=200, population=100, average=0.9)
EVERY = 10
"""A checkpoint is written after each so many steps."""
POINTS = (
    "before the first draw",
    "before the journal",
    "in the journal",
    "after the journal",
    "after the noise",
    "before the optimizer",
    "after the optimizer",
    "in the file",
    "before the file is moved",
    "after the file is moved",
    "before the commit",
    "after the commit",
)


REPEATED = POINTS[1:10]
"""Points that a life reaches often; it then dies there at once, or later."""
MOMENTS = 15


def parts() -> tuple[nn.Module, torch.optim.Optimizer, tuple[Tensor, Tensor]]:
    """A small model, its optimizer, and data."""
    generator = torch.Generator().manual_seed(5)
    model = nn.Linear(4, 3)
    data = torch.randn(100, 4, generator=generator), torch.randint(0, 3, (100,), generator=generator)
    return model, torch.optim.Adam(model.parameters(), lr=0.01), data


def die() -> None:
    """As if the power went."""
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str, act: Callable[[], None]) -> None:
    """Let a function be preceded by something."""
    real = getattr(owner, name)

    def wrapped(*given: Any, **named: Any) -> Any:
        act()
        return real(*given, **named)

    setattr(owner, name, wrapped)


def after(owner: Any, name: str, act: Callable[[], None]) -> None:
    """Let a function be followed by something."""
    real = getattr(owner, name)

    def wrapped(*given: Any, **named: Any) -> Any:
        result = real(*given, **named)
        act()
        return result

    setattr(owner, name, wrapped)


def plant(point: str, calls: int, optimizer: torch.optim.Optimizer) -> None:
    """Die at the point, when it is reached for the given time."""
    left = calls

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            die()

    def half_a_line(self: Journal, file: Any, text: str, at: Path) -> None:
        file.seek(self._length)
        file.write(text.encode()[:20])
        die()

    def half_a_file(whole: Any, file: Any) -> None:
        file.write(b"PK\x03\x04" + bytes(1000))
        file.flush()
        die()

    if point == "before the first draw":
        before(Charge, "draw", die)
    elif point == "before the journal":
        before(Journal, "_append", count)
    elif point == "in the journal":
        after(Step, "finish", lambda: setattr(Journal, "_append", half_a_line))
    elif point == "after the journal":
        after(Journal, "_append", count)
    elif point == "after the noise":
        after(Step, "begin", count)
    elif point == "before the optimizer":
        optimizer.register_step_pre_hook(lambda *_: count())
    elif point == "after the optimizer":
        optimizer.register_step_post_hook(lambda *_: count())
    elif point == "in the file":
        checkpoint.torch.save = half_a_file  # type: ignore[attr-defined]
    elif point == "before the file is moved":
        before(Path, "replace", count)
    elif point == "after the file is moved":
        after(Path, "replace", count)
    elif point == "before the commit":
        before(Charge, "commit", die)
    elif point == "after the commit":
        after(Charge, "commit", die)


def live(directory: Path, point: str, calls: int) -> None:
    """One life: begin or resume the run, and train until it dies or all is done."""
    torch.set_num_threads(1)
    model, optimizer, data = parts()
    ledger, path = Ledger(directory / "ledger.db"), directory / "run.pt"
    if path.exists():
        run = PLAN.attach(model, optimizer, data, resume=path, charge=ledger.budget("clinic"), rng=SeededRng(3))
    else:
        run = PLAN.attach(model, optimizer, data, charge=ledger.budget("clinic"), rng=SeededRng(3))
        run.save(path)
    log = os.open(directory / "drawn", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def drawn() -> None:
        os.write(log, b"%d\n" % (run.steps - 1))

    before(Step, "begin", drawn)
    plant(point, calls, optimizer)
    train(run, model, path)
    run.release(1e-5)


def train(run: Run, model: nn.Module, path: Path) -> None:
    """The loop."""
    for x, y in run.batches():
        if run.step(cross_entropy(model(x), y, reduction="none")) and run.steps % EVERY == 0:
            run.save(path)


def child(directory: Path, point: str = "", calls: int = 1, wait: float | None = None) -> dict[str, Any]:
    """One life in a process of its own; how it ended."""
    number = os.fork()
    if not number:
        live(directory, point, calls)
        os._exit(0)
    if wait is not None:
        time.sleep(wait)
        os.kill(number, signal.SIGKILL)
    _, status = os.waitpid(number, 0)
    return {"point": point, "killed": os.WIFSIGNALED(status), "failed": status != 0 and not os.WIFSIGNALED(status)}


def in_a_fork(directory: Path) -> dict[str, Any]:
    """What happens if a forked child goes on with its parent's run, and whether the parent still can."""
    model, optimizer, data = parts()
    run = PLAN.attach(model, optimizer, data, journal=directory / "fork.journal")
    batches = run.batches()
    number = os.fork()
    if not number:
        try:
            next(batches)
        except CheckpointError:
            os._exit(7)
        os._exit(0)
    _, status = os.waitpid(number, 0)
    next(batches)
    return {"refused": os.waitstatus_to_exitcode(status) == 7, "steps": run.steps}


def main(directory: Path) -> Iterator[dict[str, Any]]:
    """Lives one after the other."""
    if directory.name == "fork":
        yield in_a_fork(directory)
        return
    parts()  # so that no child has to load what optimizers load
    if directory.name == "points":
        for point in POINTS:
            for calls in (1, 4) if point in REPEATED else (1,):
                yield child(directory, point, calls)
        return
    chance = random.Random(3)
    for wait in [*(0.05 + 0.3 * chance.random() for _ in range(MOMENTS)), None]:
        ended = child(directory, wait=wait)
        yield ended
        if not ended["killed"]:
            return


if __name__ == "__main__":
    for place in map(Path, sys.argv[1:]):
        for said in main(place):
            print(json.dumps({"how": place.name} | said), flush=True)
